package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// TestManager: engine rule 23.
func TestManager(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, tc := range map[string]struct{ reason, namespace, name, want string }{
		"Short": {"as it is", "ns", "i", "kudo/ns/i"},
		"Most":  {"128 bytes are allowed", "ns", long[:120], "kudo/ns/" + long[:120]},
		"Long":  {"one more is cut and hashed", "ns", long[:121], ""},
	} {
		got := Manager(tc.namespace, tc.name)
		if len(got) > 128 || tc.want != "" && got != tc.want || tc.want == "" && !strings.HasPrefix(got, "kudo/ns/"+long[:103]+"-") {
			t.Errorf("%s: %s: %q of %d bytes", name, tc.reason, got, len(got))
		}
	}
	if again := Manager("ns", long+"a"); again == Manager("ns", long+"b") || again != Manager("ns", long+"a") {
		t.Error("long names differ by their hash, which is always the same")
	}
}

// run returns a run beside Instance o. Instance unknown cannot be read.
func run(annotations map[string]string) *Run {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	alive := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "alive"}}
	instances := fake.NewClientBuilder().WithScheme(scheme).WithObjects(alive).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if key.Name == "unknown" {
				return errors.New("not known")
			}
			return c.Get(ctx, key, obj, options...)
		},
	}).Build()
	return &Run{Subject: Subject{Kind: "Instance", Namespace: "ns", Name: "i", UID: "me", Annotations: annotations}, Instances: instances}
}

// TestClaims is the truth table of engine rule 20.
func TestClaims(t *testing.T) {
	type labels = map[string]string
	kudo := func(instance string) labels {
		return labels{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: instance}
	}
	owner := func(kind, name, uid string, controller bool) []metav1.OwnerReference {
		version := "apps/v1"
		if kind == "Instance" || kind == "Installation" {
			version = "kudo.dev/v1beta1"
		}
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: &controller}}
	}
	old := labels{v1beta1.LastAppliedAnnotation: "{}"}
	adopt := labels{v1beta1.AdoptAnnotation: "true"}
	for name, tc := range map[string]struct {
		reason      string
		namespace   string
		labels      labels
		annotations labels
		owners      []metav1.OwnerReference
		known       types.UID
		instance    labels
		want        apply.Claim
		owner       string
	}{
		"Stranger":      {"nothing speaks for us", "ns", nil, nil, nil, "", nil, apply.Foreign, "another client (written by kubectl, helm)"},
		"Inventory":     {"we have written it", "ns", nil, nil, nil, "x", nil, apply.Ours, ""},
		"OtherUID":      {"we wrote another of the name", "ns", nil, nil, nil, "y", nil, apply.Foreign, "another client (written by kubectl, helm)"},
		"Owned":         {"it is owned by us", "ns", nil, nil, owner("Instance", "i", "me", true), "", nil, apply.Ours, ""},
		"Child":         {"a child Instance, whose owner is no controller", "ns", nil, nil, owner("Instance", "i", "me", false), "", nil, apply.Ours, ""},
		"OtherInstance": {"its Instance exists", "ns", kudo("o"), nil, owner("Instance", "o", "alive", true), "", nil, apply.Foreign, "Instance ns/o"},
		"Namesake":      {"its Instance was deleted, and there is another of the name", "ns", kudo("o"), nil, owner("Instance", "o", "dead", true), "", nil, apply.OwnerGone, "Instance ns/o"},
		"Leaving":       {"its Instance was deleted", "ns", kudo("i"), nil, owner("Instance", "i", "dead", true), "", nil, apply.OwnerGone, "Instance ns/i"},
		"Unsure":        {"whether it exists is not known: not ours", "ns", kudo("i"), nil, owner("Instance", "unknown", "dead", true), "", nil, apply.Foreign, "Instance ns/unknown"},
		"Controller":    {"another kind controls it, whatever its labels", "ns", kudo("i"), nil, owner("ReplicaSet", "r", "dead", true), "", nil, apply.Foreign, "ReplicaSet ns/r"},
		"NoController":  {"an owner that is no controller does not decide", "ns", kudo("i"), nil, owner("ReplicaSet", "r", "dead", false), "", nil, apply.Ours, ""},
		"Label":         {"heritage and our name", "ns", kudo("i"), nil, nil, "", nil, apply.Ours, ""},
		"OtherLabel":    {"heritage and another name", "ns", kudo("o"), nil, nil, "", nil, apply.Foreign, "Instance ns/o"},
		"NameOnly":      {"our name without the heritage", "ns", labels{v1beta1.InstanceLabel: "i"}, nil, nil, "", nil, apply.Foreign, "another client (written by kubectl, helm)"},
		"KUDO":          {"KUDO's own annotation and no label", "ns", nil, old, nil, "", nil, apply.Ours, ""},
		"KUDOOther":     {"KUDO's own annotation and the label of another", "ns", kudo("o"), old, nil, "", nil, apply.Foreign, "Instance ns/o"},
		"Shared":        {"cluster-scoped and made by another", "", kudo("o"), nil, nil, "", nil, apply.Shared, "Instance o"},
		"SharedOwn":     {"cluster-scoped with our name may be of our namesake elsewhere", "", kudo("i"), nil, nil, "", nil, apply.Shared, "Instance i"},
		"SharedKnown":   {"but not if we have written it", "", kudo("i"), nil, nil, "x", nil, apply.Ours, ""},
		"ClusterScoped": {"cluster-scoped and not made by kudo", "", nil, nil, nil, "", nil, apply.Foreign, "another client (written by kubectl, helm)"},
		"Adopted":       {"the Instance says so", "ns", nil, nil, nil, "", adopt, apply.Ours, ""},
		"AdoptOther":    {"of another Instance too, if no controller has it", "ns", kudo("o"), nil, nil, "", adopt, apply.Ours, ""},
		"Held":          {"an install plan's object, though it carries our labels", "ns", kudo("i"), nil, owner("Installation", "ns-op-1", "dead", false), "", adopt, apply.Foreign, "Installation ns-op-1"},
		"NotAdopted":    {"never from a controller", "ns", nil, nil, owner("ReplicaSet", "r", "dead", true), "", adopt, apply.Foreign, "ReplicaSet ns/r"},
	} {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "X"})
		live.SetNamespace(tc.namespace)
		live.SetName("x")
		live.SetUID("x")
		live.SetLabels(tc.labels)
		live.SetAnnotations(tc.annotations)
		live.SetOwnerReferences(tc.owners)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "helm"}, {Manager: "kubectl"}, {Manager: "kubelet", Subresource: "status"}})
		inventory := Inventory{}
		if tc.known != "" {
			inventory[apply.IDOf(live)] = apply.Record{UID: tc.known}
		}
		claim, owner := run(tc.instance).claimer(known(inventory))(context.Background(), live)
		if claim != tc.want || owner != tc.owner {
			t.Errorf("%s: %s: claim %d of %q, want %d of %q", name, tc.reason, claim, owner, tc.want, tc.owner)
		}
	}
}

