package installplan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// shipVersion is a version of the definition of ships: a name, and "served", "storage", or both.
type shipVersion struct{ name, is string }

// definition is that of ships, with versions of one schema.
func (f fleet) definition(versions ...shipVersion) string {
	out := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + f.crd() + "\nspec:\n  group: " + f.group() +
		"\n  scope: Namespaced\n  names: {kind: Ship, plural: ships, singular: ship}\n  versions:\n"
	for _, v := range versions {
		out += fmt.Sprintf("  - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}\n",
			v.name, strings.Contains(v.is, "served"), strings.Contains(v.is, "storage"))
	}
	return out
}

// defines is an OperatorVersion whose install plan has the definition alone.
func (f fleet) defines(namespace, version string, versions ...shipVersion) *v1beta1.OperatorVersion {
	ov := gen.Version(namespace, f.word+"-"+version, gen.Template("crd.yaml", f.definition(versions...)), gen.Apply("crd", "crd.yaml"), gen.ConfigMaps("cm", 1),
		gen.Param("VALUE", "a", ""), gen.Serial("install", "crd"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))
	ov.Spec.Operator.Name, ov.Spec.Version = f.word, version
	ov.Spec.InstallPolicy = &v1beta1.InstallPolicy{SharedUpdates: v1beta1.SameOperatorUpdates}
	return ov
}

// build creates ships in a version.
func (f fleet) build(t testing.TB, namespace, version string, n int) {
	t.Helper()
	group := errgroup.Group{}
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			ship := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(i)}}}
			ship.SetGroupVersionKind(schema.GroupVersionKind{Group: f.group(), Version: version, Kind: "Ship"})
			ship.SetNamespace(namespace)
			ship.SetName(fmt.Sprintf("ship-%05d", i))
			return suite.Create(ctx, ship)
		})
	}
	env.Must(t, group.Wait())
}

// storedIn wants a number of ships in etcd, each as it was built, in the versions given.
func (f fleet) storedIn(t testing.TB, n int, versions ...string) {
	t.Helper()
	stored, err := suite.Stored("/registry/" + f.group() + "/ships/")
	env.Must(t, err)
	if len(stored) != n {
		t.Errorf("etcd has %d objects, want %d", len(stored), n)
	}
	for key, text := range stored {
		ship := &unstructured.Unstructured{}
		env.Must(t, ship.UnmarshalJSON(text))
		if version := ship.GroupVersionKind().Version; !slices.Contains(versions, version) {
			t.Errorf("%s is stored in %s, want %v", key, version, versions)
		}
		size, _, _ := unstructured.NestedInt64(ship.Object, "spec", "size")
		if want := fmt.Sprintf("ship-%05d", size); ship.GetName() != want || ship.GetGeneration() != 1 {
			t.Errorf("%s has become size %d and generation %d", key, size, ship.GetGeneration())
		}
	}
}

// live reads the definition.
func (f fleet) live(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	crd := f.objects()["crd"].(*unstructured.Unstructured)
	env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(crd), crd))
	return crd
}

// storedVersions are those of the status of the definition.
func (f fleet) storedVersions(t testing.TB) []string {
	t.Helper()
	stored, _, err := unstructured.NestedStringSlice(f.live(t).Object, "status", "storedVersions")
	env.Must(t, err)
	return stored
}

// migrated waits until the definition stores one version.
func (f fleet) migrated(t testing.TB, version string, ovs ...*v1beta1.OperatorVersion) {
	t.Helper()
	env.Within(t, 3*env.DefaultTimeout, "the migration to "+version, func() string {
		if got := f.storedVersions(t); !slices.Equal(got, []string{version}) {
			return fmt.Sprintf("%v\n%v", got, f.migrations(ovs...))
		}
		return ""
	})
}

// migrations are those of all Installations of some OperatorVersions.
func (f fleet) migrations(ovs ...*v1beta1.OperatorVersion) (all []v1beta1.StoredVersionMigration) {
	for _, ov := range ovs {
		if i := holder(ov); i != nil {
			all = append(all, i.Status.Migrations...)
		}
	}
	return all
}

