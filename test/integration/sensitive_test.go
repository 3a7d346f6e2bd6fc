package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const password = "correct-horse-battery"

func secret(ns, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: gen.Meta(ns, name), StringData: data}
}

func from(sources ...string) []v1beta1.ParametersSource {
	var out []v1beta1.ParametersSource
	for _, text := range sources {
		kind, name, _ := strings.Cut(text, "/")
		out = append(out, v1beta1.ParametersSource{Kind: kind, Name: name})
	}
	return out
}

// vault is an operator whose plans write a Secret with the password and a ConfigMap with the user. A sleep in its plan is
// a Deployment that no controller makes ready.
func vault(ns string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	return gen.Version(ns, "vault", append([]gen.VersionMod{
		gen.Param("USER", "guest", ""), gen.Required("PASSWORD"),
		gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-out'}\nstringData: {password: '{{ .Params.PASSWORD }}'}\n"),
		gen.Template("c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-out'}\ndata: {user: '{{ .Params.USER }}'}\n"),
		gen.Apply("s", "s.yaml"), gen.Apply("c", "c.yaml"), gen.Serial("deploy", "s", "c"), gen.Serial("update", "c", "s"),
	}, mods...)...)
}

func written(t testing.TB, ns, name string) string {
	t.Helper()
	return string(get(t, &corev1.Secret{}, ns, name+"-out").Data["password"])
}

// unseen fails if a value stands in what a viewer may read: Instances, their history and events.
func unseen(t testing.TB, ns string, values ...string) {
	t.Helper()
	var texts []string
	for _, list := range []client.ObjectList{&v1beta1.InstanceList{}, &appsv1.ControllerRevisionList{}, &corev1.EventList{}} {
		env.Must(t, cluster.List(context.Background(), list, client.InNamespace(ns)))
		for _, obj := range items(t, list) {
			text, err := json.Marshal(obj)
			env.Must(t, err)
			texts = append(texts, string(text))
		}
	}
	for _, text := range texts {
		for _, value := range values {
			if strings.Contains(text, value) {
				t.Errorf("the sensitive value %q can be read in %s", value, text)
			}
		}
	}
}

var _ = It("Secrets and ConfigMaps give values, are waited for and watched, and what Secrets give is not seen", Label("parameters-from"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := vault(ns)
	env.Must(t, cluster.Create(t.Context(), ov))
	i := gen.Instance("i", ov, nil)
	i.Spec.ParametersFrom = from("ConfigMap/common", "Secret/login")
	i.Spec.ParametersFrom[0].Optional = true
	env.Must(t, cluster.Create(t.Context(), i))
	waits := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return ready != nil && ready.Reason == v1beta1.ReasonWaitingForParameters
	})
	contains(t, meta.FindStatusCondition(waits.Status.Conditions, v1beta1.ReadyCondition).Message, "Secret "+ns+"/login", "spec.parametersFrom[1]", "create it")

	t.Log("it goes on when the Secret comes; keys that are no parameters are left alone")
	login := secret(ns, "login", map[string]string{"PASSWORD": password, "other": "x"})
	env.Must(t, cluster.Create(t.Context(), login))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
	if got := written(t, ns, "i"); got != password {
		t.Errorf("the password is %q", got)
	}
	unseen(t, ns, password)

	t.Log("a change of a value starts a plan, one of another key none")
	login.Data, login.StringData = nil, map[string]string{"PASSWORD": password + "-2", "other": "y"}
	env.Must(t, cluster.Update(t.Context(), login))
	status(t, await(t, ns, "i", env.PlanEnded("update", 2)), "update", v1beta1.Complete)
	if got := written(t, ns, "i"); got != password+"-2" {
		t.Errorf("the password is %q", got)
	}
	env.Must(t, cluster.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "common"), Data: map[string]string{"USER": "anna", "PASSWORD": "common"}}))
	status(t, await(t, ns, "i", env.PlanEnded("update", 3)), "update", v1beta1.Complete)
	if got := get(t, &corev1.ConfigMap{}, ns, "i-out").Data["user"]; got != "anna" || written(t, ns, "i") != password+"-2" {
		t.Errorf("later sources win: user %q, password %q", got, written(t, ns, "i"))
	}
	kudo(t, 0, "update", "-n", ns, "--instance", "i", "-p", "USER=otto", "--wait")
	if got := get(t, &corev1.ConfigMap{}, ns, "i-out").Data["user"]; got != "otto" {
		t.Errorf("spec.parameters wins over all: user %q", got)
	}
	unseen(t, ns, password)
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: history.SecretName("i")}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("T27: values are kept in a Secret: %v", err)
	}
	log, err := plane.Local("logs", "manager")
	env.Must(t, err)
	if strings.Contains(log, password) {
		t.Error("the password stands in the manager's log")
	}

	t.Log("without sensitive values")
	kudo(t, 0, "update", "-n", ns, "--instance", "i", "--parameters-from", "configmap/common", "--wait")
	if got := written(t, ns, "i"); got != "common" {
		t.Errorf("the password is %q", got)
	}
})

