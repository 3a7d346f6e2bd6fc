package tenancy

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const (
	password = "correct horse battery staple"
	// taken is what a ControllerRevision that kudo did not make holds.
	taken = `{"a":"b"}`
)

// personaCases are what the personas try by packages, values and the objects around a run.
func personaCases() []attackCase {
	return []attackCase{
		{finding: "1", name: "a cluster-scoped object", reason: "whoever writes packages and Instances gets no ClusterRoleBinding by a plan", begin: peopled, strike: binds, holds: unbound},
		{finding: "2", name: "documents in a value", reason: "a value makes no object", begin: peopled, strike: injects, holds: contained},
		{finding: "10", name: "a forged inventory", reason: "what the status says that plans have written is not deleted for that alone", begin: kept, ready: ended("x"), strike: lists, holds: ignored},
		{finding: "11", name: "a password guessed", reason: "nothing that a viewer reads holds a digest that can be guessed", begin: hides, ready: ended("x"), strike: digested, holds: unguessed},
		{finding: "5", name: "another account meanwhile", reason: "a run keeps the account that it was started with, and a version is not switched without the right to the account", begin: peopledRun, ready: runHangs, strike: switches, holds: keeps},
		{finding: "5", name: "another version of the name", reason: "a run keeps the version that it was started with, and whose plans the next one has get no more than the account", begin: peopledRun, ready: runHangs, strike: swaps, holds: outlasts},
		{finding: "3", name: "the account is deleted", reason: "a run whose account is deleted writes nothing, and goes on when it is back", begin: peopledRun, ready: runHangs, strike: removesAccount, holds: returns},
		{finding: "3", name: "the binding is deleted", reason: "a namespace that lets the manager in no more stops the run", begin: peopledRun, ready: runHangs, strike: removesBinding, holds: returns},
		{finding: "3", name: "replayed", reason: "a run of before that had the rights of kudo does not go on where the Instance names an account", begin: promoted, ready: demoted, strike: replays, holds: stale},
		{finding: "1", name: "an object of another namespace", reason: "what a template says of the namespace does not count", begin: peopled, strike: reaches, holds: stays},
		{finding: "4", name: "a lockdown undone", reason: "init does not remove silently what an administrator has forbidden by arguments", begin: peopled, strike: unlocks, holds: locked},
		{finding: "13", name: "its own ancestor", reason: "a template that makes Instances of its own version ends at the first", begin: peopled, strike: loops, holds: alone},
		{finding: "13", name: "too many children", reason: "the number of Instances that the plans of one make ends, too", begin: peopled, strike: multiplies, holds: childless},
		{finding: "3", name: "a name taken", reason: "the manager deletes no ControllerRevision that kudo did not make", begin: peopled, strike: squats, holds: left},
	}
}

func ended(name string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) { s.await(t, name, env.PlanEnded("deploy", 1)) }
}

// peopled makes the personas, whose Instances run as the account kudo.
func peopled(t *testing.T, s *stage) {
	personas(t, s.ns)
	tenants.allow(s.ns, "kudo")
}

// peopledRun is a run of an Instance of another user, which the personas are after. Its account is worker.
func peopledRun(t *testing.T, s *stage) {
	personas(t, s.ns)
	s.worker(t)
	tenants.only(s.ns, "worker")
	ov := prized(s.ns)
	env.Must(t, suite.Create(ctx, ov))
	env.Must(t, suite.Create(ctx, named(gen.Instance("x", ov, nil), "worker")))
}

func runHangs(t *testing.T, s *stage) { s.await(t, "x", refusedTo("worker")) }

// named lets an Instance name an account.
func named(i *v1beta1.Instance, account string) *v1beta1.Instance {
	i.Spec.ServiceAccountName = account
	return i
}

// bindingTo is a template that makes ann the administrator of the cluster.
func bindingTo(ns string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + ns + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}]\n"
}

