package instance

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestRunningFirst: where much is to be done, an object of a plan that runs brings its Instance to the front.
func TestRunningFirst(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	r := &Reconciler{}
	r.runs.Store(key("runs"), &activeRun{})
	queue := priorityqueue.New[reconcile.Request](t.Name())
	t.Cleanup(queue.ShutDown)
	queue.Add(reconcile.Request{NamespacedName: key("new")})
	for _, name := range []string{"rests", "runs", "runs"} {
		r.changed(context.Background(), event.TypedGenericEvent[*unstructured.Unstructured]{Object: ChangeOf(key(name))}, queue)
	}
	if n := queue.Len(); n != 3 {
		t.Fatalf("%d Instances wait, want 3", n)
	}
	for _, want := range []string{"runs", "new", "rests"} {
		if next, _, _ := queue.GetWithPriority(); next.Name != want {
			t.Errorf("next comes %s, want %s", next.Name, want)
		}
	}
}

// names returns the names that requests are for, in order.
func names(requests []reconcile.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return out
}

// TestClusterScopedIndex: a change of a cluster-scoped object concerns the Instances that have it in their inventory now.
func TestClusterScopedIndex(t *testing.T) {
	role, crd, configMap := idOf("rbac.authorization.k8s.io/v1", "ClusterRole", "", "role"), idOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "crd"), idOf("v1", "ConfigMap", "ns", "a")
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	index := &clusterScopedIndex{}
	for _, step := range []struct {
		reason string
		do     func()
		role   []string
		crd    []string
	}{
		{"nothing is known", func() { index.forget(a) }, nil, nil},
		{"an Instance has namespaced objects only", func() { index.set(a, runner.Inventory{configMap: {}}) }, nil, nil},
		{"an Instance writes two", func() { index.set(a, runner.Inventory{role: {}, crd: {}, configMap: {}}) }, []string{"ns/a"}, []string{"ns/a"}},
		{"another one writes one of them", func() { index.set(b, runner.Inventory{role: {}}) }, []string{"ns/a", "ns/b"}, []string{"ns/a"}},
		{"the first one has the same inventory again", func() { index.set(a, runner.Inventory{role: {}, crd: {}}) }, []string{"ns/a", "ns/b"}, []string{"ns/a"}},
		{"the first one drops one", func() { index.set(a, runner.Inventory{role: {}}) }, []string{"ns/a", "ns/b"}, nil},
		{"the second one is deleted", func() { index.forget(b) }, []string{"ns/a"}, nil},
		{"it is deleted again", func() { index.forget(b) }, []string{"ns/a"}, nil},
		{"the first one has none any more", func() { index.set(a, nil) }, nil, nil},
	} {
		step.do()
		if diff := cmp.Diff([][]string{step.role, step.crd}, [][]string{names(index.of(role)), names(index.of(crd))}); diff != "" {
			t.Errorf("%s: -want +got: %s", step.reason, diff)
		}
	}
	if len(index.objects)+len(index.writers) > 0 {
		t.Errorf("of Instances that have no objects, the index keeps %v and %v", index.objects, index.writers)
	}
}

