package stages

import (
	"regexp"
	"testing"
)

func TestCommandLines(t *testing.T) {
	failing, endless, napping := regexp.MustCompile(fails), regexp.MustCompile(forever), regexp.MustCompile(sleeps)
	tests := []struct {
		line           string
		fails, forever bool
		sleep          string
	}{
		{line: ""},
		{line: "false", fails: true},
		{line: "/bin/false", fails: true},
		{line: "sh -c false", fails: true},
		{line: "/bin/bash -ec false", fails: true},
		{line: "sh -c exit 1", fails: true},
		{line: "sh -c exit 0"},
		{line: "sh -c echo start; exit 12;", fails: true},
		{line: "sh -c echo start && false", fails: true},
		{line: "sh -c set -e\necho x\nexit 3\n", fails: true},
		{line: "tini -- false", fails: true},
		{line: "sh -c echo false"},
		{line: "echo --enabled false"},
		{line: "server --verbose=false"},
		{line: "sh -c check || exit 1"},
		{line: "sh -c check || false"},
		{line: "sh -c false || true"},
		{line: "sh -c if [ ! -f x ]; then exit 1; fi"},
		{line: "sleep 10", sleep: "10"},
		{line: "/bin/sleep 3600s", sleep: "3600s"},
		{line: "sh -c sleep 0.5", sleep: "0.5"},
		{line: "sh -c echo a && sleep 5m && echo b", sleep: "5m"},
		{line: "sh -c exec sleep 60", sleep: "60"},
		{line: "sh -c for i in 1 2; do sleep 1; done", sleep: "1"},
		{line: "echo sleep 10"},
		{line: "sleep infinity", forever: true},
		{line: "/bin/sh -c trap exit TERM; sleep inf", forever: true},
		{line: "tail -f /dev/null", forever: true},
		{line: "tail -n 1 -F /var/log/x", forever: true},
		{line: "sh -c while true; do sleep 30; done", forever: true, sleep: "30"},
		{line: "sh -c while :; do date; done", forever: true},
		{line: "sh -c sleep 2; false", fails: true, sleep: "2"},
	}
	for _, tc := range tests {
		if got := failing.MatchString(tc.line); got != tc.fails {
			t.Errorf("%q fails: %v, want %v", tc.line, got, tc.fails)
		}
		if got := endless.MatchString(tc.line); got != tc.forever {
			t.Errorf("%q runs forever: %v, want %v", tc.line, got, tc.forever)
		}
		sleep := ""
		if m := napping.FindStringSubmatch(tc.line); m != nil {
			sleep = m[1] + m[2]
		}
		if sleep != tc.sleep {
			t.Errorf("%q sleeps %q, want %q", tc.line, sleep, tc.sleep)
		}
	}
}
