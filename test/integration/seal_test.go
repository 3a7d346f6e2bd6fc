package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// stop ends the manager.
func (m *managed) stop() {
	m.end()
	m.end = func() {}
}

// worker makes an account that may write ConfigMaps, and nothing else.
func (m *managed) worker(t testing.TB, ns string) *rbacv1.Role {
	t.Helper()
	env.Must(t, m.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "worker")}))
	role := &rbacv1.Role{ObjectMeta: gen.Meta(ns, "worker"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}}
	env.Must(t, m.Create(t.Context(), role))
	env.Must(t, m.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "worker"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "worker"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "worker"}},
	}))
	return role
}

// prized is an operator whose deploy plan writes a ConfigMap, and a Secret that the account worker may not write.
func prized(ns string) *v1beta1.OperatorVersion {
	return gen.Version(ns, "op", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1),
		gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-prize'}\nstringData: {value: '{{ .Params.VALUE }}'}\n"),
		gen.Apply("s", "s.yaml"), gen.Serial("deploy", "cm", "s"), gen.Serial("other", "s"))
}

// replace writes a ControllerRevision anew, changed.
func (m *managed) replace(t testing.TB, ns, name string, change func(*appsv1.ControllerRevision)) {
	t.Helper()
	record := env.Read(t, m.Cluster, &appsv1.ControllerRevision{}, ns, name)
	env.Must(t, m.Delete(t.Context(), record.DeepCopy()))
	record.ResourceVersion, record.UID = "", ""
	change(record)
	env.Must(t, m.Create(t.Context(), record))
}

func (m *managed) patchStatus(t testing.TB, ns, name string, change func(*v1beta1.InstanceStatus)) {
	t.Helper()
	i := env.Read(t, m.Cluster, &v1beta1.Instance{}, ns, name)
	patch := client.MergeFrom(i.DeepCopy())
	change(&i.Status)
	env.Must(t, m.Status().Patch(t.Context(), i, patch))
}

