package v1beta1

import (
	"reflect"
	"testing"
)

// placementOf returns a placement on clusters, in waves.
func placementOf(names []string, groups ...[]string) *Placement {
	p := &Placement{}
	for _, name := range names {
		p.Clusters = append(p.Clusters, PlacedCluster{Name: name})
	}
	if groups != nil {
		p.Waves = &Waves{Groups: groups}
	}
	return p
}

// TestGroups checks C4: clusters that no group names are the last wave; without waves there is one.
func TestGroups(t *testing.T) {
	all := []string{"m1", "m2", "m3"}
	for _, tc := range []struct {
		reason string
		p      *Placement
		want   [][]string
	}{
		{"no waves", placementOf(all), [][]string{all}},
		{"no groups", &Placement{Clusters: placementOf(all).Clusters, Waves: &Waves{Paused: true}}, [][]string{all}},
		{"one is first", placementOf(all, []string{"m2"}), [][]string{{"m2"}, {"m1", "m3"}}},
		{"the order is that of the groups", placementOf(all, []string{"m3"}, []string{"m2", "m1"}), [][]string{{"m3"}, {"m2", "m1"}}},
		{"the order of the rest is that of the clusters", placementOf([]string{"m3", "m1", "m2"}, []string{"m1"}), [][]string{{"m1"}, {"m3", "m2"}}},
		{"all in one", placementOf(all, all), [][]string{all}},
		{"no clusters", placementOf(nil), nil},
	} {
		before := tc.p.DeepCopy()
		i := &Instance{Spec: InstanceSpec{Placement: tc.p}}
		if got := i.WaveGroups(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
		if !reflect.DeepEqual(before, tc.p) {
			t.Errorf("%s: the placement has changed", tc.reason)
		}
	}
}

// TestDecidedGroups checks C45: the clusters are those that the decision of this name has come to, and groups leave out what it does not name.
func TestDecidedGroups(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		status  *DecisionStatus
		groups  [][]string
		want    [][]string
		decided bool
	}{
		{"it is not known", nil, [][]string{{"m1"}}, nil, false},
		{"another decision is", &DecisionStatus{Name: "test", Clusters: []string{"m1"}}, nil, nil, false},
		{"no cluster", &DecisionStatus{Name: "prod"}, [][]string{{"m1"}}, nil, true},
		{"one wave", &DecisionStatus{Name: "prod", Clusters: []string{"m2", "m1"}}, nil, [][]string{{"m2", "m1"}}, true},
		{"a group of others", &DecisionStatus{Name: "prod", Clusters: []string{"m1"}}, [][]string{{"m9"}, {"m1", "m8"}}, [][]string{{"m1"}}, true},
		{"a cluster twice", &DecisionStatus{Name: "prod", Clusters: []string{"m1", "m2"}}, [][]string{{"m1"}, {"m1"}}, [][]string{{"m1"}, {"m2"}}, true},
	} {
		i := &Instance{Spec: InstanceSpec{Placement: &Placement{Decision: &DecisionReference{Name: "prod"}, Waves: &Waves{Groups: tc.groups}}}}
		i.UID, i.Generation, i.Status.Decision = "u", 3, tc.status
		if got := i.WaveGroups(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
		template := "u/3"
		if tc.decided {
			template += "/" + tc.status.Fingerprint()
		}
		if got := i.Template(); got != template || (i.DecisionFingerprint() != "") != tc.decided || i.IsPlacedOn("m9") {
			t.Errorf("%s: template %s, want %s", tc.reason, got, template)
		}
	}
	of := func(names ...string) string { return (&DecisionStatus{Name: "prod", Clusters: names}).Fingerprint() }
	if of("m1", "m2") != of("m2", "m1") || of("m1", "m2") == of("m1") || of() == of("m1") || of() == "" {
		t.Errorf("fingerprints %s %s %s %s", of("m1", "m2"), of("m2", "m1"), of("m1"), of())
	}
}

// TestGate checks C5: a copy is held until what it comes from is what was released, and a template always.
func TestGate(t *testing.T) {
	const uid, generation, template, released = KarmadaUIDAnnotation, KarmadaGenerationAnnotation, TemplateAnnotation, ReleasedAnnotation
	for _, tc := range []struct {
		reason      string
		annotations map[string]string
		template    string
		held        bool
	}{
		{"a template", nil, "", true},
		{"a template that a user has released", map[string]string{released: "u/3"}, "", true},
		{"a template with an empty release", map[string]string{released: ""}, "", true},
		{"a copy of Karmada", map[string]string{uid: "u", generation: "3"}, "u/3", true},
		{"it is released", map[string]string{uid: "u", generation: "3", released: "u/3"}, "u/3", false},
		{"an older generation is", map[string]string{uid: "u", generation: "3", released: "u/2"}, "u/3", true},
		{"a newer one is", map[string]string{uid: "u", generation: "3", released: "u/4"}, "u/3", true},
		{"another template is", map[string]string{uid: "u", generation: "3", released: "v/3"}, "u/3", true},
		{"a copy of which half is known", map[string]string{uid: "u", released: "u/"}, "", true},
		{"the other half", map[string]string{generation: "3", released: "/3"}, "", true},
		{"a copy of the inventory backend", map[string]string{template: "u/3"}, "u/3", true},
		{"it is released", map[string]string{template: "u/3", released: "u/3"}, "u/3", false},
		{"both engines have written: that of Karmada counts", map[string]string{uid: "u", generation: "3", template: "v/1", released: "v/1"}, "u/3", true},
	} {
		i := &Instance{}
		i.Annotations, i.Spec.Placement = tc.annotations, placementOf([]string{"m1"})
		if got := i.PlacedTemplate(); got != tc.template {
			t.Errorf("%s: template %q, want %q", tc.reason, got, tc.template)
		}
		if got := i.IsHeld(); got != tc.held {
			t.Errorf("%s: held %v, want %v", tc.reason, got, tc.held)
		}
		i.Spec.Placement = nil
		if i.IsHeld() {
			t.Errorf("%s: an Instance without placement is held", tc.reason)
		}
	}
	if got := Template("u", 3); got != "u/3" {
		t.Errorf("template %q", got)
	}
}

// TestPlacedClusters checks C4: the weight is 1 if none is given, and the names are those of spec, in order.
func TestPlacedClusters(t *testing.T) {
	for weight, want := range map[int32]int64{0: 1, 1: 1, 2: 2, 1000: 1000, -3: 1} {
		if got := (PlacedCluster{Weight: weight}).EffectiveWeight(); got != want {
			t.Errorf("weight %d counts as %d, want %d", weight, got, want)
		}
	}
	for want, names := range map[string][]string{"": nil, "m1": {"m1"}, "m2, m1": {"m2", "m1"}} {
		if got := placementOf(names).ClusterNames(); got != want {
			t.Errorf("clusters %q, want %q", got, want)
		}
	}
	if got := (&Placement{Decision: &DecisionReference{Name: "prod"}}).ClusterNames(); got != "of the decision prod" {
		t.Errorf("clusters %q", got)
	}
}
