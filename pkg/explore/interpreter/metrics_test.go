package interpreter

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
)

// fixedLayer is a layer that gives one answer.
type fixedLayer struct {
	known bool
	err   error
}

func (fixedLayer) Layer() explore.Layer { return explore.User }

func (x fixedLayer) Explore(context.Context, explore.Request) (explore.Answer, bool, error) {
	return explore.Answer{Healthy: true}, x.known, x.err
}

// TestMeasure: answers are counted by operation, layer and result, and their times by operation.
func TestMeasure(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured, err := WithMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Ship"}}
	for _, x := range []fixedLayer{{known: true}, {known: true}, {}, {err: errors.New("no answer")}} {
		_, _, _ = measured(explore.NewChain(x, nil, nil, nil)).Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: obj})
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	health := string(explore.Healthy)
	want := map[string]float64{
		"kudo_explore_answers_total user " + health + " answer": 2, "kudo_explore_answers_total  " + health + " none": 1,
		"kudo_explore_answers_total user " + health + " unknown": 1, "kudo_explore_duration_seconds " + health: 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
