package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/lua"
)

func (t *tool) exploreCommand() *cobra.Command {
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
	group(cmd)
	cmd.AddCommand(t.exploreCheckCommand(), t.exploreRunCommand(), t.exploreTestCommand(), t.exploreConvertCommand())
	return cmd
}

// luaHost runs scripts under the limits of the manager.
func luaHost() *lua.Host { return lua.New(time.Now, lua.DefaultLimits()) }

// maxInput bounds files that are read from outside.
const maxInput = 16 << 20

// input reads a file, or standard input if its name is -.
func (t *tool) input(name string) ([]byte, error) {
	var from io.Reader = t.in
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

// readConfigs reads the Configs of files, and of the YAML files of folders (not of those below).
func (t *tool) readConfigs(names []string) ([]v1alpha1.Config, error) {
	var all []v1alpha1.Config
	for _, name := range names {
		files := []string{name}
		info, err := os.Stat(name)
		if name != "-" && err != nil {
			return nil, err
		}
		if name != "-" && info.IsDir() {
			yaml, _ := filepath.Glob(filepath.Join(name, "*.yaml"))
			yml, _ := filepath.Glob(filepath.Join(name, "*.yml"))
			files = append(yaml, yml...)
		}
		for _, file := range files {
			text, err := t.input(file)
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
				t.warn("%s", w)
			}
			all = append(all, configs...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no Config in %s", strings.Join(names, ", "))
	}
	return all, nil
}

func (t *tool) exploreCheckCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Check Configs: fields, scripts, and that no two answer the same",
		Long: `Check Configs, without a cluster: that fields can be read, that scripts compile and define the function that they
must, and that no two Configs answer the same operation for the same kind. Globals that nobody defines are warnings.`,
		Args: exactly(0, "no arguments, but files by -f"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 {
				return usage("name the files to check by -f")
			}
			return t.exploreCheck(files)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "a file of Configs, a folder of such files, or - for standard input; may be given several times")
	return cmd
}

func (t *tool) exploreCheck(files []string) error {
	configs, err := t.readConfigs(files)
	if err != nil {
		return err
	}
	found := 0
	for i := range configs {
		c := &configs[i]
		warnings, problems := config.Validate(c)
		problems = append(problems, config.Conflicts(c, configs[i+1:])...)
		for _, w := range warnings {
			t.warn("Config/%s: %s", c.Name, w)
		}
		for _, p := range problems {
			t.say("Config/%s: %v", c.Name, p)
		}
		found += len(problems)
	}
	if found > 0 {
		return fmt.Errorf("found %d errors in %d Configs", found, len(configs))
	}
	t.say("%d Configs are valid", len(configs))
	return nil
}

func (t *tool) exploreConvertCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE",
		Short: "Turn ResourceInterpreterCustomizations into Configs",
		Long: `Turn the ResourceInterpreterCustomizations of a file (- for standard input), as Karmada has them, into Configs on
standard output. Scripts are taken over as they are.`,
		Args: exactly(1, "one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			configs, err := t.readConfigs(args)
			if err != nil {
				return err
			}
			for i := range configs {
				text, err := configText(&configs[i])
				if err != nil {
					return err
				}
				if i > 0 {
					t.say("---")
				}
				_, _ = fmt.Fprint(t.out, text)
			}
			return nil
		},
	}
}

func (t *tool) exploreTestCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run the cases of a tree of folders",
		Long: `Run the cases of all folders below DIR that have Configs (or customizations.yaml) and, in testdata/ beside them,
files of cases. Each case is asked 20 times, and retentions and aggregations are asked about their own result, too.

The exit code is 1 if a case fails.`,
		Args: exactly(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" && output != "junit" {
				return usage("invalid output format %q: only json and junit are known", output)
			}
			folders, err := cases.Load(os.DirFS(args[0]), luaHost())
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, f := range folders {
				for _, w := range f.Warnings {
					t.warn("%s", w)
				}
			}
			results := cases.RunAll(cmd.Context(), folders, time.Now)
			if len(results) == 0 {
				return fmt.Errorf("there are no cases below %s: put them into testdata/ beside a Config", args[0])
			}
			return t.exploreResults(output, results)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or junit")
	return cmd
}

func (t *tool) exploreResults(output string, results []cases.Result) error {
	failed := 0
	for _, r := range results {
		if !r.Passed() {
			failed++
		}
	}
	var err error
	switch output {
	case "json":
		err = cases.WriteJSON(t.out, results)
	case "junit":
		err = cases.WriteJUnit(t.out, results)
	default:
		err = t.exploreTable(results, failed)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d cases failed", failed, len(results))
	}
	return err
}

// exploreTable shows how many cases of a folder and operation passed, and why others did not.
func (t *tool) exploreTable(results []cases.Result, failed int) error {
	rows := [][]string{{"FOLDER", "OPERATION", "PASSED", "FAILED"}}
	type place struct {
		folder    string
		operation explore.Operation
	}
	counts := map[place]*[2]int{}
	var order []place
	for _, r := range results {
		p := place{r.Folder, r.Operation}
		if counts[p] == nil {
			counts[p] = &[2]int{}
			order = append(order, p)
		}
		if r.Passed() {
			counts[p][0]++
		} else {
			counts[p][1]++
		}
	}
	for _, p := range order {
		rows = append(rows, []string{p.folder, string(p.operation), fmt.Sprint(counts[p][0]), fmt.Sprint(counts[p][1])})
	}
	if err := t.table(rows); err != nil {
		return err
	}
	for _, r := range results {
		for i, f := range r.Failures {
			if i == 0 {
				t.say("\nFAIL %s (%s)", r.Name, r.Place)
			}
			t.say("  %s", f)
		}
	}
	t.say("\n%d cases passed, %d failed", len(results)-failed, failed)
	return nil
}
