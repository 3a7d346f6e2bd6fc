package inventory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/test/gen"
)

// TestCopyOf checks what a cluster gets of an Instance (C46).
func TestCopyOf(t *testing.T) {
	two, none := int64(2), int64(0)
	for name, c := range map[string]struct {
		divide     string
		target     clusters.Target
		parameters map[string]string
		released   string
		reason     string
	}{
		"plain":    {parameters: map[string]string{"N": "6", "A": "1"}, reason: "without values of its own, a cluster gets those of the Instance"},
		"values":   {target: clusters.Target{Parameters: map[string]string{"A": "2", "B": "3"}}, parameters: map[string]string{"N": "6", "A": "2", "B": "3"}, reason: "those of the cluster win"},
		"share":    {divide: "N", target: clusters.Target{Share: &two}, parameters: map[string]string{"N": "2", "A": "1"}, reason: "the divided parameter is the share"},
		"none":     {divide: "N", target: clusters.Target{Share: &none}, parameters: map[string]string{"N": "0", "A": "1"}, reason: "a share may be none"},
		"released": {target: clusters.Target{Released: "uid/4"}, parameters: map[string]string{"N": "6", "A": "1"}, released: "uid/4", reason: "the release travels with the values"},
	} {
		t.Run(name, func(t *testing.T) {
			i := gen.Instance("book", gen.Version("ns", "v1"), map[string]string{"N": "6", "A": "1"})
			i.UID, i.Generation, i.ResourceVersion, i.Finalizers = "uid", 4, "17", []string{"kudo.dev/placement"}
			i.Annotations = map[string]string{"a/b": "c", v1beta1.RequestedByAnnotation: "seal", v1beta1.ReleasedAnnotation: "old", corev1.LastAppliedConfigAnnotation: "{}"}
			i.Spec.Placement = &v1beta1.Placement{Divide: c.divide, Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
			i.Status.ObservedGeneration = 4
			before := i.DeepCopy()
			got, err := copyOf(i, c.target, "hub")
			if err != nil {
				t.Fatal(err)
			}
			parameters, _, _ := unstructured.NestedStringMap(got.Object, "spec", "parameters")
			if !maps.Equal(parameters, c.parameters) {
				t.Errorf("%s: the parameters are %v, want %v", c.reason, parameters, c.parameters)
			}
			annotations := map[string]string{"a/b": "c", v1beta1.TemplateAnnotation: "uid/4"}
			if c.released != "" {
				annotations[v1beta1.ReleasedAnnotation] = c.released
			}
			labels := map[string]string{v1beta1.OperatorLabel: i.Labels[v1beta1.OperatorLabel], PlacedLabel: "hub"}
			if !maps.Equal(got.GetAnnotations(), annotations) || !maps.Equal(got.GetLabels(), labels) {
				t.Errorf("%s: %v and %v", c.reason, got.GetAnnotations(), got.GetLabels())
			}
			metadata, _, _ := unstructured.NestedMap(got.Object, "metadata")
			if keys := slices.Sorted(maps.Keys(metadata)); fmt.Sprint(keys) != "[annotations labels name namespace]" || got.Object["status"] != nil {
				t.Errorf("metadata has %v, and the status is %v", keys, got.Object["status"])
			}
			if !cmp.Equal(i, before) {
				t.Error("the Instance of the hub has been changed")
			}
		})
	}
}

// TestDependencyOf checks that an object that is applied claims no field without a value (C46).
func TestDependencyOf(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: gen.Meta("ns", "s"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte("b")}}
	secret.Annotations = map[string]string{"kudo.dev/keep": "true"}
	secret.OwnerReferences = append(secret.OwnerReferences, ownerOf("Deployment", "d"))
	got, err := dependencyOf(secret, "Secret", "hub")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"a": "Yg=="},
		"metadata": map[string]any{"namespace": "ns", "name": "s", "labels": map[string]any{PlacedLabel: "hub"}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Error(diff)
	}
	nulls := map[string]any{"a": nil, "b": []any{map[string]any{"c": nil, "d": "e"}}}
	dropNulls(nulls)
	if diff := cmp.Diff(map[string]any{"b": []any{map[string]any{"d": "e"}}}, nulls); diff != "" {
		t.Error(diff)
	}
}

// TestDependencies checks what the clusters of an Instance need, in the order in which it is written, each once (C46).
func TestDependencies(t *testing.T) {
	i := gen.Instance("book", gen.Version("ns", "v1"), nil)
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "s"}, {Kind: "ConfigMap", Name: "c"}, {Kind: "Secret", Name: "s"}}
	i.Spec.Placement = &v1beta1.Placement{Include: []v1beta1.IncludedObject{
		{Kind: "ConfigMap", Name: "c"}, {Kind: "OperatorVersion", Name: "child-1"}, {Kind: "Operator", Name: "child"}, {Kind: "OperatorVersion", Name: "v1"},
	}}
	want := []named{{"Operator", "op"}, {"OperatorVersion", "v1"}, {"Operator", "child"}, {"OperatorVersion", "child-1"}, {"ConfigMap", "c"}, {"Secret", "s"}}
	if got := dependencies(i, "op"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	i.Spec.Placement = nil
	if got := dependencies(i, ""); len(got) != 3 || got[0] != (named{"OperatorVersion", "v1"}) {
		t.Errorf("without an operator: %v", got)
	}
}

// TestOutbox checks that a key that waits is given out once, and one that comes again after that again (C44).
func TestOutbox(t *testing.T) {
	o := newOutbox()
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	for _, key := range []types.NamespacedName{a, b, a, b} {
		o.add(key)
	}
	for _, want := range []types.NamespacedName{a, b} {
		if got, found := o.take(); !found || got != want {
			t.Errorf("%v, %v, want %v", got, found, want)
		}
	}
	if key, found := o.take(); found {
		t.Errorf("%v is given out twice", key)
	}
	o.add(a)
	if got, found := o.take(); !found || got != a {
		t.Errorf("%v, %v, want %v", got, found, a)
	}
}

// TestMayDial checks which addresses are never those of a cluster (C49).
func TestMayDial(t *testing.T) {
	for address, may := range map[string]bool{
		"10.0.0.1:6443": true, "127.0.0.1:6443": true, "[2001:db8::1]:443": true,
		"169.254.169.254:80": false, "[fd00:ec2::254]:80": false, "[::ffff:169.254.169.254]:443": false, "0.0.0.0:443": false, "m1.example:443": false,
	} {
		if err := mayDial(address); (err == nil) != may {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func ownerOf(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "u"}
}