var _ = It("Messages of the API server about a rendered object, or about a value that does not fit its definition, are shown without the value", Label("sensitive-messages"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := vault(ns, gen.Template("s.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Name }}-out'}\nspec: {type: '{{ .Params.PASSWORD }}', ports: [{port: 80}]}\n"))
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), secret(ns, "login", map[string]string{"PASSWORD": password})))
	i := gen.Instance("i", ov, nil)
	i.Spec.ParametersFrom = from("Secret/login")
	env.Must(t, cluster.Create(t.Context(), i))
	failed := await(t, ns, "i", env.PlanEnded("deploy", 1))
	status(t, failed, "deploy", v1beta1.FatalError, "spec.type", "(sensitive)")
	unseen(t, ns, password)
	if out := kudo(t, 0, "plan", "status", "-n", ns, "--instance", "i"); strings.Contains(out, password) || !strings.Contains(out, "(sensitive)") {
		t.Errorf("plan status: %s", out)
	}

	t.Log("by definition, where the value stands in spec")
	typed := vault(ns, func(ov *v1beta1.OperatorVersion) {
		ov.Name, ov.Spec.Parameters[1].Sensitive, ov.Spec.Parameters[1].Type = "typed", true, v1beta1.IntegerType
	})
	env.Must(t, cluster.Create(t.Context(), typed))
	err := cluster.Create(t.Context(), gen.Instance("typed", typed, map[string]string{"PASSWORD": password}))
	if err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("a value of the wrong type: %v", err)
	}
	env.Must(t, cluster.Create(t.Context(), secret(ns, "typed", map[string]string{"PASSWORD": password})))
	j := gen.Instance("j", typed, nil)
	j.Spec.ParametersFrom = from("Secret/typed")
	env.Must(t, cluster.Create(t.Context(), j))
	await(t, ns, "j", func(i *v1beta1.Instance) bool {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return ready != nil && ready.Reason == v1beta1.ReasonInvalidSpec && strings.Contains(ready.Message, "not of type integer")
	})
	unseen(t, ns, password)
})

var _ = It("A bound of a text holds at admission and for what a run gets of a Secret, and its message has no value", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	one := int32(1)
	bounded := vault(ns, func(ov *v1beta1.OperatorVersion) {
		ov.Name, ov.Spec.Parameters[1].Sensitive, ov.Spec.Parameters[1].MaxLines = "bounded", true, &one
	})
	env.Must(t, cluster.Create(t.Context(), bounded))
	const lines = password + "\n" + password
	err := cluster.Create(t.Context(), gen.Instance("refused", bounded, map[string]string{"PASSWORD": lines}))
	if err == nil || !strings.Contains(err.Error(), `parameter "PASSWORD" has a value of more than one line`) || strings.Contains(err.Error(), password) {
		t.Errorf("two lines are admitted, or shown: %v", err)
	}
	env.Must(t, cluster.Create(t.Context(), secret(ns, "lines", map[string]string{"PASSWORD": lines})))
	i := gen.Instance("i", bounded, nil)
	i.Spec.ParametersFrom = from("Secret/lines")
	env.Must(t, cluster.Create(t.Context(), i))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return ready != nil && ready.Reason == v1beta1.ReasonInvalidSpec && strings.Contains(ready.Message, "has a value of more than one line")
	})
	unseen(t, ns, password)
	for field, change := range map[string]func(*v1beta1.OperatorVersion){
		"maxLines": func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[1].MaxLines = new(int32) },
		"pattern":  func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[1].Pattern = strings.Repeat("a", 513) },
	} {
		ov := vault(ns, change)
		ov.Name = "wrong"
		if err := cluster.Create(t.Context(), ov); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s out of its bounds: %v", field, err)
		}
	}
})

