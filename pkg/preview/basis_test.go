package preview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/crdcompat"
	"kudo.dev/kudo/test/gen"
)

// TestBasis checks that a preview names the states of the objects that it was decided from, sorted, and that these alone do not change its
// digest (P1).
func TestBasis(t *testing.T) {
	l := newLab(t)
	version := web()
	before := l.running(version, "i-a")
	l.Read(version)
	live := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "i-a")}
	l.Read(live)
	e := Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: version}
	first := l.compute(e)
	want := []Basis{
		{"ConfigMap ns/i-a", live.UID, live.ResourceVersion},
		{"Instance ns/i", before.UID, before.ResourceVersion},
		{"OperatorVersion ns/web-0.1.0", version.UID, version.ResourceVersion},
	}
	if diff := cmp.Diff(want, first.Basis); diff != "" {
		t.Error(diff)
	}
	live.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	l.Put(live)
	second := l.compute(e)
	if second.Digest != first.Digest || slices.Equal(second.Basis, first.Basis) {
		t.Errorf("a change that changes nothing of what would happen: digests %s and %s, basis %v", first.Digest, second.Digest, second.Basis)
	}
}

// TestBasisNamesAll checks that what a command has read before, and what the preview reads besides, is named (P1).
func TestBasisNamesAll(t *testing.T) {
	before, after := web(), web()
	before.Spec.Version = "1.0.0"
	after.Name, after.Spec.Version = "web-2.0.0", "2.0.0"
	i, holder := installed(before, before.Spec.Version)
	settings := &corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "kudo-settings")}
	rule := &corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "rule")}
	l := newLab(t, system(), holder, before, after, i, settings, rule)
	for _, o := range []client.Object{i, before, after} {
		l.Read(o)
	}
	o := l.options()
	o.Client = RecordReads(o.Client)
	o.Tarballs = &tarball{url: "https://example.com/crds.tar.gz"}
	if err := errors.Join(o.Client.Get(t.Context(), client.ObjectKeyFromObject(settings), &corev1.ConfigMap{}),
		o.Client.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("kudo-system"))); err != nil {
		t.Fatal(err)
	}
	e := Edit{Verb: "upgrade", Before: i, After: i.DeepCopy(), Version: after, Old: before}
	e.After.Spec.OperatorVersion.Name = after.Name
	p, err := Compute(t.Context(), o, e)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range p.Basis {
		got = append(got, b.Object)
	}
	for _, want := range []string{"ConfigMap kudo-system/kudo-settings", "ConfigMap kudo-system/rule", "Installation " + holder.Name,
		"OperatorVersion ns/" + before.Name, "OperatorVersion ns/" + after.Name} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
}

// TestSensitiveDefinitions checks that what a preview says of a definition hides sensitive values (P7).
func TestSensitiveDefinitions(t *testing.T) {
	c := newDefinitionComparer(newLab(t).options())
	c.note("pots.example.com", func(d *Definition) {
		d.BreakingChanges = crdcompat.BreakingChanges{{Path: "spec.hunter22", Message: "default was hunter22 and is b"}}
		d.Objects = &crdcompat.Findings{Invalid: 1, Objects: []crdcompat.Object{{Name: "hunter22", Problems: []string{"spec.users.hunter22.b: the field would be pruned"}}}}
	})
	got := c.definitions(t.Context(), params.NewMask([]string{"hunter22"}))
	if text := fmt.Sprintf("%+v%+v", got[0].BreakingChanges[0], *got[0].Objects); len(got) != 1 || strings.Contains(text, "hunter22") || !strings.Contains(text, "and is b") {
		t.Errorf("got %v", got)
	}
	if text := fmt.Sprintf("%+v%+v", c.found["pots.example.com"].BreakingChanges[0], *c.found["pots.example.com"].Objects); strings.Count(text, "hunter22") != 4 {
		t.Error("what was found is changed")
	}
}
