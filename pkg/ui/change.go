package ui

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/repository/incluster"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/pkg/ui/access"
	"kudo.dev/kudo/plans"
)

// changeTime bounds how long an Instance is read whose change a user wants to preview.
const changeTime = 10 * time.Second

// target is an Instance that a user wants to change, as the API server has it now.
type target struct {
	subject
	// Unread is why the history cannot be read; nil if it can.
	Unread error
	// installed are the OperatorVersions of the namespace of an Instance that is not there yet; nil for one that is there.
	installed *incluster.Versions
}

// readTarget reads an Instance with its OperatorVersion and its history.
func (s *Server) readTarget(ctx context.Context, key client.ObjectKey) (*target, error) {
	if s.Namespace != "" && s.Namespace != key.Namespace {
		return nil, errors.New(messageOtherNamespace(s.Namespace))
	}
	instance, err := act.FindInstance(ctx, s.client, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	t := &target{subject: subject{Instance: instance}}
	if t.Version, err = act.ReadVersion(ctx, s.client, instance); err != nil {
		return nil, err
	}
	if t.runs, err = history.List(ctx, s.client, instance); err != nil {
		t.Unread = err
	}
	t.setHidden(t.Unread == nil)
	t.setMask(nil)
	return t, nil
}

// setMask hides the sensitive values of the Instance, of its runs, which a preview of a rollback may show, and the sensitive defaults of
// its OperatorVersion and of the one that it is to be moved to; nil if there is none.
func (t *target) setMask(next *v1beta1.OperatorVersion) {
	t.mask = newMask(slices.Concat(hiddenValues(t.Instance, t.subject), t.hiddenDefaults(t.Version), t.hiddenDefaults(next)))
}

// hiddenDefaults returns the default values of parameters of an OperatorVersion, which may be nil, that are sensitive, or were so in one of
// the runs.
func (t *target) hiddenDefaults(version *v1beta1.OperatorVersion) []string {
	if version == nil {
		return nil
	}
	var out []string
	for _, def := range version.Spec.Parameters {
		if def.Default != nil && (def.Sensitive || t.Unread == nil && slices.Contains(t.sensitive, def.Name)) {
			out = append(out, *def.Default)
		}
	}
	return out
}

// changeForm is what the page shows from which a user previews changes of an Instance.
type changeForm struct {
	// Problem is why the Instance cannot be changed; empty if it can.
	Problem string
	// Link is the address of the page of the Instance.
	Link   string
	Fields []parameterField
	// Unknown is why no parameter can be changed here; empty if some can.
	Unknown string
	// Plans that can be started. Running is the plan that can be cancelled, and Failed the one that can be retried; empty if there is none.
	Plans           []string
	Running, Failed string
	// Upgrades are the OperatorVersions of the cluster that the Instance can be moved to, the highest first.
	Upgrades []upgradeChoice
	// UpgradesUnknown is why they cannot be listed; empty if they can.
	UpgradesUnknown string
	// UpgradeCommand shows the move to a package that is not in the cluster.
	UpgradeCommand string
	// Runs are those that the Instance can be set back to, the newest first.
	Runs    []runRow
	Drifted int
	// Deleted is set if the Instance is being deleted.
	Deleted bool
	// Acts is set if what a preview shows can be done.
	Acts bool
	// Command changes what cannot be changed here.
	Command string
}

// parameterField is a parameter in the form. Its value can be changed, unless Fixed says why it cannot.
type parameterField struct {
	Number                         int
	Name, Value, From, Description string
	Fixed                          string
	Choices                        []string
	// IsSet is set if the Instance has the value, so that the parameter can be set back to its default.
	IsSet bool
	// Required is set if a new Instance must be given a value, and Stays if that value cannot be changed later.
	Required, Stays bool
	Lines           int
}

// maxFieldLines bounds how many lines of a value are shown at a time.
const maxFieldLines = 12

// changePage returns the page with the forms. It is read once: a stream would take what a user is typing.
func (s *Server) changePage(r *http.Request) screen {
	ctx, cancel := context.WithTimeout(r.Context(), changeTime)
	defer cancel()
	p := s.changePlace(r)
	v := view{Title: "Change " + p.title, Nav: p.nav, Fixed: true}
	form := changeForm{Link: p.address, Acts: s.AllowActions}
	t, err := p.target(ctx, nil)
	if err != nil {
		form.Problem, v.Status = long(err.Error()), statusOf(err)
	} else {
		t.fill(&form)
		if installed, err := t.listVersions(ctx, s.client); err != nil {
			form.UpgradesUnknown = long(err.Error())
		} else {
			form.Upgrades = t.upgrades(installed)
		}
	}
	v.Form = &fragment{Template: "change", Data: form}
	return still(func() view { return v })
}

// statusOf returns the status of a page whose Instance cannot be read.
func statusOf(err error) int {
	var answer apierrors.APIStatus
	var lost *url.Error
	switch {
	case errors.Is(err, errLate):
		return http.StatusGatewayTimeout
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	case errors.As(err, &answer), errors.As(err, &lost):
		return http.StatusBadGateway
	}
	return http.StatusNotFound
}

// instanceLink returns the address of the page of an Instance.
func instanceLink(key client.ObjectKey) string { return "/instances/" + key.Namespace + "/" + key.Name }

// fill fills the forms.
func (t *target) fill(form *changeForm) {
	i := t.Instance
	form.Unknown, form.Deleted, form.Drifted = t.Unknown, i.DeletionTimestamp != nil, len(i.Status.Drift)
	form.Command = act.Update{Instance: i}.Command() + " -p NAME=VALUE --dry-run"
	form.UpgradeCommand = act.PackageUpgradeCommand(i)
	form.Failed, _ = act.Retry{Instance: i}.Plan()
	form.Running, _ = act.Cancel{Instance: i}.Plan()
	if t.Version != nil {
		form.Plans = plans.Names(t.Version.Spec.InstancePlans())
		form.Fields = t.fields()
	}
	for _, run := range slices.Backward(t.runs) {
		if run.Unread == nil && !run.Former {
			form.Runs = append(form.Runs, runRow{Revision: run.Revision, Plan: run.Plan, Version: run.Version, State: executionState(run.Status)})
		}
	}
}

// fields returns the parameters of the form in the order of the package. A value that is sensitive, or has a sensitive value in it, is not
// shown and cannot be changed: it would stand in the page.
func (t *target) fields() []parameterField {
	shown := map[string]parameterRow{}
	for _, row := range parametersOf(t.subject) {
		shown[row.Name] = row
	}
	var out []parameterField
	size, seen := 0, map[string]bool{}
	for n, def := range t.Version.Spec.Parameters {
		row := shown[def.Name]
		field := parameterField{Number: n, Name: def.Name, From: row.From, Description: row.Description, Lines: 1}
		value, set := t.Instance.Spec.Parameters[def.Name]
		if !set && def.Default != nil {
			value = *def.Default
		}
		switch {
		case row.Hidden, isHidden(def.Name, t.Version, t.sensitive):
			field.Value, field.Fixed = row.Value, "sensitive: "+t.otherWay("a Secret, or by ")
		case t.mask.Text(value) != value:
			field.Value, field.Fixed = row.Value, "it has a sensitive value in it: "+t.otherWay("")
		case seen[def.Name], text.EscapeControls(def.Name) != def.Name, strings.Contains(def.Name, "\n"):
			field.Value, field.Fixed = long(value), "its name is used twice or is not plain text: "+t.otherWay("")
		case def.IsImmutable() && t.installed == nil:
			field.Value, field.Fixed = long(value), "immutable: it was fixed when the Instance was created"
		case strings.HasPrefix(row.From, "Secret ") || strings.HasPrefix(row.From, "ConfigMap "):
			field.Fixed = "it comes from " + row.From
		case len(value) > maxEditable, size+formSize(def.Name, value) > maxForm:
			field.Value, field.Fixed = long(value), "too long to be changed here"
		case text.EscapeControls(value) != value:
			field.Value, field.Fixed = long(value), "it has control characters: "+t.otherWay("")
		default:
			size += formSize(def.Name, value)
			field.Value, field.IsSet, field.Choices = value, set, choicesOf(def, value)
			field.Lines = min(strings.Count(value, "\n")+1, maxFieldLines)
		}
		if t.installed != nil {
			field.Required, field.Stays = def.IsRequired() && !def.HasDefault(), def.IsImmutable()
		}
		seen[def.Name] = true
		out = append(out, field)
	}
	return out
}

// otherWay says how a parameter gets a value that has no field: by a command, behind what else there is.
func (t *target) otherWay(also string) string {
	if t.installed != nil {
		return "give it by " + also + "install -P FILE"
	}
	return "change it by " + also + "update -P FILE"
}

const (
	// maxEditable bounds a value in the form, in bytes.
	maxEditable = 64 << 10
	// maxForm bounds the form as a browser sends it, in bytes. The rest of what a request may have is for longer values.
	maxForm = access.MaxBody / 4 * 3
)

// formSize returns how many bytes a browser sends for a parameter that is not changed.
func formSize(name, value string) int {
	sent := strings.ReplaceAll(value, "\n", "\r\n")
	return len(url.Values{valuePrefix + name: {sent}, formerPrefix + name: {sent}}.Encode()) + len("&")
}

// choicesOf returns the values among which a user chooses; none if any may be typed.
func choicesOf(def v1beta1.Parameter, value string) []string {
	var out []string
	switch {
	case def.Enum != nil:
		out = slices.Clone(*def.Enum)
	case def.Type == v1beta1.BooleanType:
		out = []string{"true", "false"}
	}
	if len(out) > 0 && !slices.Contains(out, value) {
		out = append([]string{value}, out...)
	}
	return out
}

// Names of the fields of the forms. A parameter has a field for its value, one with the value that the form had, and one that sets it back.
const (
	fieldAction  = "action"
	fieldPlan    = "plan"
	fieldVersion = "version"
	fieldRun     = "run"
	fieldKeep    = "keep-claims"
	fieldName    = "instance"
	fieldAccount = "account"
	valuePrefix  = "value."
	formerPrefix = "former."
	unsetPrefix  = "unset."
)

// errNoAction is the error of a form that asks for nothing that can be done to its subject.
var errNoAction = errors.New("the form names no action")

// errNoChange is the error of a form in which nothing is changed.
var errNoChange = errors.New("no parameter is changed: go back, and change a value")

// actionOf returns the action that a form asks for. It reads the OperatorVersion that an Instance is to be moved to.
func (t *target) actionOf(ctx context.Context, c client.Client, form map[string][]string) (act.Action, error) {
	value := func(name string) string {
		if all := form[name]; len(all) > 0 {
			return all[0]
		}
		return ""
	}
	action := value(fieldAction)
	if (action == "install") != (t.installed != nil) {
		return nil, errNoAction
	}
	switch action {
	case "install":
		return t.install(form)
	case "update":
		return t.updateOf(form)
	case "trigger":
		return act.Trigger{Instance: t.Instance, Plan: value(fieldPlan)}, nil
	case "cancel":
		return act.Cancel{Instance: t.Instance}, nil
	case "retry":
		return act.Retry{Instance: t.Instance}, nil
	case "upgrade":
		return t.upgradeTo(ctx, c, value(fieldVersion))
	case "rollback":
		for _, run := range t.runs {
			if strconv.FormatInt(run.Revision, 10) == value(fieldRun) {
				return act.Rollback{Instance: t.Instance, Revision: run.Revision}, nil
			}
		}
		return nil, errors.New("the Instance has no such run any more: go back, and load the page again")
	case "uninstall":
		return act.Uninstall{Instance: t.Instance, KeepClaims: value(fieldKeep) != ""}, nil
	}
	return nil, errNoAction
}

// updateOf returns the update that a form asks for: a parameter is changed if its value differs from the one that the form had, and not
// from the one that the Instance has now, which another user may have changed meanwhile.
func (t *target) updateOf(form map[string][]string) (act.Action, error) {
	if t.Version == nil {
		return nil, act.MissingVersion(t.Instance)
	}
	out := act.Update{Instance: t.Instance, Version: t.Version, ParametersFrom: t.Instance.Spec.ParametersFrom,
		Schedules: t.Instance.Spec.Schedules}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if parameter, is := strings.CutPrefix(name, unsetPrefix); is {
			out.Unset = append(out.Unset, parameter)
		}
	}
	var err error
	if out.Set, err = t.typedValues(form, out.Unset); err != nil {
		return nil, err
	}
	if len(out.Set)+len(out.Unset) == 0 {
		return nil, errNoChange
	}
	return out, nil
}

