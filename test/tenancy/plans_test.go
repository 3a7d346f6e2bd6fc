package tenancy

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// extract returns the items of a list.
func extract(list client.ObjectList) ([]client.Object, error) {
	items, err := meta.ExtractList(list)
	out := make([]client.Object, 0, len(items))
	for _, item := range items {
		out = append(out, item.(client.Object))
	}
	return out, err
}

// says is a predicate: the message of the Instance's status holds a text.
func says(text string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, text)
	}
}

// TestClusterScopedObject is T1 and T32: whoever writes packages and Instances gets no ClusterRoleBinding by a plan.
func TestClusterScopedObject(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	ov := gen.Version(ns, "evil-1", gen.Template("crb.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: "+ns+"}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}]\n"),
		gen.Apply("crb", "crb.yaml"), gen.Serial("deploy", "crb"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, gen.Instance("x", ov, nil)))
	i, err := suite.Await(ctx, ns, "x", env.DefaultTimeout, says("forbidden"))
	env.Must(t, err)
	env.Contains(t, i.Status.AggregatedStatus.Message, `User "system:serviceaccount:`+ns+`:kudo" cannot`, `resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope`,
		". Ask an administrator to move such objects to an install plan, to bind what kubectl kudo package rights ", " prints to ServiceAccount "+ns+"/kudo, or to label Namespace "+ns+" kudo.dev/privileged=true")
	if err := suite.Get(ctx, client.ObjectKey{Name: ns}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRoleBinding exists (%v)", err)
	}
}

// TestChildAccount: an Instance that a template makes, and that names no account, has that of the plan, and not more: in a
// privileged namespace it would have the rights of kudo.
func TestChildAccount(t *testing.T) {
	ns := suite.NewNamespace(t, v1beta1.PrivilegedLabel)
	tenants.allow(ns, "kudo")
	leaf := gen.Version(ns, "leaf-1", gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ov := gen.Version(ns, "parent-1", gen.Template("i.yaml", "apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: '{{ .Name }}-child'}\nspec: {operatorVersion: {name: leaf-1}}\n"),
		gen.Apply("i", "i.yaml"), gen.Serial("deploy", "i"))
	env.Must(t, suite.Create(ctx, leaf))
	env.Must(t, suite.Create(ctx, ov))
	i := gen.Instance("a", ov, nil)
	i.Spec.ServiceAccountName = "kudo"
	env.Must(t, suite.Create(ctx, i))
	_, err := suite.Await(ctx, ns, "a", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if child := env.Read(t, suite.Cluster, &v1beta1.Instance{}, ns, "a-child"); child.Spec.ServiceAccountName != "kudo" {
		t.Errorf("the child names account %q", child.Spec.ServiceAccountName)
	}
}

// TestAdoptClusterScoped is T17: adoption takes no cluster-scoped object, in no mode.
func TestAdoptClusterScoped(t *testing.T) {
	ns := suite.NewNamespace(t, v1beta1.PrivilegedLabel)
	tenants.allow(ns, installer)
	theirs := &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", ns), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	env.Must(t, suite.Create(ctx, theirs))
	t.Cleanup(func() { _ = suite.Delete(ctx, theirs) })
	ov := gen.Version(ns, "adopt-1", gen.Template("cr.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+ns+"}\nrules: []\n"), gen.Apply("cr", "cr.yaml"), gen.Serial("deploy", "cr"))
	env.Must(t, suite.Create(ctx, ov))
	i := gen.Instance("a", ov, nil)
	i.Annotations = map[string]string{v1beta1.AdoptAnnotation: "true"}
	env.Must(t, suite.Create(ctx, i))
	i, err := suite.Await(ctx, ns, "a", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if i.Status.PlanStatus["deploy"].Status != v1beta1.FatalError {
		t.Errorf("the plan is %+v", i.Status.PlanStatus["deploy"])
	}
	now := env.Read(t, suite.Cluster, &rbacv1.ClusterRole{}, "", ns)
	if now.ResourceVersion != theirs.ResourceVersion {
		t.Error("the ClusterRole was changed")
	}
}

// privileged makes a namespace privileged.
func privileged(t *testing.T, ns string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, v1beta1.PrivilegedLabel))
	env.Must(t, suite.Patch(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}, patch))
}

// TestPrivateVersions is T17: a namespace keeps its versions from Instances of others, also from those that were let in
// before.
func TestPrivateVersions(t *testing.T) {
	ns, other := suite.NewNamespace(t), suite.NewNamespace(t)
	ov := gen.Version(other, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, ov))
	instance := func(name string) *v1beta1.Instance {
		i := gen.Instance(name, ov, nil)
		i.Namespace, i.Spec.OperatorVersion.Namespace = ns, other
		return i
	}
	env.Must(t, suite.Create(ctx, instance("before")))
	_, err := suite.Await(ctx, ns, "before", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/versions":"private"}}}`))
	env.Must(t, suite.Patch(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", other)}, patch))
	env.Eventually(t, "an Instance is refused", func() string { // the manager's cache may lag
		i := instance("after")
		_ = suite.Delete(ctx, i.DeepCopy())
		if err := suite.Create(ctx, i); err != nil {
			return err.Error()
		}
		i, err := suite.Await(ctx, ns, "after", env.DefaultTimeout, func(i *v1beta1.Instance) bool { return i != nil && len(i.Status.Conditions) > 0 })
		if err != nil {
			return err.Error()
		}
		if c := i.Status.Conditions[0]; c.Reason != v1beta1.ReasonInvalidSpec || !strings.Contains(c.Message, "Namespace "+other+" is labeled kudo.dev/versions=private") {
			return c.Reason + ": " + c.Message
		}
		return ""
	})
	env.Must(t, suite.Patch(ctx, instance("before"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"VALUE":"b"}}}`))))
	_, err = suite.Await(ctx, ns, "before", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return strings.Contains(i.Status.Conditions[0].Message, "kudo.dev/versions=private")
	})
	env.Must(t, err)
}

// TestRevokedSource is T5: rights on a source of parameters that were taken back count within half a minute.
func TestRevokedSource(t *testing.T) {
	ns := suite.NewNamespace(t)
	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(ns, "values"), StringData: map[string]string{"VALUE": "b"}}))
	role := &rbacv1.Role{}
	env.Must(t, suite.Get(ctx, client.ObjectKey{Namespace: ns, Name: "kudo"}, role))
	ov := gen.Version(ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, ov))
	i := gen.Instance("a", ov, nil)
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "values"}}
	env.Must(t, suite.Create(ctx, i))
	_, err := suite.Await(ctx, ns, "a", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}}
	env.Must(t, suite.Update(ctx, role))
	env.Must(t, suite.Patch(ctx, &corev1.Secret{ObjectMeta: gen.Meta(ns, "values")}, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"VALUE":"c"}}`))))
	_, err = suite.Await(ctx, ns, "a", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return ready != nil && strings.Contains(ready.Message, "ServiceAccount "+ns+"/kudo, with whose rights the plans run, must not read Secret values")
	})
	env.Must(t, err)
}

