package packages

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/jsonschema"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/text"
)

func newList(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List parameters, plans or tasks of a package"}
	command.SetupGroup(cmd)
	cmd.AddCommand(newListParameters(env), newListPlans(env), newListTasks(env))
	return cmd
}

type listOptions struct {
	env *command.Env

	output                        string
	descriptions, required, names bool
	withTasks                     bool
	command.VersionFlags
}

// schemaFormat is the output format of parameters for editors.
const schemaFormat = "json-schema"

// newListing returns a command that lists a part of a package.
func newListing(what, short string, o *listOptions, print func(*operators.Package) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: what + " PACKAGE", Short: short, Args: command.AnyPackage(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if what == "parameters" && o.output == schemaFormat {
				return withPackage(cmd.Context(), o.env, args[0], o.VersionFlags, func(pkg *operators.Package) error {
					return o.env.PrintValue("json", jsonschema.OfParameters(pkg))
				})
			}
			if err := command.CheckFormat(o.output); err != nil {
				return err
			}
			return withPackage(cmd.Context(), o.env, args[0], o.VersionFlags, print)
		},
	}
	formats := "yaml or json"
	if what == "parameters" {
		formats = "yaml, json, or json-schema: the schema of a file for -P, for editors"
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", formats)
	o.VersionFlags.Add(cmd.Flags())
	return cmd
}

func withPackage(ctx context.Context, env *command.Env, name string, o command.VersionFlags, do func(*operators.Package) error) error {
	pkg, err := env.FindPackage(ctx, name, o)
	if err != nil {
		return err
	}
	return do(pkg)
}

func newListParameters(env *command.Env) *cobra.Command {
	o := &listOptions{env: env}
	cmd := newListing("parameters", "List the parameters of a package", o, func(pkg *operators.Package) error { return o.listParameters(pkg) })
	f := cmd.Flags()
	f.BoolVarP(&o.descriptions, "descriptions", "d", false, "with descriptions")
	f.BoolVarP(&o.required, "required", "r", false, "only those that users must set")
	f.BoolVar(&o.names, "names", false, "names only")
	cmd.MarkFlagsMutuallyExclusive("descriptions", "required", "names")
	return cmd
}

// listedParameter is a parameter as -o prints it, in the words of params.yaml.
type listedParameter struct {
	Name        string    `json:"name"`
	DisplayName string    `json:"displayName,omitempty"`
	Description string    `json:"description,omitempty"`
	Hint        string    `json:"hint,omitempty"`
	Group       string    `json:"group,omitempty"`
	Advanced    bool      `json:"advanced,omitempty"`
	Type        string    `json:"type"`
	Default     *string   `json:"default,omitempty"`
	Required    bool      `json:"required"`
	Immutable   bool      `json:"immutable"`
	Sensitive   bool      `json:"sensitive,omitempty"`
	Trigger     string    `json:"trigger,omitempty"`
	Enum        *[]string `json:"enum,omitempty"`
	Pattern     string    `json:"pattern,omitempty"`
	MaxLines    *int32    `json:"maxLines,omitempty"`
}

func (o *listOptions) listParameters(pkg *operators.Package) error {
	listed := []listedParameter{}
	for _, p := range pkg.Params.Parameters {
		if o.required && (!p.IsRequired() || p.HasDefault()) {
			continue
		}
		kind := string(p.Type)
		if kind == "" {
			kind = string(v1beta1.StringType)
		}
		listed = append(listed, listedParameter{
			Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, Hint: p.Hint, Group: p.Group, Advanced: p.Advanced,
			Type: kind, Default: p.Default, Required: p.IsRequired(), Immutable: p.IsImmutable(), Sensitive: p.Sensitive, Trigger: p.Trigger,
			Enum:    p.Enum,
			Pattern: p.Pattern, MaxLines: p.MaxLines,
		})
	}
	if o.names {
		return listNames(o.env, listed, o.output)
	}
	if o.output != "" {
		return o.env.PrintValue(o.output, listed)
	}
	if len(listed) == 0 && o.required {
		o.env.Printf("package %s has no parameter that must be set", pkg.Operator.Name)
		return nil
	}
	rows := [][]string{{"NAME", "TYPE", "DEFAULT", "REQUIRED", "IMMUTABLE", "TRIGGER"}}
	if o.descriptions {
		rows[0] = append(rows[0], "DESCRIPTION")
	}
	for _, p := range listed {
		row := []string{p.Name, p.Type, formatDefault(p.Default), fmt.Sprint(p.Required), fmt.Sprint(p.Immutable), p.Trigger}
		if o.descriptions {
			row = append(row, text.OneLine(p.Description))
		}
		rows = append(rows, row)
	}
	return o.env.PrintTable(rows)
}

func listNames(env *command.Env, listed []listedParameter, output string) error {
	names := []string{}
	for _, p := range listed {
		names = append(names, p.Name)
	}
	if output != "" {
		return env.PrintValue(output, names)
	}
	for _, name := range names {
		env.Printf("%s", name)
	}
	return nil
}

// formatDefault returns a default value for a table: one line, and not all of a file.
func formatDefault(value *string) string {
	if value == nil {
		return ""
	}
	return text.Truncate(text.OneLine(*value), 42)
}

func trimPlace(place string) string { return strings.TrimSuffix(place, ": ") }

func newListTasks(env *command.Env) *cobra.Command {
	o := &listOptions{env: env}
	return newListing("tasks", "List the tasks of a package", o, func(pkg *operators.Package) error {
		if o.output != "" {
			return env.PrintValue(o.output, append([]v1beta1.Task{}, pkg.Operator.Tasks...))
		}
		rows := [][]string{{"NAME", "KIND", "USES"}}
		for _, task := range pkg.Operator.Tasks {
			rows = append(rows, []string{task.Name, task.Kind, taskUses(task)})
		}
		return env.PrintTable(rows)
	})
}

// taskUses says in short what a task works with.
func taskUses(task v1beta1.Task) string {
	spec := task.Spec
	switch task.Kind {
	case v1beta1.ApplyTask, v1beta1.DeleteTask:
		return strings.Join(spec.Resources, ", ")
	case v1beta1.ToggleTask:
		return strings.Join(spec.Resources, ", ") + " if " + spec.Parameter
	case v1beta1.PipeTask:
		keys := make([]string, len(spec.Pipe))
		for i, pipe := range spec.Pipe {
			keys[i] = pipe.Key
		}
		uses := spec.Pod + " to " + strings.Join(keys, ", ")
		if spec.Once {
			uses += " once"
		}
		return uses
	case v1beta1.KudoOperatorTask:
		uses := spec.Package
		if spec.OperatorVersion != "" {
			uses += " " + spec.OperatorVersion
		}
		if spec.ParameterFile != "" {
			uses += " with " + spec.ParameterFile
		}
		return uses
	case v1beta1.DummyTask:
		switch {
		case spec.WantErr:
			return "fails"
		case !spec.Done:
			return "never done"
		}
	}
	return ""
}
