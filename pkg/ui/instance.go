package ui

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/schedule"
)

// subject is what the fragments of an Instance's page share.
type subject struct {
	// Missing says why the Instance cannot be shown; empty if it can.
	Missing  string
	Instance *v1beta1.Instance
	State    state
	Since    time.Time
	Wrong    string
	Version  *v1beta1.OperatorVersion
	// VersionLink is the address of the page of the OperatorVersion; empty if there is none.
	VersionLink string
	Upgrade     string
	Commands    []string
	Conditions  []metav1.Condition
	Plans       []node
	Queue       []queued
	Schedules   []scheduled
	// Unknown is why all parameters are hidden: it is not known which are sensitive without it.
	Unknown string
	// sensitive are parameters that were so in one of the runs.
	sensitive []string
	mask      mask
	// runs are those of the history, the oldest first.
	runs []history.Entry
}

// queued is a plan that waits.
type queued struct {
	Plan, Cause, Behind string
}

// scheduled is a schedule with its runs.
type scheduled struct {
	v1beta1.Schedule
	Status v1beta1.ScheduleStatus
}

// show masks the values of sensitive parameters, and bounds a text.
func (s subject) show(message string) string { return long(s.mask.Text(message)) }

func (s *Server) instancePage(r *http.Request) screen {
	key := keyOf(r)
	var d *detail
	seen := false
	return screen{
		draw: func() view {
			if _, known := objectOf[*v1beta1.Instance](s.instances, key.Namespace, key.Name); known && d == nil {
				d = s.openDetail(key)
			}
			sub := s.subjectOf(key, seen, d)
			seen = seen || sub.Instance != nil
			v := view{Title: key.Namespace + "/" + key.Name, Nav: "instances"}
			if sub.Missing != "" && sub.Missing != messageLoading && sub.Missing != messageUnknown {
				v.Status = http.StatusNotFound
			}
			v.Fragments = s.instanceFragments(sub, d)
			return v
		},
		close: func() { d.close() },
	}
}

// What stands where the Instances are not listed yet, and where they cannot be: the connection says why.
const (
	messageLoading = "Loading…"
	messageUnknown = "It is not known whether this Instance exists."
)

// messageOtherNamespace stands where an Instance of another namespace than the one that is shown would be.
func messageOtherNamespace(namespace string) string {
	return "kubectl kudo ui was started for namespace " + namespace + " only. Start it with -A to see all."
}

// subjectOf reads an Instance. seen is set if the page has shown it before.
func (s *Server) subjectOf(key client.ObjectKey, seen bool, d *detail) subject {
	i, found := objectOf[*v1beta1.Instance](s.instances, key.Namespace, key.Name)
	switch status := s.instances.Status(); {
	case found:
	case seen:
		return subject{Missing: "This Instance was deleted while the page was open."}
	case status.State == loading:
		return subject{Missing: messageLoading}
	case !s.instances.informer.HasSynced():
		return subject{Missing: messageUnknown}
	case s.Namespace != "" && s.Namespace != key.Namespace:
		return subject{Missing: messageOtherNamespace(s.Namespace)}
	default:
		return subject{Missing: "This Instance does not exist."}
	}
	now := stateOf(i)
	sub := subject{Instance: i, State: now, Since: sinceOf(i, now)}
	ovKey := i.OperatorVersionKey()
	var defined map[string]v1beta1.Plan
	if ov, known := objectOf[*v1beta1.OperatorVersion](s.versions, ovKey.Namespace, ovKey.Name); known {
		sub.Version, defined = ov, ov.Spec.InstancePlans()
		sub.VersionLink = "/versions/" + ovKey.Namespace + "/" + ovKey.Name
	}
	if d != nil {
		sub.runs = d.entries(i)
	}
	sub.setHidden(d != nil && d.runs.informer.HasSynced())
	sub.Conditions = shownConditions(i.Status.Conditions, sub.show)
	sub.Wrong = sub.show(wrongOf(i, now))
	if base := i.Status.Baseline; base != nil && base.OperatorVersion != "" && base.OperatorVersion != ovKey.String() {
		sub.Upgrade = base.OperatorVersion
	}
	sub.Plans = planTree(i.Status.PlanStatus, defined, sub.show)
	behind := sub.show(plans.Behind(i))
	for _, q := range i.Status.Queue {
		sub.Queue = append(sub.Queue, queued{q.PlanName, sub.show(plans.DescribeCause(q.Cause, q.RequestedBy)), behind})
		behind = "behind plan " + q.PlanName
	}
	for _, sc := range i.Spec.Schedules {
		sub.Schedules = append(sub.Schedules, scheduled{sc, schedule.Find(i.Status.Schedules, sc.Name)})
	}
	sub.Commands = commandsFor(i, now)
	return sub
}

