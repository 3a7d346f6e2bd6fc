package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/plans/trigger"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// lab is a cluster that no preview may change.
type lab struct {
	*apitest.Server
	t *testing.T
}

func newLab(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	l := &lab{apitest.Start(t, objects...), t}
	l.watchWrites(nil)
	return l
}

// watchWrites fails the test if a request is a write that is no dry run. The hook may answer a request.
func (l *lab) watchWrites(hook apitest.Hook) {
	l.Before(func(r apitest.Request) (any, error) {
		question := strings.HasSuffix(r.Kind, "AccessReview")
		if r.Kind != "" && r.Verb != "get" && r.Verb != "list" && !question && len(r.Query["dryRun"]) == 0 && !strings.Contains(string(r.Body), "dryRun") {
			l.t.Errorf("%s is a write", r)
		}
		if hook != nil {
			return hook(r)
		}
		return nil, nil
	})
}

var now clock.PassiveClock = clocktesting.NewFakePassiveClock(time.Unix(1000, 0))

func (l *lab) options() Options { return l.optionsOf(l.Config()) }

func (l *lab) optionsOf(config *rest.Config) Options {
	l.t.Helper()
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	return Options{Client: l.Client(), Dynamic: dyn, Metadata: meta, Discovery: d, All: explore.Chain{},
		External: explore.Chain{}, As: "ann", Clock: now}
}

// sideBySide lets the steps of a plan run side by side.
func sideBySide(plan string) gen.VersionMod {
	return func(ov *v1beta1.OperatorVersion) { ov.Spec.Plans[plan].Phases[0].Strategy = v1beta1.Parallel }
}

func (l *lab) compute(e Edit) *Preview {
	l.t.Helper()
	p, err := Compute(l.t.Context(), l.options(), e)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// brief is a preview in lines.
func brief(p *Preview) []string {
	var out []string
	for _, r := range p.Refused {
		out = append(out, "refused: "+r)
	}
	for _, run := range p.Runs {
		line := "plan " + run.Plan
		if run.Failure != nil {
			line += " fails at " + run.Failure.Step
		}
		out = append(out, line)
	}
	for _, o := range p.Objects {
		line := fmt.Sprintf("%s %s", o.Effect, o.ID())
		for _, f := range o.Fields {
			line += " " + f.String()
		}
		out = append(out, line)
	}
	for _, u := range p.UnknownReasons {
		out = append(out, "unknown: "+u)
	}
	return out
}

// web is a version with plans deploy, update and backup.
func web(mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	return gen.Version("ns", "web-0.1.0", append([]gen.VersionMod{
		gen.Param("VALUE", "standard", ""), gen.Param("KEEP", "3", "backup"),
		gen.Template("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-a'}\ndata: {key: '{{ .Params.VALUE }}'}\n"),
		gen.Template("b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-b'}\ndata: {keep: '{{ .Params.KEEP }}'}\n"),
		gen.Apply("app", "a.yaml"), gen.Apply("save", "b.yaml"),
		gen.Serial("deploy", "app"), gen.Serial("update", "app"), gen.Serial("backup", "save"),
	}, mods...)...)
}

// running is an Instance whose plans have written ConfigMaps of these names, with the value `standard`.
func (l *lab) running(version *v1beta1.OperatorVersion, names ...string) *v1beta1.Instance {
	l.t.Helper()
	i := gen.Instance("i", version, map[string]string{"VALUE": "standard", "KEEP": "3"})
	l.Put(version)
	l.Put(i)
	l.Read(i)
	i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: i.OperatorVersionKey().String(), Parameters: map[string]string{"VALUE": "1.digest", "KEEP": "1.digest"}}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete, UID: "run"}}
	for _, name := range names {
		live := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name), Data: map[string]string{"key": "standard"}}
		live.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"}
		live.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "i", UID: i.UID, Controller: new(bool)}}
		*live.OwnerReferences[0].Controller = true
		stored := l.Put(live)
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name, UID: stored.GetUID()})
	}
	return i
}