// TestWritersOf: an object leads to its Instance by its label; a cluster-scoped one by what was written, and by its Installations.
func TestWritersOf(t *testing.T) {
	f := newFixture(t)
	object := func(namespace string, labels texts, owners ...string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("v1")
		obj.SetKind("Thing")
		obj.SetNamespace(namespace)
		obj.SetName("x")
		obj.SetLabels(labels)
		var references []metav1.OwnerReference
		for _, name := range owners {
			references = append(references, metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: name, UID: "uid"})
		}
		obj.SetOwnerReferences(references)
		return obj
	}
	for name, subject := range map[string]v1beta1.InstallationSubject{
		"of-instance": {Kind: "Instance", Namespace: "apps", Name: "held"}, "of-version": {Kind: "OperatorVersion", Namespace: "apps", Name: "web-1.0"},
	} {
		f.Put(&v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.InstallationSpec{Subject: subject}})
	}
	f.r.clusterScoped.set(f.key(), runner.Inventory{idOf("v1", "Thing", "", "x"): {}})
	for _, tc := range []struct {
		reason string
		object *unstructured.Unstructured
		want   []string
	}{
		{"it has the label", object("ns", texts{v1beta1.InstanceLabel: "web"}), []string{"ns/web"}},
		{"it has no label", object("ns", nil), nil},
		{"it is in another namespace", object("other", texts{v1beta1.InstanceLabel: "web"}), []string{"other/web"}},
		{"it is cluster-scoped: the label does not say of which namespace", object("", texts{v1beta1.InstanceLabel: "other"}), []string{"ns/web"}},
		{"its Installation is of an Instance", object("", nil, "of-instance"), []string{"apps/held", "ns/web"}},
		{"its Installation is of an OperatorVersion", object("", nil, "of-version"), []string{"ns/web"}},
		{"its Installation does not exist", object("", nil, "none", "of-instance"), []string{"apps/held", "ns/web"}},
		{"the Installation of a namespaced object does not count", object("ns", nil, "of-instance"), nil},
	} {
		if diff := cmp.Diff(tc.want, names(f.r.writersOf(t.Context(), tc.object))); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
	if diff := cmp.Diff([]string{"ns/web"}, names(f.r.writersOf(t.Context(), ChangeOf(f.key())))); diff != "" {
		t.Errorf("what ChangeOf returns: -want +got: %s", diff)
	}
	f.r.forget(f.key())
	if got := f.r.writersOf(t.Context(), object("", nil)); len(got) > 0 {
		t.Errorf("an Instance that does not exist is enqueued: %v", got)
	}
}

// TestAwaiting: a new account enqueues the Instances of its namespace that wait for it, and no others.
func TestAwaiting(t *testing.T) {
	waiting := func(namespace, name, account, reason string) client.Object {
		i := gen.Instance(name, webVersion("web-1.0"), nil)
		i.Namespace, i.Spec.ServiceAccountName = namespace, account
		if reason != "" {
			i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason}}
		}
		return i
	}
	r := &Reconciler{Settings: func(context.Context) settings.Settings { return settings.Settings{DefaultAccount: "kudo"} }, Client: apitest.NewIndexedClient(&v1beta1.Instance{}, indexes,
		waiting("ns", "new", "", ""),
		waiting("ns", "refused", "team", v1beta1.ReasonInvalidSpec),
		waiting("ns", "waits", "", v1beta1.ReasonServiceAccountNotFound),
		waiting("ns", "waits-for-kudo", "kudo", v1beta1.ReasonServiceAccountNotFound),
		waiting("ns", "waits-for-team", "team", v1beta1.ReasonServiceAccountNotFound),
		waiting("other", "waits", "", v1beta1.ReasonServiceAccountNotFound))}
	for _, tc := range []struct {
		reason, namespace, name string
		want                    []string
	}{
		{"it is the one by default", "ns", "kudo", []string{"ns/waits", "ns/waits-for-kudo"}},
		{"it is the one by default of another namespace", "other", "kudo", []string{"other/waits"}},
		{"an Instance names it", "ns", "team", []string{"ns/waits-for-team"}},
		{"an Instance of another namespace names it", "other", "team", nil},
		{"no Instance names it", "ns", "any", nil},
		{"no Instance waits", "empty", "kudo", nil},
	} {
		if diff := cmp.Diff(tc.want, names(r.awaiting(t.Context(), account(tc.namespace, tc.name)))); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestParents: an Instance enqueues the Instances that own it, and no other owners.
func TestParents(t *testing.T) {
	i := gen.Instance("child", webVersion("web-1.0"), nil)
	const ours = "kudo.dev/v1beta1"
	i.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		{APIVersion: ours, Kind: "Instance", Name: "parent"}, {APIVersion: "example.org/v1", Kind: "Instance", Name: "of-a-cloud"},
		{APIVersion: ours, Kind: "Instance", Name: "second"}}
	if diff := cmp.Diff([]string{"ns/parent", "ns/second"}, names(parents(t.Context(), i))); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got := parents(t.Context(), gen.Instance("orphan", webVersion("web-1.0"), nil)); got != nil {
		t.Errorf("an Instance without owners enqueues %v", got)
	}
}

