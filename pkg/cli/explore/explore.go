// Package explore has the commands that check, convert, test and run explore rules.
package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/config"
)

// New returns the command explore.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Check and test explore rules",
		Long: `Check, run and test the fields and scripts of Configs, which answer questions about kinds of objects: which of their
values to keep, whether they are healthy, what they depend on.

  kubectl kudo explore check -f config.yaml
  kubectl kudo explore run -f config.yaml --operation Retain --desired desired.yaml --observed observed.yaml
  kubectl kudo explore test rules/
  kubectl kudo explore convert customization.yaml > config.yaml`,
	}
	command.SetupGroup(cmd)
	cmd.AddCommand(newCheck(env), newRun(env), newTest(env), newConvert(env))
	return cmd
}

// maxInput bounds files that are read from outside.
const maxInput = 16 << 20

// readInput reads a file, or stdin if the name is -.
func readInput(env *command.Env, name string) ([]byte, error) {
	from := env.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err == nil && len(text) > maxInput {
		err = fmt.Errorf("%s has more than %d bytes", name, maxInput)
	}
	return text, err
}

// yamlFiles lists the YAML files of a folder in order of their names, not those below.
func yamlFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if end := filepath.Ext(e.Name()); !e.IsDir() && (end == ".yaml" || end == ".yml") {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files, nil
}

// readConfigs reads the Configs of files, and of the YAML files of folders (not of those below).
func readConfigs(env *command.Env, names []string) ([]v1alpha1.Config, error) {
	var all []v1alpha1.Config
	for _, name := range names {
		files, err := configFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			configs, err := readConfigFile(env, file)
			var other *cases.NotConfigError
			if errors.As(err, &other) && len(files) > 1 {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, configs...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no Config in %s", strings.Join(names, ", "))
	}
	return all, nil
}

// configFiles returns the files that an argument names: the YAML files of a folder, or else the file itself, which is - for stdin.
func configFiles(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return yamlFiles(name)
	}
	return []string{name}, nil
}

// readConfigFile reads the Configs of a file, and prints the warnings about them. It returns a NotConfigError if the file holds another
// object.
func readConfigFile(env *command.Env, file string) ([]v1alpha1.Config, error) {
	text, err := readInput(env, file)
	if err != nil {
		return nil, err
	}
	configs, warnings, err := cases.ReadConfigs(file, text)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		env.Warnf("%s", w)
	}
	return configs, nil
}

func newCheck(env *command.Env) *cobra.Command {
	o := &checkOptions{env: env}
	cmd := &cobra.Command{
		Use:   "check (-f FILE | --live)",
		Short: "Check Configs: fields, scripts, and that no two answer the same",
		Long: `Check Configs, without a cluster: that fields can be read, that scripts compile and define the function that they
must, and that no two Configs answer the same operation for the same kind. Globals that a script does not define are warnings;
with --strict, they are errors.

With --live, the command asks the cluster which versions of kinds it serves, and prints for each rule of the Configs, and of
those that come with kudo, which versions of its kind the cluster does not serve: a rule for such a version matches nothing.
A rule that matches nothing is a warning, but for a kind that the cluster does not have and of which a rule comes with kudo.
Without -f, the Configs are those of the cluster. Nothing is written.`,
		Args: command.ExactArgs(0, "no arguments, but files by -f"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(o.files) == 0 && !o.live {
				return command.UsageError("name the files to check by -f, or check the Configs of the cluster by --live")
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "a file of Configs, a folder of such files, or - for standard input; may be "+
		"repeated")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "regard warnings as errors")
	cmd.Flags().BoolVar(&o.live, "live", false, "say which versions of the rules' kinds the cluster does not serve")
	return cmd
}

type checkOptions struct {
	env          *command.Env
	files        []string
	strict, live bool
	// found is how many errors there are.
	found int
}

func (o *checkOptions) run(ctx context.Context) error {
	var configs []v1alpha1.Config
	var served *servedKinds
	var err error
	if len(o.files) > 0 {
		if configs, err = readConfigs(o.env, o.files); err != nil {
			return err
		}
	}
	if o.live {
		fromCluster, kinds, err := liveConfigs(ctx, o.env, len(o.files) == 0)
		if err != nil {
			return err
		}
		configs, served = append(configs, fromCluster...), kinds
	}
	for i := range configs {
		o.check(&configs[i], configs[i+1:])
	}
	if served != nil {
		warnings, err := checkServed(o.env, configs, served)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			o.warn(w)
		}
	}
	if o.found > 0 {
		return fmt.Errorf("found %d errors in %d Configs", o.found, len(configs))
	}
	o.env.Printf("%d Configs are valid", len(configs))
	return nil
}

// check checks a Config by itself, and against others.
func (o *checkOptions) check(c *v1alpha1.Config, others []v1alpha1.Config) {
	warnings, problems := config.Validate(c)
	for _, w := range warnings {
		o.warn(fmt.Sprintf("Config/%s: %s", c.Name, w))
	}
	for _, p := range append(problems, config.Conflicts(c, others)...) {
		o.fail(fmt.Sprintf("Config/%s: %v", c.Name, p))
	}
}

// warn prints a warning, which --strict makes an error.
func (o *checkOptions) warn(message string) {
	if o.strict {
		o.fail(message)
		return
	}
	o.env.Warnf("%s", message)
}

func (o *checkOptions) fail(message string) {
	o.env.Printf("%s", message)
	o.found++
}