func changed(before *v1beta1.Instance, change func(*v1beta1.Instance)) *v1beta1.Instance {
	after := before.DeepCopy()
	change(after)
	return after
}

func set(name, value string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) { i.Spec.Parameters[name] = value }
}

// TestCompute checks plans, effects and fields of edits (P1, P2).
func TestCompute(t *testing.T) {
	dummy := gen.Task("fail", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true})
	for name, tc := range map[string]struct {
		reason  string
		version *v1beta1.OperatorVersion
		edit    func(l *lab, v *v1beta1.OperatorVersion) Edit
		want    []string
	}{
		"Install": {"a new Instance runs deploy", web(), func(_ *lab, v *v1beta1.OperatorVersion) Edit {
			return Edit{Verb: "install", After: gen.Instance("i", v, nil), Version: v}
		}, []string{"plan deploy", "create ConfigMap ns/i-a"}},
		"Update": {"a parameter starts its plan, and the field is named", web(), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: v}
		}, []string{"plan update", "change ConfigMap ns/i-a .data.key: standard -> next"}},
		"TwoPlans": {"several plans run one after the other", web(), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "update", Before: before, Version: v, After: changed(before, func(i *v1beta1.Instance) {
				set("VALUE", "next")(i)
				set("KEEP", "4")(i)
			})}
		}, []string{"plan update", "plan backup", "change ConfigMap ns/i-a .data.key: standard -> next", "create ConfigMap ns/i-b"}},
		"Nothing": {"an edit without a change starts nothing", web(), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "update", Before: before, After: before.DeepCopy(), Version: v}
		}, nil},
		"Trigger": {"a request runs its plan", web(), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "trigger", Before: before, Version: v, After: changed(before, func(i *v1beta1.Instance) {
				i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "backup", UID: "request"}
			})}
		}, []string{"plan backup", "create ConfigMap ns/i-b"}},
		"Fails": {"a plan that fails is seen to fail, and what comes after it does not run", web(dummy, gen.Serial("update", "app", "fail", "save")), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: v}
		}, []string{"plan update fails at main/step-1", "change ConfigMap ns/i-a .data.key: standard -> next"}},
		"NeverDone": {"so is one that never ends", web(gen.Task("forever", v1beta1.DummyTask, v1beta1.TaskSpec{}), gen.Serial("update", "forever")), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v)
			return Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: v}
		}, []string{"plan update fails at main/step-0"}},
		"Deleted": {"a Delete task deletes, and an Apply task after it writes anew", web(gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"a.yaml"}}), gen.Serial("update", "drop", "app")), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: v}
		}, []string{"plan update", "recreate ConfigMap ns/i-a"}},
		"SideBySide": {"what becomes of an object that steps write and delete side by side is not known", web(gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"a.yaml"}}), gen.Serial("update", "app", "drop"), sideBySide("update")), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: v}
		}, []string{"plan update", "unknown ConfigMap ns/i-a"}},
		"Foreign": {"a foreign object is refused before anything is written", web(), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			l.Put(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "i-a")})
			return Edit{Verb: "install", After: gen.Instance("i", v, nil), Version: v}
		}, []string{"plan deploy fails at main/step-0", "refused ConfigMap ns/i-a"}},
		"WrongPlan": {"a spec that can never be right is refused", web(), func(l *lab, v *v1beta1.OperatorVersion) Edit {
			before := l.running(v, "i-a")
			return Edit{Verb: "trigger", Before: before, Version: v, After: changed(before, func(i *v1beta1.Instance) {
				i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "none", UID: "request"}
			})}
		}, []string{`refused: spec.planExecution.planName: plan "none" does not exist in OperatorVersion ns/web-0.1.0 (plans: [backup deploy update])`}},
		"Missing": {"a parameter without a value is named", web(gen.Required("NEEDED")), func(_ *lab, v *v1beta1.OperatorVersion) Edit {
			return Edit{Verb: "install", After: gen.Instance("i", v, nil), Version: v}
		}, []string{`refused: parameter "NEEDED" is required but has no value and no default: set it with -p NEEDED=…`}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.compute(tc.edit(l, tc.version))
			if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradePrunes checks that what the new version does not name is deleted, or kept with the reason (P10, P13).
func TestUpgradePrunes(t *testing.T) {
	l := newLab(t)
	before := l.running(web(), "i-a", "i-old", "i-kept")
	kept := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "i-kept")}
	l.Read(kept)
	kept.Annotations = map[string]string{v1beta1.KeepAnnotation: "true"}
	l.Put(kept)
	next := web()
	next.Name, next.Spec.Version = "web-0.2.0", "0.2.0"
	p := l.compute(Edit{Verb: "upgrade", Before: before, Version: next, Old: web(),
		After: changed(before, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-0.2.0" })})
	want := []string{"plan update", "change ConfigMap ns/i-a", "keep ConfigMap ns/i-kept", "delete ConfigMap ns/i-old"}
	if diff := cmp.Diff(want, brief(p)); diff != "" {
		t.Error(diff)
	}
	if p.Objects[1].Why == "" || !p.IsChange() || p.Fails() {
		t.Errorf("got %+v", p)
	}
}

// TestFrom shows G5: a preview has the version before, as the run would, and each run of it sees what those before it have completed.
func TestFrom(t *testing.T) {
	l := newLab(t)
	before := l.running(web(), "i-a", "i-b")
	before.Status.Baseline.Completed = &v1beta1.PackageVersion{OperatorVersion: "0.1.0", AppVersion: "15"}
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-%s'}\ndata: {key: '{{ .From.AppVersion }}/{{ .From.OperatorVersion }}'}\n"
	next := web(gen.Template("a.yaml", fmt.Sprintf(text, "a")), gen.Template("b.yaml", fmt.Sprintf(text, "b")))
	next.Name, next.Spec.Version, next.Spec.AppVersion = "web-0.2.0", "0.2.0", "16"
	p := l.compute(Edit{Verb: "upgrade", Before: before, Version: next, Old: web(),
		After: changed(before, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name, i.Spec.Parameters["KEEP"] = "web-0.2.0", "4" })})
	want := []string{"plan update", "plan backup", "change ConfigMap ns/i-a .data.key: standard -> 15/0.1.0", "change ConfigMap ns/i-b .data.key: standard -> 16/0.2.0"}
	if diff := cmp.Diff(want, brief(p)); diff != "" {
		t.Error(diff)
	}
}

// TestSecretsAreMasked checks that no sensitive value is in any form of a preview (P7).
func TestSecretsAreMasked(t *testing.T) {
	l := newLab(t)
	sensitive := func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "PASSWORD", Sensitive: true, Trigger: "update"})
	}
	version := web(sensitive, gen.Template("s.yaml",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-s'}\nstringData: {password: '{{ .Params.PASSWORD }}'}\n---\n"+
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-a'}\ndata: {key: 'open {{ .Params.PASSWORD }}'}\n"),
		gen.Apply("secret", "s.yaml"), gen.Serial("update", "secret"))
	before := l.running(version, "i-a")
	before.Spec.Parameters["PASSWORD"] = "former-value"
	l.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i-s", Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"}},
		Data: map[string][]byte{"password": []byte("former-value")}})
	p := l.compute(Edit{Verb: "update", Before: before, After: changed(before, set("PASSWORD", "hunter2-secret")), Version: version})
	var text, markdown bytes.Buffer
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	all := text.String() + markdown.String() + fmt.Sprintf("%+v", p)
	for _, secret := range []string{"hunter2", "former-value", "aHVudGVyMi1zZWNyZXQ="} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is shown:\n%s", secret, all)
		}
	}
	if !strings.Contains(text.String(), ".data: (masked, changed)") {
		t.Errorf("the Secret changes:\n%s", text.String())
	}
}