var _ = Describe("After a restart of the manager, a run with a forged status or record writes nothing that its account may not write:", Ordered, ContinueOnFailure, SpecPriority(1), Label("forged-runs", "T25", "T26", "slow", "disruptive"), func() {
	var m *managed
	attacks := map[string]struct {
		reason string
		attack func(t testing.TB, ns string)
		plan   string
		want   string // ends of the words; empty if the run continues
	}{
		"Restart": {"a run continues with the account that it was started with", func(t testing.TB, ns string) {
			i := env.Read(t, m.Cluster, &v1beta1.Instance{}, ns, "x")
			if i.Spec.ServiceAccountName != "worker" {
				t.Fatal("the Instance names worker")
			}
		}, "deploy", ""},
		"Deleted": {"a record that is deleted gives no rights", func(t testing.TB, ns string) {
			env.Must(t, m.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: gen.Meta(ns, "x-1")}))
		}, "deploy", "run 1 of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-1 is missing; kubectl kudo plan retry starts it anew"},
		"ForgedData": {"a record in which a user has changed the account gives no rights", func(t testing.TB, ns string) {
			m.replace(t, ns, "x-1", func(r *appsv1.ControllerRevision) {
				if !bytes.Contains(r.Data.Raw, []byte(`"serviceAccount":"worker"`)) {
					t.Fatalf("the record is %s", r.Data.Raw)
				}
				r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte(`"serviceAccount":"worker"`), []byte(`"serviceAccount":""`))
			})
		}, "deploy", "run 1 of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-1 was not written by this kudo; kubectl kudo plan retry starts it anew"},
		"Unlabelled": {"a record without labels and owner gives no rights", func(t testing.TB, ns string) {
			m.replace(t, ns, "x-1", func(r *appsv1.ControllerRevision) {
				r.Labels, r.Annotations, r.OwnerReferences = nil, nil, nil
				r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte(`"serviceAccount":"worker"`), []byte(`"serviceAccount":""`))
			})
		}, "deploy", "run 1 of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-1 was not written by this kudo; kubectl kudo plan retry starts it anew"},
		"Unsealed": {"T29: a record of before records were sealed gives no rights", func(t testing.TB, ns string) {
			m.replace(t, ns, "x-1", func(r *appsv1.ControllerRevision) { r.Annotations = nil })
		}, "deploy", "run 1 of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-1 was not written by this kudo; kubectl kudo plan retry starts it anew"},
		"Revision0": {"a status that says that there is no record gives no rights", func(t testing.TB, ns string) {
			m.patchStatus(t, ns, "x", func(s *v1beta1.InstanceStatus) {
				st := s.PlanStatus["deploy"]
				st.UID, st.Revision = "11111111-1111-1111-1111-111111111111", 0
				s.PlanStatus["deploy"] = st
			})
		}, "deploy", "run 0 of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-0 is missing; kubectl kudo plan retry starts it anew"},
		"OtherPlan": {"a status of another plan with the run's uid gives no rights", func(t testing.TB, ns string) {
			m.patchStatus(t, ns, "x", func(s *v1beta1.InstanceStatus) {
				s.PlanStatus["other"], s.PlanStatus["deploy"] = s.PlanStatus["deploy"], v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.NeverRun}
			})
		}, "other", "run 1 of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-1 was not written by this kudo; kubectl kudo plan retry starts it anew"},
		"NeverABaseline": {"a run that seems to come from KUDO goes on as its account", func(t testing.TB, ns string) {
			m.patchStatus(t, ns, "x", func(s *v1beta1.InstanceStatus) {
				st := s.PlanStatus["deploy"]
				st.UID, st.Revision = "11111111-1111-1111-1111-111111111111", 0
				s.PlanStatus["deploy"], s.Baseline = st, nil
			})
		}, "deploy", ""},
	}
	spaces, roles := map[string]string{}, map[string]*rbacv1.Role{}
	forbidden := func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "system:serviceaccount:"+i.Namespace+":worker")
	}
	BeforeAll(func() {
		t := GinkgoTB()
		m = newManaged(t)
		m.restart(t)
		for name := range attacks {
			ns := m.NewNamespace(t)
			spaces[name], roles[name] = ns, m.worker(t, ns)
			ov := prized(ns)
			env.Must(t, m.Create(t.Context(), ov))
			i := gen.Instance("x", ov, nil)
			i.Spec.ServiceAccountName = "worker"
			env.Must(t, m.Create(t.Context(), i))
		}
		for _, ns := range spaces {
			m.await(t, ns, "x", forbidden)
		}
		m.stop()
		for name, tc := range attacks {
			tc.attack(t, spaces[name])
		}
		m.restart(t)
	})
	for name, tc := range env.Sorted(attacks) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns := spaces[name]
			prize := client.ObjectKey{Namespace: ns, Name: "x-prize"}
			if tc.want != "" {
				i := m.await(t, ns, "x", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus[tc.plan].Status.IsTerminal() })
				if got, want := i.Status.PlanStatus[tc.plan], fmt.Sprintf(tc.want, ns); got.Status != v1beta1.FatalError || got.Message != want {
					t.Errorf("%s: %s %q, want %q", tc.reason, got.Status, got.Message, want)
				}
				if err := m.Get(t.Context(), prize, &corev1.Secret{}); !apierrors.IsNotFound(err) {
					t.Errorf("%s: the run has written what its account may not: %v", tc.reason, err)
				}
				if out, code := m.env.Kudo("plan", "retry", "--instance", "x", "-n", ns); code != 0 {
					t.Fatalf("plan retry: %s", out)
				}
				m.await(t, ns, "x", func(i *v1beta1.Instance) bool { return forbidden(i) && i.Status.PlanStatus[tc.plan].Revision > 1 })
			}
			role := roles[name]
			role.Rules[0].Resources = append(role.Rules[0].Resources, "secrets")
			env.Must(t, m.Update(t.Context(), role))
			status(t, m.await(t, ns, "x", func(i *v1beta1.Instance) bool {
				return i.Status.PlanStatus[tc.plan].Status.IsTerminal() && !strings.Contains(i.Status.PlanStatus[tc.plan].Message, "cannot continue")
			}), tc.plan, v1beta1.Complete)
		})
	}
})

