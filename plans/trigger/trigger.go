// Package trigger decides which plan a change of an Instance starts, or why it is refused: a chain of rules over
// values. The controller acts on it, and the admission webhook asks it beforehand.
package trigger

import (
	"maps"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// Digests are what the baseline keeps of the values of parameters.
type Digests interface {
	// Of returns the digest of a parameter's value.
	Of(name, value string) string
	// Same reports whether a digest of the baseline is that of a parameter's value.
	Same(name, digest, value string) bool
}

// Input is all that a decision rests on.
type Input struct {
	// Instance as it is now. A nil baseline means that nothing was ever asked.
	Instance *v1beta1.Instance
	// Given are the values that spec gives, by parameters and parametersFrom.
	Given map[string]string
	// ParametersFromUnread is set if Given lacks what parametersFrom gives: that a value is missing says nothing then.
	ParametersFromUnread bool
	// Version is the OperatorVersion that spec names.
	Version v1beta1.OperatorVersionSpec
	// Old is the OperatorVersion of the baseline, if spec names another one and it is still known.
	Old *v1beta1.OperatorVersionSpec
	// Digests of values, as they were used for the baseline.
	Digests Digests
}

// Request is one plan that a change asks for.
type Request struct {
	Plan string
	// Cause says what asked, for people and for the history.
	Cause string
	// Parameters are the changed ones that this run answers.
	Parameters []string
	// Upgrade is set if the run takes the Instance from another OperatorVersion.
	Upgrade bool
	// all is set when the run answers every change of parameters but those that other requests hold.
	all bool
	// version is set when the run answers a change of the OperatorVersion.
	version bool
	// manual is set when the run answers spec.planExecution.
	manual bool
}

// Decision says what is to be done.
type Decision struct {
	// Start is the run to start now, or nil if none.
	Start *Request
	// Restart is set if Start takes the place of the running plan.
	Restart bool
	// Queue lists the plans that wait, in order.
	Queue []v1beta1.QueuedPlan
	// Deferred are parameters whose new values are for a plan of the queue: Start runs with their old ones.
	Deferred []string
	// Baseline is what holds after Start, or nil if it does not change.
	Baseline *v1beta1.Baseline
	// Ignored lists parameters of spec that the OperatorVersion does not define.
	Ignored []string
}

// Decide applies the rules of a living Instance. An error is a *Refusal: the spec asks for something that can never be right.
//
// The first request starts if nothing runs; one for the running plan restarts it with the new values (rule 3), but never
// across a change of version: a run goes to its end with the version that it was started with. The others are queued.
func Decide(in Input) (Decision, error) {
	status := in.Instance.Status
	running := plans.Running(status.PlanStatus)
	if status.Baseline == nil && len(status.PlanStatus) > 0 {
		return Decision{Baseline: baselineFromSpec(in)}, nil // rule 1: an Instance that comes from KUDO
	}
	requests, err := requests(in)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Ignored: undefined(in)}
	upgrading := false
	for i := range requests {
		r := &requests[i]
		upgrading = upgrading || r.version
		if d.Start == nil && (running == "" || r.Plan == running && !upgrading) {
			d.Start, d.Restart = r, running != ""
			continue
		}
		d.Queue = append(d.Queue, v1beta1.QueuedPlan{PlanName: r.Plan, Cause: r.Cause, Requested: r.manual || d.Start != nil && d.Start.version &&
			setsImmutable(in, *r)})
	}
	if d.Start == nil && upgrading {
		d.Queue = append(d.Queue, unknown(in)...)
	}
	if d.Start != nil {
		d.Baseline = baselineAfterStart(in, *d.Start, requests)
		d.Deferred = deferredParameters(*d.Start, requests)
	} else {
		d.Baseline = baselineWithoutStart(in)
	}
	return d, nil
}

// deferredParameters lists the changed parameters that a run does not answer. A run of another version answers all: its parameters are
// not comparable with the old ones.
func deferredParameters(start Request, all []Request) []string {
	var out []string
	for _, r := range all {
		if !start.version && r.Plan != start.Plan {
			out = append(out, r.Parameters...)
		}
	}
	return out
}

