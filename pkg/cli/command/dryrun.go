package command

import (
	"errors"

	"github.com/spf13/pflag"
)

// DryRun is the value of --dry-run. The zero value is none.
type DryRun string

// Values of --dry-run beside none.
const (
	dryRunServer DryRun = "server"
	dryRunClient DryRun = "client"
)

// Add adds the flag, which stands for server if it has no value.
func (d *DryRun) Add(flags *pflag.FlagSet, usage string) {
	flags.Var(d, "dry-run", usage)
	flags.Lookup("dry-run").NoOptDefVal = string(dryRunServer)
}

// IsSet reports whether nothing is to be changed.
func (d *DryRun) IsSet() bool { return *d != "" }

// IsLocal reports whether the cluster is to be read only, without dry runs.
func (d *DryRun) IsLocal() bool { return *d == dryRunClient }

// Set implements pflag.Value. It takes the values of a flag that is on or off, too.
func (d *DryRun) Set(value string) error {
	switch value {
	case "none", "false":
		*d = ""
	case string(dryRunServer), "true":
		*d = dryRunServer
	case string(dryRunClient):
		*d = dryRunClient
	default:
		return errors.New("use server, client, or none")
	}
	return nil
}

// String implements pflag.Value.
func (d *DryRun) String() string {
	if *d == "" {
		return "none"
	}
	return string(*d)
}

// Type implements pflag.Value.
func (*DryRun) Type() string { return "string" }
