package inventory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// TestFollowDecision checks C45 on a real API server: the engine follows the slices of a decision by a watch, also if the hub serves them later,
// and announces the Instances that follow it.
func TestFollowDecision(t *testing.T) {
	p := start(t)
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("placementdecisions.multicluster.x-k8s.io")
	env.Must(t, p.hub.Delete(t.Context(), definition))
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "book"}}
	i.Spec.Placement = &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: "prod"}}
	expect := func(reason, want, hold string) {
		t.Helper()
		env.Eventually(t, reason, func() string {
			got, err := p.engine.Decide(t.Context(), i)
			problem := new(clusters.HoldError)
			switch {
			case hold != "" && (!errors.As(err, &problem) || !strings.Contains(problem.Message, hold)):
				return fmt.Sprintf("%+v, %v, want %q", got, err, hold)
			case hold == "" && (err != nil || strings.Join(got.Clusters, " ") != want):
				return fmt.Sprintf("%+v, %v, want %s", got, err, want)
			}
			return ""
		})
	}
	expect("the hub does not serve the kind", "", "the hub does not serve PlacementDecisions of multicluster.x-k8s.io/v1alpha1: install their")
	p.hub.DefineFiles(t, corpus.Karmada(t), "multicluster/*placementdecisions.yaml")
	expect("the hub serves it", "", "there are none")
	slice := func(name, key, index string, names ...string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{}}
		out.SetGroupVersionKind(inventory.DecisionKind)
		out.SetNamespace(ns)
		out.SetName(name)
		out.SetLabels(map[string]string{inventory.DecisionKeyLabel: key, inventory.DecisionIndexLabel: index})
		decisions := []any{}
		for _, c := range names {
			decisions = append(decisions, map[string]any{"clusterProfileRef": map[string]any{"name": c, "namespace": fleet}})
		}
		out.Object["decisions"] = decisions
		return out
	}
	announced := func(reason string, act func()) {
		t.Helper()
		before := p.events(client.ObjectKeyFromObject(i))
		act()
		env.Eventually(t, reason+" is announced", func() string {
			if p.events(client.ObjectKeyFromObject(i)) == before {
				return "no event"
			}
			return ""
		})
	}
	first, second := slice("a", "prod", "1", "m2", "m1"), slice("b", "prod", "0", "m1")
	announced("a slice", func() { env.Must(t, p.hub.Create(t.Context(), first)) })
	expect("one slice", "m2 m1", "")
	announced("another slice", func() { env.Must(t, p.hub.Create(t.Context(), second)) })
	expect("two slices, each cluster once", "m1 m2", "")
	other := slice("c", "other", "0", "m3")
	env.Must(t, p.hub.Create(t.Context(), other))
	expect("a slice of another decision", "m1 m2", "")
	announced("a slice that comes to the decision", func() {
		other.SetLabels(map[string]string{inventory.DecisionKeyLabel: "prod", inventory.DecisionIndexLabel: "2"})
		env.Must(t, p.hub.Update(t.Context(), other))
	})
	expect("it counts", "m1 m2 m3", "")
	announced("a slice that leaves the decision", func() {
		first.SetLabels(map[string]string{inventory.DecisionKeyLabel: "other"})
		env.Must(t, p.hub.Update(t.Context(), first))
	})
	expect("it is missing", "", "the slice with the index 1 is missing")
	announced("slices that are deleted", func() {
		env.Must(t, p.hub.Delete(t.Context(), second))
		env.Must(t, p.hub.Delete(t.Context(), other))
	})
	expect("all have vanished", "", "there are none")
}