// TestFormerValueIsMasked checks that what a sensitive parameter was is not shown either, wherever it stands (P7).
func TestFormerValueIsMasked(t *testing.T) {
	sensitive := func(is bool) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) {
			ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "PASSWORD", Sensitive: is, Trigger: "update"})
		}
	}
	open := gen.Template("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-a'}\ndata: {key: 'open {{ .Params.PASSWORD }}'}\n")
	for _, tc := range []struct {
		reason string
		still  bool
		value  string
	}{
		{"a new value", true, "new-password"},
		{"one that is too short to be masked", true, "abc"},
		{"the parameter is not sensitive any more", false, "new-password"},
	} {
		l := newLab(t)
		before := l.running(web(sensitive(true), open), "i-a")
		before.Spec.Parameters["PASSWORD"] = "former-value"
		live := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "i-a")}
		l.Read(live)
		live.Data = map[string]string{"key": "open former-value"}
		l.Put(live)
		p := l.compute(Edit{Verb: "update", Before: before, After: changed(before, set("PASSWORD", tc.value)), Version: web(sensitive(tc.still), open),
			Old: web(sensitive(true), open)})
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "former-value") || !strings.Contains(string(text), `"masked":true`) {
			t.Errorf("%s: %s", tc.reason, text)
		}
	}
}

