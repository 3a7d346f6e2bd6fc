package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// shared is a version whose install plan writes a ConfigMap in another namespace, and whose deploy plan writes one in that of the Instance.
func shared(name string) *v1beta1.OperatorVersion {
	ov := web(gen.InstallPlan("install"), gen.Template("shared.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common, namespace: apps}\ndata: {key: value}\n"),
		gen.Apply("shared", "shared.yaml"), gen.Serial("install", "shared"))
	ov.Name = name
	return ov
}

// TestInstallPlans checks what a preview says of install plans: objects that are created, joined, left alone, and that do not fit, with their holders (P1, P10).
func TestInstallPlans(t *testing.T) {
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	common := func(value string, managed bool) *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: gen.Meta("apps", "common"), Data: map[string]string{"key": value}}
		if managed {
			c.Annotations = map[string]string{v1beta1.ManagedAnnotation: "true"}
			c.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage}
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: "other", UID: "other-uid"}}
		}
		return c
	}
	other := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other-uid"}}
	other.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "team-b", Name: "web-0.1.0"}
	for name, tc := range map[string]struct {
		reason string
		live   []client.Object
		want   []string
		why    string
	}{
		"Create": {"a new object is created, before the Instance's own", []client.Object{place}, []string{"plan install", "plan deploy", "create ConfigMap apps/common", "create ConfigMap ns/i-a"}, ""},
		"Join": {"an object that others hold is joined", []client.Object{place, other, common("value", true)}, []string{"plan install", "plan deploy", "join ConfigMap apps/common", "create ConfigMap ns/i-a"},
			"it is as the install plan wants it; OperatorVersion team-b/web-0.1.0 holds it, too"},
		"Existing": {"an object that kudo did not create is used as it is", []client.Object{place, common("value", false)}, []string{"plan install", "plan deploy", "unchanged ConfigMap apps/common", "create ConfigMap ns/i-a"},
			"kudo did not create it: it is used as it is, and never deleted"},
		"Mismatch":  {"an object that differs ends the install plan, and the Instance waits", []client.Object{place, other, common("another", true)}, []string{"plan install fails at main/step-0", "refused ConfigMap apps/common"}, ""},
		"Installed": {"an OperatorVersion that exists installs nothing more", []client.Object{place, shared("web-0.1.0")}, []string{"plan deploy", "create ConfigMap ns/i-a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			for _, obj := range tc.live {
				l.Put(obj)
			}
			version := shared("web-0.1.0")
			p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version, Versions: []*v1beta1.OperatorVersion{version}})
			if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
				t.Errorf("%s: %s%+v", tc.reason, diff, p)
			}
			if tc.why != "" && p.Objects[0].Why != tc.why {
				t.Errorf("%s: %q", tc.reason, p.Objects[0].Why)
			}
			var want []Share // the value that the explanation is made of
			if of := map[string]string{"Join": ShareJoin, "Mismatch": ShareMismatch}[name]; of != "" {
				want = []Share{{"ConfigMap apps/common", of, []string{"OperatorVersion team-b/web-0.1.0"}}}
			}
			if diff := cmp.Diff(want, p.Shared); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if len(tc.want) == 4 && p.Runs[0].Of != "OperatorVersion ns/web-0.1.0" {
				t.Errorf("%s: %+v", tc.reason, p.Runs)
			}
		})
	}
}

// TestChildren checks that what children would do is shown as previews of their own (P13).
func TestChildren(t *testing.T) {
	child := web()
	child.Name, child.Spec.Operator.Name = "child-0.1.0", "child"
	parent := web(gen.Template("params.yaml", "VALUE: '{{ .Params.VALUE }}'\n"),
		gen.Task("kid", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "child", InstanceName: "kid", OperatorVersion: "0.1.0", ParameterFile: "params.yaml"}), gen.Serial("deploy", "kid", "app"))
	after := gen.Instance("i", parent, map[string]string{"VALUE": "next"})
	after.Spec.ServiceAccountName = "robot"
	for _, tc := range []struct {
		reason   string
		versions []*v1beta1.OperatorVersion
		want     []string
		unknown  string
	}{
		{"the version of the child comes with the edit", []*v1beta1.OperatorVersion{child, parent}, []string{"plan deploy", "create ConfigMap ns/kid-a"}, ""},
		{"the version of the child is nowhere", nil, nil, "OperatorVersion ns/child-0.1.0 cannot be read"},
	} {
		l := newLab(t)
		p := l.compute(Edit{Verb: "install", After: after, Version: parent, Versions: tc.versions})
		var got []string
		if len(p.Children) == 1 {
			got = brief(p.Children[0])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s%q", tc.reason, diff, brief(p))
		}
		unknown := slices.ContainsFunc(p.UnknownReasons, func(u string) bool { return strings.Contains(u, tc.unknown) })
		if tc.unknown != "" && !unknown {
			t.Errorf("%s: %q", tc.reason, p.UnknownReasons)
		}
		if tc.unknown == "" && (!p.IsChange() || p.Fails() || p.Children[0].Subject != "Instance ns/kid") {
			t.Errorf("%s: %+v", tc.reason, p.Children[0])
		}
	}
}

