package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// crd is a definition of a kind with one version.
func crd(plural, kind string, annotations map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": plural + ".example.com"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata,
		"spec": map[string]any{"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}},
	}}
}

// system is the namespace whose uid guards shared objects.
func system() client.Object { return &corev1.Namespace{ObjectMeta: gen.Meta("", "kube-system")} }

// tarball is the tarball of all Instances. Fetch answers with its error, if it has one, else with its definitions.
type tarball struct {
	url            string
	objects        []*unstructured.Unstructured
	wrong, unknown error
	// asked are the digests that were asked for.
	asked []string
}

// Resolve implements Tarballs.
func (t *tarball) Resolve(_ *v1beta1.Instance, _ string, version *v1beta1.OperatorVersionSpec) (fetch.Wanted, error) {
	if t.url == "" || t.wrong != nil {
		return fetch.Wanted{}, t.wrong
	}
	given := v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: t.url}}
	source, err := crdtarball.NewSource(given, "ns", crdtarball.Access{Hosts: crdtarball.Hosts{Any: true}})
	return fetch.Wanted{Tarball: &given, Source: source, SpecHash: version.Version}, err
}

// Fetch implements Tarballs.
func (t *tarball) Fetch(_ context.Context, wanted fetch.Wanted) ([]*unstructured.Unstructured, error) {
	t.asked = append(t.asked, wanted.Digest)
	return t.objects, t.unknown
}

// installed is an Instance, and its Installation that remembers the tarball of a version.
func installed(version *v1beta1.OperatorVersion, of string) (*v1beta1.Instance, *v1beta1.Installation) {
	i := gen.Instance("i", version, nil)
	i.UID = "i-uid"
	holder := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.InstallationName(i.Namespace, i.Name, i.UID), UID: "holder-uid"}}
	holder.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: i.Namespace, Name: i.Name, UID: i.UID}
	holder.Status.CRDTarball = &v1beta1.TarballDigest{SpecHash: of, Digest: "sha256:first"}
	return i, holder
}

// TestDefinitions checks what a preview says of the CRD tarball of an Instance: what it would install, what is not known of it (P6), and
// what keeps the plan waiting.
func TestDefinitions(t *testing.T) {
	const source = "https://example.com/crds.tar.gz"
	pots := tarball{url: source, objects: []*unstructured.Unstructured{crd("pots", "Pot", nil)}}
	unreached := tarball{url: source, unknown: errors.New("no route")}
	foreign := crd("pots", "Pot", nil)
	if err := unstructured.SetNestedField(foreign.Object, "Cluster", "spec", "scope"); err != nil {
		t.Fatal(err)
	}
	const unknown = "unknown: which CustomResourceDefinitions " + source + " holds: no route"
	for name, tc := range map[string]struct {
		reason  string
		tarball tarball
		live    []client.Object
		// remembers is the version whose tarball the Instance has installed; empty if the edit creates the Instance.
		remembers string
		want      []string
		fails     bool
		asked     []string
	}{
		"None":    {"an Instance without a tarball", tarball{}, nil, "", []string{"plan deploy", "create ConfigMap ns/i-a"}, false, nil},
		"Create":  {"definitions come before the plan", pots, nil, "", []string{"plan deploy", "create CustomResourceDefinition pots.example.com", "create ConfigMap ns/i-a"}, false, []string{""}},
		"Unknown": {"a tarball that cannot be fetched here", unreached, nil, "", []string{"plan deploy", "create ConfigMap ns/i-a", unknown}, false, []string{""}},
		"Known":   {"the tarball that is installed, by its digest", unreached, nil, "1.0.0", []string{"plan deploy", "create ConfigMap ns/i-a"}, false, []string{"sha256:first"}},
		"Another": {"another tarball than the one that is installed", unreached, nil, "0.9.0", []string{"plan deploy", "create ConfigMap ns/i-a", unknown}, false, []string{""}},
		"Refused": {"a tarball that kudo refuses", tarball{wrong: errors.New("spec.crdTarball is wrong")}, nil, "", []string{"refused: the plan would wait for its CustomResourceDefinitions: spec.crdTarball is wrong"}, true, nil},
		"Foreign": {"a definition of others that differs", pots, []client.Object{foreign}, "", []string{"refused: the plan would wait for its CustomResourceDefinitions: …", "refused CustomResourceDefinition pots.example.com"}, true, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			version := web()
			version.Spec.Version = "1.0.0"
			l := newLab(t, append(tc.live, version, system())...)
			o := l.options()
			o.Tarballs = &tc.tarball
			e := Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version}
			if tc.remembers != "" {
				i, holder := installed(version, tc.remembers)
				l.Put(i)
				l.Put(holder)
				e.Before, e.After = i, i.DeepCopy()
			}
			p, err := Compute(t.Context(), o, e)
			if err != nil {
				t.Fatal(err)
			}
			got := brief(p)
			for n, line := range got { // the words are those of package share
				if at := strings.Index(line, "CustomResourceDefinitions: CustomResourceDefinition "); at >= 0 {
					got[n] = line[:at] + "CustomResourceDefinitions: …"
				}
				if strings.HasPrefix(line, "refused CustomResourceDefinition pots.example.com ") {
					got[n] = "refused CustomResourceDefinition pots.example.com"
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.Fails() != tc.fails {
				t.Errorf("%s: fails %t, %s%+v", tc.reason, p.Fails(), diff, p)
			}
			if diff := cmp.Diff(tc.asked, tc.tarball.asked); diff != "" {
				t.Errorf("%s: digests that were asked for: %s", tc.reason, diff)
			}
		})
	}
}