// change sets the versions of the definition by hand.
func (f fleet) change(t testing.TB, versions ...shipVersion) {
	t.Helper()
	edit(t, f.live(t), func(crd *unstructured.Unstructured) {
		wanted := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal([]byte(f.definition(versions...)), &wanted.Object))
		crd.Object["spec"].(map[string]any)["versions"] = wanted.Object["spec"].(map[string]any)["versions"]
	})
}

// eventOfInstallation wants an event on one of the Installations.
func eventOfInstallation(t testing.TB, reason, text string, ovs ...*v1beta1.OperatorVersion) {
	t.Helper()
	env.Eventually(t, "the event "+reason, func() string {
		list := &corev1.EventList{}
		if err := suite.List(ctx, list, client.MatchingFields{"reason": reason}); err != nil {
			return err.Error()
		}
		for _, e := range list.Items {
			of := func(ov *v1beta1.OperatorVersion) bool { return ov.InstallationName() == e.InvolvedObject.Name }
			if strings.Contains(e.Message, text) && slices.ContainsFunc(ovs, of) {
				return ""
			}
		}
		return fmt.Sprintf("%d events", len(list.Items))
	})
}

var (
	alpha        = shipVersion{"v1alpha1", "served"}
	alphaStorage = shipVersion{"v1alpha1", "served,storage"}
	alphaHidden  = shipVersion{"v1alpha1", ""}
	v1           = shipVersion{"v1", "served"}
	v1Storage    = shipVersion{"v1", "served,storage"}
)

var _ = It("Objects are rewritten when an install plan changes the storage version, and then the old version may be removed (P18)", Label("P18", "stored-versions"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	first, second := f.defines(ns, "1.0.0", alphaStorage), f.defines(ns, "1.1.0", alpha, v1Storage)
	complete(t, install(t, first))
	f.build(t, ns, "v1alpha1", 60)
	f.storedIn(t, 60, "v1alpha1")
	complete(t, install(t, second))
	f.migrated(t, "v1", first, second)
	f.storedIn(t, 60, "v1")
	eventOfInstallation(t, v1beta1.EventMigrationStarted, "that are stored in v1alpha1 are rewritten in version v1", first, second)
	eventOfInstallation(t, v1beta1.EventMigrationFinished, "All objects of CustomResourceDefinition "+f.crd()+" are stored in version v1", first, second)
	env.Eventually(t, "the end of the migration", func() string {
		if left := f.migrations(first, second); len(left) > 0 {
			return fmt.Sprintf("%+v", left)
		}
		return ""
	})
	if drift := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, first.Name).Status.Drift; len(drift) > 0 {
		t.Errorf("the change of a newer version is drift: %+v", drift)
	}
	served := f.defines(ns, "1.2.0", v1Storage)
	fatal(t, install(t, served), "v1alpha1 : the version was served and was removed")
	f.change(t, alphaHidden, v1Storage)
	third := f.defines(ns, "1.3.0", v1Storage)
	complete(t, install(t, third))
	if versions, _, _ := unstructured.NestedSlice(f.live(t).Object, "spec", "versions"); len(versions) != 1 {
		t.Errorf("the definition has %d versions, want 1", len(versions))
	}
	f.storedIn(t, 60, "v1")
})

var _ = It("One install plan migrates several definitions (P18)", Label("P18", "stored-versions"), func() {
	t := GinkgoTB()
	fleets, ns := []fleet{newFleet(), newFleet(), newFleet()}, suite.NewNamespace(t)
	all := func(version string, versions ...shipVersion) *v1beta1.OperatorVersion {
		ov := fleets[0].defines(ns, version, versions...)
		for _, f := range fleets[1:] {
			ov.Spec.Templates["crd.yaml"] += "---\n" + f.definition(versions...)
		}
		return ov
	}
	first, second := all("1.0.0", alphaStorage), all("1.1.0", alpha, v1Storage)
	complete(t, install(t, first))
	for _, f := range fleets {
		f.build(t, ns, "v1alpha1", 7)
	}
	complete(t, install(t, second))
	for _, f := range fleets {
		f.migrated(t, "v1", first, second)
		f.storedIn(t, 7, "v1")
	}
})