// TestForeignObject: an object of the cluster that a plan could only name, since the account may not read it, says nothing of itself in
// the Instance: kudo, which may read everything, would have said how it is.
func TestForeignObject(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	// The second one is not established: the kind has that name already.
	var foreign *unstructured.Unstructured
	for _, plural := range []string{"firsts", "seconds"} {
		crd := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal([]byte(strings.NewReplacer("PLURAL", plural, "GROUP", ns+".example.org").Replace(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
metadata: {name: PLURAL.GROUP, labels: {heritage: kudo}},
spec: {group: GROUP, scope: Namespaced, names: {plural: PLURAL, kind: One}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)), &crd.Object))
		env.Must(t, suite.Create(ctx, crd))
		t.Cleanup(func() { env.Must(t, suite.Delete(ctx, crd)) })
		foreign = crd
	}
	ov := gen.Version(ns, "op-1", gen.Template("crd.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "+foreign.GetName()+"}\n"), gen.Apply("crd", "crd.yaml"), gen.Serial("deploy", "crd"), gen.Serial("other"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, gen.Instance("x", ov, nil)))
	i, err := suite.Await(ctx, ns, "x", env.DefaultTimeout, says("forbidden"))
	env.Must(t, err)
	cancel := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1beta1.CancelAnnotation, i.Status.PlanStatus["deploy"].UID)
	env.Must(t, as(t, ann).Patch(ctx, i.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(cancel))))
	i, err = suite.Await(ctx, ns, "x", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	env.Must(t, as(t, ann).Patch(ctx, i.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"planExecution":{"planName":"other"}}}`))))
	i, err = suite.Await(ctx, ns, "x", env.DefaultTimeout, env.PlanEnded("other", 1))
	env.Must(t, err)
	ready := meta.FindStatusCondition(i.Status.Conditions, "Ready")
	if ready == nil || strings.Contains(ready.Message, foreign.GetName()) {
		t.Errorf("the condition Ready is %v", ready)
	}
}

// TestChildOwners is T36: an Instance that a plan creates has no owner but the one that creates it. With others, its chain of ancestors
// would lead elsewhere, and it would outlive the first of them.
func TestChildOwners(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	decoy := gen.Version(ns, "decoy-1", gen.Serial("deploy"))
	env.Must(t, as(t, otto).Create(ctx, decoy))
	env.Must(t, as(t, ann).Create(ctx, gen.Instance("decoy", decoy, nil)))
	i, err := suite.Await(ctx, ns, "decoy", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	ov := gen.Version(ns, "loop-1", gen.Template("i.yaml", fmt.Sprintf("apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata:\n  name: '{{ .Name }}-0'\n"+
		"  ownerReferences: [{apiVersion: kudo.dev/v1beta1, kind: Instance, name: decoy, uid: %s}]\nspec: {operatorVersion: {name: decoy-1}}\n", i.UID)), gen.Apply("i", "i.yaml"), gen.Serial("deploy", "i"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, gen.Instance("x", ov, nil)))
	refusedPlan(t, ns, "x", "Instance "+ns+"/x-0 names owners, but an Instance that a plan creates is owned by the Instance of the plan only")
}

// TestChainOfInstances is T36: a chain of Instances, each of another version and made by the one before, ends.
func TestChainOfInstances(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	const most = 8
	for n := most; n >= 0; n-- {
		env.Must(t, as(t, otto).Create(ctx, gen.Version(ns, fmt.Sprintf("chain-%d", n), childTemplate(fmt.Sprintf("chain-%d", n+1), 1), gen.Apply("i", "i.yaml"), gen.Serial("deploy", "i"))))
	}
	first := gen.Instance("x", gen.Version(ns, "chain-0"), nil)
	env.Must(t, as(t, ann).Create(ctx, first))
	refusedPlan(t, ns, "x"+strings.Repeat("-0", most), fmt.Sprintf("would have more than %d ancestors", most))
	list := &v1beta1.InstanceList{}
	env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
	if len(list.Items) != most+1 {
		t.Errorf("there are %d Instances, want %d", len(list.Items), most+1)
	}
}

// TestForgedRequester: who may write Instances makes no run that another user seems to have asked for, whatever the annotations hold.
func TestForgedRequester(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	ov := gen.Version(ns, "op-1", gen.Param("WORD", "a", ""), gen.Serial("deploy"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, nadia).Create(ctx, gen.Instance("hers", ov, nil)))
	s := &stage{ns: ns}
	seal := s.await(t, "hers", env.PlanEnded("deploy", 1)).Annotations[v1beta1.RequestedByAnnotation]
	if !strings.HasSuffix(seal, " "+nadia) {
		t.Fatalf("the annotation is %q, want one that names nadia", seal)
	}
	forge := func(i *v1beta1.Instance, value string) *v1beta1.Instance {
		for _, key := range []string{v1beta1.RequestedByAnnotation, v1beta1.RunRequestedByAnnotation} {
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, key, value)
		}
		return i
	}
	env.Must(t, as(t, ann).Create(ctx, forge(gen.Instance("x", ov, nil), seal)))
	for n, value := range []string{seal, "x " + nadia, nadia} {
		i := s.await(t, "x", env.PlanEnded("deploy", int64(n+1)))
		patch := client.MergeFrom(i.DeepCopy())
		env.Must(t, as(t, ann).Patch(ctx, forge(i, value), patch)) // the annotations alone
		i.Spec.Parameters = map[string]string{"WORD": value}
		env.Must(t, as(t, ann).Patch(ctx, forge(i, value), patch))
	}
	s.await(t, "x", env.PlanEnded("deploy", 4))
	env.Eventually(t, "an event of each run, and ann in all", func() string {
		list := &corev1.EventList{}
		env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
		runs := 0
		for _, e := range list.Items {
			if e.InvolvedObject.Name == "x" && e.Reason == v1beta1.EventPlanRequested {
				runs += int(max(e.Count, 1))
				if !strings.HasPrefix(e.Message, "Plan deploy was requested by ann: ") {
					t.Fatalf("the event says %q", e.Message)
				}
			}
		}
		if runs < 4 {
			return fmt.Sprintf("%d runs have an event", runs)
		}
		return ""
	})
	if out, _ := suite.Kudo("plan", "history", "--instance", "x", "-n", ns); strings.Contains(out, nadia) || strings.Count(out, "by ann") < 4 {
		t.Errorf("the history says\n%s", out)
	}
}

// refusedPlan wants the plan deploy of an Instance to have failed with words.
func refusedPlan(t *testing.T, namespace, name, words string) {
	t.Helper()
	i, err := suite.Await(ctx, namespace, name, env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError || !strings.Contains(st.Message, words) {
		t.Errorf("the run ended as %s: %s, want %s", st.Status, st.Message, words)
	}
}

// TestSources is T9: each of the sources of an Instance is checked, whatever its place in the list.
func TestSources(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	const most = 32
	var names []string
	for n := range most {
		names = append(names, fmt.Sprintf("given-%d", n))
	}
	env.Must(t, suite.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(ns, "sources"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get"}},
	}}))
	bind(t, ns, ann, "Role", "sources")
	ov := gen.Version(ns, "op-1", gen.Serial("deploy"))
	env.Must(t, suite.Create(ctx, ov))
	try := func(foreign int, kind string) error {
		i := gen.Instance("x", ov, nil)
		for n, name := range names {
			source := v1beta1.ParametersSource{Kind: "Secret", Name: name}
			if n == foreign {
				source = v1beta1.ParametersSource{Kind: kind, Name: "foreign"}
			}
			i.Spec.ParametersFrom = append(i.Spec.ParametersFrom, source)
		}
		return as(t, ann).Create(ctx, i, client.DryRunAll)
	}
	env.Eventually(t, "the right to all sources", func() string {
		if err := try(-1, ""); err != nil {
			return err.Error()
		}
		return ""
	})
	for n := range most {
		for _, kind := range []string{"Secret", "ConfigMap"} {
			if err := try(n, kind); err == nil || !strings.Contains(err.Error(), "foreign") || !strings.Contains(err.Error(), "ann must be allowed to get each Secret and ConfigMap") {
				t.Errorf("source %d, a %s that ann may not read: %v", n, kind, err)
			}
		}
	}
}
