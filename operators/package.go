// Package operators is the operator package as a value: read from a file tree, checked, and converted to the objects
// of the API.
package operators

import (
	"maps"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Names of a package's files, relative to its root.
const (
	OperatorFileName = "operator.yaml"
	ParamsFileName   = "params.yaml"
	TemplatesFolder  = "templates"
)

// APIVersion is the only version of the package format. An empty one means the same.
const APIVersion = "kudo.dev/v1beta1"

// Package is an operator package as it was read. Its templates are not parsed; see package render.
type Package struct {
	// Operator is the content of operator.yaml.
	Operator OperatorFile
	// Params is the content of params.yaml.
	Params ParamsFile
	// Templates maps a path below templates/ to the text of the file.
	Templates map[string]string
	// Lock is the content of operator.lock; nil if there is no such file, or the dependencies are resolved.
	Lock *Lock
	// Warnings name what was ignored while reading.
	Warnings []Warning
	// Provenance says where the package was found, and holds its signatures; nil if that is not known. It is no part of the package.
	Provenance *v1beta1.Provenance

	lines map[string]int
}

// OperatorFile is operator.yaml.
type OperatorFile struct {
	APIVersion        string                  `json:"apiVersion,omitempty"`
	Name              string                  `json:"name,omitempty"`
	Description       string                  `json:"description,omitempty"`
	OperatorVersion   string                  `json:"operatorVersion,omitempty"`
	AppVersion        string                  `json:"appVersion,omitempty"`
	KudoVersion       string                  `json:"kudoVersion,omitempty"`
	KubernetesVersion string                  `json:"kubernetesVersion,omitempty"`
	Maintainers       []v1beta1.Maintainer    `json:"maintainers,omitempty"`
	URL               string                  `json:"url,omitempty"`
	Tasks             []v1beta1.Task          `json:"tasks,omitempty"`
	Plans             map[string]v1beta1.Plan `json:"plans,omitempty"`
	NamespaceManifest string                  `json:"namespaceManifest,omitempty"`
	InstallPlan       string                  `json:"installPlan,omitempty"`
	InstallPolicy     *v1beta1.InstallPolicy  `json:"installPolicy,omitempty"`
	CRDTarball        *v1beta1.CRDTarball     `json:"crdTarball,omitempty"`
}

// ParamsFile is params.yaml.
type ParamsFile struct {
	APIVersion string      `json:"apiVersion,omitempty"`
	Groups     []Group     `json:"groups,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
}

// Group is a heading under which parameters are shown.
type Group struct {
	Name        string `json:"name,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	// Priority orders groups, the smallest first.
	Priority int `json:"prio,omitempty"`
}

// Parameter is a parameter as the package defines it. Required is true and Immutable false where the file says
// nothing, as in KUDO; Default and Enum are text, whatever their type in the file.
type Parameter struct {
	v1beta1.Parameter
	// Group is the name of a group. It is for display, like the fields below, and does not reach the API.
	Group string
	// Advanced parameters are for experts.
	Advanced bool
	// Hint says what values are good.
	Hint string
}

// Definitions are the parameters as the API has them.
func (p *Package) Definitions() []v1beta1.Parameter {
	if p.Params.Parameters == nil {
		return nil
	}
	defs := make([]v1beta1.Parameter, len(p.Params.Parameters))
	for i := range p.Params.Parameters {
		p.Params.Parameters[i].DeepCopyInto(&defs[i])
	}
	return defs
}

// Line is where a field of operator.yaml or params.yaml stands, counting from 1, as in
// Line("operator.yaml", "tasks[0].spec.resources"). It is 0 if the file does not have the field.
func (p *Package) Line(file, field string) int { return p.lines[file+":"+field] }

// DeepCopy is a copy that shares nothing with the package.
func (p *Package) DeepCopy() *Package {
	c := *p
	c.Operator.Maintainers = slices.Clone(p.Operator.Maintainers)
	c.Operator.Tasks = slices.Clone(p.Operator.Tasks)
	for i := range c.Operator.Tasks {
		p.Operator.Tasks[i].DeepCopyInto(&c.Operator.Tasks[i])
	}
	c.Operator.Plans = maps.Clone(p.Operator.Plans)
	for name, plan := range p.Operator.Plans {
		c.Operator.Plans[name] = *plan.DeepCopy()
	}
	c.Operator.InstallPolicy = p.Operator.InstallPolicy.DeepCopy()
	c.Operator.CRDTarball = p.Operator.CRDTarball.DeepCopy()
	c.Params.Groups = slices.Clone(p.Params.Groups)
	c.Params.Parameters = slices.Clone(p.Params.Parameters)
	for i, def := range p.Definitions() {
		c.Params.Parameters[i].Parameter = def
	}
	c.Templates = maps.Clone(p.Templates)
	c.Lock = p.Lock.DeepCopy()
	c.Warnings = slices.Clone(p.Warnings)
	c.Provenance = p.Provenance.DeepCopy()
	c.lines = maps.Clone(p.lines)
	return &c
}