func binds(t *testing.T, s *stage) {
	ov := gen.Version(s.ns, "evil-1", gen.Template("crb.yaml", bindingTo(s.ns)), gen.Apply("crb", "crb.yaml"), gen.Serial("deploy", "crb"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
}

func unbound(t *testing.T, s *stage) {
	i := s.await(t, "x", says("forbidden"))
	env.Contains(t, i.Status.AggregatedStatus.Message, `User "system:serviceaccount:`+s.ns+`:kudo" cannot`, `resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope`,
		". Ask an administrator to move such objects to an install plan, to bind what kubectl kudo package rights ", " prints to ServiceAccount "+s.ns+"/kudo, or to label Namespace "+s.ns+" kudo.dev/privileged=true")
	s.noBinding(t)
}

// noBinding wants no ClusterRoleBinding of the attack.
func (s *stage) noBinding(t *testing.T) {
	t.Helper()
	if err := suite.Get(ctx, client.ObjectKey{Name: s.ns}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRoleBinding exists (%v)", err)
	}
}

func injects(t *testing.T, s *stage) {
	ov := gen.Version(s.ns, "raw-1", gen.Param("VALUE", "a", ""), gen.Template("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  key: {{ .Params.VALUE }}\n"), gen.Apply("cm", "cm.yaml"), gen.Serial("deploy", "cm"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, nadia).Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(s.ns, "values"), StringData: map[string]string{"VALUE": attack(s.ns)}}))
	i := named(gen.Instance("x", ov, nil), "kudo")
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "values"}}
	env.Must(t, as(t, nadia).Create(ctx, i))
}

func contained(t *testing.T, s *stage) {
	st := s.await(t, "x", env.PlanEnded("deploy", 1)).Status.PlanStatus["deploy"]
	if st.Status != v1beta1.FatalError {
		t.Errorf("the run ended as %s", st.Status)
	}
	env.Contains(t, st.Message, "parameter VALUE changes the structure of template cm.yaml", "a value must stay one value")
	s.noBinding(t)
}

// kept is an Instance whose next version has no objects. In a privileged namespace it deletes with the rights of kudo.
func kept(t *testing.T, s *stage) {
	tenants.allow(s.ns, s.boss())
	one := gen.Version(s.ns, "one", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, one))
	env.Must(t, suite.Create(ctx, gen.Version(s.ns, "two", gen.Serial("deploy"))))
	env.Must(t, suite.Create(ctx, gen.Instance("x", one, nil)))
}

