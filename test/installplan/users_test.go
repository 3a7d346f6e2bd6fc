package installplan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// use makes an Instance of an OperatorVersion in a namespace, and waits until its plan is complete.
func use(t testing.TB, ov *v1beta1.OperatorVersion, namespace, name string) {
	t.Helper()
	i := gen.Instance(name, ov, nil)
	i.Namespace, i.Spec.OperatorVersion.Namespace = namespace, ov.Namespace
	env.Must(t, suite.Create(ctx, i))
	i, err := suite.Await(ctx, namespace, name, env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Fatalf("deploy of %s/%s is %s: %s", namespace, name, st.Status, st.Message)
	}
}

// value changes the parameter of an Instance.
func value(t testing.TB, namespace, name, text string) {
	t.Helper()
	i := env.Read(t, suite, &v1beta1.Instance{}, namespace, name)
	patch := client.MergeFrom(i.DeepCopy())
	i.Spec.Parameters = map[string]string{"VALUE": text}
	env.Must(t, suite.Patch(ctx, i, patch))
}

// absent waits until an OperatorVersion is absent.
func absent(t testing.TB, ov *v1beta1.OperatorVersion) {
	t.Helper()
	env.Eventually(t, "OperatorVersion "+ov.Name+" absent", func() string {
		if now := ov.DeepCopy(); exists(t, now) && now.UID == ov.UID {
			return fmt.Sprintf("%+v", now.Status.Conditions)
		}
		return ""
	})
}

// held wants all objects of the fleet for a while, and an Installation that waits for the users.
func (f fleet) held(t testing.TB, ov *v1beta1.OperatorVersion, texts ...string) {
	t.Helper()
	env.Eventually(t, "an Installation that waits for the Instances", func() string {
		i := holder(ov)
		if i == nil {
			t.Fatal("the Installation was deleted, though Instances need what it holds")
			return ""
		}
		c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReleasedCondition)
		if c == nil || c.Reason != v1beta1.ReasonInUse {
			return fmt.Sprint(c)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return c.Message
			}
		}
		return ""
	})
	env.Consistently(t, time.Second, func() { f.all(t, true) })
}

var _ = It("With --leave-users a version is deleted without its Instances, which run on, and whose next change waits for a version", Label("leave-users", "T19"), func() {
	t := GinkgoTB()
	f, ns, other := newFleet(), suite.NewNamespace(t), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	use(t, ov, ns, "a")
	use(t, ov, ns, "b")
	use(t, ov, other, "guest")
	ship := f.ship(other, "kon-tiki")
	env.Must(t, suite.Create(ctx, ship))

	out := suite.MustKudo(t, 1, "uninstall-version", "fleet", "-n", ns)
	env.Contains(t, out, "stays, since Instances use it", "a, b (namespace "+ns+")", "guest (namespace "+other+")", "--leave-users")
	env.Contains(t, suite.MustKudo(t, 2, "uninstall-version", "fleet", "-n", ns, "--force", "--leave-users"), "--force cannot be used with --leave-users")
	env.Contains(t, suite.MustKudo(t, 0, "uninstall-version", "fleet", "-n", ns, "--leave-users", "--dry-run"), "Instance "+other+"/guest", "runs on")
	if now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet"); now.DeletionTimestamp != nil || now.Annotations[v1beta1.LeaveUsersAnnotation] != "" {
		t.Fatalf("a refusal or a dry run has changed the OperatorVersion: %+v", now.ObjectMeta)
	}

	out = suite.MustKudo(t, 0, "uninstall-version", "fleet", "-n", ns, "--leave-users", "--wait")
	env.Contains(t, out, "runs on", "CustomResourceDefinition "+f.crd(), "stays", "operatorversion "+ns+"/fleet and what it held are deleted")
	absent(t, ov)
	f.held(t, ov, "Instance "+other+"/guest", "Instance "+ns+"/a")
	if !exists(t, ship) {
		t.Error("a custom resource of another namespace was deleted")
	}
	if i := env.Read(t, suite, &v1beta1.Instance{}, other, "guest"); !meta.IsStatusConditionTrue(i.Status.Conditions, v1beta1.ReadyCondition) {
		t.Errorf("an Instance that asks for nothing new does not run on: %+v", i.Status.Conditions)
	}
	value(t, other, "guest", "changed")
	_, err := suite.Await(ctx, other, "guest", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return c != nil && c.Status == "False" && c.Reason == v1beta1.ReasonOperatorVersionNotFound
	})
	env.Must(t, err)

	// The version comes back: the change is made, and what was held for the Instances is held by the new one.
	again := f.version(ns, "fleet")
	complete(t, install(t, again))
	_, err = suite.Await(ctx, other, "guest", env.DefaultTimeout, env.PlanEnded("deploy", 2))
	env.Must(t, err)
	env.Eventually(t, "the end of the first Installation", func() string {
		if i := holder(ov); i != nil {
			return fmt.Sprintf("%+v", i.Status)
		}
		return ""
	})
	f.all(t, true)
})

