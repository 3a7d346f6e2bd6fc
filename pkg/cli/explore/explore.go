// Package explore has the commands that check, convert, test and run explore rules.
package explore

import (
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
		Short: "Check, run and test what teaches kudo about kinds of objects",
		Long: `Check, run and test the fields and scripts of Configs, which teach kudo about kinds of objects: which of their
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
		files := []string{name}
		info, err := os.Stat(name)
		if name != "-" && err != nil {
			return nil, err
		}
		if name != "-" && info.IsDir() {
			if files, err = yamlFiles(name); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			text, err := readInput(env, file)
			if err != nil {
				return nil, err
			}
			configs, warnings, err := cases.ReadConfigs(file, text)
			var other *cases.NotConfigError
			if errors.As(err, &other) && len(files) > 1 {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, w := range warnings {
				env.Warnf("%s", w)
			}
			all = append(all, configs...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no Config in %s", strings.Join(names, ", "))
	}
	return all, nil
}

func newCheck(env *command.Env) *cobra.Command {
	var files []string
	var strict bool
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Check Configs: fields, scripts, and that no two answer the same",
		Long: `Check Configs, without a cluster: that fields can be read, that scripts compile and define the function that they
must, and that no two Configs answer the same operation for the same kind. Globals that a script does not define are warnings;
with --strict, they are errors.`,
		Args: command.ExactArgs(0, "no arguments, but files by -f"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 {
				return command.UsageError("name the files to check by -f")
			}
			return exploreCheck(env, files, strict)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "a file of Configs, a folder of such files, or - for standard input; may be "+
		"given several times")
	cmd.Flags().BoolVar(&strict, "strict", false, "regard warnings as errors")
	return cmd
}

func exploreCheck(env *command.Env, files []string, strict bool) error {
	configs, err := readConfigs(env, files)
	if err != nil {
		return err
	}
	found := 0
	for i := range configs {
		c := &configs[i]
		warnings, problems := config.Validate(c)
		problems = append(problems, config.Conflicts(c, configs[i+1:])...)
		for _, w := range warnings {
			if strict {
				problems = append(problems, errors.New(w))
			} else {
				env.Warnf("Config/%s: %s", c.Name, w)
			}
		}
		for _, p := range problems {
			env.Printf("Config/%s: %v", c.Name, p)
		}
		found += len(problems)
	}
	if found > 0 {
		return fmt.Errorf("found %d errors in %d Configs", found, len(configs))
	}
	env.Printf("%d Configs are valid", len(configs))
	return nil
}

func newConvert(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE",
		Short: "Turn ResourceInterpreterCustomizations into Configs",
		Long: `Turn the ResourceInterpreterCustomizations of a file (- for standard input), as Karmada has them, into Configs on
standard output. Scripts are taken over as they are.`,
		Args: command.ExactArgs(1, "one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			configs, err := readConfigs(env, args)
			if err != nil {
				return err
			}
			for i := range configs {
				text, err := configText(&configs[i])
				if err != nil {
					return err
				}
				if i > 0 {
					env.Printf("---")
				}
				if err := env.Print(text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