func lists(t *testing.T, s *stage) {
	near := &corev1.Secret{ObjectMeta: gen.Meta(s.ns, "near"), StringData: map[string]string{"a": "b"}}
	env.Must(t, suite.Create(ctx, near))
	far := env.Read(t, suite.Cluster, &corev1.Secret{}, s.victim, "x")
	s.patchStatus(t, func(i *v1beta1.Instance) {
		for _, v := range []*corev1.Secret{near, far} {
			i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "Secret", Namespace: v.Namespace, Name: v.Name, UID: v.UID})
		}
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"operatorVersion":{"name":"two"}}}`))
	env.Must(t, suite.Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, "x")}, patch))
}

func ignored(t *testing.T, s *stage) {
	if s.moment.recreated { // the forged inventory is dropped with the status
		s.await(t, "x", func(i *v1beta1.Instance) bool {
			st := i.Status.PlanStatus["deploy"]
			return st.UID == history.RunUID(i.UID, 1) && st.Status == v1beta1.Complete
		})
		env.Read(t, suite.Cluster, &corev1.Secret{}, s.ns, "near")
		return
	}
	if st := s.await(t, "x", env.PlanEnded("deploy", 2)).Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Errorf("the run is %s: %s", st.Status, st.Message)
	}
	env.Read(t, suite.Cluster, &corev1.Secret{}, s.ns, "near")
	env.Eventually(t, "an event", func() string {
		events := &corev1.EventList{}
		env.Must(t, suite.List(ctx, events, client.InNamespace(s.ns)))
		for _, e := range events.Items {
			if strings.Contains(e.Message, "ignored Secret "+s.victim+"/x of status.resources: it is of another namespace") {
				return ""
			}
		}
		return fmt.Sprintf("%d events", len(events.Items))
	})
}

// hides is an Instance that has a password from a Secret, and pods that read it.
func hides(t *testing.T, s *stage) {
	tenants.allow(s.ns, s.boss())
	ov := gen.Version(s.ns, "vault-1", gen.Param("VALUE", "a", ""),
		gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x-out}\nstringData: {value: {{ .Params.VALUE | quote }}}\n"),
		gen.Template("d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  template:\n    metadata: {labels: {app: x}}\n"+
			"    spec: {containers: [{name: c, image: c}], volumes: [{name: s, secret: {secretName: x-out}}]}\n"),
		gen.Apply("s", "s.yaml"), gen.Apply("d", "d.yaml"), gen.Serial("deploy", "s", "d"))
	env.Must(t, suite.Create(ctx, ov))
	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(s.ns, "login"), StringData: map[string]string{"VALUE": password}}))
	i := gen.Instance("x", ov, nil)
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "login"}}
	env.Must(t, suite.Create(ctx, i))
}

// digested writes the digests that a release without seals has left, where there is one.
func digested(t *testing.T, s *stage) {
	if s.moment.change == nil || s.moment.recreated {
		return
	}
	s.patchStatus(t, func(i *v1beta1.Instance) {
		i.Status.Baseline.Parameters = map[string]string{"VALUE": keyring.KeyedByUID(string(i.UID))(password)}
		i.Status.Baseline.Sensitive = true
	})
}

// unguessed reads all that a viewer may read, and more.
func unguessed(t *testing.T, s *stage) {
	i := env.Read(t, suite.Cluster, &v1beta1.Instance{}, s.ns, "x")
	sum256, sum1, sum5 := sha256.Sum256([]byte(password)), sha1.Sum([]byte(password)), md5.Sum([]byte(password))
	secrets := []string{password, base64.StdEncoding.EncodeToString([]byte(password)), keyring.KeyedByUID(string(i.UID))(password),
		hex.EncodeToString(sum256[:8]), hex.EncodeToString(sum1[:8]), hex.EncodeToString(sum5[:8])}
	env.Eventually(t, "nothing to guess by", func() string {
		for _, list := range []client.ObjectList{&v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}, &appsv1.ControllerRevisionList{}, &appsv1.DeploymentList{},
			&appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ConfigMapList{}, &corev1.EventList{}} {
			env.Must(t, suite.List(ctx, list, client.InNamespace(s.ns)))
			text, err := json.Marshal(list)
			env.Must(t, err)
			for n, secret := range secrets {
				if strings.Contains(string(text), secret) {
					return fmt.Sprintf("digest %d can be read in %T", n, list)
				}
			}
		}
		return ""
	})
}

// switches: ann may use the account kudo, and names it in an Instance whose run continues as worker.
func switches(t *testing.T, s *stage) {
	x := &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, "x")}
	err := as(t, ann).Patch(ctx, x.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"operatorVersion":{"name":"quiet-1"}}}`)))
	if err == nil || !strings.Contains(err.Error(), `ann needs the verb "use" on serviceaccounts "worker" in namespace `+s.ns) {
		t.Errorf("another version is answered with %v", err)
	}
	env.Must(t, as(t, ann).Patch(ctx, x, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"serviceAccountName":"kudo"}}`))))
}

func keeps(t *testing.T, s *stage) {
	if s.moment.recreated { // the first run of a restored Instance has the account of spec, which ann may use
		tenants.allow(s.ns, "kudo")
		s.await(t, "x", func(i *v1beta1.Instance) bool {
			st := i.Status.PlanStatus["deploy"]
			return st.UID == history.RunUID(i.UID, 1) && (st.Status.IsTerminal() || refusedTo("kudo")(i))
		})
		return
	}
	if s.moment.strangers {
		s.failed(t, "deploy", 1, alien)
		return
	}
	s.completes(t, "deploy", 1)
}

// swaps: otto has a version of his own in the place of the one that runs.
func swaps(t *testing.T, s *stage) {
	ov := gen.Version(s.ns, "op", gen.Template("crb.yaml", bindingTo(s.ns)), gen.Apply("crb", "crb.yaml"), gen.Serial("deploy", "crb"), gen.Serial("other", "crb"))
	env.Must(t, as(t, otto).Delete(ctx, ov.DeepCopy()))
	env.Must(t, as(t, otto).Create(ctx, ov))
}

func outlasts(t *testing.T, s *stage) {
	if !s.moment.strangers {
		s.completes(t, "deploy", 1)
		s.noBinding(t)
		return
	}
	if s.moment.recreated {
		s.anew(t)
		s.noBinding(t)
		return
	}
	s.failed(t, "deploy", 1, alien)
	next := s.retry(t, "deploy")
	s.await(t, "x", func(i *v1beta1.Instance) bool {
		return refusedTo("worker")(i) && i.Status.PlanStatus["deploy"].Revision >= next
	})
	s.noBinding(t)
}

func removesAccount(t *testing.T, s *stage) {
	account := &corev1.ServiceAccount{ObjectMeta: gen.Meta(s.ns, "worker")}
	env.Must(t, as(t, nadia).Delete(ctx, account))
	s.saved = &corev1.ServiceAccount{ObjectMeta: gen.Meta(s.ns, "worker")}
}

func removesBinding(t *testing.T, s *stage) {
	binding := env.Read(t, suite.Cluster, &rbacv1.RoleBinding{}, s.ns, "kudo-run-as")
	env.Must(t, as(t, nadia).Delete(ctx, binding.DeepCopy()))
	s.saved = &rbacv1.RoleBinding{ObjectMeta: gen.Meta(s.ns, "kudo-run-as"), RoleRef: binding.RoleRef, Subjects: binding.Subjects}
}

// returns: the run writes nothing while something is missing, and ends when it is back.
func returns(t *testing.T, s *stage) {
	if s.moment.strangers && !s.moment.recreated {
		s.failed(t, "deploy", 1, alien)
	}
	s.unwritten(t)
	env.Must(t, as(t, nadia).Create(ctx, s.saved.(client.Object)))
	if !s.moment.strangers || s.moment.recreated {
		s.completes(t, "deploy", 1)
	}
}

// promoted is an Instance whose first run has the rights of kudo.
func promoted(t *testing.T, s *stage) {
	s.worker(t)
	quiet := gen.Version(s.ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, quiet))
	env.Must(t, suite.Create(ctx, prized(s.ns)))
	env.Must(t, suite.Create(ctx, gen.Instance("x", quiet, nil)))
}

// demoted lets the second run have an account.
func demoted(t *testing.T, s *stage) {
	ended("x")(t, s)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"serviceAccountName":"worker","operatorVersion":{"name":"op"}}}`))
	env.Must(t, suite.Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, "x")}, patch))
	s.await(t, "x", refusedTo("worker"))
}