// requests lists what spec asks for and the baseline has not, in order: parameters, then planExecution.
func requests(in Input) ([]Request, error) {
	in.Version.Plans = in.Version.InstancePlans()
	base := in.Instance.Status.Baseline
	if base == nil {
		return create(in)
	}
	if err := immutable(in); err != nil {
		return nil, err
	}
	var out []Request
	var err error
	if base.OperatorVersion != in.Instance.OperatorVersionKey().String() {
		out, err = upgrade(in)
	} else {
		out, err = update(in)
	}
	if err != nil {
		return nil, err
	}
	for _, q := range in.Instance.Status.Queue {
		if _, defined := in.Version.Plans[q.PlanName]; q.Requested && defined {
			out = merge(out, Request{Plan: q.PlanName, Cause: q.Cause, manual: true})
		}
	}
	direct, err := planExecutionRequest(in)
	if err != nil || direct == nil {
		return out, err
	}
	return merge(out, *direct), nil
}

// setsImmutable reports whether a request answers parameters that the version makes immutable. They are taken over as the version
// is, since afterwards no user may change them; so the request cannot be derived any more, and is kept like one by hand.
func setsImmutable(in Input, r Request) bool {
	return slices.ContainsFunc(r.Parameters, func(name string) bool {
		def := find(in.Version.Parameters, name)
		return def != nil && def.IsImmutable()
	})
}

// unknown lists the requests by hand for plans that the version does not have. They wait until that version is run,
// since until then the change of version may be taken back.
func unknown(in Input) []v1beta1.QueuedPlan {
	return slices.DeleteFunc(slices.Clone(in.Instance.Status.Queue), func(q v1beta1.QueuedPlan) bool {
		_, defined := in.Version.Plans[q.PlanName]
		return defined || !q.Requested
	})
}

// merge adds a request by hand; one run answers all requests for one plan.
func merge(out []Request, direct Request) []Request {
	for i := range out {
		if out[i].Plan == direct.Plan {
			out[i].manual = true
			return out
		}
	}
	return append(out, direct)
}

// create: a new Instance runs deploy. A planExecution that it was created with counts as answered, as in KUDO: otherwise
// a restore of saved YAML would run the plan that was asked for last in its former life.
func create(in Input) ([]Request, error) {
	if _, ok := in.Version.Plans[v1beta1.DeployPlan]; !ok {
		return nil, refuse("spec.operatorVersion", "OperatorVersion %s has no plan %q, which a new Instance needs: add it to the package",
			in.Instance.OperatorVersionKey(), v1beta1.DeployPlan)
	}
	return []Request{{Plan: v1beta1.DeployPlan, Cause: CauseCreated, all: true, version: true, manual: true}}, nil
}