var _ = Describe("After a restart of the manager, an install plan with a forged status or record, which has the rights of kudo, writes nothing:", Ordered, ContinueOnFailure, SpecPriority(1), Label("forged-install-runs", "T25", "T26", "slow", "disruptive"), func() {
	var m *managed
	const words, missing, foreign = "run %d of OperatorVersion %s/op cannot continue: ControllerRevision %[2]s/op-install-%[1]d %[3]s; kubectl kudo plan retry --operator-version starts it anew", "is missing", "was not written by this kudo"
	attacks := map[string]struct {
		reason   string
		attack   func(t testing.TB, ns string)
		revision int64
		want     string
	}{
		"Deleted": {"its record is deleted", func(t testing.TB, ns string) {
			env.Must(t, m.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: gen.Meta(ns, "op-install-1")}))
		}, 1, missing},
		"ForgedData": {"its record says something else", func(t testing.TB, ns string) {
			m.replace(t, ns, "op-install-1", func(r *appsv1.ControllerRevision) {
				forged := bytes.ReplaceAll(r.Data.Raw, []byte(`"install"`), []byte(`"deploy"`))
				if bytes.Equal(forged, r.Data.Raw) {
					t.Fatalf("the record is %s", r.Data.Raw)
				}
				r.Data.Raw = forged
			})
		}, 1, foreign},
		"Unsealed": {"its record has no seal", func(t testing.TB, ns string) {
			m.replace(t, ns, "op-install-1", func(r *appsv1.ControllerRevision) { r.Annotations = nil })
		}, 1, foreign},
		"Revision0": {"the status says that there is no record", func(t testing.TB, ns string) {
			ov := env.Read(t, m.Cluster, &v1beta1.OperatorVersion{}, ns, "op")
			patch := client.MergeFrom(ov.DeepCopy())
			st := ov.Status.PlanStatus["install"]
			st.UID, st.Revision = "11111111-1111-1111-1111-111111111111", 0
			ov.Status.PlanStatus["install"] = st
			env.Must(t, m.Status().Patch(t.Context(), ov, patch))
		}, 0, missing},
	}
	spaces := map[string]string{}
	run := func(t testing.TB, ns string) v1beta1.PlanStatus {
		return env.Read(t, m.Cluster, &v1beta1.OperatorVersion{}, ns, "op").Status.PlanStatus["install"]
	}
	BeforeAll(func() {
		t := GinkgoTB()
		m = newManaged(t)
		m.restart(t)
		for name := range attacks {
			ns := m.NewNamespace(t)
			spaces[name] = ns
			pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: waits, namespace: " + ns + "}\nspec: {schedulerName: none, containers: [{name: c, image: c}]}\n"
			prize := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: prize, namespace: " + ns + "}\n"
			env.Must(t, m.Create(t.Context(), gen.Version(ns, "op", gen.Template("pod.yaml", pod), gen.Template("prize.yaml", prize), gen.Apply("pod", "pod.yaml"), gen.Apply("prize", "prize.yaml"),
				gen.ConfigMaps("cm", 1), gen.Serial("install", "pod", "prize"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))))
		}
		for _, ns := range spaces {
			env.Eventually(t, "the pod awaited", env.Condition(func() bool { return strings.Contains(run(t, ns).Message+fmt.Sprint(run(t, ns).Phases), "waits") }))
		}
		m.stop()
		for name, tc := range attacks {
			tc.attack(t, spaces[name])
		}
		for _, ns := range spaces { // the run could go on now
			pod := &corev1.Pod{ObjectMeta: gen.Meta(ns, "waits")}
			env.Must(t, m.Status().Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))))
		}
		m.restart(t)
	})
	for name, tc := range env.Sorted(attacks) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns := spaces[name]
			env.Eventually(t, "the end of the run", env.Condition(func() bool { return run(t, ns).Status.IsTerminal() }))
			if got, want := run(t, ns), fmt.Sprintf(words, tc.revision, ns, tc.want); got.Status != v1beta1.FatalError || got.Message != want {
				t.Errorf("%s: %s %q, want %q", tc.reason, got.Status, got.Message, want)
			}
			prize := client.ObjectKey{Namespace: ns, Name: "prize"}
			if err := m.Get(t.Context(), prize, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: the run has gone on: %v", tc.reason, err)
			}
			if out, code := m.env.Kudo("plan", "retry", "--operator-version", "op", "-n", ns); code != 0 {
				t.Fatalf("plan retry: %s", out)
			}
			env.Eventually(t, "a run of its own", env.Condition(func() bool { return run(t, ns).Status == v1beta1.Complete }))
			env.Read(t, m.Cluster, &corev1.ConfigMap{}, ns, "prize")
		})
	}
})

// secretHash is the hash in the inventory of the one Secret of an Instance.
func secretHash(i *v1beta1.Instance) string {
	for _, r := range i.Status.Resources {
		if r.Kind == "Secret" {
			return r.Hash
		}
	}
	return ""
}