// typedValues returns the parameters that a user has changed in a form, but for some. The error is that of a value that no page can have.
func (t *target) typedValues(form map[string][]string, except []string) (map[string]string, error) {
	out := map[string]string{}
	for name, values := range form {
		parameter, is := strings.CutPrefix(name, valuePrefix)
		former, had := form[formerPrefix+parameter]
		if !is || !had || slices.Contains(except, parameter) {
			continue
		}
		if value := unixLines(values[0]); value != unixLines(former[0]) {
			out[parameter] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if err := t.checkShown(name, out[name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkShown returns an error if a page cannot have a value: a later page has it in a field, and must be able to show it.
func (t *target) checkShown(name, value string) error {
	isDefined := slices.ContainsFunc(t.Version.Spec.Parameters, func(def v1beta1.Parameter) bool { return def.Name == name })
	switch {
	case isDefined && isHidden(name, t.Version, t.sensitive):
		return errors.New("parameter " + name + " is sensitive: " + t.otherWay("a Secret, or by "))
	case text.EscapeControls(value) != value:
		return errors.New("the value of parameter " + name + " has control characters: " + t.otherWay(""))
	}
	return nil
}

// unixLines returns a value of a form with the line ends that parameters have: browsers send each as CR and LF.
func unixLines(value string) string { return strings.ReplaceAll(value, "\r\n", "\n") }