// upgrade: a change of the version starts exactly one plan; only a parameter that the old version had too, and whose
// trigger is a plan of its own, queues that plan behind it (rule 2).
func upgrade(in Input) ([]Request, error) {
	plan := plans.FirstDefined(in.Version.Plans, v1beta1.UpgradePlan, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	if plan == "" {
		return nil, refuse("spec.operatorVersion", "OperatorVersion %s has none of the plans upgrade, update and deploy, so nothing can "+
			"upgrade to it",
			in.Instance.OperatorVersionKey())
	}
	out := []Request{{Plan: plan, Cause: CauseUpgrade + " from " + in.Instance.Status.Baseline.OperatorVersion + " to " +
		in.Instance.OperatorVersionKey().String(), Upgrade: true, all: true, version: true}}
	for _, name := range changed(in) {
		def := find(in.Version.Parameters, name)
		if def == nil || in.Old == nil || find(in.Old.Parameters, name) == nil {
			continue
		}
		if def.Trigger == "" || def.Trigger == plan || def.Trigger == v1beta1.UpdatePlan || def.Trigger == v1beta1.DeployPlan {
			continue
		}
		var err error
		if out, err = add(in, out, *def); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// update: every changed parameter gives its trigger, one without gives update, else deploy (rule 3).
func update(in Input) ([]Request, error) {
	var out []Request
	var err error
	for _, name := range changed(in) {
		def := find(in.Version.Parameters, name)
		if def == nil { // rule 5: kept, ignored and warned of
			continue
		}
		if out, err = add(in, out, *def); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add puts a changed parameter to the request of its plan.
func add(in Input, out []Request, def v1beta1.Parameter) ([]Request, error) {
	plan := def.Trigger
	if plan == "" {
		plan = plans.FirstDefined(in.Version.Plans, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	}
	if plan == "" {
		return nil, refuse("spec.parameters["+def.Name+"]", "it names no trigger, and OperatorVersion %s has neither plan update nor deploy, "+
			"so its change starts nothing (plans: %v)",
			in.Instance.OperatorVersionKey(), plans.Names(in.Version.Plans))
	}
	if _, ok := in.Version.Plans[plan]; !ok {
		return nil, refuse("spec.parameters["+def.Name+"]", "its change triggers plan %q, which OperatorVersion %s does not have (plans: %v)",
			plan, in.Instance.OperatorVersionKey(), plans.Names(in.Version.Plans))
	}
	if plan == v1beta1.CleanupPlan {
		return nil, refuse("spec.parameters["+def.Name+"]", "its change triggers plan cleanup, which runs only when the Instance is deleted: "+
			"the package must name another trigger")
	}
	for i := range out {
		if out[i].Plan == plan {
			out[i].Parameters = append(out[i].Parameters, def.Name)
			if !out[i].version {
				out[i].Cause += ", " + def.Name
			}
			return out, nil
		}
	}
	return append(out, Request{Plan: plan, Cause: CauseParameters + ": " + def.Name, Parameters: []string{def.Name}}), nil
}

// planExecutionRequest is the request of spec.planExecution, or nil (rule 4).
func planExecutionRequest(in Input) (*Request, error) {
	exec, base := in.Instance.Spec.PlanExecution, in.Instance.Status.Baseline
	if exec.PlanName == "" || isRequestAnswered(exec, base) || isRunUID(in, exec.UID) {
		return nil, nil
	}
	if exec.PlanName == v1beta1.CleanupPlan {
		return nil, refuse("spec.planExecution.planName", "plan cleanup runs only when the Instance is deleted: use kubectl kudo uninstall")
	}
	if exec.PlanName == in.Version.InstallPlan {
		return nil, refuse("spec.planExecution.planName", "plan %q is the install plan of OperatorVersion %s, which Instances do not run: to "+
			"run it again, use kubectl kudo plan retry --operator-version",
			exec.PlanName, in.Instance.OperatorVersionKey())
	}
	if _, ok := in.Version.Plans[exec.PlanName]; !ok {
		return nil, refuse("spec.planExecution.planName", "plan %q does not exist in OperatorVersion %s (plans: %v)",
			exec.PlanName, in.Instance.OperatorVersionKey(), plans.Names(in.Version.Plans))
	}
	return &Request{Plan: exec.PlanName, Cause: CauseRequest, manual: true}, nil
}

func isRequestAnswered(exec v1beta1.PlanExecution, base *v1beta1.Baseline) bool {
	if exec.UID == "" {
		return exec.PlanName == base.PlanName
	}
	return slices.Contains(base.RequestUIDs, exec.UID)
}

// isRunUID reports whether a uid is that of a run, as in the planExecution of an Instance that comes from KUDO.
func isRunUID(in Input, uid types.UID) bool {
	for _, st := range in.Instance.Status.PlanStatus {
		if uid != "" && st.UID == uid {
			return true
		}
	}
	return false
}

// changed lists the parameters whose value differs from the baseline's, in the order of the OperatorVersion, then by name.
func changed(in Input) []string {
	base, spec := in.Instance.Status.Baseline.Parameters, in.Given
	diff := map[string]bool{}
	for name, value := range spec {
		if hash, known := base[name]; !known || !in.Digests.Same(name, hash, value) {
			diff[name] = true
		}
	}
	for name := range base {
		if _, still := spec[name]; !still && !in.ParametersFromUnread {
			diff[name] = true
		}
	}
	var out []string
	for _, def := range in.Version.Parameters {
		if diff[def.Name] {
			out = append(out, def.Name)
			delete(diff, def.Name)
		}
	}
	rest := slices.Collect(maps.Keys(diff))
	sort.Strings(rest)
	return append(out, rest...)
}

func undefined(in Input) []string {
	var out []string
	for name := range in.Given {
		if find(in.Version.Parameters, name) == nil {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

func find(defs []v1beta1.Parameter, name string) *v1beta1.Parameter {
	i := slices.IndexFunc(defs, func(d v1beta1.Parameter) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &defs[i]
}
