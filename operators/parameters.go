package operators

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/yamldoc"
)

// paramsFile is params.yaml as it is written.
type paramsFile struct {
	APIVersion string             `json:"apiVersion"`
	Groups     []Group            `json:"groups"`
	Parameters []writtenParameter `json:"parameters"`
}

// writtenParameter is a parameter as it is written, with default and enum of any type.
type writtenParameter struct {
	Name        string        `json:"name"`
	DisplayName string        `json:"displayName"`
	Description string        `json:"description"`
	Required    *bool         `json:"required"`
	Default     *yaml.Node    `json:"default"`
	Trigger     string        `json:"trigger"`
	Type        string        `json:"type"`
	Immutable   *bool         `json:"immutable"`
	Enum        *[]*yaml.Node `json:"enum"`
	Group       string        `json:"group"`
	Advanced    bool          `json:"advanced"`
	Hint        string        `json:"hint"`
	Sensitive   bool          `json:"sensitive"`
	Pattern     string        `json:"pattern"`
	MaxLines    *int32        `json:"maxLines"`
}

// params decodes params.yaml.
func (r *reader) params(root *yaml.Node) ParamsFile {
	var written paramsFile
	r.decodeInto(ParamsFileName, root, &written)
	result := ParamsFile{APIVersion: written.APIVersion, Groups: written.Groups}
	for i, w := range written.Parameters {
		result.Parameters = append(result.Parameters, r.parameter(w, fmt.Sprintf("parameters[%d]", i)))
	}
	return result
}

// parameter gives a parameter the defaults of the package format, and makes text of its default and enum.
func (r *reader) parameter(w writtenParameter, path string) Parameter {
	required, immutable := true, false
	if w.Required != nil {
		required = *w.Required
	}
	if w.Immutable != nil {
		immutable = *w.Immutable
	}
	p := Parameter{Group: w.Group, Advanced: w.Advanced, Hint: w.Hint}
	p.Parameter = v1beta1.Parameter{
		Name: w.Name, DisplayName: w.DisplayName, Description: w.Description, Trigger: w.Trigger,
		Type: v1beta1.ParameterType(w.Type), Required: &required, Immutable: &immutable, Sensitive: w.Sensitive,
		Pattern: w.Pattern, MaxLines: w.MaxLines,
	}
	if w.Default != nil {
		if text, null := r.text(w.Default, path+".default"); !null {
			p.Default = &text
		}
	}
	if w.Enum != nil {
		values := make([]string, 0, len(*w.Enum))
		for i, node := range *w.Enum {
			text, _ := r.text(node, fmt.Sprintf("%s.enum[%d]", path, i))
			values = append(values, text)
		}
		p.Enum = &values
	}
	return p
}

func (r *reader) text(n *yaml.Node, path string) (text string, null bool) {
	if n == nil {
		return "", true // it is beyond the bound on values, which is reported
	}
	text, null, err := yamldoc.Text(n)
	if err != nil {
		r.fail(n.Line, path, "%v", err)
	}
	return text, null
}
