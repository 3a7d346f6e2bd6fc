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
	karmadaserver "kudo.dev/kudo/pkg/explore/server/karmada"
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
	// webhookURL or webhookService is where Karmada reaches the webhook of a hub, and caFile has the certificates that it trusts for that.
	webhookURL, webhookService, caFile string
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

With --webhook-url or --webhook-service, where a hub (manager --hub) serves its webhooks, Karmada asks the hub for what its
own scripts cannot say: a ResourceInterpreterWebhookConfiguration for each kind takes the place of the warnings, but for
Pack, which Karmada never asks. The hub answers for kinds of its Configs: apply the Configs there, too.

  kubectl kudo explore convert customizations.yaml > config.yaml
  kubectl kudo explore convert --to karmada --strict config.yaml | kubectl apply -f -
  kubectl kudo explore convert --to karmada --strict config.yaml --webhook-ca-file ca.crt \
    --webhook-service kudo-system/kudo-controller-manager-service | kubectl apply -f -
  kubectl kudo explore convert --to karmada --instance-rules | kubectl apply -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case !o.hasOneSource(args):
				return command.UsageError("name one file, or convert the rules that come with kudo by --library or --instance-rules")
			case o.to != toConfig && o.to != toKarmada:
				return command.UsageError("--to is %q: use %s or %s", o.to, toConfig, toKarmada)
			}
			endpoint, err := o.endpoint()
			if err != nil {
				return err
			}
			return o.run(args, endpoint)
		},
	}
	cmd.Flags().StringVar(&o.to, "to", toConfig, "what to write: config or karmada")
	cmd.Flags().BoolVar(&o.library, "library", false, "convert the rules that come with kudo")
	cmd.Flags().BoolVar(&o.instanceRules, "instance-rules", false, "convert the rules for Instances, which a hub has")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "regard warnings of --to karmada as errors")
	cmd.Flags().StringVar(&o.webhookURL, "webhook-url", "", "where Karmada reaches the webhooks of a hub, such as "+
		"https://hub.example.org:9443")
	cmd.Flags().StringVar(&o.webhookService, "webhook-service", "", "the Service by which Karmada reaches them, as NAMESPACE/NAME or "+
		"NAMESPACE/NAME:PORT")
	cmd.Flags().StringVar(&o.caFile, "webhook-ca-file", "", "PEM file of certificates, one of which has signed that of the hub; default "+
		"those that Karmada's system trusts")
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

// maxCAFile bounds the file of certificates, in bytes.
const maxCAFile = 1 << 20

// endpoint returns where Karmada asks the hub, or nil if it shall not.
func (o *convertOptions) endpoint() (*karmada.Endpoint, error) {
	switch {
	case o.webhookURL == "" && o.webhookService == "" && o.caFile == "":
		return nil, nil
	case o.to != toKarmada:
		return nil, command.UsageError("--webhook-url, --webhook-service and --webhook-ca-file require --to %s", toKarmada)
	case (o.webhookURL == "") == (o.webhookService == ""):
		return nil, command.UsageError("name the webhook by one of --webhook-url and --webhook-service")
	}
	flag, value, parse := "--webhook-url", o.webhookURL, karmada.NewURL
	if o.webhookService != "" {
		flag, value, parse = "--webhook-service", o.webhookService, karmada.NewService
	}
	endpoint, err := parse(value, karmadaserver.Path)
	if err != nil {
		return nil, command.UsageError("%s: %w", flag, err)
	}
	if o.caFile == "" {
		return endpoint, nil
	}
	if endpoint.CABundle, err = command.ReadBounded(o.caFile, maxCAFile); err == nil {
		err = karmada.CheckBundle(endpoint.CABundle)
	}
	if err != nil {
		return nil, fmt.Errorf("--webhook-ca-file %s: %w", o.caFile, err)
	}
	return endpoint, nil
}

func (o *convertOptions) run(args []string, endpoint *karmada.Endpoint) error {
	configs, err := o.configs(args)
	if err != nil {
		return err
	}
	if o.to == toConfig {
		var documents []string
		for i := range configs {
			text, err := configText(&configs[i])
			if err != nil {
				return err
			}
			documents = append(documents, text)
		}
		return o.env.Print(strings.Join(documents, "---\n"))
	}
	documents, warnings, err := convertConfigs(configs, endpoint)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		o.env.Warnf("%s", w)
	}
	if o.strict && len(warnings) > 0 {
		return fmt.Errorf("found %d parts of Configs that Karmada has not, or runs otherwise", len(warnings))
	}
	var texts []string
	for _, document := range documents {
		text, err := yamldoc.Marshal(document)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	return o.env.Print(strings.Join(texts, "---\n"))
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

// convertConfigs turns Configs into documents of Karmada, if they are valid.
func convertConfigs(configs []v1alpha1.Config, endpoint *karmada.Endpoint) ([]map[string]any, []string, error) {
	for i := range configs {
		if _, problems := config.Validate(&configs[i]); len(problems) > 0 {
			return nil, nil, fmt.Errorf("invalid Config/%s: %w", configs[i].Name, problems[0])
		}
	}
	return karmada.FromConfigs(configs, endpoint)
}
