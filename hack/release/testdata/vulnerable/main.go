// Command vulnerable reaches one of the two functions that the database of the test calls vulnerable.
package main

import "strings"

func main() { println(upper("a")) }

func upper(text string) string { return strings.ToUpper(text) }
