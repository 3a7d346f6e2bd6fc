package helmrelease

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/text"
)

// Lift names a value of an object that becomes a parameter of the package.
type Lift struct {
	// Parameter is the name of the parameter.
	Parameter string
	// Kind and Name are those of the object.
	Kind, Name string
	// Path leads to the value.
	Path string

	steps []any // names of fields and indices of lists
}

var (
	parameterName = text.Pattern(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)
	pathField     = text.Pattern(`^\.?([A-Za-z0-9_-]+)`)
	pathIndex     = text.Pattern(`^\[([0-9]{1,4})\]`)
	pathKey       = text.Pattern(`^\["([^"]{1,253})"\]`)
)

// ParseLift parses PARAMETER=Kind/name:path, as in REPLICAS=Deployment/web:spec.replicas. An entry of a list is [0], and a field whose name
// has other characters than letters, digits, - and _ is ["name"].
func ParseLift(text string) (Lift, error) {
	parameter, place, ok := strings.Cut(text, "=")
	object, path, found := strings.Cut(place, ":")
	kind, name, named := strings.Cut(object, "/")
	if !ok || !found || !named || kind == "" || name == "" || path == "" {
		return Lift{}, fmt.Errorf("%q: must be NAME=Kind/name:path, as in REPLICAS=Deployment/web:spec.replicas", text)
	}
	if !parameterName().MatchString(parameter) || parameter == installHooks {
		return Lift{}, fmt.Errorf("%q: %q cannot name the parameter: use letters, digits and _, and another name than %s", text, parameter,
			installHooks)
	}
	out := Lift{Parameter: parameter, Kind: kind, Name: name, Path: path}
	for rest := path; rest != ""; {
		var match []string
		switch {
		case pathIndex().MatchString(rest):
			match = pathIndex().FindStringSubmatch(rest)
			index, _ := strconv.Atoi(match[1]) // at most four digits
			out.steps = append(out.steps, index)
		case pathKey().MatchString(rest):
			match = pathKey().FindStringSubmatch(rest)
			out.steps = append(out.steps, match[1])
		case pathField().MatchString(rest):
			match = pathField().FindStringSubmatch(rest)
			out.steps = append(out.steps, match[1])
		default:
			return Lift{}, fmt.Errorf("%q: the path is wrong at %q: use field.field, [0] for an entry of a list, and [\"name\"] for other names",
				text, rest)
		}
		rest = rest[len(match[0]):]
	}
	return out, nil
}

// mark replaces the value that a path leads to, and returns the value.
func (l Lift) mark(obj *unstructured.Unstructured, by string) (any, error) {
	var at any = obj.Object
	for i, step := range l.steps {
		last := i == len(l.steps)-1
		switch step := step.(type) {
		case string:
			fields, ok := at.(map[string]any)
			if !ok || fields[step] == nil {
				return nil, fmt.Errorf("parameter %s: %s has no value at %s: there is no %q", l.Parameter, describe(obj), l.Path, step)
			}
			if at = fields[step]; last && isScalar(at) {
				fields[step] = by
			}
		case int:
			list, ok := at.([]any)
			if !ok || step >= len(list) {
				return nil, fmt.Errorf("parameter %s: %s has no value at %s: there is no entry %d", l.Parameter, describe(obj), l.Path, step)
			}
			if at = list[step]; last && isScalar(at) {
				list[step] = by
			}
		}
	}
	if !isScalar(at) {
		return nil, fmt.Errorf("parameter %s: the value of %s at %s is a map or a list: name a text, a number or a boolean in it", l.Parameter,
			describe(obj), l.Path)
	}
	return at, nil
}

func isScalar(value any) bool {
	switch value.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return true
}

// lifts are the parameters that values become, and what stands for them in objects until their text is written.
type lifts struct {
	given      []Lift
	used       map[int]bool
	parameters []operators.Parameter
	// actions are the template actions by the texts that stand for them.
	actions map[string]string
	prefix  string
}

// newLifts returns the lifts of a release. What stands for a parameter occurs nowhere in the release, which cannot contain its own digest.
func newLifts(given []Lift, r *Release) *lifts {
	digest := sha256.New()
	write := func(text string) { _, _ = io.WriteString(digest, text) } // a hash takes all
	write(r.Manifest)
	for _, h := range r.Hooks {
		write(h.Manifest)
	}
	for _, f := range r.Chart.Files {
		_, _ = digest.Write(f.Data)
	}
	return &lifts{given: given, used: map[int]bool{}, actions: map[string]string{}, prefix: fmt.Sprintf("kudo-parameter-%x-", digest.Sum(nil))}
}

// apply replaces the values of an object that become parameters.
func (l *lifts) apply(obj *unstructured.Unstructured) error {
	for i, lift := range l.given {
		if lift.Kind != obj.GetKind() || lift.Name != obj.GetName() {
			continue
		}
		if isSecret(obj) {
			return fmt.Errorf("parameter %s: %s is no part of the package", lift.Parameter, describe(obj))
		}
		by := fmt.Sprintf("%s%d-end", l.prefix, i)
		value, err := lift.mark(obj, by)
		if err != nil {
			return err
		}
		if err := l.define(lift, by, value); err != nil {
			return err
		}
		l.used[i] = true
	}
	return nil
}

// define adds the parameter of a lift, with the present value as its default.
func (l *lifts) define(lift Lift, by string, value any) error {
	text, err := yamldoc.ValueText(value)
	if err != nil {
		return fmt.Errorf("parameter %s: %w", lift.Parameter, err)
	}
	kind, action := v1beta1.NumberType, "{{ .Params."+lift.Parameter+" }}"
	switch value.(type) {
	case string:
		kind, action = v1beta1.StringType, "{{ .Params."+lift.Parameter+" | quote }}"
	case bool:
		kind = v1beta1.BooleanType
	case int64:
		kind = v1beta1.IntegerType
	}
	l.actions[by] = action
	at := slices.IndexFunc(l.parameters, func(p operators.Parameter) bool { return p.Name == lift.Parameter })
	if at < 0 {
		p := operators.Parameter{}
		p.Name, p.Type, p.Default = lift.Parameter, kind, &text
		p.Description = fmt.Sprintf("Value of %s of %s %s.", lift.Path, lift.Kind, plain(lift.Name))
		l.parameters = append(l.parameters, p)
		return nil
	}
	if known := l.parameters[at]; known.Type != kind || *known.Default != text {
		return fmt.Errorf("parameter %s: it stands for values that differ: give them parameters of their own", lift.Parameter)
	}
	return nil
}

// check refuses lifts that name no object of the package.
func (l *lifts) check() error {
	var errs []error
	for i, lift := range l.given {
		if !l.used[i] {
			errs = append(errs, fmt.Errorf("parameter %s: the release has no %s %s that becomes a part of the package", lift.Parameter, lift.Kind,
				lift.Name))
		}
	}
	return errors.Join(errs...)
}

// template returns the text of a template that renders to an object.
func (l *lifts) template(obj *unstructured.Unstructured) (string, error) {
	text, err := yamldoc.Marshal(obj.Object)
	if err != nil {
		return "", fmt.Errorf("%s: %w", describe(obj), err)
	}
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	for by, action := range l.actions {
		text = strings.ReplaceAll(text, by, action)
	}
	return text, nil
}
