package command

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/text"
)

// RuleRows returns the rows of a table of rules, each with the sign before it; without a sign, the first row is the header.
func RuleRows(sign string, rules []rbacv1.PolicyRule) [][]string {
	rows := [][]string{{sign + "RESOURCES", "VERBS", "NAMES"}}
	if sign != "" {
		rows = nil
	}
	for _, rule := range rules {
		resources := append([]string{}, rule.NonResourceURLs...)
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resources = append(resources, rights.ResourceName(group, name))
			}
		}
		names := "any"
		if len(rule.ResourceNames) > 0 {
			names = joinQuoted(rule.ResourceNames)
		}
		rows = append(rows, []string{sign + joinQuoted(resources), joinQuoted(rule.Verbs), names})
	}
	return rows
}

// joinQuoted lists texts that may have control characters.
func joinQuoted(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = QuoteControls(text)
	}
	return strings.Join(out, ", ")
}

// QuoteControls quotes a text of a package that has control characters, which could hide the text beside it on a terminal.
func QuoteControls(text string) string {
	if quoted := strconv.Quote(text); len(quoted) != len(text)+2 {
		return quoted
	}
	return text
}

// oneLine puts a text into one cell of a table.
var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

// PrintTable prints rows in columns, as kubectl does.
func (env *Env) PrintTable(rows [][]string) error { return env.Print(formatRows(rows)) }

// formatRows returns rows in columns, each row as a line.
func formatRows(rows [][]string) string {
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
	}
	var table, out strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, width) // a row with fewer cells would end the columns
		for n, cell := range row {
			cells[n] = text.EscapeControls(oneLine.Replace(cell))
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // a builder returns no error
	}
	_ = w.Flush()
	for line := range strings.Lines(table.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

// PrintValue prints a value that is not a Kubernetes object.
func (env *Env) PrintValue(format string, value any) error {
	var text []byte
	var err error
	switch format {
	case "yaml":
		text, err = yaml.Marshal(value)
	case "json":
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	default:
		return UsageError("invalid output format %q: only yaml and json are known", format)
	}
	if err != nil {
		return err
	}
	_, err = env.Out.Write(text)
	return err
}

// PrintObjects prints objects as YAML documents or a JSON list.
func (env *Env) PrintObjects(format string, objs []*unstructured.Unstructured) error {
	if format == "json" {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, obj := range objs {
			list.Items = append(list.Items, *obj)
		}
		return (&printers.JSONPrinter{}).PrintObj(list, env.Out)
	}
	printer := &printers.YAMLPrinter{}
	for _, obj := range objs {
		if err := printer.PrintObj(obj, env.Out); err != nil {
			return err
		}
	}
	return nil
}

// CheckFormat returns an error if the format of -o is none of yaml and json. Commands call it before they act.
func CheckFormat(format string) error {
	if format != "" && format != "yaml" && format != "json" {
		return UsageError("invalid output format %q: only yaml and json are known", format)
	}
	return nil
}
