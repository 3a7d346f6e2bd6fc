package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

func (t *tool) packageListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List parameters, plans or tasks of a package"}
	group(cmd)
	cmd.AddCommand(t.listParametersCommand(), t.listPlansCommand(), t.listTasksCommand())
	return cmd
}

type packageListOptions struct {
	output                        string
	descriptions, required, names bool
	withTasks                     bool
	choice
}

// listing makes a command that prints something of a package.
func (t *tool) listing(what, short string, o *packageListOptions, print func(*operators.Package) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: what + " PACKAGE", Short: short, Args: anyPackage(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if what == "parameters" && o.output == schemaFormat {
				return t.loadAnd(cmd.Context(), args[0], o.choice, func(pkg *operators.Package) error { return t.printAny("json", parameterSchema(pkg)) })
			}
			if err := checkFormat(o.output); err != nil {
				return err
			}
			return t.loadAnd(cmd.Context(), args[0], o.choice, print)
		},
	}
	formats := "yaml or json"
	if what == "parameters" {
		formats = "yaml, json, or json-schema: the schema of a file for -P, for editors"
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", formats)
	o.choice.add(cmd.Flags())
	return cmd
}

func (t *tool) loadAnd(ctx context.Context, name string, o choice, do func(*operators.Package) error) error {
	pkg, err := t.findPackage(ctx, name, o)
	if err != nil {
		return err
	}
	return do(pkg)
}

func (t *tool) listParametersCommand() *cobra.Command {
	o := &packageListOptions{}
	cmd := t.listing("parameters", "List the parameters of a package", o, func(pkg *operators.Package) error { return t.listParameters(pkg, o) })
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
}

func (t *tool) listParameters(pkg *operators.Package, o *packageListOptions) error {
	listed := []listedParameter{}
	for _, p := range pkg.Params.Parameters {
		if o.required && !(p.IsRequired() && !p.HasDefault()) {
			continue
		}
		kind := string(p.Type)
		if kind == "" {
			kind = string(v1beta1.StringType)
		}
		listed = append(listed, listedParameter{
			Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, Hint: p.Hint, Group: p.Group, Advanced: p.Advanced,
			Type: kind, Default: p.Default, Required: p.IsRequired(), Immutable: p.IsImmutable(), Sensitive: p.Sensitive, Trigger: p.Trigger, Enum: p.Enum,
		})
	}
	if o.names {
		return t.listNames(listed, o.output)
	}
	if o.output != "" {
		return t.printAny(o.output, listed)
	}
	if len(listed) == 0 && o.required {
		t.say("package %s has no parameter that must be set", pkg.Operator.Name)
		return nil
	}
	rows := [][]string{{"NAME", "TYPE", "DEFAULT", "REQUIRED", "IMMUTABLE", "TRIGGER"}}
	if o.descriptions {
		rows[0] = append(rows[0], "DESCRIPTION")
	}
	for _, p := range listed {
		row := []string{p.Name, p.Type, short(p.Default), fmt.Sprint(p.Required), fmt.Sprint(p.Immutable), p.Trigger}
		if o.descriptions {
			row = append(row, oneLine(p.Description))
		}
		rows = append(rows, row)
	}
	return t.table(rows)
}

func (t *tool) listNames(listed []listedParameter, output string) error {
	names := []string{}
	for _, p := range listed {
		names = append(names, p.Name)
	}
	if output != "" {
		return t.printAny(output, names)
	}
	for _, name := range names {
		t.say("%s", name)
	}
	return nil
}

// short is a default in a table: one line, and not all of a file.
func short(text *string) string {
	if text == nil {
		return ""
	}
	const most = 40
	line := []rune(oneLine(*text))
	if len(line) > most {
		return string(line[:most-1]) + "…"
	}
	return string(line)
}

// oneLine puts a text into one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func trimPlace(place string) string { return strings.TrimSuffix(place, ": ") }

func (t *tool) listTasksCommand() *cobra.Command {
	o := &packageListOptions{}
	return t.listing("tasks", "List the tasks of a package", o, func(pkg *operators.Package) error {
		if o.output != "" {
			return t.printAny(o.output, append([]v1beta1.Task{}, pkg.Operator.Tasks...))
		}
		rows := [][]string{{"NAME", "KIND", "USES"}}
		for _, task := range pkg.Operator.Tasks {
			rows = append(rows, []string{task.Name, task.Kind, taskUses(task)})
		}
		return t.table(rows)
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
		return spec.Pod + " to " + strings.Join(keys, ", ")
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