// replays makes the first run continue.
func replays(t *testing.T, s *stage) {
	s.patchStatus(t, func(i *v1beta1.Instance) {
		st := i.Status.PlanStatus["deploy"]
		st.UID, st.Revision = history.RunUID(i.UID, 1), 1
		i.Status.PlanStatus["deploy"] = st
	})
}

func stale(t *testing.T, s *stage) {
	if s.moment.recreated {
		s.anew(t)
		return
	}
	want := lost
	if s.moment.strangers {
		want = alien
	}
	s.failed(t, "deploy", 1, want)
}

// reaches: otto's template names the namespace of the victim, and marks that make its objects those of the Instance.
func reaches(t *testing.T, s *stage) {
	ov := gen.Version(s.ns, "far-1", gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: "+s.victim+", labels: {heritage: kudo, kudo.dev/instance: x}}\nstringData: {password: mine}\n"),
		gen.Apply("s", "s.yaml"), gen.Serial("deploy", "s"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
}

func stays(t *testing.T, s *stage) {
	if st := s.await(t, "x", env.PlanEnded("deploy", 1)).Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Errorf("the run is %s: %s", st.Status, st.Message)
	}
	env.Read(t, suite.Cluster, &corev1.Secret{}, s.ns, "x")
}

// squats: ann may not delete ControllerRevisions, and makes an Instance whose records would have the name of one.
func squats(t *testing.T, s *stage) {
	theirs := &appsv1.ControllerRevision{ObjectMeta: gen.Meta(s.ns, "x-1"), Revision: 1, Data: runtime.RawExtension{Raw: []byte(taken)}}
	env.Must(t, suite.Create(ctx, theirs))
	ov := gen.Version(s.ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
}

func left(t *testing.T, s *stage) {
	i := s.await(t, "x", func(i *v1beta1.Instance) bool { return len(i.Status.Conditions) > 0 })
	ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
	if ready == nil || ready.Reason != v1beta1.ReasonRecordNameTaken {
		t.Errorf("the conditions are %v", i.Status.Conditions)
	} else {
		env.Contains(t, ready.Message, "ControllerRevision "+s.ns+"/x-1 exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. Delete it, or give the Instance another name")
	}
	now := env.Read(t, suite.Cluster, &appsv1.ControllerRevision{}, s.ns, "x-1")
	if string(now.Data.Raw) != taken {
		t.Errorf("the ControllerRevision is another one: %s", now.Data.Raw)
	}
	env.Must(t, suite.Delete(ctx, now))
	s.await(t, "x", env.PlanEnded("deploy", 1))
}

// unlocks runs init over a Deployment that KUDO's administrator has locked down. Each moment has one of its own.
func unlocks(t *testing.T, s *stage) {
	labels := map[string]string{"app": s.ns}
	locked := &appsv1.Deployment{ObjectMeta: gen.Meta(home, "kudo-controller-manager")}
	locked.Spec.Replicas, locked.Spec.Selector, locked.Spec.Template.Labels = ptr.To(int32(0)), &metav1.LabelSelector{MatchLabels: labels}, labels
	locked.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "x", Args: []string{"--require-service-account"}}}
	env.Must(t, suite.Create(ctx, locked))
	before := env.Read(t, suite.Cluster, &corev1.ConfigMap{}, home, "kudo-config").Data
	out, code := suite.Kudo("init", "--upgrade", "--kudo-image", "example.org/kudo:1")
	if want := "Deployment kudo-system/kudo-controller-manager has --require-service-account, which init would remove: say --keep-args or --drop-args"; code != 2 || !strings.Contains(out, want) {
		t.Errorf("init ends with %d: %s", code, out)
	}
	if now := env.Read(t, suite.Cluster, &appsv1.Deployment{}, home, locked.Name); now.Generation != locked.Generation {
		t.Errorf("the Deployment has changed: %+v", now.Spec.Template.Spec.Containers)
	}
	s.saved = before
	env.Must(t, suite.Delete(ctx, locked))
}