// TestNewNamespace checks that what is in a namespace that does not exist yet is unknown, and does not fail (P6).
func TestNewNamespace(t *testing.T) {
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Namespace == "ns" && (r.Verb == "apply" || r.Verb == "create") {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
		}
		return nil, nil
	})
	version := web()
	p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version})
	if p.Fails() || p.Count(Unknown) != 1 || p.Objects[0].Why != "its namespace does not exist yet" {
		t.Errorf("got %+v", p)
	}
}

// TestDependenciesOfTheRun checks that what a run creates counts for the dependencies of what it writes later.
func TestDependenciesOfTheRun(t *testing.T) {
	const pod = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: '{{ .Name }}-d'\n  annotations: {kudo.dev/dependencies: refuse}\n" +
		"spec: {template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: '{{ .Name }}-a'}}]}]}}}\n"
	version := web(gen.Template("d.yaml", pod), gen.Apply("pod", "d.yaml"), gen.InstallPlan("install"), gen.Serial("install", "app"), gen.Serial("deploy", "pod"))
	version.Spec.Templates["a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: i-a}\n"
	for _, comes := range []bool{true, false} {
		l := newLab(t)
		e := Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version}
		if comes {
			e.Versions = []*v1beta1.OperatorVersion{version}
		}
		o := l.options()
		o.All = explore.Chain{native.New(nil, nil)}
		p, err := Compute(t.Context(), o, e)
		if err != nil {
			t.Fatal(err)
		}
		if p.Fails() == comes {
			t.Errorf("the install plan makes the ConfigMap: %t: %+v", comes, p)
		}
	}
}

// TestRightsAreUnknown checks that what the user may not ask is unknown, and not said to fail (P5, P6).
func TestRightsAreUnknown(t *testing.T) {
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Verb == "apply" && r.Kind == "ConfigMap" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, r.Name, fmt.Errorf(`User "ann" cannot patch resource "configmaps" in API group "" in the namespace "ns"`))
		}
		return nil, nil
	})
	version := web()
	p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version})
	if got := brief(p); !slices.Equal(got, []string{"plan deploy", "unknown ConfigMap ns/i-a"}) || p.Unknown() != 1 || p.Fails() {
		t.Errorf("got %q", got)
	}
}

