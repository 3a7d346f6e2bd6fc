package ui

import "sync"

// changes notifies streams that something has changed. A slow stream misses no change: it gets one notification for several.
type changes struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

// notify tells all listeners of a change.
func (c *changes) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for listener := range c.listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
}

// listen returns a channel that gets a value after each change, until stop is called.
func (c *changes) listen() (changed <-chan struct{}, stop func()) {
	listener := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = map[chan struct{}]bool{}
	}
	c.listeners[listener] = true
	return listener, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, listener)
	}
}
