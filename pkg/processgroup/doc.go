// Package processgroup runs commands in process groups of their own, so that a signal of the terminal does not reach them, and what they
// have started ends with them. Windows has no such groups: there, a command ends without what it has started.
package processgroup
