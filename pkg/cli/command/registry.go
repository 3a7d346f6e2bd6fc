package command

import (
	"crypto/x509"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/pkg/repository"
)

// RegistryFlags are the flags that say how registries are reached.
type RegistryFlags struct {
	configFile, caFile string
	tokenHosts         []string
	plainHTTP          bool
}

// Add adds the flags.
func (o *RegistryFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&o.configFile, "registry-config", "", "file of docker with credentials (default $DOCKER_CONFIG/config.json, or "+
		"~/.docker/config.json)")
	flags.StringVar(&o.caFile, "registry-ca", "", "file with certificates in PEM that are trusted instead of those of the system")
	flags.StringSliceVar(&o.tokenHosts, "token-host", nil, "host that issues the tokens of the registry and gets its credentials; may be "+
		"repeated")
	flags.BoolVar(&o.plainHTTP, "plain-http", false, "connect to the registry without TLS, and without credentials")
}

// Options returns what the flags say.
func (o *RegistryFlags) Options() (registry.Options, error) {
	out := registry.Options{ConfigFile: o.configFile, TokenHosts: o.tokenHosts, PlainHTTP: o.plainHTTP, UserAgent: "kubectl-kudo/" + Version}
	switch {
	case o.plainHTTP && o.caFile != "":
		return out, UsageError("--registry-ca cannot be used with --plain-http: there are no certificates without TLS")
	case o.plainHTTP && o.configFile != "":
		return out, UsageError("--registry-config cannot be used with --plain-http: no credentials are sent without TLS")
	case o.caFile == "":
		return out, nil
	}
	roots, err := registry.AddCertificates(x509.NewCertPool(), o.caFile)
	if err != nil {
		return out, fmt.Errorf("--registry-ca: %w", err)
	}
	out.Roots = roots
	return out, nil
}

// RemoteWith returns a source as Remote does, which reaches registries as flags say. The caller closes it.
func (env *Env) RemoteWith(o *RegistryFlags) (*repository.Remote, error) {
	options, err := o.Options()
	if err != nil {
		return nil, err
	}
	source, err := env.Remote()
	if err != nil {
		return nil, err
	}
	source.Registry = options
	return source, nil
}

// SourceDate returns the time that SOURCE_DATE_EPOCH says, or zero if it is not set.
func SourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, UsageError("SOURCE_DATE_EPOCH is %q: it must be a number of seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