// TestInstallProgressPredicate: an update of an OperatorVersion passes if it says how far its install plan has come.
func TestInstallProgressPredicate(t *testing.T) {
	before := webVersion("web-1.0", installPlan(v1beta1.InProgress, "one"))
	for _, tc := range []struct {
		reason string
		after  client.Object
		want   bool
	}{
		{"nothing has changed", before, false},
		{"a label has changed", func() client.Object { ov := before.DeepCopy(); ov.Labels = texts{"a": "b"}; return ov }(), false},
		{"the message has changed", webVersion("web-1.0", installPlan(v1beta1.InProgress, "two")), true},
		{"the status has changed", webVersion("web-1.0", installPlan(v1beta1.FatalError, "one")), true},
		{"it is installed", func() client.Object {
			ov := before.DeepCopy()
			ov.Status.Conditions = []metav1.Condition{{Type: v1beta1.InstalledCondition, Status: metav1.ConditionTrue}}
			return ov
		}(), true},
		{"it is another kind", gen.Instance("web", before, nil), false},
	} {
		if got := (installProgressPredicate{}).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestIndexes: the Instances of a source and of a version are found by the fields that the indexes name.
func TestIndexes(t *testing.T) {
	other := gen.Instance("other", webVersion("web-2.0"), nil)
	other.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "values"}}
	web := gen.Instance("web", webVersion("web-1.0"), nil)
	web.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "ConfigMap", Name: "values"}, {Kind: "Secret", Name: "values"}}
	elsewhere := web.DeepCopy()
	elsewhere.Namespace, elsewhere.Spec.OperatorVersion.Namespace = "elsewhere", "ns"
	c := apitest.NewIndexedClient(&v1beta1.Instance{}, indexes, web, other, elsewhere)
	r := &Reconciler{Client: c, Settings: func(context.Context) settings.Settings { return settings.Settings{DefaultAccount: "kudo"} }}
	if diff := cmp.Diff([]string{"elsewhere/web", "ns/web"}, names(r.usersOf(t.Context(), webVersion("web-1.0")))); diff != "" {
		t.Errorf("users of web-1.0: -want +got: %s", diff)
	}
	for _, tc := range []struct {
		kind, namespace, name string
		want                  []types.NamespacedName
	}{
		{"Secret", "ns", "values", []types.NamespacedName{{Namespace: "ns", Name: "other"}, {Namespace: "ns", Name: "web"}}},
		{"ConfigMap", "ns", "values", []types.NamespacedName{{Namespace: "ns", Name: "web"}}},
		{"Secret", "elsewhere", "values", []types.NamespacedName{{Namespace: "elsewhere", Name: "web"}}},
		{"Secret", "ns", "none", nil},
	} {
		got := InstancesUsing(t.Context(), c, paramsource.Reference{Kind: tc.kind, NamespacedName: types.NamespacedName{Namespace: tc.namespace, Name: tc.name}})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s %s/%s: -want +got: %s", tc.kind, tc.namespace, tc.name, diff)
		}
	}
	broken := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errSlow }})
	r.Client = broken
	if got := append(names(r.usersOf(t.Context(), webVersion("web-1.0"))), names(r.awaiting(t.Context(), account("ns", "kudo")))...); len(got) > 0 {
		t.Errorf("of a list that fails, %v are enqueued", got)
	}
}
