package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// metadataText describes metadata, which the schema of a CustomResourceDefinition leaves to Kubernetes.
const metadataText = "Standard [object metadata]" +
	"(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/#ObjectMeta) of Kubernetes."

// field is a field of an object.
type field struct {
	path, kind, text string
}

// writeFields writes the page of the fields of all kinds.
func writeFields(root string) (string, error) {
	crds, err := readCRDs(filepath.Join(root, "manifests", "crds"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, header, "API fields", "It has each field of each kind, from the CustomResourceDefinitions. `[]` stands for an "+
		"item of a list, `{}` for a value of a map. A field with an asterisk is required.")
	for _, crd := range crds {
		fmt.Fprintf(&out, "* [%s](#%s)\n", crd.Spec.Names.Kind, strings.ToLower(crd.Spec.Names.Kind))
	}
	var errs []error
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			schema := version.Schema.OpenAPIV3Schema
			fmt.Fprintf(&out, "\n## %s\n\n`%s/%s`, %s. %s\n\n| field | type | meaning |\n|---|---|---|\n", crd.Spec.Names.Kind, crd.Spec.Group,
				version.Name, scope(crd.Spec.Scope), cell(schema.Description))
			fields, err := listFields(crd.Spec.Names.Kind, schema)
			errs = append(errs, err)
			for _, f := range fields {
				fmt.Fprintf(&out, "| `%s` | %s | %s |\n", f.path, f.kind, f.text)
			}
		}
	}
	return out.String(), errors.Join(errs...)
}

func scope(s apiextensionsv1.ResourceScope) string {
	if s == apiextensionsv1.ClusterScoped {
		return "cluster-scoped"
	}
	return "namespaced"
}

// readCRDs reads the CustomResourceDefinitions of a folder, in the order of their files.
func readCRDs(dir string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinitions in %s", dir)
	}
	var out []apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, crd)
	}
	return out, nil
}

// listFields returns all fields of a schema, each before those below it. A field without a description is an error.
func listFields(kind string, schema *apiextensionsv1.JSONSchemaProps) ([]field, error) {
	var out []field
	var errs []error
	var visit func(prefix string, s *apiextensionsv1.JSONSchemaProps)
	visit = func(prefix string, s *apiextensionsv1.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			below, path := s.Properties[name], prefix+name
			text := strings.ReplaceAll(below.Description, "](", `]\(`) // a regular expression is no link
			if path == "metadata" {
				text = metadataText
			}
			if strings.TrimSpace(text) == "" {
				errs = append(errs, fmt.Errorf("%s: field %s has no description: write the comment of the field of the Go type", kind, path))
			}
			mark := ""
			if slices.Contains(s.Required, name) {
				mark = "*"
			}
			out = append(out, field{path + mark, typeOf(&below), cell(text) + bounds(&below)})
			child, suffix := elements(&below)
			visit(path+suffix+".", child)
		}
	}
	visit("", schema)
	return out, errors.Join(errs...)
}

// elements returns the schema of the innermost elements of lists and maps, and what stands for them in a path.
func elements(s *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, string) {
	suffix := ""
	for {
		switch {
		case s.Items != nil && s.Items.Schema != nil:
			s, suffix = s.Items.Schema, suffix+"[]"
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			s, suffix = s.AdditionalProperties.Schema, suffix+"{}"
		default:
			return s, suffix
		}
	}
}

// typeOf says what a field holds.
func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// bounds says which values a field may have.
func bounds(s *apiextensionsv1.JSONSchemaProps) string {
	var parts []string
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			value := strings.Trim(string(v.Raw), `"`)
			values = append(values, "`"+cmp.Or(value, `""`)+"`")
		}
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if s.Default != nil {
		parts = append(parts, "Default: `"+strings.Trim(string(s.Default.Raw), `"`)+"`.")
	}
	if s.Pattern != "" {
		parts = append(parts, "Pattern: `"+strings.ReplaceAll(s.Pattern, "|", `\|`)+"`.")
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, " ")
}

// cell is a text on one line, as a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
