package trigger

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func ptr[T any](v T) *T { return &v }

// version is an OperatorVersion with these plans and parameters. A parameter is written as "NAME", "NAME>trigger",
// "NAME!" (immutable) or "NAME!=default".
func version(plans string, parameters ...string) v1beta1.OperatorVersionSpec {
	v := v1beta1.OperatorVersionSpec{Plans: map[string]v1beta1.Plan{}}
	for _, name := range strings.Fields(plans) {
		v.Plans[name] = v1beta1.Plan{}
	}
	for _, text := range parameters {
		text, def, has := strings.Cut(text, "=")
		text, trigger, _ := strings.Cut(text, ">")
		p := v1beta1.Parameter{Name: strings.TrimSuffix(text, "!"), Trigger: trigger}
		if strings.HasSuffix(text, "!") {
			p.Immutable = ptr(true)
		}
		if has {
			p.Default = &def
		}
		v.Parameters = append(v.Parameters, p)
	}
	return v
}

type values = map[string]string

// plain are digests that are a prefix and the value.
type plain string

func (p plain) Of(_, value string) string         { return string(p) + value }
func (p plain) Same(_, digest, value string) bool { return digest == string(p)+value }

// state is an Instance that has run v1 with A=1, B=1, C=1, I=1 and is idle; modifiers change it.
type state struct {
	*v1beta1.Instance
	old *v1beta1.OperatorVersionSpec
	v   v1beta1.OperatorVersionSpec
}

type modifier func(*state)

func given(v v1beta1.OperatorVersionSpec, mods ...modifier) Input {
	s := &state{Instance: &v1beta1.Instance{}, v: v}
	s.Namespace, s.Name = "ns", "x"
	s.Spec.OperatorVersion.Name = "v1"
	s.Spec.Parameters = values{"A": "1", "B": "1", "C": "1", "I": "1"}
	s.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "ns/v1", Parameters: values{"A": "1", "B": "1", "C": "1", "I": "1"}}
	s.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete, UID: "run-1"}}
	for _, m := range mods {
		m(s)
	}
	return Input{Instance: s.Instance, Given: s.Spec.Parameters, Version: s.v, Old: s.old, Digests: plain("")}
}

func set(name, value string) modifier {
	return func(s *state) { s.Spec.Parameters[name] = value }
}

func unset(name string) modifier { return func(s *state) { delete(s.Spec.Parameters, name) } }

func running(plan string) modifier {
	return func(s *state) {
		s.Status.PlanStatus[plan] = v1beta1.PlanStatus{Status: v1beta1.InProgress, UID: types.UID("run-" + plan)}
	}
}

func upgraded(from v1beta1.OperatorVersionSpec) modifier {
	return func(s *state) { s.Spec.OperatorVersion.Name, s.old = "v2", &from }
}

// forgotten is an upgrade from a version that is not known any more.
func forgotten(s *state) { s.Spec.OperatorVersion.Name = "v2" }

func ask(plan, uid string) modifier {
	return func(s *state) {
		s.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: types.UID(uid)}
	}
}

func queue(entries ...string) modifier {
	return func(s *state) {
		for _, e := range entries {
			s.Status.Queue = append(s.Status.Queue, v1beta1.QueuedPlan{PlanName: strings.TrimSuffix(e, "*"), Requested: strings.HasSuffix(e, "*")})
		}
	}
}

func base(change func(*v1beta1.Baseline)) modifier {
	return func(s *state) { change(s.Status.Baseline) }
}

func created(s *state) { s.Status = v1beta1.InstanceStatus{} }

func fromKUDO(s *state) { s.Status.Baseline = nil }

// text is a decision in short: `*` marks queued requests by hand.
func text(d Decision, err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return "refused " + refusal.Field
	}
	var out []string
	if s := d.Start; s != nil {
		verb := "start "
		if d.Restart {
			verb = "restart "
		}
		if s.Upgrade {
			verb += "upgrade by "
		}
		out = append(out, verb+s.Plan)
		if len(s.Parameters) > 0 {
			out[0] += fmt.Sprint(s.Parameters)
		}
	}
	for i, q := range d.Queue {
		name := q.PlanName
		if q.Requested {
			name += "*"
		}
		if i == 0 {
			name = "queue " + name
		}
		out = append(out, name)
	}
	if len(d.Ignored) > 0 {
		out = append(out, fmt.Sprint("ignored ", d.Ignored))
	}
	return strings.Join(out, ", ")
}

const all = "deploy update upgrade cleanup backup restore"