var _ = It("Without the history key nothing starts; the key is rotated and dropped, and what was kept before there were keys starts nothing", Label("history-key", "T24", "T27", "T28", "T29", "slow", "disruptive"), func() {
	t := GinkgoTB()
	m := newManaged(t)
	ns, ctx := m.NewNamespace(t), t.Context()
	secretKey := types.NamespacedName{Namespace: "kudo-system", Name: keyring.SecretName}
	init := func(code int, texts []string, args ...string) {
		t.Helper()
		out, got := m.env.Kudo(append([]string{"init"}, args...)...)
		if got != code {
			t.Fatalf("kubectl kudo init %v: exit code %d, want %d: %s", args, got, code, out)
		}
		contains(t, out, texts...)
	}
	hashOf := func() string {
		return env.Read(t, m.Cluster, &appsv1.Deployment{}, ns, "i").Spec.Template.Annotations[v1beta1.DependenciesHashAnnotation]
	}
	instance := func() *v1beta1.Instance { return env.Read(t, m.Cluster, &v1beta1.Instance{}, ns, "i") }
	update := func(value string, revision int64) *v1beta1.Instance {
		t.Helper()
		i := instance()
		patch := client.MergeFrom(i.DeepCopy())
		i.Spec.Parameters = map[string]string{"USER": value}
		env.Must(t, m.Patch(ctx, i, patch))
		i = m.await(t, ns, "i", env.PlanEnded("update", revision))
		status(t, i, "update", v1beta1.Complete)
		return i
	}
	rekeyed := func(id string) func(*v1beta1.Instance) bool {
		return func(i *v1beta1.Instance) bool { return keyring.IDOf(i.Status.Baseline.Parameters["PASSWORD"]) == id }
	}

	ov := vault(ns, gen.Template("d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Name }}'}\nspec:\n  selector: {matchLabels: {app: x}}\n  template:\n    metadata: {labels: {app: x}}\n"+
		"    spec: {containers: [{name: c, image: c}], volumes: [{name: s, secret: {secretName: '{{ .Name }}-out'}}]}\n"), gen.Apply("d", "d.yaml"), gen.Serial("deploy", "s", "c", "d"), gen.Serial("update", "c", "s", "d"))
	env.Must(t, m.Create(ctx, ov))
	env.Must(t, m.Create(ctx, secret(ns, "login", map[string]string{"PASSWORD": password})))
	i := gen.Instance("i", ov, nil)
	i.Spec.ParametersFrom = from("Secret/login")
	env.Must(t, m.Create(ctx, i))

	t.Log("T24: without the key, nothing starts")
	key := env.Read(t, m.Cluster, &corev1.Secret{}, secretKey.Namespace, secretKey.Name)
	env.Must(t, m.Delete(ctx, key.DeepCopy()))
	m.restart(t)
	waits := m.await(t, ns, "i", notReady(v1beta1.ReasonHistoryKeyMissing))
	contains(t, meta.FindStatusCondition(waits.Status.Conditions, v1beta1.ReadyCondition).Message, "Secret kudo-system/kudo-history-key", "is missing", "kubectl kudo init --upgrade")
	if len(waits.Status.PlanStatus) > 0 {
		t.Errorf("a plan was started: %v", waits.Status.PlanStatus)
	}
	key.ResourceVersion, key.UID = "", ""
	env.Must(t, m.Create(ctx, key))
	status(t, m.await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)

	t.Log("T27: nothing that a viewer reads holds a digest that can be guessed")
	first := update("anna", 2)
	if !rekeyed("1")(first) || keyring.IDOf(secretHash(first)) != "1" {
		t.Errorf("the digests are %v and %q", first.Status.Baseline.Parameters, secretHash(first))
	}
	sum := sha256.Sum256([]byte(password))
	list := &appsv1.ControllerRevisionList{}
	env.Must(t, m.List(ctx, list, client.InNamespace(ns)))
	readable, err := json.Marshal([]any{first, list.Items, env.Read(t, m.Cluster, &appsv1.Deployment{}, ns, "i")})
	env.Must(t, err)
	for _, value := range []string{password, keyring.KeyedByUID(string(first.UID))(password), hex.EncodeToString(sum[:10])} {
		if strings.Contains(string(readable), value) {
			t.Errorf("%s can be read", value)
		}
	}

	t.Log("T28: a rotation starts nothing, restarts no pods, and old seals still hold")
	before := hashOf()
	init(0, []string{"key 2 is the current one"}, "--rotate-history-key")
	rotated := m.await(t, ns, "i", rekeyed("2"))
	if rotated.Status.Baseline.Revision != 2 {
		t.Errorf("the rotation has started run %d", rotated.Status.Baseline.Revision)
	}
	third := update("otto", 3)
	if hashOf() != before || keyring.IDOf(secretHash(third)) != "2" {
		t.Errorf("after a rotation and a run: dependencies hash %s, before %s; hash of the Secret %s", hashOf(), before, secretHash(third))
	}
	init(0, []string{"configured"}, "--upgrade", "--external-manager")
	if env.Read(t, m.Cluster, &corev1.Secret{}, secretKey.Namespace, secretKey.Name).Data["1"] == nil {
		t.Error("key 1 was dropped, and runs 1 and 2 are sealed with it")
	}
	for _, name := range []string{"i-1", "i-2"} {
		env.Must(t, m.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: gen.Meta(ns, name)}))
	}
	init(0, []string{"dropped key 1"}, "--upgrade", "--external-manager")

	t.Log("a leaked key is dropped at once: what cannot be read any more starts nothing")
	init(0, []string{"key 3 is the current one", "the old ones are dropped"}, "--rotate-history-key", "--drop-old")
	leaked := m.await(t, ns, "i", rekeyed("3"))
	if leaked.Status.Baseline.Revision != 3 {
		t.Errorf("the rotation has started run %d", leaked.Status.Baseline.Revision)
	}
	update("emil", 4)
	if hashOf() == before {
		t.Error("T27: the hash of what pods depend on is made without the key")
	}

	t.Log("T24: a lost key is not replaced where something is sealed with it")
	env.Must(t, m.Delete(ctx, env.Read(t, m.Cluster, &corev1.Secret{}, secretKey.Namespace, secretKey.Name)))
	m.await(t, ns, "i", notReady(v1beta1.ReasonHistoryKeyMissing))
	init(1, []string{"Secret kudo-system/kudo-history-key is missing", "restore it from a backup"}, "--upgrade", "--external-manager")
	init(0, []string{"key 4 is the current one"}, "--rotate-history-key", "--drop-old")
	lost := m.await(t, ns, "i", rekeyed("4"))
	m.await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return meta.IsStatusConditionTrue(i.Status.Conditions, v1beta1.ReadyCondition)
	})
	if lost.Status.Baseline.Revision != 4 {
		t.Errorf("the new key has started run %d", lost.Status.Baseline.Revision)
	}

	t.Log("T29: what was kept before there were keys starts nothing, and goes")
	m.stop()
	m.replace(t, ns, "i-4", func(r *appsv1.ControllerRevision) { r.Annotations = nil })
	old := secret(ns, history.SecretName("i"), map[string]string{"4.x": password})
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(lost, v1beta1.GroupVersion.WithKind("Instance"))}
	old.Labels = map[string]string{v1beta1.HistoryLabel: string(lost.UID)}
	env.Must(t, m.Create(ctx, old))
	m.patchStatus(t, ns, "i", func(s *v1beta1.InstanceStatus) {
		digest := keyring.KeyedByUID(string(lost.UID))
		s.Baseline.Parameters, s.Baseline.Sensitive = map[string]string{"PASSWORD": digest(password), "USER": digest("emil")}, true
		for n := range s.Resources {
			if s.Resources[n].Kind == "Secret" {
				s.Resources[n].Hash = "0123456789abcdef0123"
			}
		}
	})
	m.restart(t)
	upgraded := m.await(t, ns, "i", rekeyed("4"))
	if upgraded.Status.Baseline.Revision != 4 || upgraded.Status.Baseline.Sensitive || secretHash(upgraded) != "" {
		t.Errorf("after the upgrade: %+v, hash of the Secret %q", upgraded.Status.Baseline, secretHash(upgraded))
	}
	if out, code := m.env.Kudo("init", "--upgrade"); code != 0 { // the manager may not delete Secrets
		t.Fatalf("init --upgrade ends with %d: %s", code, out)
	}
	if err := m.Get(ctx, client.ObjectKeyFromObject(old), old); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret with the values is there still: %v", err)
	}
	if out, _ := m.env.Kudo("plan", "history", "--instance", "i", "-n", ns); !strings.Contains(out, "update") {
		t.Errorf("T29: unsealed runs are shown: %s", out)
	}
	update("lisa", 5)
	if record := env.Read(t, m.Cluster, &appsv1.ControllerRevision{}, ns, "i-5"); !strings.Contains(string(record.Data.Raw), `"spec":`) {
		t.Error("T29: a run refers to a version that is not sealed")
	}
})