var _ = It("What is left behind is released after the last user, without force, also if force was asked for before", Label("left-behind-released", "T19"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	use(t, ov, ns, "user")
	ship := f.ship(ns, "kon-tiki")
	env.Must(t, suite.Create(ctx, ship))
	edit(t, ov, func(ov *v1beta1.OperatorVersion) {
		ov.Annotations = map[string]string{v1beta1.ForceReleaseAnnotation: "true"}
	})
	env.Must(t, suite.Delete(ctx, ov))
	waits(t, ov, v1beta1.ReasonInUse, "--leave-users")
	suite.MustKudo(t, 0, "uninstall-version", "fleet", "-n", ns, "--leave-users", "--wait") // it is being deleted already
	absent(t, ov)
	env.Must(t, suite.Delete(ctx, gen.Instance("user", ov, nil)))
	env.Eventually(t, "a release that waits for the custom resource", func() string {
		i := holder(ov)
		if i == nil {
			t.Fatal("what is not to be destroyed was deleted")
			return ""
		}
		if c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReleasedCondition); c == nil || c.Reason != v1beta1.ReasonCustomResourcesExist {
			return fmt.Sprint(c)
		}
		return ""
	})
	env.Must(t, suite.Delete(ctx, ship))
	released(t, ov)
	f.all(t, false)
})

var _ = It("Of a version without install plan nothing is held, and the command still asks for the flag", Label("T19"), func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	ov := gen.Version(ns, "plain", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, ov))
	use(t, ov, ns, "user")
	env.Contains(t, suite.MustKudo(t, 1, "uninstall-version", "plain", "-n", ns), "user (namespace "+ns+")")
	env.Contains(t, suite.MustKudo(t, 0, "uninstall-version", "plain", "-n", ns, "--leave-users", "--wait"), "Instance "+ns+"/user", "runs on", "what it held are deleted")
	absent(t, ov)
})

var _ = It("The annotation that leaves users takes the right to delete the version, and means nothing on a version that is not being deleted", Label("T19"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	use(t, ov, ns, "user")
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: verbs}
	}
	editor, remover := as(t, ns, "editor", rule("get", "patch")), as(t, ns, "remover", rule("get", "patch", "delete"))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kudo.dev/leave-users":"true"}}}`))
	env.Eventually(t, "rights", func() string { // roles take a moment
		if err := remover.Patch(ctx, ov.DeepCopy(), patch, client.DryRunAll); err != nil {
			return err.Error()
		}
		return ""
	})
	env.Eventually(t, "a refusal by the policy", func() string {
		err := editor.Patch(ctx, ov.DeepCopy(), patch)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `needs the verb "delete" on it`) {
			return fmt.Sprint(err)
		}
		return ""
	})
	env.Must(t, remover.Patch(ctx, ov.DeepCopy(), patch))
	env.Consistently(t, time.Second, func() {
		f.all(t, true)
		if now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet"); now.DeletionTimestamp != nil || !now.Installed() || len(now.Finalizers) == 0 {
			t.Errorf("an OperatorVersion that is not being deleted has changed: %+v", now.ObjectMeta)
		}
	})
})
