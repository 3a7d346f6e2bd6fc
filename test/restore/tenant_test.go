package restore

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// tenant makes a user of the target who may create Instances in a namespace and use its accounts. Status and history are for kudo only,
// although her Role names them.
func tenant(t testing.TB, ns string) client.Client {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: gen.Meta(ns, "tenant"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kudo.dev"}, Resources: []string{"instances", "instances/status"}, Verbs: []string{"create", "get", "update", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"use"}},
	}}
	env.Must(t, target.Create(ctx, role))
	env.Must(t, target.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "tenant"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tina"}}}))
	config := rest.CopyConfig(target.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tina"}
	c, err := client.New(config, client.Options{Scheme: target.Scheme()})
	env.Must(t, err)
	return c
}

// plainObject is an object of plan deploy of a plain OperatorVersion, as a restore creates it.
func plainObject(ns, instance, name string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, name), Data: map[string]string{"key": "a"}}
	cm.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: instance, v1beta1.OperatorLabel: "plain-1"}
	return cm
}

var _ = It("R32: a tenant who may create Instances gains nothing by the annotation", Serial, func() {
	t := GinkgoTB()
	m := newManager(t)
	ns := target.NewNamespace(t)
	tina := tenant(t, ns)
	plain := gen.Version(ns, "plain-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 2), gen.Serial("deploy", "cm"))
	env.Must(t, target.Create(ctx, plain))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "5c8c4ff1-0000-4000-8000-000000000001"}}
	db := plainObject(ns, "x", "x-cm-0")
	db.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tape"})}
	victims := []*corev1.ConfigMap{db, plainObject(ns, "other", "x-cm-1"), plainObject(ns, "weak", "weak-cm-0"), plainObject(ns, "weak", "weak-cm-1")}
	for _, victim := range victims {
		env.Must(t, target.Create(ctx, victim))
	}
	m.start(t)

	annotated := func(name, account string) *v1beta1.Instance {
		i := gen.Instance(name, plain, nil)
		i.Annotations = map[string]string{v1beta1.RestoredAnnotation: "true"}
		i.Spec.ServiceAccountName = account
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: ns + "/plain-1", Revision: 3}
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete, Revision: 3, UID: "forged"}}
		return i
	}
	env.Must(t, target.Create(ctx, &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "weak")}))
	env.Eventually(t, "the rights of tina", func() string {
		if err := tina.Create(ctx, annotated("x", "")); err != nil {
			return err.Error()
		}
		return ""
	})
	env.Must(t, tina.Create(ctx, annotated("weak", "weak")))

	By("objects of others stay as they are, and so does what the account may not write")
	for name, texts := range map[string][]string{
		"x":    {"ConfigMap " + ns + "/x-cm-0 exists already and belongs to Tape " + ns + "/db", "ConfigMap " + ns + "/x-cm-1 exists already and belongs to Instance " + ns + "/other"},
		"weak": {`"system:serviceaccount:` + ns + `:weak" cannot`},
	} {
		// What is said before the manager has read the Configs is not the last word.
		i, err := target.Await(ctx, ns, name, env.DefaultTimeout, func(i *v1beta1.Instance) bool {
			if i == nil {
				return false
			}
			ready := condition(i, v1beta1.ReadyCondition)
			lacks := func(text string) bool { return !strings.Contains(ready.Message, text) }
			return ready != nil && ready.Reason == v1beta1.ReasonObjectsNotRestored && !slices.ContainsFunc(texts, lacks)
		})
		env.Must(t, err)
		if i.Status.Baseline != nil || len(i.Status.PlanStatus) != 0 {
			t.Errorf("the status of Instance %s is %+v", name, i.Status)
		}
	}
	for _, victim := range victims {
		if now := env.Read(t, target.Cluster, &corev1.ConfigMap{}, ns, victim.Name); now.ResourceVersion != victim.ResourceVersion {
			t.Errorf("ConfigMap %s was written: %+v", victim.Name, now)
		}
	}
	if wrote := objectWrites(m.count(0)); len(wrote) != 0 {
		t.Errorf("the manager has written %v", wrote)
	}

	By("status and history can be forged neither before nor after")
	record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta(ns, "x-1"), Revision: 1, Data: runtime.RawExtension{Raw: []byte(`{"plan":"deploy"}`)}}
	record.Labels = map[string]string{v1beta1.HistoryLabel: "forged", v1beta1.InstanceLabel: "x"}
	if err := tina.Create(ctx, record); err == nil || !strings.Contains(err.Error(), "is history of kudo: only kudo writes it") {
		t.Errorf("a record is created: %v", err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"baseline":{"operatorVersion":"`+ns+`/plain-1","revision":3}}}`))
	if err := tina.Status().Patch(ctx, gen.Instance("x", plain, nil), status); err == nil {
		t.Error("the status is written")
	}
})