var _ = It("The command init --upgrade waits for the plans that the new manager would not continue, and names them", Label("T29", "disruptive"), func() {
	t := GinkgoTB()
	m := newManaged(t)
	ns := m.NewNamespace(t)
	m.worker(t, ns)
	ov := prized(ns)
	env.Must(t, m.Create(t.Context(), ov))
	i := gen.Instance("x", ov, nil)
	i.Spec.ServiceAccountName = "worker"
	env.Must(t, m.Create(t.Context(), i))
	m.restart(t)
	m.await(t, ns, "x", func(i *v1beta1.Instance) bool {
		return strings.Contains(i.Status.AggregatedStatus.Message, "forbidden")
	})
	if out, code := m.env.Kudo("init", "--upgrade", "--external-manager", "--wait-time=60s"); code != 0 {
		t.Errorf("a sealed run continues: exit code %d: %s", code, out)
	}
	m.replace(t, ns, "x-1", func(r *appsv1.ControllerRevision) { r.Annotations = nil })
	out, code := m.env.Kudo("init", "--upgrade", "--external-manager", "--wait-time=10s")
	if code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	contains(t, out, "plan deploy of Instance "+ns+"/x", "kubectl kudo plan cancel", "--wait-time=0s")
	if out, code := m.env.Kudo("init", "--upgrade", "--external-manager", "--wait-time=0s"); code != 0 {
		t.Errorf("it need not be waited for: exit code %d: %s", code, out)
	}

	t.Log("T28: a run whose record is sealed with a key that is dropped fails, also in the manager that has started it")
	if i := env.Read(t, m.Cluster, &v1beta1.Instance{}, ns, "x"); i.Status.PlanStatus["deploy"].Status.IsTerminal() {
		t.Errorf("the run has ended: %v", i.Status.PlanStatus)
	}
	if out, code := m.env.Kudo("init", "--rotate-history-key", "--drop-old"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	status(t, m.await(t, ns, "x", env.PlanEnded("deploy", 1)), "deploy", v1beta1.FatalError, "run 1 of Instance "+ns+"/x cannot continue: ControllerRevision "+ns+"/x-1 was not written by this kudo")
})

var _ = It("The garbage collector's strategic merge patches do not change the data of ControllerRevisions", Label("orphans", "T25"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "op", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	deploy(t, ov, "i", map[string]string{"VALUE": "<a> & \u2028 \"b\" ü 😀 \x7f"})
	cmd := exec.Command(filepath.Join(plane.Bin, "kubectl"), "delete", "instance", "i", "-n", ns, "--cascade=orphan", "--timeout=90s")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl delete --cascade=orphan: %v: %s", err, out)
	}
	if record := get(t, &appsv1.ControllerRevision{}, ns, "i-1"); len(record.OwnerReferences) > 0 {
		t.Errorf("the record still has an owner: %v", record.OwnerReferences)
	}
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
})

