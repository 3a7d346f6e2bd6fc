package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var shared *planes

// TestHub runs the cases that share control planes.
func TestHub(t *testing.T) {
	shared = startPlanes(t)
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, p *planes)
	}{
		{"Answers", checkAnswers}, {"Place", checkPlace}, {"Waves", checkWaves}, {"Stop", checkStop}, {"Foreign", checkForeign}, {"Admission", checkAdmission},
		{"PlaceRight", checkPlaceRight}, {"Remove", checkRemove}, {"Delete", checkDelete}, {"Cleanup", checkCleanup}, {"Commands", checkCommands},
		{"Runs", checkRuns}, {"Uninstall", checkUninstall}, {"Honest", checkHonest}, {"Killed", checkKilled},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, shared) })
	}
	t.Run("Inventory", func(t *testing.T) { checkInventory(t, shared) })
}

// version returns an OperatorVersion whose plans write a ConfigMap with the values of its parameters.
func version(namespace string) *v1beta1.OperatorVersion {
	return gen.Version(namespace, "book-1.0.0", gen.Param("REPLICAS", "6", ""), gen.Param("REGION", "none", ""), gen.Param("MODE", "right", ""),
		gen.Template("app.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {replicas: "{{ .Params.REPLICAS }}", region: "{{ .Params.REGION }}"}
immutable: {{ if eq .Params.MODE "wrong" }}sometimes{{ else }}false{{ end }}
`), gen.Apply("app", "app.yaml"), gen.Serial("deploy", "app"))
}

// create creates the OperatorVersion and a placed Instance on the hub.
func create(t *testing.T, p *planes, edit func(i *v1beta1.Instance)) *v1beta1.Instance {
	t.Helper()
	ns := p.newNamespace(t)
	ov := version(ns)
	env.Must(t, p.hub.Create(t.Context(), ov))
	i := gen.Instance("book", ov, nil)
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1", Weight: 2}, {Name: "m2", Parameters: map[string]string{
		"REGION": "eu-2"}}}}
	edit(i)
	wait(t, "the webhook of the hub sets the defaults", func() error { // the API server goes on without a webhook that does not answer in time
		placed := i.DeepCopy()
		if err := p.hub.Create(t.Context(), placed, client.DryRunAll); err != nil {
			return err
		}
		if len(placed.Spec.Parameters) == 0 {
			return fmt.Errorf("the parameters are not set")
		}
		return nil
	})
	env.Must(t, p.hub.Create(t.Context(), i))
	return i
}

// change edits the Instance on the hub.
func change(t *testing.T, p *planes, i *v1beta1.Instance, edit func(i *v1beta1.Instance)) *v1beta1.Instance {
	t.Helper()
	var next *v1beta1.Instance
	wait(t, "the edit is taken", func() (err error) {
		if next, err = get(p.hub, &v1beta1.Instance{}, i.Namespace, i.Name); err != nil {
			return err
		}
		edit(next)
		return p.hub.Update(context.Background(), next)
	})
	return next
}

// await waits until the Instance on the hub has a condition Ready of a status and reason for its generation.
func await(t *testing.T, p *planes, i *v1beta1.Instance, status metav1.ConditionStatus, reason string) *v1beta1.Instance {
	t.Helper()
	var got *v1beta1.Instance
	wait(t, fmt.Sprintf("Instance %s is Ready=%s, %s", i.Name, status, reason), func() (err error) {
		if got, err = get(p.hub, &v1beta1.Instance{}, i.Namespace, i.Name); err != nil {
			return err
		}
		c := meta.FindStatusCondition(got.Status.Conditions, v1beta1.ReadyCondition)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != got.Generation {
			return fmt.Errorf("generation %d, condition %+v, members %+v, wave %+v", got.Generation, c, got.Status.Members, got.Status.Wave)
		}
		return nil
	})
	return got
}

// data returns what the plans of a cluster have written.
func data(t *testing.T, member plane, i *v1beta1.Instance) map[string]string {
	t.Helper()
	return env.Read(t, member, &corev1.ConfigMap{}, i.Namespace, i.Name).Data
}

// checkPlace checks C4, C8, C11 and C24: values for each cluster, shares of a parameter, and a status from all of them.
func checkPlace(t *testing.T, p *planes) {
	i := create(t, p, func(i *v1beta1.Instance) { i.Spec.Placement.Divide = "REPLICAS" })
	got := await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	if got.Spec.Parameters["REPLICAS"] != "6" || got.Spec.Parameters["REGION"] != "none" {
		t.Errorf("the webhook of the hub has written %v (C8)", got.Spec.Parameters)
	}
	if one, two := data(t, p.members["m1"], i), data(t, p.members["m2"], i); one["replicas"] != "4" || one["region"] != "none" ||
		two["replicas"] != "2" || two["region"] != "eu-2" {
		t.Errorf("the clusters have %v and %v", one, two)
	}
	for _, m := range got.Status.Members {
		if m.State != v1beta1.MemberReady || m.Generation != got.Generation || m.PlanStatus != v1beta1.Complete || m.Replicas == nil {
			t.Errorf("member %+v", m)
		}
	}
	if got.Status.Wave == nil || got.Status.Wave.State != v1beta1.WaveDone {
		t.Errorf("wave %+v", got.Status.Wave)
	}
	i = change(t, p, i, func(i *v1beta1.Instance) { i.Spec.Parameters["REPLICAS"] = "9" })
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	if one, two := data(t, p.members["m1"], i), data(t, p.members["m2"], i); one["replicas"] != "6" || two["replicas"] != "3" {
		t.Errorf("after a change, the clusters have %v and %v", one, two)
	}
	checkIdle(t, p, i)
}

// checkIdle checks C51: an idle Instance costs the hub no writes.
func checkIdle(t *testing.T, p *planes, i *v1beta1.Instance) {
	t.Helper()
	before := env.Read(t, p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
	env.Consistently(t, 3*time.Second, func() {
		after := env.Read(t, p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
		if before.ResourceVersion != after.ResourceVersion {
			t.Fatalf("the status was written while nothing happened: %+v, %+v", before.Status, after.Status)
		}
	})
}

// checkWaves checks C33 and C5: the second cluster gets a change after the first has completed it, and holds what it has until then.
func checkWaves(t *testing.T, p *planes) {
	i := create(t, p, func(i *v1beta1.Instance) { i.Spec.Placement.Waves = &v1beta1.Waves{Groups: [][]string{{"m2"}}} })
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	i = change(t, p, i, func(i *v1beta1.Instance) {
		i.Spec.Parameters["MODE"] = "new"
		i.Spec.Placement.Waves.Soak = &metav1.Duration{Duration: 20 * time.Second}
	})
	await(t, p, i, metav1.ConditionUnknown, v1beta1.ReasonWaveInProgress)
	wait(t, "m1 has the change and holds it", func() error {
		copied, err := get(p.members["m1"], &v1beta1.Instance{}, i.Namespace, i.Name)
		if err != nil {
			return err
		}
		if copied.Spec.Parameters["MODE"] != "new" || !meta.IsStatusConditionTrue(copied.Status.Conditions, v1beta1.HeldCondition) {
			return fmt.Errorf("parameters %v, conditions %+v", copied.Spec.Parameters, copied.Status.Conditions)
		}
		if copied.Status.ObservedGeneration == copied.Generation {
			return fmt.Errorf("held, and the change was acted upon")
		}
		return nil
	})
	got := await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	if got.Status.Wave.Index != 2 || got.Status.Wave.State == v1beta1.WaveStopped {
		t.Errorf("wave %+v", got.Status.Wave)
	}
}

// checkStop checks C34: a failure in the first wave stops the change, and a new change goes on.
func checkStop(t *testing.T, p *planes) {
	i := create(t, p, func(i *v1beta1.Instance) { i.Spec.Placement.Waves = &v1beta1.Waves{Groups: [][]string{{"m1"}}} })
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	i = change(t, p, i, func(i *v1beta1.Instance) { i.Spec.Parameters["MODE"] = "wrong" })
	got := await(t, p, i, metav1.ConditionFalse, v1beta1.ReasonWaveStopped)
	if got.Status.Wave.State != v1beta1.WaveStopped || got.Status.Wave.Failed[0] != "m1" || !meta.IsStatusConditionTrue(got.Status.Conditions,
		v1beta1.StalledCondition) {
		t.Errorf("wave %+v, conditions %+v", got.Status.Wave, got.Status.Conditions)
	}
	if copied := env.Read(t, p.members["m2"], &v1beta1.Instance{}, i.Namespace, i.Name); copied.Annotations[v1beta1.ReleasedAnnotation] ==
		v1beta1.Template(got.UID, got.Generation) {
		t.Error("the second wave was released after a failure in the first")
	}
	i = change(t, p, i, func(i *v1beta1.Instance) { i.Spec.Parameters["MODE"] = "right" })
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
}

// checkForeign checks C6 and Abort: neither a foreign policy nor a foreign Instance is changed, and the status says so.
func checkForeign(t *testing.T, p *planes) {
	ns := p.newNamespace(t)
	foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceSelectors": []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs"}}}}}
	foreign.SetGroupVersionKind(kinds["OverridePolicy"])
	foreign.Object["spec"].(map[string]any)["overrideRules"] = []any{}
	foreign.SetNamespace(ns)
	foreign.SetName("kudo-book")
	env.Must(t, p.hub.Create(t.Context(), foreign))
	ov := version(ns)
	env.Must(t, p.hub.Create(t.Context(), ov))
	i := gen.Instance("book", ov, nil)
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	env.Must(t, p.hub.Create(t.Context(), i))
	await(t, p, i, metav1.ConditionFalse, v1beta1.ReasonForeignPolicy)
	live := foreign.DeepCopy()
	env.Must(t, p.hub.Get(t.Context(), client.ObjectKeyFromObject(foreign), live))
	if live.GetResourceVersion() != foreign.GetResourceVersion() {
		t.Error("the foreign policy was changed")
	}
	env.Must(t, p.members["m1"].Create(t.Context(), version(ns)))
	theirs := gen.Instance("book", ov, map[string]string{"REGION": "theirs"})
	env.Must(t, p.members["m1"].Create(t.Context(), theirs))
	env.Must(t, p.hub.Delete(t.Context(), live))
	got := await(t, p, i, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging)
	wait(t, "the foreign Instance is named", func() error {
		got = env.Read(t, p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
		if got.Status.Members[0].State != v1beta1.MemberNotApplied || !strings.Contains(got.Status.Members[0].Message, "not managed") {
			return fmt.Errorf("%+v", got.Status.Members[0])
		}
		return nil
	})
	if copied := env.Read(t, p.members["m1"], &v1beta1.Instance{}, ns, "book"); copied.Spec.Parameters["REGION"] != "theirs" {
		t.Errorf("the foreign Instance has %v", copied.Spec.Parameters)
	}
}

// checkAdmission checks C7, C37 and C52: what can never be right is refused where it is written.
func checkAdmission(t *testing.T, p *planes) {
	i := create(t, p, func(*v1beta1.Instance) {})
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	for _, tc := range []struct {
		reason string
		edit   func(i *v1beta1.Instance)
		want   string
	}{
		{"a group of an unknown cluster", func(i *v1beta1.Instance) { i.Spec.Placement.Waves = &v1beta1.Waves{Groups: [][]string{{"m9"}}} }, "m9 is not in"},
		{"a share of none", func(i *v1beta1.Instance) { i.Spec.Placement.Divide, i.Spec.Parameters["REPLICAS"] = "REPLICAS", "1" }, "is less than 1"},
		{"no placement", func(i *v1beta1.Instance) { i.Spec.Placement = nil }, "runs in clusters m1, m2, and would lose them"},
		{"a version of another namespace", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Namespace = "default" }, "spec.placement: "},
		{"a decision, which Karmada does not read", func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters, i.Spec.Placement.Decision = nil, &v1beta1.DecisionReference{Name: "prod"}
		}, "spec.placement.decision: Karmada carries the Instances of this hub"},
		{"a list and a decision", func(i *v1beta1.Instance) { i.Spec.Placement.Decision = &v1beta1.DecisionReference{Name: "prod"} },
			"has to have exactly one of clusters and decision"},
		{"neither", func(i *v1beta1.Instance) { i.Spec.Placement.Clusters = nil }, "has to have exactly one of clusters and decision"},
	} {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			next := env.Read(t, p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
			tc.edit(next)
			return p.hub.Update(t.Context(), next, client.DryRunAll)
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	copied := env.Read(t, p.members["m1"], &v1beta1.Instance{}, i.Namespace, i.Name)
	patch := client.MergeFrom(copied.DeepCopy())
	copied.Spec.Placement = nil
	if err := p.members["m1"].Patch(t.Context(), copied, patch); err == nil || !strings.Contains(err.Error(), "a hub manages Instance") {
		t.Errorf("a copy loses its placement: %v", err)
	}
	plain := gen.Instance("plain", version(i.Namespace), nil)
	env.Must(t, p.members["m1"].Create(t.Context(), plain))
	_, err := p.members["m1"].Await(t.Context(), i.Namespace, "plain", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	plain = env.Read(t, p.members["m1"], &v1beta1.Instance{}, i.Namespace, "plain")
	patch = client.MergeFrom(plain.DeepCopy())
	plain.Spec.Placement = i.Spec.Placement
	if err := p.members["m1"].Patch(t.Context(), plain, patch); err == nil || !strings.Contains(err.Error(), "has run plans here") {
		t.Errorf("an Instance that has run plans is placed: %v", err)
	}
}

// checkPlaceRight checks C39: a user needs the verb place on each cluster that an edit adds.
func checkPlaceRight(t *testing.T, p *planes) {
	ns := p.newNamespace(t)
	ov := version(ns)
	env.Must(t, p.hub.Create(t.Context(), ov))
	user := "tenant-" + ns
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "edit"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kudo.dev"}, Resources: []string{"instances"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"use"}}}}
	place := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"}, ResourceNames: []string{"m1"}, Verbs: []string{"place"}}}}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	env.Must(t, p.hub.Create(t.Context(), role))
	env.Must(t, p.hub.Create(t.Context(), place))
	env.Must(t, p.hub.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "edit"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "edit"}}))
	env.Must(t, p.hub.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}}))
	tenant := as(t, p.hub, user)
	clusters := func(names ...string) *v1beta1.Placement {
		placement := &v1beta1.Placement{}
		for _, name := range names {
			placement.Clusters = append(placement.Clusters, v1beta1.PlacedCluster{Name: name})
		}
		return placement
	}
	i := gen.Instance("book", ov, nil)
	i.Spec.Placement = clusters("m1", "m2")
	refused := func(reason string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", reason, err, want)
		}
	}
	wait(t, "the policy and the rights are in force", func() error {
		err := tenant.Create(t.Context(), i.DeepCopy())
		if err == nil || !strings.Contains(err.Error(), `m2: it needs the verb "place"`) {
			return fmt.Errorf("create: %w", err)
		}
		return nil
	})
	i.Spec.Placement = clusters("m1")
	env.Must(t, tenant.Create(t.Context(), i))
	update := func(placement *v1beta1.Placement) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			next := env.Read(t, p.hub, &v1beta1.Instance{}, ns, "book")
			next.Spec.Placement = placement
			return tenant.Update(t.Context(), next)
		})
	}
	refused("a cluster is added", update(clusters("m1", "m2")), `m2: it needs the verb "place"`)
	var many []string
	for n := range 17 {
		many = append(many, fmt.Sprintf("c%d", n))
	}
	refused("many clusters are added", update(clusters(append(many, "m1")...)), "more than 16 new clusters")
	refused("sixteen are added", update(clusters(append(many[:16], "m1")...)), `it needs the verb "place"`)
	weighted := clusters("m1")
	weighted.Clusters[0].Parameters = map[string]string{"REGION": "eu-1"}
	env.Must(t, update(weighted)) // parameters of a cluster need no more than edit
}

// as returns a client of the hub for a user without other rights.
func as(t *testing.T, hub plane, user string) client.Client {
	t.Helper()
	text, err := os.ReadFile(hub.Kubeconfig)
	env.Must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	env.Must(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: hub.Scheme()})
	env.Must(t, err)
	return c
}

// checkCommands checks C50: the flags that edit a placement, and the commands that show it.
func checkCommands(t *testing.T, p *planes) {
	ns := p.newNamespace(t)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: book\noperatorVersion: 1.0.0\nplans:\n  deploy:\n    strategy: serial\n    phases:\n    - name: p\n" +
			"      strategy: serial\n      steps:\n      - name: s\n        tasks: [app]\ntasks:\n- name: app\n  kind: Apply\n  spec:\n    resources: [app.yaml]\n",
		"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: REPLICAS, default: \"6\"}\n- {name: REGION, default: none}\n",
		"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\ndata: {replicas: \"{{ .Params.REPLICAS }}\", " +
			"region: \"{{ .Params.REGION }}\"}\n",
	} {
		path := filepath.Join(folder, name)
		env.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		env.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	p.hub.MustKudo(t, 0, "install", folder, "--instance", "book", "-n", ns, "--clusters", "m1,m2", "--weights", "m1=2", "--divide", "REPLICAS",
		"--set-on", "m2:REGION=eu-2", "--wait")
	i := env.Read(t, p.hub, &v1beta1.Instance{}, ns, "book")
	if one, two := data(t, p.members["m1"], i), data(t, p.members["m2"], i); one["replicas"] != "4" || two["replicas"] != "2" ||
		two["region"] != "eu-2" {
		t.Errorf("the clusters have %v and %v", one, two)
	}
	env.Contains(t, p.hub.MustKudo(t, 0, "get", "instances", "--clusters", "-n", ns), "(2)", "m1", "m2", "Ready", "COMPLETE")
	env.Contains(t, p.hub.MustKudo(t, 0, "placement", "show", "--instance", "book", "-n", ns), "m1", "Ready", "Wave 1 of 1")
	if out, code := p.hub.Kudo("update", "--instance", "book", "-n", ns, "--clusters", "m1"); code != 2 || !strings.Contains(out, "removed from m2") {
		t.Errorf("exit code %d: %s", code, out)
	}
	p.hub.MustKudo(t, 0, "update", "--instance", "book", "-n", ns, "--clusters", "m1", "--yes", "--wait")
	if got := env.Read(t, p.hub, &v1beta1.Instance{}, ns, "book"); len(got.Status.Members) != 1 {
		t.Errorf("members %+v", got.Status.Members)
	}
	out, code := p.hub.Kudo("placement", "free", "--instance", "book", "-n", ns)
	if code == 0 {
		t.Errorf("a template is freed: %s", out)
	}
}

// checkRemove checks C37: a cluster that leaves the list loses the Instance, and the others keep it.
func checkRemove(t *testing.T, p *planes) {
	for _, away := range []bool{false, true} {
		i := create(t, p, func(*v1beta1.Instance) {})
		await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
		if away { // the status alone shows the next manager what was there
			p.manager.Kill()
		}
		i = change(t, p, i, func(i *v1beta1.Instance) { i.Spec.Placement.Clusters = i.Spec.Placement.Clusters[:1] })
		if away {
			p.manager.Start(t)
		}
		got := await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
		if len(got.Status.Members) != 1 {
			t.Errorf("members %+v", got.Status.Members)
		}
		wait(t, "m2 has no copy", func() error { return absent(p.members["m2"], i) })
		data(t, p.members["m1"], i)
	}
}

// checkDelete checks C36: the deletion reaches all clusters, and leaves no policy.
func checkDelete(t *testing.T, p *planes) {
	i := create(t, p, func(*v1beta1.Instance) {})
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	env.Must(t, p.hub.Delete(t.Context(), i))
	wait(t, "no copy and no policy is left", func() error {
		for name, member := range p.members {
			if _, err := get(member, &v1beta1.Instance{}, i.Namespace, i.Name); err == nil {
				return fmt.Errorf("%s has a copy", name)
			}
		}
		for _, kind := range []string{"PropagationPolicy", "OverridePolicy"} {
			for _, policy := range list(t.Context(), p.hub, kind) {
				if policy.GetNamespace() == i.Namespace {
					return fmt.Errorf("%s %s is there", kind, policy.GetName())
				}
			}
		}
		return nil
	})
}
