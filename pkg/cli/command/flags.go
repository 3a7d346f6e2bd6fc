package command

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kudo.dev/kudo/operators/params"
)

// Seconds is a flag for a duration. A number without a unit means seconds, as in KUDO.
type Seconds time.Duration

// Set implements pflag.Value.
func (s *Seconds) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		*s = Seconds(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is neither a number of seconds nor a duration such as 5m", text)
	}
	*s = Seconds(d)
	return nil
}

// String implements pflag.Value.
func (s *Seconds) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (*Seconds) Type() string { return "duration" }

// WaitFlags are the flags of commands that can wait.
type WaitFlags struct {
	Wait bool
	Time Seconds
}

// DefaultWait is how long commands wait without --wait-time.
const DefaultWait = Seconds(300 * time.Second)

// Add adds the flags; what completes "wait until".
func (w *WaitFlags) Add(flags *pflag.FlagSet, what string) {
	w.Time = DefaultWait
	flags.BoolVar(&w.Wait, "wait", false, "wait until "+what+", and show the plan meanwhile")
	flags.Var(&w.Time, "wait-time", "how long to wait at most: seconds, or a duration such as 5m")
}

// NormalizeFlag lets every command that has the flag --wait-time take it as --wait-timeout, too, which is KUDO's name for that of init.
func NormalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "wait-timeout" {
		name = "wait-time"
	}
	return pflag.NormalizedName(name)
}

// ParameterFlags are the flags that set parameters.
type ParameterFlags struct {
	values []string
	files  []string
}

// Add adds the flags.
func (p *ParameterFlags) Add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.values, "parameter", "p", nil, "a parameter as NAME=VALUE; may be repeated, and wins over files")
	flags.StringArrayVarP(&p.files, "parameter-file", "P", nil, "a YAML file of parameters; may be repeated, later ones win")
}

// Read returns the parameters of the files and of the flags.
func (p *ParameterFlags) Read() (map[string]string, error) {
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
			return nil, UsageError("-p %s: %w", flag, err)
		}
		out[name] = value
	}
	return out, nil
}

// AddInstanceFlag adds the flag that names an Instance. Commands whose Args are ArgumentsForFlags("instance") take the name as an argument,
// too.
func AddInstanceFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "instance", "", "name of the Instance")
}

// ErrNoInstance is the error of a command line without --instance.
var ErrNoInstance = UsageError("--instance is missing: name the Instance (kubectl kudo get instances)")