// TestExistingVersion checks that an OperatorVersion that exists is previewed, and not the package of the same name: another user may have
// made it.
func TestExistingVersion(t *testing.T) {
	there := web(gen.Template("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-hostile'}\n"))
	pkg := web()
	for _, tc := range []struct {
		reason string
		keeps  bool
		want   []string
		warns  bool
	}{
		{"the command uses what exists", true, []string{"plan deploy", "create ConfigMap ns/i-hostile"}, true},
		{"the command replaces it", false, []string{"plan deploy", "create ConfigMap ns/i-a"}, false},
	} {
		l := newLab(t)
		l.Put(there)
		p := l.compute(Edit{Verb: "install", After: gen.Instance("i", pkg, nil), Version: pkg, Versions: []*v1beta1.OperatorVersion{pkg}, KeepsVersions: tc.keeps})
		if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		if warns := slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "it is used as it is, and this preview is of it") }); warns != tc.warns {
			t.Errorf("%s: %q", tc.reason, p.Warnings)
		}
	}
}

// TestUninstallChildren checks that what goes with children is shown, too, and claims with their workloads (P13).
func TestUninstallChildren(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		l := newLab(t)
		i := l.running(web(), "i-a")
		kid := gen.Instance("kid", web(), nil)
		owner := func(kind, api, name string, uid types.UID) []metav1.OwnerReference {
			return []metav1.OwnerReference{{APIVersion: api, Kind: kind, Name: name, UID: uid}}
		}
		kid.OwnerReferences = owner("Instance", v1beta1.GroupVersion.String(), "i", i.UID)
		kid.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "ns", Name: "kid-s"}}
		kid.UID = l.Put(kid).GetUID()
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Namespace: "ns", Name: "kid", UID: kid.UID})
		set := &appsv1.StatefulSet{ObjectMeta: gen.Meta("ns", "kid-s")}
		set.OwnerReferences = owner("Instance", v1beta1.GroupVersion.String(), "kid", kid.UID)
		uid := l.Put(set).GetUID()
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("ns", "data-kid-s-0")}
		claim.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "kid"}
		claim.OwnerReferences = owner("StatefulSet", "apps/v1", "kid-s", uid)
		l.Put(claim)
		p, err := Uninstall(t.Context(), l.options(), i, web(), keeps)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Children) != 1 {
			t.Fatalf("no child: %q", brief(p))
		}
		want := []string{"delete StatefulSet ns/kid-s", "delete PersistentVolumeClaim ns/data-kid-s-0"}
		if keeps {
			want = want[:1]
		}
		if diff := cmp.Diff(want, brief(p.Children[0])); diff != "" {
			t.Errorf("claims are kept: %t: %s", keeps, diff)
		}
		if p.Raises(concernData) == keeps || len(p.Children[0].Stays) == 1 != keeps {
			t.Errorf("claims are kept: %t: %+v", keeps, p.Children[0])
		}
	}
}

// TestNewKinds checks that objects whose kind comes with the install plan are checked by its definition, and that those whose namespace
// comes with the plan are unknown, and do not fail (P6).
func TestNewKinds(t *testing.T) {
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pots.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: pots, kind: Pot}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "self.lid || self.size < 3", message: a large pot has a lid}]
            properties: {size: {type: integer, maximum: 9}, lid: {type: boolean, default: true}}
