package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// TestSeconds: a plain number counts as seconds, as in KUDO.
func TestSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         time.Duration
		fails        bool
	}{
		"Default":  {"nothing is said", "", 5 * time.Minute, false},
		"Number":   {"seconds", "90", 90 * time.Second, false},
		"Zero":     {"no wait at all", "0", 0, false},
		"Duration": {"a duration", "1m30s", 90 * time.Second, false},
		"Parts":    {"of less than a second too", "250ms", 250 * time.Millisecond, false},
		"Fraction": {"a fraction needs a unit", "1.5", 0, true},
		"Text":     {"no number", "soon", 0, true},
		"Negative": {"a wait is not shorter than nothing", "-5", 0, true},
		"Before":   {"nor so", "-5m", 0, true},
		"Huge":     {"more than fits", "99999999999999999999", 0, true},
	} {
		var w WaitFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		w.Add(flags, "it is done")
		var err error
		if tc.text != "" {
			err = flags.Parse([]string{"--wait-time=" + tc.text})
		}
		if (err != nil) != tc.fails || err == nil && time.Duration(w.Time) != tc.want {
			t.Errorf("%s: %s: %s, error %v", name, tc.reason, time.Duration(w.Time), err)
		}
		if err != nil && !strings.Contains(err.Error(), "is neither a number of seconds nor a duration such as 5m") {
			t.Errorf("%s: the error says what to write: %v", name, err)
		}
	}
}

// TestWaitTimeout checks that --wait-time and --wait-timeout set the same value, and that the last one on the command line wins (D11).
func TestWaitTimeout(t *testing.T) {
	for want, args := range map[time.Duration][]string{
		time.Minute: {"--wait-timeout=1m"}, time.Hour: {"--wait-timeout=1m", "--wait-time=1h"}, time.Second: {"--wait-time=1h", "--wait-timeout", "1"},
	} {
		var w WaitFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		w.Add(flags, "it is done")
		flags.SetNormalizeFunc(NormalizeFlag)
		if err := flags.Parse(args); err != nil || time.Duration(w.Time) != want || !flags.Changed("wait-timeout") {
			t.Errorf("%v: %s, want %s (%v)", args, time.Duration(w.Time), want, err)
		}
	}
}

// TestParameters: -p wins over files, and later files over earlier ones.
func TestParameters(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"one.yaml": "A: one\nB: one\nC: one\n", "two.yaml": "B: two\nN: 5.70\nL: [x]\n", "broken.yaml": "A: ["} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "two.yaml")
	for name, tc := range map[string]struct {
		reason     string
		args       []string
		want       map[string]string
		text       string
		UsageError bool
	}{
		"None":    {"nothing is given", nil, map[string]string{}, "", false},
		"Files":   {"the later file wins", []string{"-P", one, "-P", two}, map[string]string{"A": "one", "B": "two", "C": "one", "N": "5.70", "L": "- x\n"}, "", false},
		"Order":   {"in the order of the flags", []string{"-P", two, "-P", one}, map[string]string{"A": "one", "B": "one", "C": "one", "N": "5.70", "L": "- x\n"}, "", false},
		"Flag":    {"-p wins, wherever it stands", []string{"-p", "A=flag", "-P", one}, map[string]string{"A": "flag", "B": "one", "C": "one"}, "", false},
		"Twice":   {"the later -p wins", []string{"-p", "A=1", "-p", "A=2"}, map[string]string{"A": "2"}, "", false},
		"Commas":  {"values hold commas and equals", []string{"-p", "A=x,B=y=z"}, map[string]string{"A": "x,B=y=z"}, "", false},
		"NoEqual": {"a flag without a value is wrong usage", []string{"-p", "A"}, nil, "-p A", true},
		"Missing": {"a file that is not there is named", []string{"-P", filepath.Join(dir, "no.yaml")}, nil, "no.yaml", false},
		"Broken":  {"so is one that cannot be read", []string{"-P", filepath.Join(dir, "broken.yaml")}, nil, "broken.yaml", false},
	} {
		var p ParameterFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		p.Add(flags)
		if err := flags.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		got, err := p.Read()
		var coded *CodeError
		if (err != nil) != (tc.text != "") || err != nil && (!strings.Contains(err.Error(), tc.text) || errors.As(err, &coded) != tc.UsageError) {
			t.Errorf("%s: %s: error %v", name, tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
}