// setHidden sets which parameters were sensitive, as the runs say: all, while it is not known what was, since the runs are not. It sets the
// mask, too.
func (s *subject) setHidden(runsKnown bool) {
	for _, e := range s.runs {
		s.sensitive = append(s.sensitive, e.Sensitive...)
	}
	switch {
	case s.Version == nil:
		s.Unknown = "OperatorVersion"
	case !runsKnown:
		s.Unknown = "history"
		s.sensitive = slices.Collect(maps.Keys(s.Instance.Spec.Parameters))
		for _, def := range s.Version.Spec.Parameters {
			s.sensitive = append(s.sensitive, def.Name)
		}
	}
	s.mask = maskOf(s.Instance.Spec.Parameters, s.Version, s.sensitive)
}

// shownConditions returns conditions with their messages as people are to see them.
func shownConditions(conditions []metav1.Condition, show func(string) string) []metav1.Condition {
	out := slices.Clone(conditions)
	for n := range out {
		out[n].Message = show(out[n].Message)
	}
	return out
}

// instanceFlags returns the flags of a command about an Instance, for a shell.
func instanceFlags(i *v1beta1.Instance) string {
	return " --instance " + text.ShellQuote(i.Name) + " -n " + text.ShellQuote(i.Namespace)
}

// commandsFor returns the commands that a user may copy.
func commandsFor(i *v1beta1.Instance, now state) []string {
	of := instanceFlags(i)
	out := []string{"kubectl kudo plan status" + of + " --watch"}
	switch now {
	case stateFailed:
		out = append(out, "kubectl kudo plan retry"+of+" --dry-run", "kubectl kudo rollback"+of+" --dry-run")
	case stateRunning:
		out = append(out, "kubectl kudo plan cancel"+of)
	}
	if len(i.Status.Drift) > 0 {
		out = append(out, "kubectl kudo diff"+of)
	}
	return append(out, "kubectl kudo update"+of+" -p NAME=VALUE --dry-run")
}

// instanceFragments returns the parts of the page. They are the same ones whatever the state, so that a stream can fill them.
func (s *Server) instanceFragments(sub subject, d *detail) []fragment {
	objects, events, runs := objectList{}, eventList{}, runList{}
	var logs []logRow
	if sub.Instance != nil {
		if d != nil {
			d.observe(sub.Instance.Status.Resources)
			events, runs, logs = d.eventList(sub), d.runList(sub), d.logRows(sub)
		}
		objects.Rows = d.objects(sub.Instance, sub.show)
		if len(sub.Instance.Status.Drift) > 0 {
			objects.DriftLink = instanceLink(client.ObjectKeyFromObject(sub.Instance)) + "/drift"
		}
	}
	out := []fragment{
		{ID: "state", Spoken: true, Template: "instance-state", Data: sub},
		{ID: "about", Template: "instance-about", Data: sub},
		{ID: "plans", Template: "instance-plans", Data: sub},
		{ID: "logs", Template: "instance-logs", Data: logs},
		{ID: "objects", Template: "instance-objects", Data: objects},
		{ID: "parameters", Template: "instance-parameters", Data: parameterList{parametersOf(sub), sub.Unknown}},
		{ID: "events", Template: "instance-events", Data: events},
		{ID: "history", Template: "instance-history", Data: runs},
	}
	if sub.Instance == nil {
		for n := range out[1:] {
			out[n+1].Template = "nothing"
		}
	}
	return out
}

