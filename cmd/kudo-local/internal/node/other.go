//go:build !linux

package node

import (
	"context"
	"errors"
)

var errLinux = errors.New("a real node runs on Linux only")

// Run runs a node.
func Run(context.Context, string) error { return errLinux }

// Init is the first process of a node.
func Init(string) error { return errLinux }

// Clean removes what a node leaves behind that was killed.
func (c *Config) Clean() error { return errLinux }

// Kill ends a server of a node.
func Kill(int, string) error { return errLinux }

// Restart starts the servers of a node that have ended.
func Restart(int) error { return errLinux }