// TestOwners: names of which one is a part of another are both named.
func TestOwners(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{}}
	if got := owners(live); got != "another client" {
		t.Errorf("no manager is known: %q", got)
	}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl-create"}, {Manager: "kubectl"}})
	if got, want := owners(live), "another client (written by kubectl-create, kubectl)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDummy: engine rule 10, and what a Dummy is told.
func TestDummy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		dummy  task.Dummy
		want   plans.State
		never  bool
	}{
		"Done":   {"it is done", task.Dummy{Done: true}, plans.Done, false},
		"Never":  {"without done it is never done", task.Dummy{}, plans.Waiting, true},
		"Error":  {"a transient error", task.Dummy{WantErr: true}, plans.Transient, false},
		"Fatal":  {"one that does not", task.Dummy{WantErr: true, Fatal: true, Done: true}, plans.Fatal, false},
		"NoErr":  {"fatal alone is no error", task.Dummy{Fatal: true, Done: true}, plans.Done, false},
		"ErrToo": {"an error though done", task.Dummy{WantErr: true, Done: true}, plans.Transient, false},
	} {
		w := &PreparedTask{Name: "t", task: tc.dummy}
		w.dummy(tc.dummy)
		if w.outcome.State != tc.want || w.NeverCompletes() != tc.never {
			t.Errorf("%s: %s: %+v, never %v", name, tc.reason, *w.outcome, w.NeverCompletes())
		}
	}
}

// version has templates, tasks and one plan of a step for each task.
func version(t *testing.T, templates map[string]string, tasks ...v1beta1.Task) *ParsedVersion {
	t.Helper()
	spec := &v1beta1.OperatorVersionSpec{Templates: templates, Tasks: tasks, Plans: map[string]v1beta1.Plan{}}
	phase := v1beta1.Phase{Name: "p"}
	for _, task := range tasks {
		phase.Steps = append(phase.Steps, v1beta1.Step{Name: task.Name, Tasks: []string{task.Name}})
	}
	spec.Plans["deploy"] = v1beta1.Plan{Phases: []v1beta1.Phase{phase}}
	v, err := NewVersions().ForSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestToggle: the parameter decides, and must be a boolean.
func TestToggle(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		values  params.Values
		deletes bool
		text    string
	}{
		"On":        {"true applies; there is nothing to apply", params.Values{"P": "true"}, false, ""},
		"Off":       {"false deletes", params.Values{"P": "false"}, true, ""},
		"Undefined": {"a parameter that is not defined", params.Values{}, false, `parameter "P" is not defined`},
		"Text":      {"no boolean", params.Values{"P": "maybe"}, false, `P is "maybe": set it to true or false`},
		"Empty":     {"no value", params.Values{"P": ""}, false, "set it to true or false"},
		"List":      {"no text", params.Values{"P": []any{"true"}}, false, "set it to true or false"},
	} {
		r, u := &Runner{}, run(nil)
		u.Version, u.values = version(t, map[string]string{"empty.yaml": ""}), tc.values
		w := r.prepareToggle(context.Background(), u, &PreparedTask{Name: "t"}, task.Toggle{Resources: []string{"empty.yaml"}, Parameter: "P"}, u.variables("p", "s"))
		fatal := w.outcome != nil && w.outcome.State == plans.Fatal
		if w.deletes != tc.deletes || fatal != (tc.text != "") || fatal && !strings.Contains(w.outcome.Message, tc.text) {
			t.Errorf("%s: %s: deletes %v, outcome %+v", name, tc.reason, w.deletes, w.outcome)
		}
	}
}