// TestUnreadInstallation checks that without the right to read Installations it is unknown, and not guessed, what becomes of definitions.
func TestUnreadInstallation(t *testing.T) {
	version := web()
	i, _ := installed(version, "1.0.0")
	i.Status.CRDs = &v1beta1.CRDTarballStatus{}
	l := newLab(t, system(), version, i, crd("pots", "Pot", map[string]any{v1beta1.ManagedAnnotation: "true"}))
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Verb == "get" && r.Kind == "Installation" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "installations"}, r.Name, fmt.Errorf(`User "ann" cannot get resource "installations" in API group "kudo.dev" at the cluster scope`))
		}
		return nil, nil
	})
	o := l.options()
	o.Tarballs = &tarball{url: "https://example.com/crds.tar.gz", objects: []*unstructured.Unstructured{crd("pots", "Pot", nil)}}
	p, err := Compute(t.Context(), o, Edit{Verb: "update", Before: i, After: i.DeepCopy(), Version: version, Old: version})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(brief(p), "\n")
	if !strings.Contains(got, "unknown: which CustomResourceDefinitions the Instance holds: ") || strings.Contains(got, "pots.example.com") {
		t.Errorf("got\n%s", got)
	}
	if p, err = Uninstall(t.Context(), o, i, version, false); err != nil || !strings.Contains(strings.Join(brief(p), "\n"), "the Instance holds: ") {
		t.Errorf("an uninstall: %v, %q", err, brief(p))
	}
	i.Status.CRDs = nil
	if p, err = Uninstall(t.Context(), o, i, version, false); err != nil || len(p.UnknownReasons) > 0 {
		t.Errorf("an uninstall of an Instance without definitions: %v, %q", err, p.UnknownReasons)
	}
}

// TestDroppedDefinitions checks that an upgrade shows the definitions that only the tarball of the version before has, and an uninstall
// all definitions of the Instance.
func TestDroppedDefinitions(t *testing.T) {
	old := crd("pots", "Pot", map[string]any{v1beta1.ManagedAnnotation: "true"})
	old.SetUID("pots-uid")
	before, after := web(), web()
	after.Name, after.Spec.Version = "web-2.0.0", "2.0.0"
	i, holder := installed(before, before.Spec.Version)
	holder.Status.Resources = []v1beta1.HeldResource{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: old.GetName(), UID: old.GetUID(), State: v1beta1.HoldCreated}}
	old.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: holder.Name, UID: holder.UID}})
	l := newLab(t, system(), old, holder, before, after, i)
	o := l.options()
	o.Tarballs = &tarball{url: "https://example.com/crds.tar.gz", objects: []*unstructured.Unstructured{crd("pans", "Pan", nil)}}
	e := Edit{Verb: "upgrade", Before: i, After: i.DeepCopy(), Version: after, Old: before}
	e.After.Spec.OperatorVersion.Name = after.Name
	p, err := Compute(t.Context(), o, e)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(brief(p), "\n")
	for _, want := range []string{"create CustomResourceDefinition pans.example.com", "delete CustomResourceDefinition pots.example.com"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if p, err = Uninstall(t.Context(), o, i, before, false); err != nil || !slices.Contains(brief(p), "delete CustomResourceDefinition pots.example.com") {
		t.Errorf("an uninstall: %v, %q", err, brief(p))
	}
	pot := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Pot", "metadata": map[string]any{"namespace": "ns", "name": "mine"}}}
	l.AddKind(pot.GroupVersionKind(), true)
	l.Put(pot)
	if p, err = Uninstall(t.Context(), o, i, before, false); err != nil || slices.Contains(brief(p), "delete CustomResourceDefinition pots.example.com") ||
		!strings.Contains(strings.Join(p.Warnings, "\n"), "CustomResourceDefinition pots.example.com stays as long as") {
		t.Errorf("an uninstall of a definition with objects: %v, %q, %q", err, brief(p), p.Warnings)
	}
}
