package main

import (
	"strings"
	"testing"
)

func TestCheckProfileAddress(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:6060": "", "[::1]:6060": "",
		":6060": "name a loopback address", "0.0.0.0:6060": "name a loopback address", "10.0.0.1:6060": "name a loopback address",
		"localhost:6060": "name a loopback address", // whatever a resolver makes of it
		"127.0.0.1":      "missing port", "": "missing port",
	} {
		if err := checkProfileAddress(address); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}