`
	const checked = "its kind is defined in the same run: it fits the definition, and no webhook was asked"
	for name, tc := range map[string]struct {
		reason, spec, want, why string
		plan                    string
	}{
		"Fits":    {"an object that fits is created", "{size: 5}", "create", checked, "plan deploy"},
		"Schema":  {"a value that the schema does not allow is refused", "{size: 50}", "refused", "spec.size", "plan deploy fails at main/step-0"},
		"Rule":    {"so is one that a rule does not allow", "{size: 5, lid: false}", "refused", "a large pot has a lid", "plan deploy fails at main/step-0"},
		"Default": {"a default counts for the rule, and a field that the schema does not have is pruned", "{size: 4, color: red}", "create", checked, "plan deploy"},
	} {
		t.Run(name, func(t *testing.T) {
			version := web(gen.InstallPlan("install"), gen.Template("d.yaml", definition), gen.Apply("define", "d.yaml"),
				gen.Template("n.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kitchen}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: kitchen}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cook, namespace: kitchen}\n"), gen.Apply("place", "n.yaml"),
				gen.Template("p.yaml", "apiVersion: example.com/v1\nkind: Pot\nmetadata: {name: '{{ .Name }}-p'}\nspec: "+tc.spec+"\n"), gen.Apply("pot", "p.yaml"),
				gen.Serial("install", "define", "place"), gen.Serial("deploy", "pot", "app"))
			l := newLab(t, &corev1.Namespace{ObjectMeta: gen.Meta("", "kube-system")})
			l.watchWrites(func(r apitest.Request) (any, error) {
				if r.Namespace == "kitchen" && r.Verb == "apply" {
					return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kitchen")
				}
				if r.Kind == "Pot" {
					t.Errorf("%s was sent, and its kind is not served", r)
				}
				return nil, nil
			})
			p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version, Versions: []*v1beta1.OperatorVersion{version}})
			want := []string{"plan install", tc.plan, "create CustomResourceDefinition pots.example.com", "create Namespace kitchen", "unknown ConfigMap kitchen/c", "unknown Deployment kitchen/cook",
				tc.want + " Pot ns/i-p"}
			got := brief(p)
			if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
				t.Fatalf("%s: %s%+v", tc.reason, diff, p)
			}
			if pot := p.Objects[4]; !strings.Contains(pot.Why, tc.why) {
				t.Errorf("%s: %s, want %s", tc.reason, pot.Why, tc.why)
			}
			if lost := strings.Contains(strings.Join(p.Warnings, "\n"), "spec.color: the field would be pruned"); lost != (name == "Default") {
				t.Errorf("%s: warnings %q", tc.reason, p.Warnings)
			}
		})
	}
}

// TestMigrationIsShown checks that a preview says which objects are rewritten since the storage version of their definition changes (P10).
func TestMigrationIsShown(t *testing.T) {
	definition := func(name, storage string) *unstructured.Unstructured {
		var versions []any
		for _, version := range []string{"v1alpha1", "v1"} {
			versions = append(versions, map[string]any{"name": version, "served": true, "storage": version == storage})
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"versions": versions}}}
	}
	const want = "the storage version of CustomResourceDefinition ships.example.com changes from v1alpha1 to v1: after the plan, kudo rewrites " +
		"all of its objects, without a change in them"
	old := definition("ships.example.com", "v1alpha1")
	for name, tc := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured
		want          []string
	}{
		"Changes": {"objects are rewritten", old, definition("ships.example.com", "v1"), []string{want}},
		"Same":    {"the storage version stays", old, old, nil},
		"New":     {"there are no objects", nil, old, nil},
		"Other":   {"an object of another kind has no versions", plain("a"), plain("b"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDefinitionComparer(newLab(t).options())
			c.noteMigration(dryrun.Change{ID: apply.IDOf(tc.after), Before: tc.before, After: tc.after})
			var got []string
			for _, d := range c.definitions(t.Context(), params.NewMask(nil)) {
				got = append(got, d.warning())
				if diff := cmp.Diff(&Migration{From: "v1alpha1", To: "v1"}, d.Migration); diff != "" {
					t.Errorf("%s: %s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func plain(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"},
		"data": map[string]any{"key": value}}}
}

// TestCheckDefinition checks that a preview warns of a definition that a plan of the Instance narrows, and names the custom resources that
// would break (P10).
func TestCheckDefinition(t *testing.T) {
	definition := func(properties map[string]any) *unstructured.Unstructured {
		d := crd("pots", "Pot", nil)
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		version := versions[0].(map[string]any)
		version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
			"spec": map[string]any{"type": "object", "properties": properties}}}}
		if err := unstructured.SetNestedSlice(d.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		return d
	}
	size, color := map[string]any{"type": "integer"}, map[string]any{"type": "string"}
	wide := definition(map[string]any{"size": size, "color": color})
	for _, tc := range []struct {
		reason   string
		after    *unstructured.Unstructured
		spec     map[string]any
		hook     apitest.Hook
		warnings string
		// text is how people read how the definition was checked; empty if it was not.
		text string
		// unknown is set if the check cannot be made, and metadata if only metadata changes.
		unknown, metadata bool
	}{
		{"nothing breaks", wide, map[string]any{"size": int64(1)}, nil, "", "no breaking change, no object would break", false, false},
		{"an object that was wrong before is no matter where only metadata changes", wide, map[string]any{"lid": "x"}, nil, "", "", false, true},
		{"a property is removed", definition(map[string]any{"size": size}), map[string]any{"color": "SECRET"}, nil, "spec.color",
			"1 breaking change, 1 object would break", false, false},
		{"an object has a field that is not known", wide, map[string]any{"lid": "x"}, nil, "ns/mine (v1): spec.lid",
			"no breaking change, 1 object would break", false, false},
		{"objects may not be listed", wide, nil, func(r apitest.Request) (any, error) {
			if r.Verb == "list" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pots"}, "", fmt.Errorf("you may not list pots"))
			}
			return nil, nil
		}, "", "no breaking change, its objects were not checked", true, false},
		{"the kind is not served", definition(map[string]any{"size": size, "color": color, "lid": color}), nil, func(r apitest.Request) (any, error) {
			if r.Verb == "list" {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pots"}, "")
			}
			return nil, nil
		}, "", "no breaking change, its objects were not checked", true, false},
		{"another kind", plain("a"), nil, nil, "", "", false, false},
	} {
		l := newLab(t, system())
		kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pot"}
		l.AddKind(kind, true)
		pot := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
		pot.SetGroupVersionKind(kind)
		pot.SetNamespace("ns")
		pot.SetName("mine")
		l.Put(pot)
		if tc.hook != nil {
			l.watchWrites(tc.hook)
		}
		version := web()
		c := newComputation(l.options(), Edit{Verb: "update", After: gen.Instance("i", version, nil), Version: version})
		c.mask = params.NewMask(nil)
		before := wide
		if tc.after.GetKind() != wide.GetKind() {
			before = tc.after
		}
		path := ".spec.versions"
		if tc.metadata {
			path = ".metadata.labels.a"
		}
		report{touches: c.touches, definitions: c.definitions}.checkDefinition(t.Context(), dryrun.Change{ID: apply.IDOf(tc.after), Before: before, After: tc.after}, []Field{{Path: path}})
		got := strings.Join(c.out.Warnings, "\n")
		if (got == "") != (tc.warnings == "") || !strings.Contains(got, tc.warnings) || (len(c.out.UnknownReasons) > 0) != tc.unknown {
			t.Errorf("%s: warnings %q, unknown %q", tc.reason, c.out.Warnings, c.out.UnknownReasons)
		}
		var texts []string
		for _, d := range c.definitions.definitions(t.Context(), c.mask) {
			texts = append(texts, strings.TrimPrefix(d.String(), "definition pots.example.com: "))
		}
		if text := strings.Join(texts, "\n"); text != tc.text {
			t.Errorf("%s: it reads %q, want %q", tc.reason, text, tc.text)
		}
	}
}

// TestSiblings checks that the preview of a child does not show what another child of the same Instance does later to the same object (P3).
func TestSiblings(t *testing.T) {
	child := web(gen.Template("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: shared, annotations: {by: '{{ .Params.VALUE }}'}}\n"),
		gen.Task("role", v1beta1.ApplyTask, v1beta1.TaskSpec{Resources: []string{"role.yaml"}}), gen.Serial("deploy", "role"))
	child.Name, child.Spec.Operator.Name = "child-0.1.0", "child"
	operator := func(name string) gen.VersionMod {
		return gen.Task(name, v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "child", InstanceName: name, OperatorVersion: "0.1.0", ParameterFile: name + ".yaml"})
	}
	parent := web(gen.Template("first.yaml", "VALUE: one\n"), gen.Template("second.yaml", "VALUE: two\n"), operator("first"), operator("second"),
		gen.Serial("deploy", "first", "second"))
	p := newLab(t).compute(Edit{Verb: "install", After: gen.Instance("i", parent, nil), Version: parent, Versions: []*v1beta1.OperatorVersion{child, parent}})
	var got []string
	for _, one := range p.Children {
		for _, o := range one.Objects {
			got = append(got, fmt.Sprintf("%s %s %s one %t", one.Subject, o.Effect, o.ID(), strings.Contains(o.content, "one")))
		}
	}
	want := []string{"Instance ns/first create ClusterRole shared one true", "Instance ns/second create ClusterRole shared one false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s%+v", diff, p)
	}
}
