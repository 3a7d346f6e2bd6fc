package apiproxy

import (
	"net"
	"net/http"
	"sync"
)

// connections are those of clients.
type connections struct {
	mu  sync.Mutex
	all map[net.Conn]bool
}

func newConnections() *connections { return &connections{all: map[net.Conn]bool{}} }

// changed implements http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.all, conn)
		return
	}
	c.all[conn] = true
}

func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.all {
		_ = conn.Close()
	}
}