const (
	one   = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-one\n"
	two   = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-two\n"
	twice = one + "---\n" + one
)

// TestRender: each object once in a task.
func TestRender(t *testing.T) {
	templates := map[string]string{"one.yaml": one, "two.yaml": two, "again.yaml": one, "twice.yaml": twice,
		"value.yaml": one + "data: {a: {{ .Params.V }}}\n", "kind.yaml": strings.Replace(one, "ConfigMap", "{{ .Params.K }}", 1)}
	for name, tc := range map[string]struct {
		reason    string
		resources []string
		want      []string
		text      string
	}{
		"Order":     {"in listed order", []string{"two.yaml", "one.yaml"}, []string{"ConfigMap i-two", "ConfigMap i-one"}, ""},
		"Listed":    {"a template that is listed twice counts once", []string{"one.yaml", "two.yaml", "one.yaml"}, []string{"ConfigMap i-one", "ConfigMap i-two"}, ""},
		"Templates": {"two templates that make one object", []string{"one.yaml", "again.yaml"}, nil, "templates one.yaml and again.yaml both make ConfigMap i-one"},
		"Twice":     {"a template that makes it twice: which one counts would be chance", []string{"twice.yaml"}, nil, "template twice.yaml makes ConfigMap i-one twice"},
		"Value":     {"T21: a value that changes the structure ends the run", []string{"one.yaml", "value.yaml"}, nil, "parameter V changes the structure of template value.yaml (data has 2 keys instead of 1): a value must stay one value"},
		"Kind":      {"T22: no value names a kind", []string{"kind.yaml"}, nil, "parameter K makes kind of an object of template kind.yaml"},
	} {
		u := run(nil)
		u.Version, u.values = version(t, templates), params.Values{"V": "a, b: c", "K": "Secret"}
		made, err := u.render(tc.resources, u.variables("p", "s"))
		var got []string
		for _, obj := range made.objects {
			got = append(got, apply.IDOf(obj).String())
		}
		if tc.text == "" && err != nil || tc.text != "" && (err == nil || !strings.Contains(err.Error(), tc.text) || !isFatal(err)) {
			t.Errorf("%s: %s: error %v", name, tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
}

// TestAbandoned: engine rule 12, what no task of any plan names.
func TestAbandoned(t *testing.T) {
	tasks := []v1beta1.Task{
		{Name: "apply", Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{"one.yaml"}}},
		{Name: "delete", Kind: v1beta1.DeleteTask, Spec: v1beta1.TaskSpec{Resources: []string{"two.yaml"}}},
		{Name: "child", Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{Package: "kafka"}},
	}
	id := func(gvk schema.GroupVersionKind, namespace, name string) apply.ID {
		return apply.ID{GroupVersionKind: gvk, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	cm, child := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, v1beta1.GroupVersion.WithKind("Instance")
	inventory := Inventory{
		id(cm, "ns", "i-one"): {}, id(cm, "ns", "i-two"): {}, id(child, "ns", "i-kafka"): {}, id(cm, "ns", "i-old"): {}, id(child, "ns", "i-zookeeper"): {},
		id(schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}, "ns", "i-one"): {}, id(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "ns", "i-one"): {},
	}
	u := run(nil)
	u.Version = version(t, map[string]string{"one.yaml": one, "two.yaml": two}, tasks...)
	got, err := AbandonedObjects(u, inventory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, id := range got {
		names = append(names, id.String())
	}
	want := []string{"ConfigMap ns/i-old", "Instance ns/i-zookeeper", "Secret ns/i-one"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("Delete tasks and children name objects too, and the version of an API does not count: %s", diff)
	}

	u.From = v1beta1.PackageVersion{AppVersion: "14"}
	u.Version = version(t, map[string]string{
		"one.yaml": "{{ if not .From.AppVersion }}" + one + "{{ else if ne .From.AppVersion \"14\" }}" + two + "{{ end }}", "two.yaml": "",
	}, tasks...)
	u.Version.Spec.AppVersion = "15"
	if got, err := AbandonedObjects(u, inventory); err != nil || len(got) != len(want) {
		t.Errorf("G5: what only a first run names, and what the next run will name, is not abandoned: %v, %v", got, err)
	}

	u = run(nil)
	u.Version = version(t, map[string]string{"one.yaml": "{{ fail \"x\" }}"}, tasks[0])
	if got, err := AbandonedObjects(u, inventory); err == nil || got != nil {
		t.Errorf("if the names are not known, nothing is abandoned: %v, %v", got, err)
	}
}