// TestUnwillingWebhook checks that an object is unknown that a webhook does not answer for in a dry run, and that the
// rest of the plan is previewed (P6).
func TestUnwillingWebhook(t *testing.T) {
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Verb == "apply" && r.Name == "i-a" {
			return nil, apierrors.NewBadRequest(`admission webhook "labels.example.com" does not support dry run`)
		}
		return nil, nil
	})
	version := web(gen.Serial("deploy", "app", "save"))
	p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version})
	if got := brief(p); !slices.Equal(got, []string{"plan deploy", "unknown ConfigMap ns/i-a", "create ConfigMap ns/i-b"}) || p.Fails() {
		t.Errorf("got %q", got)
	}
	if why := p.Objects[0].Why; !strings.Contains(why, `webhook "labels.example.com" does not support dry run`) {
		t.Errorf("the reason is %q", why)
	}
}

// TestServerRefuses checks that what the API server refuses ends the plan, in its words, with the parameters that may be to blame (P8).
func TestServerRefuses(t *testing.T) {
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Verb == "apply" && r.Kind == "ConfigMap" {
			return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, r.Name, field.ErrorList{field.Invalid(field.NewPath("data", "key"), "banana", "no")})
		}
		return nil, nil
	})
	version := web()
	before := l.running(version, "i-a")
	p := l.compute(Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "banana")), Version: version})
	if !p.Fails() || p.Count(Refused) != 1 || !strings.Contains(p.Objects[0].Why, "banana") || len(p.Objects[0].Blame) != 1 || p.Objects[0].Blame[0].String() != "data.key: template a.yaml uses VALUE" {
		t.Errorf("got %+v", p)
	}
}

// TestRetry checks that the preview of a retry has the plan that failed, and what an upgrade that is resumed would prune.
func TestRetry(t *testing.T) {
	version := web()
	for _, tc := range []struct {
		reason string
		retry  *trigger.Request
		want   []string
	}{
		{"without a retry nothing would run", nil, nil},
		{"the plan runs again", &trigger.Request{Plan: "deploy", Cause: "retry of run 1"}, []string{"plan deploy", "create ConfigMap ns/i-a"}},
		{"an upgrade goes on", &trigger.Request{Plan: "deploy", Cause: "retry of run 1", Upgrade: true},
			[]string{"plan deploy", "create ConfigMap ns/i-a", "delete ConfigMap ns/i-old"}},
	} {
		l := newLab(t)
		i := l.running(version, "i-old")
		p := l.compute(Edit{Verb: "retry", Before: i, After: i.DeepCopy(), Version: version, Retry: tc.retry})
		if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		if tc.retry != nil && p.Runs[0].Cause != tc.retry.Cause {
			t.Errorf("%s: the cause is %q", tc.reason, p.Runs[0].Cause)
		}
	}
}

// TestRunningPlan checks that the preview assumes the end of a plan that runs, and says so.
func TestRunningPlan(t *testing.T) {
	l := newLab(t)
	version := web()
	before := l.running(version, "i-a")
	before.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.InProgress, UID: "run"}
	p := l.compute(Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: version})
	if len(p.Runs) != 1 || p.Runs[0].Plan != "update" || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "plan deploy runs") {
		t.Errorf("got %+v", p)
	}
}

