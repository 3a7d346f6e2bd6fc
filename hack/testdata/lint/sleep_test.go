package fixture

import (
	"testing"
	"time"
)

// TestSleep waits for an amount of time: forbidigo.
func TestSleep(*testing.T) { time.Sleep(time.Second) }
