package stages

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

const readyDelay = 700 * time.Millisecond

// player plays stages to pods as kwok does, without a cluster.
type player struct {
	stages   lifecycle.Lifecycle
	renderer gotpl.Renderer
	now      time.Time
}

func newPlayer(t *testing.T) *player {
	t.Helper()
	data, err := Config(readyDelay)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kwok.yaml")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	objects, err := kwokconfig.Load(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	var all []*internalversion.Stage
	for _, s := range kwokconfig.FilterWithType[*internalversion.Stage](objects) {
		if s.Spec.ResourceRef.Kind == "Pod" {
			all = append(all, s)
		}
	}
	if len(all) != len(podStages) {
		t.Fatalf("kwok reads %d stages of pods, want %d", len(all), len(podStages))
	}
	stages, err := lifecycle.NewLifecycle(all)
	if err != nil {
		t.Fatal(err)
	}
	ip := func(ip string) func(...any) []string { return func(...any) []string { return []string{ip} } }
	return &player{
		stages:   stages,
		renderer: gotpl.NewRenderer(gotpl.FuncMap{"NodeIPsWith": ip("127.0.0.1"), "PodIPsWith": ip("10.244.0.1")}),
		now:      time.Now(),
	}
}

// play applies the next stage to pod. It returns the name of the stage, empty
// when nothing happens, and the time it takes.
func (p *player) play(t *testing.T, pod *corev1.Pod) (string, time.Duration) {
	t.Helper()
	event := &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
	possible, err := p.stages.ListAllPossible(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	if len(possible) == 0 {
		return "", 0
	}
	if len(possible) > 1 {
		t.Fatalf("%d stages match, the first are %s and %s", len(possible), possible[0].Name(), possible[1].Name())
	}
	stage := possible[0]
	delay, _, err := stage.Delay(context.Background(), event, p.now)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stage.DoSteps(0, nil, pod, p.renderer, nil,
		func() error { return nil },
		func(patch *lifecycle.Patch) error { return apply(pod, patch) }, nil)
	if err != nil {
		t.Fatalf("%s: %v", stage.Name(), err)
	}
	return stage.Name(), delay
}

func apply(pod *corev1.Pod, patch *lifecycle.Patch) error {
	if patch.Type != types.StrategicMergePatchType || patch.Subresource != "status" {
		return os.ErrInvalid
	}
	before, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch.Data, corev1.Pod{})
	if err != nil {
		return err
	}
	*pod = corev1.Pod{}
	return json.Unmarshal(after, pod)
}

// pod builds a scheduled pod from the YAML of its spec.
func pod(t *testing.T, spec string, ownerKind string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	if p.Spec.RestartPolicy == "" {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	p.Spec.NodeName = "node-1"
	p.Status.Phase = corev1.PodPending
	if ownerKind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: "o", UID: "o"}}
	}
	return p
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}