// locked wants the settings of before.
func locked(t *testing.T, s *stage) {
	if now := env.Read(t, suite.Cluster, &corev1.ConfigMap{}, home, "kudo-config").Data; !maps.Equal(now, s.saved.(map[string]string)) {
		t.Errorf("the settings are %v, and were %v", now, s.saved)
	}
}

// childTemplate makes Instances of a version, as the account of the run.
func childTemplate(version string, n int) gen.VersionMod {
	return gen.Template("i.yaml", fmt.Sprintf("{{ range $i := until %d }}---\napiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: '{{ $.Name }}-{{ $i }}'}\nspec: {operatorVersion: {name: %s}}\n{{ end }}", n, version))
}

func loops(t *testing.T, s *stage) {
	ov := gen.Version(s.ns, "loop-1", childTemplate("loop-1", 1), gen.Apply("i", "i.yaml"), gen.Serial("deploy", "i"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
}

func alone(t *testing.T, s *stage) {
	s.refusedChildren(t, "Instance "+s.ns+"/x-0 is its own ancestor by version "+s.ns+"/loop-1: ")
}

func multiplies(t *testing.T, s *stage) {
	env.Must(t, as(t, otto).Create(ctx, gen.Version(s.ns, "leaf-1", gen.Serial("deploy"))))
	ov := gen.Version(s.ns, "many-1", childTemplate("leaf-1", 65), gen.Apply("i", "i.yaml"), gen.Serial("deploy", "i"))
	env.Must(t, as(t, otto).Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
}

func childless(t *testing.T, s *stage) {
	s.refusedChildren(t, "would have 65 child Instances, more than the 64 allowed")
}

// refusedChildren wants a run that has failed with words, and no Instance but its own.
func (s *stage) refusedChildren(t *testing.T, words string) {
	t.Helper()
	st := s.await(t, "x", env.PlanEnded("deploy", 1)).Status.PlanStatus["deploy"]
	if st.Status != v1beta1.FatalError {
		t.Errorf("the run ended as %s", st.Status)
	}
	env.Contains(t, st.Message, words)
	list := &v1beta1.InstanceList{}
	env.Must(t, suite.List(ctx, list, client.InNamespace(s.ns)))
	if len(list.Items) != 1 {
		t.Errorf("there are %d Instances, want 1", len(list.Items))
	}
}