type objectList struct {
	Rows []objectRow
	// DriftLink is the address of the page of the differences; empty if there are none.
	DriftLink string
}

// eventRow is an event of the Instance.
type eventRow struct {
	Time                  time.Time
	Type, Reason, Message string
	Count                 int32
}

type eventList struct {
	Feed feedStatus
	Rows []eventRow
}

// maxEvents bounds how many events are shown.
const maxEvents = 50

func (d *detail) eventList(sub subject) eventList {
	out := eventList{Feed: d.events.Status()}
	for _, e := range objectsOf[*corev1.Event](d.events) {
		if e.InvolvedObject.Kind != "Instance" || e.InvolvedObject.Name != d.key.Name ||
			e.InvolvedObject.UID != "" && e.InvolvedObject.UID != sub.Instance.UID { // that of a former Instance
			continue
		}
		out.Rows = append(out.Rows, eventRow{culprit.LastSeen(e), e.Type, e.Reason, e.Message, e.Count})
	}
	slices.SortFunc(out.Rows, func(a, b eventRow) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	out.Rows = out.Rows[:min(len(out.Rows), maxEvents)]
	for n := range out.Rows {
		out.Rows[n].Message = sub.show(out.Rows[n].Message)
	}
	return out
}

// runRow is a run of the history.
type runRow struct {
	Revision                            int64
	Plan, Cause, Version, Took, Message string
	State                               state
	Started                             metav1.MicroTime
	Former                              bool
	Changes                             []parameterChange
	VersionBefore                       string
}

// parameterChange is a parameter that differs from the run before.
type parameterChange struct{ Name, From, To string }

type runList struct {
	Feed feedStatus
	Rows []runRow
}

// entries returns the runs of the Instance, the oldest first.
func (d *detail) entries(i *v1beta1.Instance) []history.Entry {
	var records []appsv1.ControllerRevision
	for _, r := range objectsOf[*appsv1.ControllerRevision](d.runs) {
		records = append(records, *r)
	}
	return history.Entries(records, i)
}

func (d *detail) runList(sub subject) runList {
	out := runList{Feed: d.runs.Status()}
	var before *history.Entry
	for _, e := range sub.runs {
		row := runRow{Revision: e.Revision, Plan: e.Plan, Cause: sub.show(plans.DescribeCause(e.Cause, e.RequestedBy)), Version: e.Version,
			State: executionState(e.Status), Started: e.Started, Took: took(&e.Started, e.Finished), Message: sub.show(e.Message), Former: e.Former}
		if e.Unread != nil {
			row.Message = e.Unread.Error()
		}
		if before != nil && e.Unread == nil && before.Unread == nil {
			row.Changes = changesBetween(before, &e, sub)
			if before.Version != e.Version {
				row.VersionBefore = before.Version
			}
		}
		before = &e
		out.Rows = append(out.Rows, row)
	}
	slices.Reverse(out.Rows)
	return out
}

// maxValue bounds a value in the history, in bytes.
const maxValue = 200

// changesBetween returns the parameters that differ between two runs.
func changesBetween(before, after *history.Entry, sub subject) []parameterChange {
	all := maps.Clone(before.Parameters)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, after.Parameters)
	var out []parameterChange
	for _, name := range slices.Sorted(maps.Keys(all)) {
		from, had := before.Parameters[name]
		to, has := after.Parameters[name]
		hidden := isHidden(name, sub.Version, sub.sensitive)
		value := func(text string, set bool) string {
			switch {
			case !set:
				return "not set"
			case hidden:
				return params.Masked
			}
			return truncate(sub.mask.Text(text))
		}
		if from != to || had != has {
			out = append(out, parameterChange{name, value(from, had), value(to, has)})
		}
	}
	return out
}

func truncate(value string) string { return text.Truncate(value, maxValue) }
