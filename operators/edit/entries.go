package edit

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Maintainer is an item of maintainers in operator.yaml.
type Maintainer struct {
	Name  string `yaml:"name"`
	Email string `yaml:"email,omitempty"`
}

// Parameter is an item of parameters in params.yaml.
type Parameter struct {
	Name        string     `yaml:"name"`
	DisplayName string     `yaml:"displayName,omitempty"`
	Description string     `yaml:"description,omitempty"`
	Hint        string     `yaml:"hint,omitempty"`
	Group       string     `yaml:"group,omitempty"`
	Advanced    bool       `yaml:"advanced,omitempty"`
	Type        string     `yaml:"type,omitempty"`
	Default     *yaml.Node `yaml:"default,omitempty"`
	Required    *bool      `yaml:"required,omitempty"`
	Immutable   bool       `yaml:"immutable,omitempty"`
	Sensitive   bool       `yaml:"sensitive,omitempty"`
	Trigger     string     `yaml:"trigger,omitempty"`
	Enum        []string   `yaml:"enum,omitempty"`
	Pattern     string     `yaml:"pattern,omitempty"`
	MaxLines    int        `yaml:"maxLines,omitempty"`
}

// SetDefault sets the default of a parameter. The default of an array or a map is written as the YAML of the text. Every other
// default is a string, in quotes where YAML needs them, since templates get text.
func (p *Parameter) SetDefault(text string) error {
	if p.Type != "array" && p.Type != "map" {
		n := &yaml.Node{}
		// SetString writes no quotes around a word such as yes, which Kubernetes reads as a boolean.
		if err := n.Encode(text); err != nil {
			return err
		}
		p.Default = n
		return nil
	}
	var parsed yaml.Node
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		return err
	}
	if len(parsed.Content) == 0 {
		return fmt.Errorf("an empty default is no %s", p.Type)
	}
	p.Default = parsed.Content[0]
	return nil
}

// Plan is an entry of plans in operator.yaml.
type Plan struct {
	Strategy string  `yaml:"strategy"`
	Phases   []Phase `yaml:"phases"`
}

// Phase is an item of phases of a plan.
type Phase struct {
	Name     string `yaml:"name"`
	Strategy string `yaml:"strategy"`
	Steps    []Step `yaml:"steps"`
}

// Step is an item of steps of a phase.
type Step struct {
	Name  string   `yaml:"name"`
	Tasks []string `yaml:"tasks"`
}

// AddStep adds a step to the phase of a name. A new phase comes after the others, and has the strategy.
func (p *Plan) AddStep(phase, strategy string, step Step) {
	at := slices.IndexFunc(p.Phases, func(other Phase) bool { return other.Name == phase })
	if at < 0 {
		at = len(p.Phases)
		p.Phases = append(p.Phases, Phase{Name: phase, Strategy: strategy})
	}
	p.Phases[at].Steps = append(p.Phases[at].Steps, step)
}

// Task is an item of tasks in operator.yaml.
type Task struct {
	Name string   `yaml:"name"`
	Kind string   `yaml:"kind"`
	Spec TaskSpec `yaml:"spec"`
}

// TaskSpec has the fields of tasks of all kinds.
type TaskSpec struct {
	Resources       []string `yaml:"resources,omitempty"`
	Parameter       string   `yaml:"parameter,omitempty"`
	Pod             string   `yaml:"pod,omitempty"`
	Pipe            []Pipe   `yaml:"pipe,omitempty"`
	Once            bool     `yaml:"once,omitempty"`
	Package         string   `yaml:"package,omitempty"`
	AppVersion      string   `yaml:"appVersion,omitempty"`
	OperatorVersion string   `yaml:"operatorVersion,omitempty"`
	InstanceName    string   `yaml:"instanceName,omitempty"`
	ParameterFile   string   `yaml:"parameterFile,omitempty"`
	WantErr         bool     `yaml:"wantErr,omitempty"`
	Fatal           bool     `yaml:"fatal,omitempty"`
	Done            *bool    `yaml:"done,omitempty"`
}

// Pipe is an item of pipe of a task.
type Pipe struct {
	File       string `yaml:"file,omitempty"`
	EnvFile    string `yaml:"envFile,omitempty"`
	Kind       string `yaml:"kind"`
	Key        string `yaml:"key"`
	NameSuffix string `yaml:"nameSuffix,omitempty"`
}