var (
	v1 = version(all, "A", "B>backup", "C>restore", "D>backup", "I!", "G>gone", "X>cleanup")
	// withoutUpdate has no update and no upgrade plan.
	withoutUpdate = version("deploy backup", "A", "B>backup", "C", "D>backup", "I!")
)

type row struct {
	reason string
	in     Input
	want   string
}

func check(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			before := tc.in.Instance.DeepCopy()
			if diff := cmp.Diff(tc.want, text(Decide(tc.in))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.in.Instance); diff != "" {
				t.Errorf("%s: deciding changes nothing by itself: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInstanceFromKUDO is which plan runs when an Instance is new, idle, or comes from KUDO; with rule 8, which needs deploy.
func TestInstanceFromKUDO(t *testing.T) {
	check(t, map[string]row{
		"Create":       {"1.5 CREATE: a new Instance runs deploy", given(v1, created), "start deploy"},
		"NoDeploy":     {"rule 8: deploy is needed at creation", given(version("update"), created), "refused spec.operatorVersion"},
		"NoPlans":      {"rule 8: so a version without plans cannot be created", given(version(""), created), "refused spec.operatorVersion"},
		"CreateWith":   {"a planExecution that an Instance is created with is answered: a restored YAML runs deploy only", given(v1, created, ask("backup", "u")), "start deploy"},
		"Rest":         {"nothing starts for an idle Instance", given(v1), ""},
		"Failed":       {"rule 1: a failed run is not repeated by itself", given(v1, func(s *state) { s.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Status: v1beta1.FatalError} }), ""},
		"NoDeployRest": {"rule 8: nor is deploy needed later", given(version("update", "A")), "ignored [B C I]"},
		"KUDO":         {"rule 1: an Instance from KUDO starts nothing, whatever its spec says", given(v1, fromKUDO, set("A", "2"), ask("backup", "u")), ""},
		"KUDORuns":     {"rule 1: an unfinished plan of KUDO continues", given(v1, fromKUDO, running("deploy"), ask("deploy", "run-deploy")), ""},
	})
}

// TestVersionChange is a change of operatorVersion.
func TestVersionChange(t *testing.T) {
	check(t, map[string]row{
		"Upgrade":          {"1.5 normal 9: upgrade first", given(v1, upgraded(v1)), "start upgrade by upgrade"},
		"Update":           {"1.5 normal 9: else update", given(version("deploy update"), upgraded(v1)), "start upgrade by update, ignored [A B C I]"},
		"Deploy":           {"1.5 normal 9: else deploy", given(withoutUpdate, upgraded(v1)), "start upgrade by deploy"},
		"None":             {"1.5 normal 9: else it is refused", given(version("backup"), upgraded(v1)), "refused spec.operatorVersion"},
		"NewVersionCounts": {"rule 2: of the plans that the new version has", given(v1, upgraded(withoutUpdate)), "start upgrade by upgrade"},
		"Fallback":         {"rule 2: parameters of the same edit start nothing by fallback", given(v1, upgraded(v1), set("A", "2")), "start upgrade by upgrade"},
		"OwnPlan":          {"rule 2 (1.5 normal 4 denied it): a plan of its own is queued", given(v1, upgraded(v1), set("B", "2")), "start upgrade by upgrade, queue backup"},
		"OwnPlans":         {"rule 2: one entry a plan, in parameter order", given(v1, upgraded(v1), set("D", "2"), set("C", "2"), set("B", "2")), "start upgrade by upgrade, queue backup, restore"},
		"SamePlan":         {"rule 2: not the plan that the upgrade runs", given(version("backup deploy", "A>deploy"), upgraded(version("deploy", "A>deploy")), set("A", "2")), "start upgrade by deploy, ignored [B C I]"},
		"TriggersUpdate":   {"rule 2: nor update or deploy", given(version(all, "A>update", "B>deploy", "C", "I"), upgraded(v1), set("A", "2"), set("B", "2")), "start upgrade by upgrade"},
		"NewParameter":     {"rule 2: parameters that are new in the version start nothing (#1776)", given(v1, upgraded(version(all, "A", "I!")), set("B", "2")), "start upgrade by upgrade"},
		"UnknownOld":       {"rule 2: of a version that is not known any more no parameter is known to be old", given(v1, forgotten, set("B", "2")), "start upgrade by upgrade"},
		"Removed":          {"rule 2: taking a value away changes it", given(v1, upgraded(v1), unset("B")), "start upgrade by upgrade, queue backup"},
		"Dropped":          {"1.5: a parameter that the new version dropped starts nothing", given(version(all, "A", "I!"), upgraded(v1), set("B", "2")), "start upgrade by upgrade, ignored [B C]"},
		"GonePlan":         {"1.5 update 5: a trigger that the version does not have is refused", given(v1, upgraded(v1), set("G", "2")), "refused spec.parameters[G]"},
		"Namespace":        {"1.3: the same name in another namespace is another version", given(v1, upgraded(v1), func(s *state) { s.Spec.OperatorVersion.Name, s.Spec.OperatorVersion.Namespace = "v1", "other" }), "start upgrade by upgrade"},
		"OwnNamespace":     {"1.3: the namespace defaults to the Instance's", given(v1, func(s *state) { s.Spec.OperatorVersion.Namespace = "ns" }), ""},
		"NewDefault":       {"rule 2: changed defaults and plans of the same version start nothing", given(version("deploy", "A=9", "B=9", "C", "I!", "N=3")), ""},
		"WhileRunning":     {"rule 2 (1.5 normal 2 denied it): a version change waits for the running plan", given(v1, upgraded(v1), running("backup")), "queue upgrade"},
		"WhileSamePlan":    {"rule 3: a run goes to its end with its version, though the next has the same name", given(v1, upgraded(v1), running("upgrade")), "queue upgrade"},
		"RunningAndValues": {"rule 3: and with its values: what changes now belongs to the upgrade", given(v1, upgraded(v1), running("backup"), set("B", "2")), "queue upgrade, backup"},
		"TakenBack":        {"a version change that is taken back while it waits is none", given(v1, running("backup"), queue("upgrade")), ""},
		"WithRequest":      {"rules 2, 4 (1.5 normal 3 denied it): version and planExecution in one edit", given(v1, upgraded(v1), ask("backup", "u")), "start upgrade by upgrade, queue backup*"},
		"RequestedUpgrade": {"rule 4: one run answers both", given(v1, upgraded(v1), ask("upgrade", "u")), "start upgrade by upgrade"},
		"Undefined":        {"rule 4: a plan that only the old version has", given(withoutUpdate, upgraded(v1), ask("restore", "u")), "refused spec.planExecution.planName"},
	})
}

// TestParameterTriggers is a change of parameters.
func TestParameterTriggers(t *testing.T) {
	check(t, map[string]row{
		"Update":         {"1.4: without trigger: update", given(v1, set("A", "2")), "start update[A]"},
		"Deploy":         {"1.4: without update: deploy", given(withoutUpdate, set("A", "2")), "start deploy[A]"},
		"Neither":        {"without both it is refused", given(version("backup", "A"), set("A", "2")), "refused spec.parameters[A]"},
		"Trigger":        {"1.4: its trigger", given(v1, set("B", "2")), "start backup[B]"},
		"Added":          {"1.4: a parameter that is added", given(v1, set("D", "")), "start backup[D]"},
		"Removed":        {"1.4: a parameter that is removed", given(v1, unset("B")), "start backup[B]"},
		"Shared":         {"rule 3: one run for all parameters of a plan", given(v1, set("B", "2"), set("D", "2")), "start backup[B D]"},
		"Several":        {"rule 3 (1.4 denied it): distinct plans run one after the other, in parameter order", given(v1, set("C", "2"), set("B", "2"), set("A", "2")), "start update[A], queue backup, restore"},
		"Mixed":          {"rule 3 (1.4 ignored A): a parameter without trigger beside one with", given(v1, set("B", "2"), set("A", "2")), "start update[A], queue backup"},
		"Gone":           {"1.5 update 5: a trigger that is no plan", given(v1, set("G", "2")), "refused spec.parameters[G]"},
		"Cleanup":        {"rule 4: cleanup is no trigger", given(v1, set("X", "2")), "refused spec.parameters[X]"},
		"Queued":         {"rule 3 (1.5 normal 1 denied it): another plan waits", given(v1, running("backup"), set("A", "2")), "queue update"},
		"Restart":        {"1.5 normal 10: the running plan is restarted with the new values", given(v1, running("backup"), set("B", "2")), "restart backup[B]"},
		"RestartOther":   {"rule 3: restarted if it is among several; the others wait", given(v1, running("backup"), set("A", "2"), set("B", "2"), set("C", "2")), "restart backup[B], queue update, restore"},
		"Reverted":       {"starting a run: reverting an edit empties the queue", given(v1, running("backup"), queue("update")), ""},
		"DeployRestarts": {"rule 3: a first deploy that is still running", given(withoutUpdate, running("deploy"), set("C", "2")), "restart deploy[C]"},
		"Unknown":        {"rule 5: parameters that are not defined are ignored, and named", given(v1, set("Z", "1"), set("Y", "1")), "ignored [Y Z]"},
		"UnknownBeside":  {"rule 5: and hold nothing up", given(v1, set("Z", "1"), set("A", "2")), "start update[A], ignored [Z]"},
	})
}

// TestPlanExecution is spec.planExecution.
func TestPlanExecution(t *testing.T) {
	seen := base(func(b *v1beta1.Baseline) { b.PlanName, b.RequestUIDs = "backup", []types.UID{"u1", "u2"} })
	check(t, map[string]row{
		"UID":            {"1.5 normal 11: a uid not seen before is a request", given(v1, ask("backup", "u")), "start backup"},
		"Seen":           {"rule 4: one that was seen is none", given(v1, seen, ask("restore", "u1")), ""},
		"NewUID":         {"1.5 normal 13: the same plan with a new uid", given(v1, seen, ask("backup", "u3")), "start backup"},
		"RunUID":         {"starting a run: nor is the uid of a run", given(v1, ask("deploy", "run-1")), ""},
		"Name":           {"rule 4: a name without uid is a request", given(v1, ask("backup", "")), "start backup"},
		"SameName":       {"rule 4: one for each change", given(v1, seen, ask("backup", "")), ""},
		"OtherName":      {"rule 4: another name is a change", given(v1, seen, ask("restore", "")), "start restore"},
		"Cleared":        {"rule 4: clearing it does nothing", given(v1, seen), ""},
		"UIDAlone":       {"a uid without plan is nothing", given(v1, ask("", "u")), ""},
		"Status":         {"rule 4: its status is ignored", given(v1, func(s *state) { s.Spec.PlanExecution.Status = v1beta1.NeverRun }), ""},
		"Missing":        {"1.5 update 1: a plan that does not exist", given(v1, ask("nothing", "u")), "refused spec.planExecution.planName"},
		"Cleanup":        {"1.5 normal 8: cleanup", given(v1, ask("cleanup", "u")), "refused spec.planExecution.planName"},
		"Busy":           {"rule 4 (1.5 normal 5 denied it): another plan waits, and stays though planExecution changes", given(v1, running("update"), ask("backup", "u")), "queue backup*"},
		"Restart":        {"1.5 normal 13: the running plan is restarted", given(v1, running("backup"), ask("backup", "u")), "restart backup"},
		"Kept":           {"a queued request survives the next planExecution", given(v1, running("update"), queue("backup*"), ask("restore", "u")), "queue backup*, restore*"},
		"KeptCleared":    {"1.5 normal 6: clearing planExecution takes no request back", given(v1, running("update"), queue("backup*")), "queue backup*"},
		"KeptOnce":       {"one run answers all requests for one plan", given(v1, running("update"), queue("backup*"), ask("backup", "u")), "queue backup*"},
		"Turn":           {"its turn comes when the running plan has ended", given(v1, queue("backup*", "restore*")), "start backup, queue restore*"},
		"DerivedFirst":   {"parameters come first", given(v1, queue("backup*"), set("A", "2")), "start update[A], queue backup*"},
		"Both":           {"1.5 normal 7 denied it: parameters and planExecution in one edit", given(v1, ask("backup", "u"), set("A", "2")), "start update[A], queue backup*"},
		"BothSame":       {"one run for both", given(v1, ask("backup", "u"), set("B", "2")), "start backup[B]"},
		"BehindUpgrade":  {"a request for the running plan behind a version change waits for that", given(v1, upgraded(v1), running("backup"), ask("backup", "u")), "queue upgrade, backup*"},
		"NotInVersion":   {"a queued request waits while the version change that drops its plan waits, since that may be taken back", given(withoutUpdate, upgraded(v1), running("backup"), queue("restore*")), "queue deploy, restore*"},
		"NeverInVersion": {"and goes when the version comes", given(withoutUpdate, upgraded(v1), queue("restore*", "backup*")), "start upgrade by deploy, queue backup*"},
	})
}

func TestCauses(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"Create":  {given(v1, created), "instance created"},
		"Upgrade": {given(v1, upgraded(v1)), "operator version changed from ns/v1 to ns/v2"},
		"Values":  {given(v1, set("D", "2"), set("B", "2")), "parameters changed: B, D"},
		"Asked":   {given(v1, ask("backup", "u")), "asked for by spec.planExecution"},
	} {
		d, err := Decide(tc.in)
		if err != nil || d.Start == nil || d.Start.Cause != tc.want {
			t.Errorf("%s: the cause for people is %q, got %+v (%v)", name, tc.want, d.Start, err)
		}
	}
	if !maps.Equal(given(v1).Instance.Spec.Parameters, values{"A": "1", "B": "1", "C": "1", "I": "1"}) {
		t.Error("the fixture is what its comment says")
	}
}
