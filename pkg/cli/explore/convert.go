package explore

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/karmada"
	"kudo.dev/kudo/pkg/explore/library"
)

// Formats of rules, between which the command convert converts.
const (
	toConfig  = "config"
	toKarmada = "karmada"
)

type convertOptions struct {
	env             *command.Env
	to              string
	library, strict bool
	// instanceRules converts the rules for Instances that a hub has.
	instanceRules bool
}

func newConvert(env *command.Env) *cobra.Command {
	o := &convertOptions{env: env}
	cmd := &cobra.Command{
		Use:   "convert (FILE | --library | --instance-rules)",
		Short: "Turn ResourceInterpreterCustomizations into Configs, and back",
		Long: `Turn the ResourceInterpreterCustomizations of a file (- for standard input), as Karmada has them, into Configs on
standard output. Scripts are taken over as they are.

With --to karmada, turn Configs into ResourceInterpreterCustomizations, one for each kind. A script that is the body of
a function becomes the function, and returns an empty table where kudo takes nil. What Karmada has not, such as rules by
fields, is left out with a warning, and so are functions named that Karmada's scripts cannot call; with --strict, these
are errors, and nothing is printed. With --library, the Configs are the rules that come with kudo. With --instance-rules,
they are the rules for Instances, which Karmada needs to divide Instances over clusters and to report what they became
there.

  kubectl kudo explore convert customizations.yaml > config.yaml
  kubectl kudo explore convert --to karmada --strict config.yaml | kubectl apply -f -
  kubectl kudo explore convert --to karmada --instance-rules | kubectl apply -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case !o.hasOneSource(args):
				return command.UsageError("name one file, or convert the rules that come with kudo by --library or --instance-rules")
			case o.to != toConfig && o.to != toKarmada:
				return command.UsageError("--to is %q: use %s or %s", o.to, toConfig, toKarmada)
			}
			return o.run(args)
		},
	}
	cmd.Flags().StringVar(&o.to, "to", toConfig, "what to write: config or karmada")
	cmd.Flags().BoolVar(&o.library, "library", false, "convert the rules that come with kudo")
	cmd.Flags().BoolVar(&o.instanceRules, "instance-rules", false, "convert the rules for Instances, which a hub has")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "regard warnings of --to karmada as errors")
	return cmd
}

// hasOneSource reports whether the rules come from one place.
func (o *convertOptions) hasOneSource(files []string) bool {
	sources := len(files)
	for _, bundled := range []bool{o.library, o.instanceRules} {
		if bundled {
			sources++
		}
	}
	return sources == 1
}

func (o *convertOptions) run(args []string) error {
	configs, err := o.configs(args)
	if err != nil {
		return err
	}
	var documents []string
	found := 0
	for i := range configs {
		c := &configs[i]
		if o.to == toConfig {
			text, err := configText(c)
			if err != nil {
				return err
			}
			documents = append(documents, text)
			continue
		}
		customizations, warnings, err := convertConfig(c)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			o.env.Warnf("%s", w)
		}
		found += len(warnings)
		for _, customization := range customizations {
			text, err := yamldoc.Marshal(customization)
			if err != nil {
				return err
			}
			documents = append(documents, text)
		}
	}
	if o.strict && found > 0 {
		return fmt.Errorf("found %d parts of Configs that Karmada has not, or runs otherwise", found)
	}
	return o.env.Print(strings.Join(documents, "---\n"))
}

// configs returns the Configs of a file, or those that come with kudo.
func (o *convertOptions) configs(files []string) ([]v1alpha1.Config, error) {
	switch {
	case o.library:
		return library.Configs()
	case o.instanceRules:
		return library.InstanceRules()
	}
	return readConfigs(o.env, files)
}

// convertConfig turns a Config into customizations, if it is valid.
func convertConfig(c *v1alpha1.Config) ([]map[string]any, []string, error) {
	if _, problems := config.Validate(c); len(problems) > 0 {
		return nil, nil, fmt.Errorf("invalid Config/%s: %w", c.Name, problems[0])
	}
	return karmada.FromConfig(c)
}
