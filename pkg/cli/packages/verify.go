package packages

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/lint"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/text"
)

type verifyOptions struct {
	env *command.Env

	output string
	checks []string
	strict bool

	// key is the file of the public key that must have signed the package.
	key string
	// policy is the file of the policies to judge by.
	policy        string
	inCluster     bool
	allNamespaces bool
	registry      command.RegistryFlags
}

func newVerify(env *command.Env) *cobra.Command {
	o := &verifyOptions{env: env}
	cmd := &cobra.Command{
		Use:   "verify PACKAGE",
		Short: "Check a package for mistakes, or verify its signatures",
		Long: `Check a package for mistakes, without a cluster and without its dependencies. Templates are followed through
branches, variables and definitions, and rendered with the defaults of the parameters.

Errors keep the package from working: the exit code is 1. Warnings do not, unless --strict is given.

Parameters that reach an image, a command, the name of a Secret or account, or the like are listed, too: who may set
them chooses what pods run, and what they have access to.

Of a package with an install plan, the rights in the cluster are listed that the plan needs. Kudo has them; who installs
the package needs the verb install on operatorversions.kudo.dev only.

With --key, the signatures of an archive or of a package in a registry are verified, and nothing else; with --in-cluster, those of an
OperatorVersion. The exit code is 3 if none is by this key, and for this very package.

With --policy, a file of PackagePolicies judges the package, and with --in-cluster an OperatorVersion, or all if none is named; without a
file, the policies of the cluster do. The exit code is 3 if they refuse one.

  kubectl kudo package verify oci://registry.example.com/kudo/postgres:17.6.0_1.0.0 --key release.pub
  kubectl kudo package verify --in-cluster -A --policy policy.yaml`,
		Args: o.checkArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), strings.Join(args, "")) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "yaml or json")
	f.StringSliceVar(&o.checks, "param-checks", nil, "also check what people read about parameters: display, hint, desc, type, hasgroup, "+
		"groups, or all; separated by commas")
	f.BoolVar(&o.strict, "strict", false, "warnings make the package invalid, too")
	f.StringVar(&o.key, "key", "", "file with the public key that must have signed the package, in PEM")
	f.StringVar(&o.policy, "policy", "", "file with PackagePolicies to judge the package by")
	f.BoolVar(&o.inCluster, "in-cluster", false, "verify an OperatorVersion; PACKAGE is its name")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "with --in-cluster: verify the OperatorVersions of all namespaces")
	o.registry.Add(f)
	return cmd
}

// checkArgs wants one package, or none with --in-cluster.
func (o *verifyOptions) checkArgs(cmd *cobra.Command, args []string) error {
	if o.inCluster && o.key == "" && len(args) == 0 {
		return nil
	}
	return command.ExactArgs(1, "one package: a folder that holds operator.yaml, or a .tgz; with --key or --policy also "+
		"oci://HOST/PATH/NAME:TAG; none with --in-cluster, for all OperatorVersions")(cmd, args)
}

func (o *verifyOptions) run(ctx context.Context, name string) error {
	if err := command.CheckFormat(o.output); err != nil {
		return err
	}
	switch {
	case o.key != "" && o.policy != "":
		return command.UsageError("--key and --policy exclude each other: a policy names the keys")
	case o.allNamespaces && (name != "" || !o.inCluster):
		return command.UsageError("--all-namespaces requires --in-cluster and no name: add --in-cluster, leave out the name")
	case o.key == "" && o.policy == "" && !o.inCluster:
		return o.check(ctx, name)
	case o.strict || len(o.checks) > 0:
		return command.UsageError("--key, --policy and --in-cluster cannot be used with --strict and --param-checks: they verify signatures, " +
			"and nothing else")
	case o.key != "":
		return o.verifySignatures(ctx, name)
	}
	return o.verifyPolicies(ctx, name)
}