// refuse has a policy refuse updates of one ship. It returns what takes the policy away.
func (f fleet) refuse(t testing.TB, namespace, name string) func() {
	t.Helper()
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: gen.Meta("", f.word), Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{f.group()}, APIVersions: []string{"*"}, Resources: []string{"ships"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "object.metadata.name != '" + name + "'", Message: "this ship sails no more"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: gen.Meta("", f.word), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: f.word, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	env.Must(t, suite.Create(ctx, policy))
	env.Must(t, suite.Create(ctx, binding))
	lift := func() {
		env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, binding)))
		env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, policy)))
	}
	t.Cleanup(lift)
	env.Eventually(t, "a policy in force", func() string {
		ship := &unstructured.Unstructured{}
		ship.SetGroupVersionKind(schema.GroupVersionKind{Group: f.group(), Version: "v1alpha1", Kind: "Ship"})
		ship.SetNamespace(namespace)
		ship.SetName(name)
		err := suite.Patch(ctx, ship, client.RawPatch(types.MergePatchType, []byte(`{}`)), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
	return lift
}

var _ = It("A migration of stored versions names the object that admission refuses, keeps the old version, and goes on by itself (P18)", Label("P18", "stored-versions", "slow"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	first, second := f.defines(ns, "1.0.0", alphaStorage), f.defines(ns, "1.1.0", alpha, v1Storage)
	complete(t, install(t, first))
	f.build(t, ns, "v1alpha1", 20)
	lift := f.refuse(t, ns, "ship-00007")
	complete(t, install(t, second))
	blocked := ""
	env.Eventually(t, "a migration that is blocked", func() string {
		all := f.migrations(first, second)
		if len(all) != 1 || all[0].Message == "" {
			return fmt.Sprintf("%+v", all)
		}
		if m := all[0]; m.Done != 19 || m.Of != 20 || m.Refused != 1 || m.Blocked == nil || m.Blocked.Name != "ship-00007" {
			t.Errorf("%+v", m)
		}
		blocked = all[0].Message
		return ""
	})
	env.Contains(t, blocked, "Ship "+ns+"/ship-00007 cannot be rewritten in version v1", "this ship sails no more", f.word)
	eventOfInstallation(t, v1beta1.EventMigrationBlocked, blocked, first, second)
	f.storedIn(t, 20, "v1alpha1", "v1")
	if got := f.storedVersions(t); !slices.Equal(got, []string{"v1alpha1", "v1"}) {
		t.Errorf("storedVersions %v", got)
	}

	f.change(t, alphaHidden, v1Storage)
	third := f.defines(ns, "1.2.0", v1Storage)
	env.Must(t, suite.Create(ctx, third))
	env.Eventually(t, "an install plan that waits", func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, third.Name)
		want := "CustomResourceDefinition " + f.crd() + " waits for the migration of the stored versions (v1alpha1), 19 of 20: status.migrations of Installation "
		if st := now.Status.PlanStatus["install"]; !strings.Contains(fmt.Sprintf("%+v", st), want) || strings.Contains(fmt.Sprintf("%+v", st), "ship-00007") || st.Status != v1beta1.InProgress {
			return fmt.Sprintf("%+v", st)
		}
		return ""
	})
	lift()
	f.migrated(t, "v1", first, second)
	f.storedIn(t, 20, "v1")
	complete(t, ended(t, third, 1))
})

// touch writes a ship as it is, once the apiserver knows the storage version.
func (f fleet) touch(t testing.TB, namespace, name string) {
	t.Helper()
	ship := &unstructured.Unstructured{}
	ship.SetGroupVersionKind(schema.GroupVersionKind{Group: f.group(), Version: "v1alpha1", Kind: "Ship"})
	ship.SetNamespace(namespace)
	ship.SetName(name)
	env.Must(t, suite.Patch(ctx, ship, client.RawPatch(types.MergePatchType, []byte(`{}`))))
}
