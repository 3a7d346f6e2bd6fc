package runner

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

const (
	// maxBlames is how many fields of an object are blamed in a message.
	maxBlames = 3
	// maxPlaces is how many places and fields of an object are compared, and maxFailed for how many objects of a task.
	maxPlaces, maxFailed = 100, 3
	// maxBlamed bounds the names in one of them, and the text of one, in bytes.
	maxBlamed, maxBlame = 5, 300
)

// Blame is where parameters stand that may be why the API server has refused an object. It holds names, and no values.
type Blame struct {
	// Field of the object where the values stand; empty if they stand in none, such as in a condition.
	Field string `json:"field,omitempty"`
	// Template is the path of the file, and Parameters are those that it uses there.
	Template   string   `json:"template"`
	Parameters []string `json:"parameters,omitempty"`
}

// String is how people read it.
func (b Blame) String() string {
	out := "template " + b.Template
	switch {
	case len(b.Parameters) == 0:
		out += " makes it"
	default:
		out += " uses " + text.List(b.Parameters, maxBlamed)
	}
	if b.Field != "" {
		out = b.Field + ": " + out
	}
	return text.Plain(out, maxBlame)
}

func (b Blame) equals(other Blame) bool {
	return b.Field == other.Field && b.Template == other.Template && slices.Equal(b.Parameters, other.Parameters)
}

// Blame returns where those parameters that count stand in an object that the API server has refused, in the fields that it names if
// there are any. If none stands in a field, it returns the templates of the object with the parameters that these name, or without any.
func (w *PreparedTask) Blame(failed apply.Change, counts func(parameter string) bool) []Blame {
	fields, refused := refusedFields(failed.Err)
	def, found := w.run.Version.Task(w.Name)
	if !refused || !found {
		return nil
	}
	v := w.blameVariables()
	templates := w.templatesOf(def, failed.ID, v)
	placed := w.placesOf(templates, failed.ID.Kind, counts, v)
	about := slices.DeleteFunc(slices.Clone(placed), func(b Blame) bool {
		return !slices.ContainsFunc(fields, func(field string) bool { return contains(field, b.Field) || contains(b.Field, field) })
	})
	switch {
	case len(about) > 0:
		return about
	case len(placed) > 0:
		return placed
	}
	return w.namesIn(templates, counts)
}

// placesOf returns where parameters that count stand in the objects of templates: the first maxPlaces of them.
func (w *PreparedTask) placesOf(templates []string, kind string, counts func(parameter string) bool, v render.Variables) []Blame {
	var placed []Blame
	for _, template := range templates {
		for _, place := range w.run.Version.Templates.Places(template, v) {
			names := slices.DeleteFunc(slices.Clone(place.Parameters), func(name string) bool { return !counts(name) })
			b := Blame{formatField(place.Path), place.Template, names}
			if len(names) == 0 || place.Kind != "" && place.Kind != kind || slices.ContainsFunc(placed, b.equals) {
				continue
			}
			if placed = append(placed, b); len(placed) == maxPlaces {
				return placed
			}
		}
	}
	return placed
}

// namesIn returns the templates with the parameters that count and that they name.
func (w *PreparedTask) namesIn(templates []string, counts func(parameter string) bool) []Blame {
	var named []Blame
	for _, template := range templates {
		b := Blame{Template: template}
		for _, param := range w.run.Version.Spec.Parameters[:min(len(w.run.Version.Spec.Parameters), maxPlaces)] {
			if counts(param.Name) && namesParameter(w.run.Version.Spec.Templates[template], param.Name) {
				b.Parameters = append(b.Parameters, param.Name)
			}
		}
		named = append(named, b)
	}
	return named
}

// blameVariables are those that the task was rendered with, and a budget of their own: the one of the run may be used up.
func (w *PreparedTask) blameVariables() render.Variables {
	phase := w.run.Version.Spec.Plans[w.run.Plan].Phases[w.Place.Phase]
	v := w.run.variables(phase.Name, phase.Steps[w.Place.Step].Name)
	v.Budget = &render.Budget{}
	return v
}

// templatesOf lists the templates of a task that make an object.
func (w *PreparedTask) templatesOf(def v1beta1.Task, id apply.ID, v render.Variables) []string {
	var out []string
	for _, template := range uniqueNames(def.Spec.Resources) {
		result, err := w.run.Version.Templates.Objects(template, v, w.run.options()...)
		if err != nil {
			continue
		}
		for _, obj := range result.Objects {
			// The namespace of a template does not count: the engine puts objects into that of the Instance.
			if made := apply.IDOf(obj); made.GroupVersionKind == id.GroupVersionKind && made.Name == id.Name {
				out = append(out, template)
				break
			}
		}
	}
	if def.Kind == v1beta1.PipeTask && id.Kind == "Pod" { // the engine gives the pod its name
		out = append(out, def.Spec.Pod)
	}
	return out
}

// nameTemplates adds to the message of a task that has failed since the API server refuses an object: the template of the object, and the
// parameters in it, those that the Instance sets first.
func (w *PreparedTask) nameTemplates(outcome *plans.Outcome, effects Effects) {
	if outcome.State != plans.Fatal {
		return
	}
	isSet := func(name string) bool { _, set := w.run.Parameters[name]; return set }
	all := func(string) bool { return true }
	for _, failed := range effects.Failed[:min(len(effects.Failed), maxFailed)] {
		blames := w.Blame(failed, isSet)
		if !slices.ContainsFunc(blames, func(b Blame) bool { return len(b.Parameters) > 0 }) {
			blames = w.Blame(failed, all)
		}
		if len(blames) == 0 {
			continue
		}
		var parts []string
		for _, b := range blames {
			parts = append(parts, b.String())
		}
		outcome.Message = fmt.Sprintf("%s; %s", strings.TrimSuffix(outcome.Message, "."), text.List(parts, maxBlames))
		return
	}
}

// refusedFields reports whether an error is that of an API server, or a webhook, that refuses the content of an object, and returns the
// fields that it names.
func refusedFields(err error) (fields []string, refused bool) {
	var status apierrors.APIStatus
	if !apply.IsFatal(err) || !errors.As(err, &status) || status.Status().Code == http.StatusConflict {
		return nil, false
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field != "" && len(fields) < maxPlaces {
				fields = append(fields, strings.TrimPrefix(cause.Field, "."))
			}
		}
	}
	return fields, true
}

// formatField writes a path as the API server does.
func formatField(path []string) string {
	var out strings.Builder
	for _, step := range path {
		switch _, err := strconv.Atoi(step); {
		case err == nil, strings.ContainsAny(step, "./"):
			out.WriteString("[" + step + "]")
		case out.Len() > 0:
			out.WriteString("." + step)
		default:
			out.WriteString(step)
		}
	}
	return out.String()
}

// contains reports whether a field is another one, or one in it.
func contains(field, inner string) bool {
	rest, found := strings.CutPrefix(inner, field)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// namesParameter reports whether a template names a parameter, and not only one whose name begins with it.
func namesParameter(template, parameter string) bool {
	for _, rest := range strings.Split(template, ".Params."+parameter)[1:] {
		next, _ := utf8.DecodeRuneInString(rest)
		if rest == "" || next != '_' && !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
	}
	return false
}
