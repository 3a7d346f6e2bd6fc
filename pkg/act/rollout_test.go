package act

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// onHub returns an Instance that a hub places on two clusters, one after the other.
func onHub() *v1beta1.Instance {
	i := gen.Instance("db", gen.Version("lab", "db-1"), nil)
	i.Generation = 2
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}, {Name: "m2"}}, Waves: &v1beta1.Waves{Groups: [][]string{{"m1"}}}}
	return i
}

// TestRollout checks when a rollout is paused and resumed, when a hub's Instance is freed, and what a refusal says.
func TestRollout(t *testing.T) {
	pause := func(i *v1beta1.Instance) Edit { return PauseRollout{i} }
	resume := func(i *v1beta1.Instance) Edit { return ResumeRollout{i} }
	free := func(i *v1beta1.Instance) Edit { return FreePlacement{i} }
	paused := func(i *v1beta1.Instance) { i.Spec.Placement.Waves.Paused = true }
	wave := func(state v1beta1.WaveState, generation int64) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) {
			i.Status.Wave = &v1beta1.WaveStatus{Generation: generation, Index: 1, Of: 2, State: state}
		}
	}
	copied := func(i *v1beta1.Instance) { i.Annotations = map[string]string{v1beta1.TemplateAnnotation: "u/1"} }
	left := func(i *v1beta1.Instance) {
		i.Annotations = map[string]string{v1beta1.ReleasedAnnotation: "u/1", v1beta1.DefaultedAnnotation: "A", "mine": "x"}
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}}
	}
	unplaced := func(i *v1beta1.Instance) { i.Spec.Placement = nil }
	for _, tc := range []struct {
		reason string
		action func(*v1beta1.Instance) Edit
		mods   []func(*v1beta1.Instance)
		want   string // of the verb or the error
		done   func(*v1beta1.Instance) bool
	}{
		{"a rollout is paused", pause, nil, "paused: no further wave", func(i *v1beta1.Instance) bool { return i.Spec.Placement.Waves.Paused }},
		{"waves of one cluster each that are not named", pause, []func(*v1beta1.Instance){func(i *v1beta1.Instance) { i.Spec.Placement.Waves = nil }},
			"has one wave, and there is no next one to hold: make waves with kubectl kudo update --instance db -n lab --wave", nil},
		{"it is paused already", pause, []func(*v1beta1.Instance){paused}, "paused already: kubectl kudo placement resume", nil},
		{"a copy is not paused", pause, []func(*v1beta1.Instance){copied}, "run the command on the hub", nil},
		{"an Instance without placement is not paused", pause, []func(*v1beta1.Instance){unplaced}, "instance lab/db has no spec.placement", nil},
		{"what is left is not resumed", resume, []func(*v1beta1.Instance){left}, "kubectl kudo placement free --instance db -n lab", nil},
		{"a paused rollout is resumed", resume, []func(*v1beta1.Instance){paused, wave(v1beta1.WavePaused, 2)}, "the next wave begins",
			func(i *v1beta1.Instance) bool {
				return !i.Spec.Placement.Waves.Paused && i.Annotations[v1beta1.ResumeAnnotation] == ""
			}},
		{"a stopped rollout is resumed by a request", resume, []func(*v1beta1.Instance){wave(v1beta1.WaveStopped, 2)},
			"wave 1 of 2 goes on, and what has failed so far does not count", func(i *v1beta1.Instance) bool { return i.Annotations[v1beta1.ResumeAnnotation] != "" }},
		{"one that is stopped and paused stays paused", resume, []func(*v1beta1.Instance){paused, wave(v1beta1.WaveStopped, 2)}, "the waves behind it are paused",
			func(i *v1beta1.Instance) bool {
				return i.Spec.Placement.Waves.Paused && i.Annotations[v1beta1.ResumeAnnotation] != ""
			}},
		{"a stop of an earlier change does not count", resume, []func(*v1beta1.Instance){wave(v1beta1.WaveStopped, 1)}, "neither stopped nor paused", nil},
		{"a rollout that runs is not resumed", resume, []func(*v1beta1.Instance){wave(v1beta1.WaveOpen, 2)},
			"neither stopped nor paused: wave 1 of 2 is Open; kubectl kudo placement show", nil},
		{"what a hub has left is freed", free, []func(*v1beta1.Instance){left}, "freed: no hub manages it any more", func(i *v1beta1.Instance) bool {
			return i.Spec.Placement == nil && len(i.Annotations) == 1 && !i.IsHeld()
		}},
		{"a copy is not freed", free, []func(*v1beta1.Instance){copied}, "a hub manages instance lab/db: to take it from the hub, set spec.placement.onDelete to Orphan", nil},
		{"the Instance of the hub is not freed", free, []func(*v1beta1.Instance){wave(v1beta1.WaveDone, 2)}, "is placed on clusters from here", nil},
		{"an Instance without placement is free", free, []func(*v1beta1.Instance){unplaced}, "it is free already", nil},
	} {
		i := onHub()
		for _, mod := range tc.mods {
			mod(i)
		}
		change, err := tc.action(i).Change(t.Context(), nil)
		got := change.Verb
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != (tc.done != nil) || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			continue
		}
		if err != nil {
			continue
		}
		if change.Apply(i); !tc.done(i) {
			t.Errorf("%s: %+v %v", tc.reason, i.Spec.Placement, i.Annotations)
		}
	}
}

// TestResumeTwice checks that each request to resume is a new one.
func TestResumeTwice(t *testing.T) {
	i := onHub()
	i.Status.Wave = &v1beta1.WaveStatus{Generation: 2, State: v1beta1.WaveStopped}
	seen := map[string]bool{}
	for range 2 {
		change, err := ResumeRollout{i}.Change(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		change.Apply(i)
		seen[i.Annotations[v1beta1.ResumeAnnotation]] = true
	}
	if len(seen) != 2 {
		t.Errorf("the requests are %v", seen)
	}
}

// TestRolloutCommands checks the command lines of the actions, and what a placement that a hub has left says of its spec.
func TestRolloutCommands(t *testing.T) {
	i := onHub()
	for want, action := range map[string]Action{
		"kubectl kudo placement free --instance db -n lab":   FreePlacement{i},
		"kubectl kudo placement pause --instance db -n lab":  PauseRollout{i},
		"kubectl kudo placement resume --instance db -n lab": ResumeRollout{i},
	} {
		if got := action.Command(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if (FreePlacement{i}).HasUnreleased() == (i.Status.ObservedGeneration == i.Generation) {
		t.Error("what the hub has not released is not known")
	}
}