// TestFromOfRunningPlan shows G5: a plan that runs counts as complete for the version before, too.
func TestFromOfRunningPlan(t *testing.T) {
	l := newLab(t)
	before := l.running(web(), "i-a")
	before.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.InProgress, UID: "run"}
	next := web(gen.Template("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: i-a}\ndata: {key: '{{ .From.OperatorVersion }}'}\n"))
	next.Name, next.Spec.Version = "web-0.2.0", "0.2.0"
	p := l.compute(Edit{Verb: "upgrade", Before: before, Version: next, Old: web(),
		After: changed(before, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-0.2.0" })})
	want := []string{"plan update", "change ConfigMap ns/i-a .data.key: standard -> " + web().Spec.Version}
	if diff := cmp.Diff(want, brief(p)); diff != "" {
		t.Error(diff)
	}

	l = newLab(t)
	before = l.running(web(), "i-a") // an earlier version of kudo has run it
	p = l.compute(Edit{Verb: "upgrade", Before: before, Version: next, Old: web(),
		After: changed(before, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-0.2.0" })})
	if diff := cmp.Diff(want, brief(p)); diff != "" {
		t.Error(diff)
	}
}

// TestRequests checks what a preview costs: one LIST for each kind, and a dry run for each object that is to be written (P4).
func TestRequests(t *testing.T) {
	l := newLab(t)
	version := web()
	before := l.running(version, "i-a")
	e := Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: version}
	o := l.options()
	l.Requests()
	if _, err := Compute(t.Context(), o, e); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, r := range l.Requests() {
		counts[strings.Join(strings.Fields(r)[:2], " ")]++
	}
	want := map[string]int{"patch Instance": 1, "list ConfigMap": 1, "apply ConfigMap": 1, "list ResourceQuota": 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
}

// TestDigest checks that equal previews have equal digests, whoever asks, and that different previews have different ones (P16).
func TestDigest(t *testing.T) {
	l := newLab(t)
	version := web()
	before := l.running(version, "i-a")
	digest := func(as, value string) string {
		o := l.options()
		o.As = as
		p, err := Compute(t.Context(), o, Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", value)), Version: version})
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest
	}
	if a, b, c := digest("ann", "next"), digest("bob", "next"), digest("ann", "other"); a != b || a == c || !strings.HasPrefix(a, "sha256:") {
		t.Errorf("got %s, %s, %s", a, b, c)
	}
}

// TestDigestOfContent checks that the digest covers what a new object holds, and what a text cuts (P16).
func TestDigestOfContent(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	for _, tc := range []struct {
		reason, one, other string
		exists, same       bool
	}{
		{"another value of a new object", "a", "b", false, false},
		{"the same", "a", "a", false, true},
		{"a difference behind what a line shows", long + "a", long + "b", true, false},
		{"white space", "a  b", "a b", true, false},
	} {
		digest := func(value string) string {
			l := newLab(t)
			version := web()
			e := Edit{Verb: "install", After: gen.Instance("i", version, map[string]string{"VALUE": value}), Version: version}
			if tc.exists {
				before := l.running(version, "i-a")
				e = Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", value)), Version: version}
			}
			p := l.compute(e)
			if tc.exists && (len(p.Objects) != 1 || len(p.Objects[0].Fields) != 1 || p.Objects[0].Fields[0].Masked) {
				t.Errorf("%s: %+v", tc.reason, p.Objects)
			}
			return p.Digest
		}
		if a, b := digest(tc.one), digest(tc.other); (a == b) != tc.same {
			t.Errorf("%s: %s, %s", tc.reason, a, b)
		}
	}
}

// TestExcerpts checks that two long values differ where they are shown.
func TestExcerpts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tc := range []struct{ reason, from, to string }{
		{"short values", "a", "b"}, {"long values", long + "a", long + "b"}, {"one is longer", long, long + "b"}, {"a character in two bytes", long + "é", long + "è"},
		{"white space", "a  b", "a b"}, {"lines", long + "\n", long + "\n\n"}, {"nothing before", "", "b"},
	} {
		from, to := excerpts(tc.from, tc.to)
		if from == to || len(from) > 2*maxValue || len(to) > 2*maxValue || strings.Contains(from+to, "\n") {
			t.Errorf("%s: %q, %q", tc.reason, from, to)
		}
	}
}

// TestUninstall checks what goes with an Instance and what stays (P13, P24).
func TestUninstall(t *testing.T) {
	l := newLab(t)
	version := web(gen.Serial("cleanup", "save"))
	i := l.running(version, "i-a", "i-kept")
	kept := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "i-kept")}
	l.Read(kept)
	kept.Annotations = map[string]string{v1beta1.KeepAnnotation: "true"}
	l.Put(kept)
	ours := map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"}
	l.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-i-0", Labels: ours}})
	owned := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "backups", Labels: ours}}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "i", UID: i.UID}}
	owned.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}
	l.Put(owned)
	p, err := Uninstall(t.Context(), l.options(), i, version, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"plan cleanup", "create ConfigMap ns/i-b", "delete ConfigMap ns/i-a", "delete PersistentVolumeClaim ns/backups"}
	if diff := cmp.Diff(want, brief(p)); diff != "" {
		t.Error(diff)
	}
	if why := p.Objects[len(p.Objects)-1].Why; why != "it is deleted with the Instance; with it a volume of 8Gi" {
		t.Errorf("the claim: %q", why)
	}
	wantStays := []Stay{{"ConfigMap ns/i-kept", StaysKept, nil}, {"PersistentVolumeClaim ns/data-i-0", StaysUnowned, nil}}
	if diff := cmp.Diff(wantStays, p.Stays); diff != "" {
		t.Error(diff)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "ns/backups would be deleted with its data") {
		t.Errorf("got %q", p.Warnings)
	}
	if p, err = Uninstall(t.Context(), l.options(), i, nil, false); err != nil || len(p.Runs) != 0 {
		t.Errorf("without its OperatorVersion no cleanup plan is known: %+v, %v", p, err)
	}
}

