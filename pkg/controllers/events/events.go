// Package events holds events back until the status that goes with them is committed.
package events

// Pending are events that are yet to be recorded: until the status is committed all may be decided anew.
type Pending []func()

// Add adds what records an event.
func (p *Pending) Add(record func()) { *p = append(*p, record) }

// Record records all, in order, once.
func (p *Pending) Record() {
	for _, record := range *p {
		record()
	}
	*p = nil
}