// check checks a package for mistakes.
func (o *verifyOptions) check(ctx context.Context, name string) error {
	checks, err := lint.ParamChecks(o.checks...)
	if err != nil {
		return command.UsageError("--param-checks: %w", err)
	}
	pkg, found, err := lintPackage(ctx, name, checks...)
	if err != nil {
		return err
	}
	v := verification{found: found, verdict: verdictOf(found, o.strict)}
	if pkg != nil {
		v.rights, v.choices = lint.Rights(pkg), lint.Choices(pkg)
	}
	if o.output != "" {
		err = o.env.PrintValue(o.output, v.value())
	} else {
		err = v.print(o.env)
	}
	if err != nil {
		return err
	}
	return v.verdict
}

// verification is what a check of a package has found.
type verification struct {
	found   lint.Findings
	rights  []lint.Right
	choices []lint.Choice
	// verdict is nil for a valid package.
	verdict error
}

// value returns what --output prints.
func (v *verification) value() map[string]any {
	out := map[string]any{"errors": texts(v.found.Errors), "warnings": texts(v.found.Warnings), "valid": v.verdict == nil}
	if len(v.rights) > 0 {
		out["rights"] = v.rights
	}
	if len(v.choices) > 0 {
		out["choices"] = v.choices
	}
	return out
}

// print prints tables, and a line if the package is valid.
func (v *verification) print(env *command.Env) error {
	if err := printFindings(env, v.found); err != nil {
		return err
	}
	if err := printLintRights(env, v.rights); err != nil {
		return err
	}
	if err := printChoices(env, v.choices); err != nil {
		return err
	}
	if v.verdict == nil {
		env.Printf("package is valid")
	}
	return nil
}

// printLintRights prints the rights that the install plan of a package needs.
func printLintRights(env *command.Env, rights []lint.Right) error {
	if len(rights) == 0 {
		return nil
	}
	env.Printf("Rights that the install plan needs")
	var rows [][]string
	for _, r := range rights {
		rows = append(rows, []string{"  " + r.Kind, r.APIVersion, strings.Join(r.Verbs, ","), strings.Join(r.Names, ", ")})
	}
	return env.PrintTable(rows)
}

// printChoices prints which rights a user has who may set a parameter.
func printChoices(env *command.Env, choices []lint.Choice) error {
	if len(choices) == 0 {
		return nil
	}
	env.Printf("What users of this package can choose")
	var rows [][]string
	for _, c := range choices {
		place := operators.Finding{File: c.File, Line: c.Line}.String()
		rows = append(rows, []string{"  " + c.Parameter, strings.TrimSpace(c.Kind + " " + c.Field), trimPlace(place)})
	}
	return env.PrintTable(rows)
}

// verdictOf is nil for a valid package.
func verdictOf(found lint.Findings, strict bool) error {
	switch {
	case strict && len(found.Warnings) > 0:
		return fmt.Errorf("found %d package verification errors and %d warnings, which --strict does not allow", len(found.Errors),
			len(found.Warnings))
	case !found.Valid():
		return fmt.Errorf("found %d package verification errors", len(found.Errors))
	}
	return nil
}

// texts are the findings as lines; never nil, so that lists of an output are lists.
func texts(found []operators.Finding) []string {
	lines := make([]string, len(found))
	for i, f := range found {
		lines[i] = f.String()
	}
	return lines
}

// printFindings prints a table of warnings and a table of errors.
func printFindings(env *command.Env, found lint.Findings) error {
	for _, list := range []struct {
		title    string
		findings []operators.Finding
	}{{"Warnings", found.Warnings}, {"Errors", found.Errors}} {
		if len(list.findings) == 0 {
			continue
		}
		env.Printf("%s", list.title)
		var rows [][]string
		for _, f := range list.findings {
			place := operators.Finding{File: f.File, Line: f.Line}.String()
			message := operators.Finding{Field: f.Field, Message: f.Message}.String()
			rows = append(rows, []string{"  " + trimPlace(place), text.OneLine(message)})
		}
		if err := env.PrintTable(rows); err != nil {
			return err
		}
	}
	return nil
}