// TestLateAnswers checks that what the API server does not answer in time is unknown, and that all else is said (P4).
func TestLateAnswers(t *testing.T) {
	l := newLab(t)
	config, applies := l.Config(), 0
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				applies++
			}
			if applies > 1 {
				return nil, ErrLate
			}
			return inner.RoundTrip(r)
		})
	})
	version := web(gen.Serial("deploy", "app", "save"))
	p, err := Compute(t.Context(), l.optionsOf(config), Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"plan deploy", "create ConfigMap ns/i-a", "unknown ConfigMap ns/i-b"}
	if diff := cmp.Diff(want, brief(p)); diff != "" || p.Objects[1].Why != "the API server did not answer in time" || p.Fails() {
		t.Errorf("%s%+v", diff, p)
	}
}

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTimeout checks that Compute returns an error, and no part of a preview, if its context ends.
func TestTimeout(t *testing.T) {
	l := newLab(t)
	version := web()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := Compute(ctx, l.options(), Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version}); err == nil {
		t.Errorf("got %+v", p)
	}
}

// TestSameDigests checks how parameters are compared without the key of the cluster.
func TestSameDigests(t *testing.T) {
	d := digests{"A": "1"}
	for _, tc := range []struct {
		reason, name, digest, value string
		want                        bool
	}{
		{"the digest of the baseline is of the value before the edit", "A", "1.abc", "1", true},
		{"another value differs", "A", "1.abc", "2", false},
		{"a parameter that spec did not give differs", "B", "1.abc", "1", false},
		{"what a run of the preview has answered", "A", d.Of("A", "2"), "2", true},
		{"and what it has not", "A", d.Of("A", "2"), "1", false},
	} {
		if got := d.Same(tc.name, tc.digest, tc.value); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}

// workload is a Deployment whose pods mount a Secret.
func workload(image, hash string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
		"replicas": int64(3), "template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1beta1.DependenciesHashAnnotation: hash}},
			"spec": map[string]any{
				"containers": []any{map[string]any{"name": "web", "image": image}},
				"volumes":    []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": "login"}}},
			},
		},
	}}}
	obj.SetNamespace("ns")
	obj.SetName("web")
	obj.SetUID(types.UID("w"))
	return obj
}

// TestAdmissionIsKnown checks that what admission refuses is refused in the preview, too, though its code is that of a missing right (P6).
func TestAdmissionIsKnown(t *testing.T) {
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Verb == "apply" && r.Kind == "ConfigMap" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, r.Name, fmt.Errorf("the storageclass must support resize"))
		}
		return nil, nil
	})
	version := web()
	p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version})
	if got := brief(p); !slices.Equal(got, []string{"plan deploy fails at main/step-0", "refused ConfigMap ns/i-a"}) || !p.Fails() {
		t.Errorf("got %q", got)
	}
}
