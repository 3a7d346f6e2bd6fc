package runner

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// Blame returns the places of parameters in an object that the API server has refused: those in the fields that the API server names if
// there are any, else those in any field, else the template of the object with the parameters that the template names. It searches for the
// parameters that the first function counts, and if there are none, for those that the next one counts. If no function counts any, it
// returns the template without parameters.
func (w *PreparedTask) Blame(failed apply.Change, counts ...func(parameter string) bool) []Blame {
	fields, refused := refusedFields(failed.Err)
	template := w.templateOf(failed.ID)
	if !refused || template == "" {
		return nil
	}
	places := w.run.Version.Templates.Places(template, w.blameVariables())
	for _, of := range counts {
		placed := blamesOf(places, failed.ID.Kind, of)
		about := slices.DeleteFunc(slices.Clone(placed), func(b Blame) bool {
			return !slices.ContainsFunc(fields, func(field string) bool { return contains(field, b.Field) || contains(b.Field, field) })
		})
		named := w.namesIn(template, of)
		switch {
		case len(about) > 0:
			return about
		case len(placed) > 0:
			return placed
		case len(named) > 0:
			return []Blame{{Template: template, Parameters: named}}
		}
	}
	return []Blame{{Template: template}}
}

// templateOf returns the template that an object of the task was rendered from; empty if there is none.
func (w *PreparedTask) templateOf(id apply.ID) string {
	for n, obj := range w.rendered {
		if n < len(w.templates) && apply.IDOf(obj) == id {
			return w.templates[n]
		}
	}
	return ""
}

// blamesOf returns the places of objects of a kind where parameters that count stand: the first maxPlaces of them, each once.
func blamesOf(places []render.Place, kind string, counts func(parameter string) bool) []Blame {
	var out []Blame
	for _, place := range places {
		names := slices.DeleteFunc(slices.Clone(place.Parameters), func(name string) bool { return !counts(name) })
		b := Blame{formatField(place.Path), place.Template, names}
		same := func(other Blame) bool { return reflect.DeepEqual(b, other) }
		if len(out) < maxPlaces && len(names) > 0 && (place.Kind == "" || place.Kind == kind) && !slices.ContainsFunc(out, same) {
			out = append(out, b)
		}
	}
	return out
}

// namesIn returns the parameters that count and that a template names.
func (w *PreparedTask) namesIn(template string, counts func(parameter string) bool) []string {
	var named []string
	for _, param := range w.run.Version.Spec.Parameters[:min(len(w.run.Version.Spec.Parameters), maxPlaces)] {
		if counts(param.Name) && namesParameter(w.run.Version.Spec.Templates[template], param.Name) {
			named = append(named, param.Name)
		}
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

// nameTemplates adds to the message of a task that has failed since the API server refuses an object: the template of the object, and the
// parameters in it, those that the Instance sets first.
func (w *PreparedTask) nameTemplates(outcome *plans.Outcome, effects Effects) {
	if outcome.State != plans.Fatal {
		return
	}
	isSet := func(name string) bool { _, set := w.run.Parameters[name]; return set }
	all := func(string) bool { return true }
	for _, failed := range effects.Failed[:min(len(effects.Failed), maxFailed)] {
		blames := w.Blame(failed, isSet, all)
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

// contains reports whether the path inner is that of the field, or of a field in it.
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
