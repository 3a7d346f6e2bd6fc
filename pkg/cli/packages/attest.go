package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/trust"
)

type attestOptions struct {
	env *command.Env

	command.RegistryFlags
	bundle string
}

func newAttest(env *command.Env) *cobra.Command {
	o := &attestOptions{env: env}
	cmd := &cobra.Command{
		Use:   "attest REFERENCE|ARCHIVE|OPERATORVERSION",
		Short: "Print what a signature of a package states, or add one that another tool has made",
		Long: `Print the statement that a signature of a package has, so that another tool can sign it, for example with a short-lived
certificate; then add the Sigstore bundle that the tool has written:

  kubectl kudo package attest ./postgres-17.6.0_1.0.0.tgz > statement.json
  kubectl kudo package attest ./postgres-17.6.0_1.0.0.tgz --bundle statement.sigstore.json

A bundle that states something else is refused. Who has signed it is not looked at: package verify does that.`,
		Args: command.ExactArgs(1, "one package: oci://HOST/PATH/NAME:TAG, an archive (.tgz), or the name of an OperatorVersion in the cluster"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "file of a Sigstore bundle with the statement, which is added to the signatures")
	o.Add(cmd.Flags())
	return cmd
}

func (o *attestOptions) run(ctx context.Context, name string) error {
	var bundle []byte
	if o.bundle != "" {
		var err error
		if bundle, err = readBundle(o.bundle); err != nil {
			return err
		}
	}
	return withSignable(ctx, o.env, &o.RegistryFlags, name, func(s *signable) error {
		if bundle == nil {
			text, err := trust.Statement(s.pkg)
			if err != nil {
				return fmt.Errorf("print the statement of %s: %w", s.name, err)
			}
			return o.env.Print(string(text) + "\n")
		}
		return o.attach(s, bundle)
	})
}

// attach adds a bundle to the signatures of a package, if it has the statement of the package.
func (o *attestOptions) attach(s *signable, bundle []byte) error {
	if err := trust.CheckStatement(bundle, s.pkg); err != nil {
		return fmt.Errorf("%s is no signature of %s: %w", o.bundle, s.name, err)
	}
	if slices.ContainsFunc(s.bundles, func(b []byte) bool { return bytes.Equal(b, bundle) }) {
		o.env.Notef("Unchanged: %s has this signature already.", s.name)
		return nil
	}
	if err := s.add(bundle); err != nil {
		return fmt.Errorf("add %s to the signatures of %s: %w", o.bundle, s.name, err)
	}
	o.env.Printf("%s: signature %d added", s.name, len(s.bundles)+1)
	return nil
}

// readBundle reads a bundle in JSON, and returns it as one line.
func readBundle(name string) ([]byte, error) {
	text, err := command.ReadBounded(name, trust.MaxBundle)
	if err != nil {
		return nil, fmt.Errorf("--bundle: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, fmt.Errorf("--bundle: %s is no JSON: %w", name, err)
	}
	return out.Bytes(), nil
}
