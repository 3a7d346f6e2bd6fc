package cli

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/operators/params"
)

// seconds is a duration of which a plain number counts as seconds, as in KUDO.
type seconds time.Duration

// Set implements pflag.Value.
func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		*s = seconds(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is neither a number of seconds nor a duration such as 5m", text)
	}
	*s = seconds(d)
	return nil
}

// String implements pflag.Value.
func (s *seconds) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (*seconds) Type() string { return "duration" }

// waiting are the flags of commands that can wait.
type waiting struct {
	wait bool
	time seconds
}

// defaultWait is how long commands wait if nothing is said.
const defaultWait = seconds(300 * time.Second)

func (w *waiting) add(flags *pflag.FlagSet, what string) {
	w.time = defaultWait
	flags.BoolVar(&w.wait, "wait", false, "wait until "+what+", and show the plan meanwhile")
	flags.Var(&w.time, "wait-time", "how long to wait at most: seconds, or a duration such as 5m")
}

// parameters are the flags that set parameters.
type parameters struct {
	values []string
	files  []string
}

func (p *parameters) add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.values, "parameter", "p", nil, "a parameter as name=value; may be given several times, and wins over files")
	flags.StringArrayVarP(&p.files, "parameter-file", "P", nil, "a YAML file of parameters; may be given several times, later ones win")
}

// read returns the parameters that were given.
func (p *parameters) read() (map[string]string, error) {
	out := map[string]string{}
	for _, path := range p.files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("parameter file: %w", err)
		}
		values, err := params.ReadFile(text)
		if err != nil {
			return nil, fmt.Errorf("parameter file %s: %w", path, err)
		}
		maps.Copy(out, values)
	}
	for _, flag := range p.values {
		name, value, err := params.ParseFlag(flag)
		if err != nil {
			return nil, usage("-p %s: %w", flag, err)
		}
		out[name] = value
	}
	return out, nil
}
