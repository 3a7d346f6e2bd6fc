package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestEnqueueInstances checks that the Instances of all namespaces for which a condition holds are enqueued, and none if they cannot be
// listed.
func TestEnqueueInstances(t *testing.T) {
	server := apitest.Start(t, gen.Instance("a", gen.Version("x", "v"), nil), gen.Instance("a", gen.Version("y", "v"), nil), gen.Instance("b", gen.Version("y", "v"), nil), gen.Version("x", "v"))
	got := map[types.NamespacedName]int{}
	enqueue := func(key types.NamespacedName) { got[key]++ }
	enqueueInstances(t.Context(), server.Client(), func(i *v1beta1.Instance) bool { return i.Name == "a" }, enqueue)
	want := map[types.NamespacedName]int{{Namespace: "x", Name: "a"}: 1, {Namespace: "y", Name: "a"}: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	clear(got)
	server.Before(func(apitest.Request) (any, error) { return nil, errors.New("down") })
	if enqueueInstances(t.Context(), server.Client(), func(*v1beta1.Instance) bool { return true }, enqueue); len(got) > 0 {
		t.Errorf("enqueued %v, which were not listed", got)
	}
}

// holder is an Installation for a subject in namespace x, with an object of each kind.
func holder(kind, name string, kinds ...string) *v1beta1.Installation {
	i := &v1beta1.Installation{ObjectMeta: gen.Meta("", name), Spec: v1beta1.InstallationSpec{Subject: v1beta1.InstallationSubject{Kind: kind, Namespace: "x", Name: name}}}
	for _, k := range kinds {
		i.Status.Resources = append(i.Status.Resources, v1beta1.HeldResource{APIVersion: "example.com/v1", Kind: k, Name: name})
	}
	return i
}

// TestEnqueueHolders checks that the subjects of the Installations for which a condition holds are enqueued, and none if those cannot be
// listed.
func TestEnqueueHolders(t *testing.T) {
	server := apitest.Start(t, holder("OperatorVersion", "a"), holder("Instance", "b"), holder("OperatorVersion", "c"), holder("OperatorVersion", "d"))
	var got []string
	version := func(installation string) { got = append(got, installation) }
	instance := func(key types.NamespacedName) { got = append(got, key.String()) }
	enqueueHolders(t.Context(), server.Client(), func(i *v1beta1.Installation) bool { return i.Name != "d" }, instance, version)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "c", "x/b"}, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	got = nil
	server.Before(func(apitest.Request) (any, error) { return nil, errors.New("down") })
	if enqueueHolders(t.Context(), server.Client(), func(*v1beta1.Installation) bool { return true }, instance, version); len(got) > 0 {
		t.Errorf("enqueued %v, which were not listed", got)
	}
}

// clientManager is a manager of which only the client is used.
type clientManager struct {
	manager.Manager
	client client.Client
}

func (m clientManager) GetClient() client.Client { return m.client }

// TestEnqueueAffected checks C66: of 1,000 Instances and some OperatorVersions, those are enqueued whose inventory or waiting step has an
// affected kind, and each kind is judged once.
func TestEnqueueAffected(t *testing.T) {
	running := gen.Version("x", "running")
	running.Status.PlanStatus = map[string]v1beta1.PlanStatus{"install": {Status: v1beta1.InProgress}}
	idle := gen.Version("x", "idle")
	idle.Status.PlanStatus = map[string]v1beta1.PlanStatus{"install": {Status: v1beta1.Complete}}
	objects := []client.Object{running, idle, holder("OperatorVersion", "running"), holder("OperatorVersion", "idle", "Pot"), holder("OperatorVersion", "gone", "Pot"),
		holder("OperatorVersion", "kettles", "Pot", "Kettle"), holder("Instance", "i-0500", "Kettle")}
	for n := range 1000 {
		i := gen.Instance(fmt.Sprintf("i-%04d", n), gen.Version("x", "v"), nil)
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, {APIVersion: "example.com/v1", Kind: "Pot", Name: "pot"}}
		if n%400 == 7 {
			i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: "example.com/v1", Kind: "Kettle", Name: "kettle"})
		}
		objects = append(objects, i)
	}
	server := apitest.Start(t, objects...)
	kettle := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Kettle"}
	p := &parts{mgr: clientManager{client: server.Client()}, instances: loop.NewChanges(), versions: loop.NewChanges(), installations: loop.NewChanges(),
		rulesChanged: func(key types.NamespacedName, condition func(schema.GroupVersionKind) bool) bool {
			return key.Name == "i-0999" && condition(kettle) || key.Name == "i-0998" && condition(kettle.GroupVersion().WithKind("Pot"))
		}}
	judged := map[string]int{}
	p.enqueueAffected(t.Context(), func(_ context.Context, kind schema.GroupVersionKind) bool {
		judged[kind.Kind]++
		return kind == kettle
	})
	if diff := cmp.Diff([]string{"i-0007", "i-0407", "i-0500", "i-0807", "i-0999"}, drained(p.instances, func(o *unstructured.Unstructured) string { return o.GetLabels()[v1beta1.InstanceLabel] })); diff != "" {
		t.Errorf("Instances: -want +got: %s", diff)
	}
	if diff := cmp.Diff([]string{"kettles", "running"}, drained(p.versions, func(o *unstructured.Unstructured) string { return v1beta1.OwningInstallations(o)[0] })); diff != "" {
		t.Errorf("OperatorVersions, by their Installation: -want +got: %s", diff)
	}
	if diff := cmp.Diff(map[string]int{"Deployment": 1, "Pot": 1, "Kettle": 1}, judged); diff != "" {
		t.Errorf("how often each kind was judged: -want +got: %s", diff)
	}
}

// drained names what waits for a controller, in order.
func drained(changes loop.Changes, name func(*unstructured.Unstructured) string) []string {
	var out []string
	for len(changes) > 0 {
		out = append(out, name((<-changes).Object))
	}
	slices.Sort(out)
	return out
}

func configMap() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetNamespace("ns")
	obj.SetName("a")
	return obj
}

// TestSend checks which controllers a change of an object reaches.
func TestSend(t *testing.T) {
	owned := func(apiVersion, kind string) *unstructured.Unstructured {
		obj := configMap()
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner"}})
		return obj
	}
	for _, tc := range []struct {
		reason   string
		obj      *unstructured.Unstructured
		installs int
	}{
		{"an object of an Instance concerns Instances only", owned("kudo.dev/v1beta1", "Instance"), 0},
		{"an object without an owner may be one that an Instance waits for", configMap(), 0},
		{"an object of an Installation concerns its OperatorVersion, too", owned("kudo.dev/v1beta1", "Installation"), 1},
		{"an Installation of another group is not kudo's", owned("example.org/v1", "Installation"), 0},
	} {
		p := &parts{instances: loop.NewChanges(), versions: loop.NewChanges(), installations: loop.NewChanges()}
		p.send(tc.obj)
		if len(p.instances) != 1 || len(p.versions) != tc.installs || len(p.installations) != tc.installs {
			t.Errorf("%s: %d changes for Instances, %d for OperatorVersions, %d for Installations, want 1, %d, %d", tc.reason,
				len(p.instances), len(p.versions), len(p.installations), tc.installs, tc.installs)
		}
	}
}