var _ = It("What a dependency gets of a sensitive value, it gets by a Secret", Label("sensitive-child"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	child := vault(ns, func(ov *v1beta1.OperatorVersion) { ov.Name = "vault-0.1.0" })
	env.Must(t, cluster.Create(t.Context(), child))
	version := func(name string) *v1beta1.OperatorVersion {
		return gen.Version(ns, name, gen.Required("PASSWORD"), gen.Param("VAULT", "true", ""), gen.Template("p.yaml", "PASSWORD: pre-{{ .Params.PASSWORD }}\nUSER: anna\n"),
			gen.Task("child", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "vault", OperatorVersion: "0.1.0", ParameterFile: "p.yaml", EnablingParameter: "VAULT"}),
			gen.Serial("deploy", "child"))
	}
	parent, next := version("parent"), version("parent-next")
	env.Must(t, cluster.Create(t.Context(), parent))
	env.Must(t, cluster.Create(t.Context(), next))
	env.Must(t, cluster.Create(t.Context(), secret(ns, "login", map[string]string{"PASSWORD": password})))
	i := gen.Instance("i", parent, nil)
	i.Spec.ParametersFrom = from("Secret/login")
	env.Must(t, cluster.Create(t.Context(), i))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
	made := get(t, &v1beta1.Instance{}, ns, "i-vault")
	if len(made.Spec.Parameters) != 1 || len(made.Spec.ParametersFrom) != 1 {
		t.Errorf("the child's spec: %v, %v", made.Spec.Parameters, made.Spec.ParametersFrom)
	}
	if got := written(t, ns, "i-vault"); got != "pre-"+password {
		t.Errorf("the child's password is %q", got)
	}
	unseen(t, ns, password)

	// A new value that stands in the Secret only is awaited like any other: the child's spec does not change. The line end is
	// that of a value from a file, which the parameter file takes off.
	const other = "correct-horse"
	login := get(t, &corev1.Secret{}, ns, "login")
	login.Data["PASSWORD"] = []byte(other + "\n")
	env.Must(t, cluster.Update(t.Context(), login))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 2)), "deploy", v1beta1.Complete)
	if got := written(t, ns, "i-vault"); got != "pre-"+other {
		t.Errorf("the parent's plan is complete, and the child's password is %q", got)
	}
	unseen(t, ns, other)

	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = next.Name }))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 3)), "deploy", v1beta1.Complete)
	get(t, &corev1.Secret{}, ns, "i-vault-parameters") // an upgrade leaves it
	if ready := meta.FindStatusCondition(get(t, &v1beta1.Instance{}, ns, "i-vault").Status.Conditions, v1beta1.ReadyCondition); ready == nil || ready.Reason == v1beta1.ReasonWaitingForParameters {
		t.Errorf("after the upgrade of its parent the child is %v", ready)
	}

	t.Log("switched off, it goes, and its parameters with it")
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VAULT": "false"} }))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 4)), "deploy", v1beta1.Complete)
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "i-vault-parameters"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the child was deleted, and its parameters still exist: %v", err)
	}
})

var _ = It("Sources are read with the rights of the account that the plans run with", Label("source-rights"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "worker")}))
	role := &rbacv1.Role{ObjectMeta: gen.Meta(ns, "worker"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
	}}
	env.Must(t, cluster.Create(t.Context(), role))
	env.Must(t, cluster.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "worker"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "worker"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "worker"}},
	}))
	ov := vault(ns)
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), secret(ns, "login", map[string]string{"PASSWORD": password})))
	i := gen.Instance("i", ov, nil)
	i.Spec.ServiceAccountName, i.Spec.ParametersFrom = "worker", from("Secret/login")
	env.Must(t, cluster.Create(t.Context(), i))
	waits := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return ready != nil && ready.Reason == v1beta1.ReasonWaitingForParameters
	})
	contains(t, meta.FindStatusCondition(waits.Status.Conditions, v1beta1.ReadyCondition).Message, "ServiceAccount "+ns+"/worker", "must not read Secret login", "verb get on secrets")
	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "get")
	env.Must(t, cluster.Update(t.Context(), role))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
})

var _ = It("A run and a cleanup continue with the values that they began with, though their source is deleted", Label("source-lost"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := vault(ns, gen.Serial("cleanup", "s"), func(ov *v1beta1.OperatorVersion) {
		yes := true
		ov.Spec.Parameters[1].Immutable = &yes
	})
	env.Must(t, cluster.Create(t.Context(), ov))
	login := secret(ns, "login", map[string]string{"PASSWORD": password})
	env.Must(t, cluster.Create(t.Context(), login))
	i := gen.Instance("i", ov, nil)
	i.Spec.ParametersFrom = from("Secret/login")
	env.Must(t, cluster.Create(t.Context(), i))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)

	login.Data, login.StringData = nil, map[string]string{"PASSWORD": "another"}
	env.Must(t, cluster.Update(t.Context(), login))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return ready.Reason == v1beta1.ReasonInvalidSpec && strings.Contains(ready.Message, "immutable")
	})
	env.Must(t, cluster.Delete(t.Context(), login))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition).Reason == v1beta1.ReasonWaitingForParameters
	})
	env.Must(t, cluster.Delete(t.Context(), get(t, &corev1.Secret{}, ns, "i-out")))
	// The object goes with the Instance, so that only a watch sees it for certain.
	events, err := cluster.Watch(t.Context(), &corev1.SecretList{}, client.InNamespace(ns), client.MatchingFields{"metadata.name": "i-out"})
	env.Must(t, err)
	defer events.Stop()
	kudo(t, 0, "uninstall", "-n", ns, "--instance", "i", "--wait")
	for limit := time.After(long); ; {
		select {
		case event := <-events.ResultChan():
			out, ok := event.Object.(*corev1.Secret)
			if event.Type != watch.Added || !ok { // the deletion of the Secret of before
				continue
			}
			if got := string(out.Data["password"]); got != password {
				t.Errorf("the cleanup plan wrote the password %q", got)
			}
			return
		case <-limit:
			t.Fatal("the cleanup plan has not written the Secret")
		}
	}
})