var _ = It("An object is not deleted only since the status says that a plan has written it", Label("forged-inventory", "T18"), func() {
	t := GinkgoTB()
	ns, other := cluster.NewNamespace(t), cluster.NewNamespace(t)
	one := gen.Version(ns, "one", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	two := gen.Version(ns, "two", gen.Serial("deploy"))
	deploy(t, one, "i", nil)
	env.Must(t, cluster.Create(t.Context(), two))
	near, far := secret(ns, "near", map[string]string{"a": "b"}), secret(other, "x", map[string]string{"a": "b"})
	env.Must(t, cluster.Create(t.Context(), near))
	env.Must(t, cluster.Create(t.Context(), far))
	i := get(t, &v1beta1.Instance{}, ns, "i")
	patch := client.MergeFrom(i.DeepCopy())
	for _, victim := range []*corev1.Secret{near, far} {
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "Secret", Namespace: victim.Namespace, Name: victim.Name, UID: victim.UID})
	}
	env.Must(t, cluster.Status().Patch(t.Context(), i, patch))
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "two" }))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 2)), "deploy", v1beta1.Complete)
	hasEvent(t, ns, "ignored Secret "+other+"/x of status.resources: it is of another namespace")
	hasEvent(t, ns, "ConfigMap "+ns+"/i-cm-0 is no longer part of the operator and was deleted")
	get(t, &corev1.Secret{}, ns, "near")
	get(t, &corev1.Secret{}, other, "x")
	env.Eventually(t, "what a plan has written is pruned", env.Condition(func() bool { // by the garbage collector, in the end
		return apierrors.IsNotFound(cluster.Get(context.Background(), client.ObjectKey{Namespace: ns, Name: "i-cm-0"}, &corev1.ConfigMap{}))
	}))
})
