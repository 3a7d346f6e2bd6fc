package lint

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/operators/yamldoc"
)

// Choice is a field by which users of a package choose what its pods run, or what they have access to: whoever may set
// the parameter may set the field.
type Choice struct {
	// Parameter is the name.
	Parameter string `json:"parameter"`
	// Kind of the object, and Field of it, as in spec.containers[0].image.
	Kind  string `json:"kind,omitempty"`
	Field string `json:"field"`
	// File and Line are where the template prints the parameter.
	File string `json:"file"`
	Line int    `json:"line"`
}

// powerful are the keys of fields that decide what runs, or with which rights.
var powerful = []string{"image", "command", "args", "secretName", "serviceAccountName", "hostPath", "roleRef", "subjects"}

// holders are the keys below which a map or list of a parameter may bring such fields.
var holders = []string{"spec", "containers", "initContainers", "volumes", "template"}

// Choices lists what users of a package can choose, by parameter and field. Branches that neither the defaults nor
// made-up values take are not in it.
func Choices(pkg *operators.Package) []Choice {
	s := NewSubject(pkg)
	known := map[string]bool{}
	for _, def := range s.Definitions() {
		known[def.Name] = true
	}
	var all []Choice
	for _, p := range s.places() {
		if !reaches(p) {
			continue
		}
		for _, name := range p.Parameters {
			if known[name] {
				all = append(all, Choice{Parameter: name, Kind: p.Kind, Field: fieldOf(p.Path), File: path.Join(operators.TemplatesFolder, p.Template),
					Line: p.Line})
			}
		}
	}
	slices.SortFunc(all, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(a.Parameter, b.Parameter), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Field, b.Field))
	})
	return slices.Compact(all)
}

// reaches reports whether a value is a powerful field, or may bring one.
func reaches(p render.Place) bool {
	if slices.ContainsFunc(p.Path, func(key string) bool { return slices.Contains(powerful, key) }) {
		return true
	}
	if !slices.Contains(p.Functions, "toYaml") && !slices.Contains(p.Functions, "toJson") {
		return false
	}
	// The keys of the template end at the first that the value makes.
	above := p.Path
	if at := slices.Index(above, "*"); at >= 0 {
		above = above[:at]
	}
	for len(above) > 0 {
		key := above[len(above)-1]
		if _, err := strconv.Atoi(key); err != nil {
			return slices.Contains(holders, key)
		}
		above = above[:len(above)-1]
	}
	return false
}

// fieldOf writes a path as Kubernetes does. Items of lists count from 0.
func fieldOf(keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		if _, err := strconv.Atoi(key); err == nil {
			fmt.Fprintf(&b, "[%s]", key)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(key)
	}
	return b.String()
}

// places are where the values of parameters stand in all templates, with the defaults and with other values that take
// other branches.
func (s *Subject) places() []render.Place {
	var all []render.Place
	seen := map[string]bool{}
	for _, given := range []map[string]string{s.samples(), s.otherSamples()} {
		values, err := params.Resolve(s.Definitions(), given)
		if err != nil {
			continue // said by bounds
		}
		v := render.Variables{
			OperatorName: s.Operator.Name, OperatorVersion: s.Operator.OperatorVersion, AppVersion: s.Operator.AppVersion,
			Name: operators.DefaultInstanceName(s.Operator.Name), Namespace: "default", Params: values,
		}
		v.Pipes = s.Pipes(v.Name)
		for _, use := range s.allUses() {
			if use.Role == operators.Parameters || !s.templates.Has(use.Template) || s.templates.Check(use.Template) != nil {
				continue
			}
			v.PlanName, v.PhaseName, v.StepName = use.Plan, use.Phase, use.Step
			for _, p := range s.placesOf(use.Template, v) {
				if key := fmt.Sprint(p); !seen[key] {
					seen[key] = true
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// placesOf are those of one template, from all versions before.
func (s *Subject) placesOf(template string, v render.Variables) (all []render.Place) {
	for _, v.From = range s.versionsBefore() {
		all = append(all, s.templates.Places(template, v)...)
	}
	return all
}

// otherSamples are values that differ from the defaults in what conditions ask: whether there is one, and booleans.
func (s *Subject) otherSamples() map[string]string {
	samples := s.samples()
	for _, p := range s.Definitions() {
		_, sampled := samples[p.Name]
		standard := ""
		if p.Default != nil {
			standard = *p.Default
		}
		switch {
		case sampled:
		case p.Enum != nil && len(*p.Enum) > 0:
			samples[p.Name] = (*p.Enum)[len(*p.Enum)-1]
		case standard == "true" || standard == "false":
			samples[p.Name] = strconv.FormatBool(standard != "true")
		case strings.TrimSpace(standard) != "" && strings.TrimSpace(standard) != "[]" && strings.TrimSpace(standard) != "{}":
		case p.Type == v1beta1.ArrayType:
			samples[p.Name] = "[sample]"
		case p.Type == v1beta1.MapType:
			samples[p.Name] = "{sample: sample}"
		case p.Type == v1beta1.IntegerType, p.Type == v1beta1.NumberType:
			samples[p.Name] = "1"
		case p.Type == v1beta1.BooleanType:
			samples[p.Name] = "true"
		default:
			samples[p.Name] = "sample"
		}
	}
	return samples
}

// quoting are the functions whose text is one value of YAML wherever it stands.
var quoting = strings.Fields(`quote squote toYaml toJson toRawJson toPrettyJson mustToJson mustToRawJson mustToPrettyJson
	int int64 float64 atoi add add1 sub mul div mod max min round floor ceil len b64enc sha1sum sha256sum adler32sum`)

// quotes warns of parameters of type string that are printed without quotes, outside of block scalars: a value that YAML
// reads as anything but one word is refused there. Numbers and booleans without a type are left alone.
func quotes(s *Subject) (found Findings) {
	texts := map[string]bool{}
	for _, p := range s.Definitions() {
		texts[p.Name] = (p.Type == "" || p.Type == v1beta1.StringType) && p.Enum == nil && (p.Default == nil || isText(*p.Default))
	}
	for _, p := range s.places() {
		if !p.Bare || slices.ContainsFunc(p.Functions, func(name string) bool { return slices.Contains(quoting, name) }) {
			continue
		}
		for _, name := range p.Parameters {
			if texts[name] {
				found.Warnings = append(found.Warnings, templateFinding(p.Template, p.Line,
					"parameter %q is printed without quotes: write {{ .Params.%s | quote }}, or a value that is more than one word of YAML is refused",
					name, name))
			}
		}
	}
	return found
}

// isText reports whether YAML reads a default as text, or as nothing.
func isText(standard string) bool {
	value, _, err := yamldoc.Parse([]byte(standard))
	if err != nil || value == nil {
		return true
	}
	_, is := value.(string)
	return is
}
