package controllers

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestEnqueueInstances checks that Instances of all namespaces are enqueued, and none if they cannot be listed.
func TestEnqueueInstances(t *testing.T) {
	server := apitest.Start(t, gen.Instance("a", gen.Version("x", "v"), nil), gen.Instance("a", gen.Version("y", "v"), nil), gen.Instance("b", gen.Version("y", "v"), nil), gen.Version("x", "v"))
	got := map[types.NamespacedName]int{}
	enqueue := func(key types.NamespacedName) { got[key]++ }
	enqueueInstances(t.Context(), server.Client(), enqueue)
	want := map[types.NamespacedName]int{{Namespace: "x", Name: "a"}: 1, {Namespace: "y", Name: "a"}: 1, {Namespace: "y", Name: "b"}: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	clear(got)
	server.Before(func(apitest.Request) (any, error) { return nil, errors.New("down") })
	if enqueueInstances(t.Context(), server.Client(), enqueue); len(got) > 0 {
		t.Errorf("enqueued %v, which were not listed", got)
	}
}

// TestEnqueueVersions checks that the OperatorVersions of Installations are enqueued, and none if those cannot be listed.
func TestEnqueueVersions(t *testing.T) {
	of := func(kind, name string) *v1beta1.Installation {
		return &v1beta1.Installation{ObjectMeta: gen.Meta("", name), Spec: v1beta1.InstallationSpec{Subject: v1beta1.InstallationSubject{Kind: kind, Namespace: "x", Name: name}}}
	}
	server := apitest.Start(t, of("OperatorVersion", "a"), of("Instance", "b"), of("OperatorVersion", "c"), gen.Version("x", "a"))
	var got []string
	enqueue := func(installation string) { got = append(got, installation) }
	enqueueVersions(t.Context(), server.Client(), enqueue)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	got = nil
	server.Before(func(apitest.Request) (any, error) { return nil, errors.New("down") })
	if enqueueVersions(t.Context(), server.Client(), enqueue); len(got) > 0 {
		t.Errorf("enqueued %v, which were not listed", got)
	}
}

// TestSend checks which controllers a change of an object reaches.
func TestSend(t *testing.T) {
	owned := func(apiVersion, kind string) *unstructured.Unstructured {
		obj := scaled("v1", "ConfigMap", "ns", "a")
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner"}})
		return obj
	}
	for _, tc := range []struct {
		reason   string
		obj      *unstructured.Unstructured
		installs int
	}{
		{"an object of an Instance concerns Instances only", owned("kudo.dev/v1beta1", "Instance"), 0},
		{"an object without an owner may be one that an Instance waits for", scaled("v1", "ConfigMap", "ns", "a"), 0},
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
