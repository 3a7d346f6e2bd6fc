package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// slice returns a PlacementDecision of the decision prod, which names clusters of the hub.
func slice(ns, name, index string, clusters ...string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(inventory.DecisionKind)
	out.SetNamespace(ns)
	out.SetName(name)
	labels := map[string]string{inventory.DecisionKeyLabel: "prod"}
	if index != "" {
		labels[inventory.DecisionIndexLabel] = index
	}
	out.SetLabels(labels)
	decisions := []any{}
	for _, c := range clusters {
		decisions = append(decisions, map[string]any{"clusterProfileRef": map[string]any{"name": c, "namespace": "kudo-system"}})
	}
	out.Object["decisions"] = decisions
	return out
}

// put writes a slice, as a scheduler does.
func put(t *testing.T, p *planes, s *unstructured.Unstructured) {
	t.Helper()
	live := s.DeepCopy()
	err := p.hub.Get(t.Context(), client.ObjectKeyFromObject(s), live)
	if apierrors.IsNotFound(err) {
		env.Must(t, p.hub.Create(t.Context(), s.DeepCopy()))
		return
	}
	env.Must(t, err)
	next := s.DeepCopy()
	next.SetResourceVersion(live.GetResourceVersion())
	env.Must(t, p.hub.Update(t.Context(), next))
}

// uids returns the uids of the copies in m1 and m2; "" where there is none.
func uids(t *testing.T, p *planes, i *v1beta1.Instance) (out [2]types.UID) {
	t.Helper()
	for n, name := range []string{"m1", "m2"} {
		copied, err := get(p.members[name], &v1beta1.Instance{}, i.Namespace, i.Name)
		if err == nil && copied.DeletionTimestamp == nil {
			out[n] = copied.UID
		} else if err != nil && !strings.Contains(err.Error(), "not found") {
			t.Fatal(err)
		}
	}
	return out
}

// checkDecision checks C45: the Instance follows the decision of a scheduler, with the generation that it has, and stays where it is while the
// decision cannot be acted upon.
func checkDecision(t *testing.T, p *planes) {
	i := create(t, p, func(i *v1beta1.Instance) {
		i.Spec.Placement = &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: "prod"}, Divide: "REPLICAS",
			Waves: &v1beta1.Waves{Groups: [][]string{{"m1"}}}}
	})
	ns := i.Namespace
	held := func(reason, why string, want [2]types.UID) {
		t.Helper()
		wait(t, reason, func() error {
			if message := readyMessage(await(t, p, i, metav1.ConditionUnknown, v1beta1.ReasonDecisionHeld)); !strings.Contains(message, why) {
				return fmt.Errorf("%q, want %q", message, why)
			}
			return nil
		})
		<-time.After(2 * time.Second) // what is removed would be by now
		if now := uids(t, p, i); now != want {
			t.Errorf("%s: the copies are %v, and were %v", reason, now, want)
		}
	}
	ready := func(reason string, clusters ...string) *v1beta1.Instance {
		t.Helper()
		var got *v1beta1.Instance
		wait(t, reason, func() error {
			got = await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
			if d := got.Status.Decision; d == nil || strings.Join(d.Clusters, " ") != strings.Join(clusters, " ") || len(got.Status.Members) != len(clusters) {
				return fmt.Errorf("decision %+v, members %+v", d, got.Status.Members)
			}
			return nil
		})
		for _, name := range clusters {
			copied := env.Read(t, p.members[name], &v1beta1.Instance{}, ns, i.Name)
			if copied.PlacedTemplate() != got.Template() || copied.IsHeld() || copied.Status.ObservedGeneration != copied.Generation {
				t.Errorf("%s: %s has %s, released %s, want %s", reason, name, copied.PlacedTemplate(), copied.Annotations[v1beta1.ReleasedAnnotation], got.Template())
			}
		}
		return got
	}
	held("there is no decision yet", "there are none", [2]types.UID{})
	put(t, p, slice(ns, "first", "0", "m1"))
	before := ready("one cluster", "m1")
	if got := data(t, p.members["m1"], i)["replicas"]; got != "6" {
		t.Errorf("the only cluster has %s replicas", got)
	}
	put(t, p, slice(ns, "second", "1", "m2", "m1"))
	got := ready("one cluster more", "m1", "m2")
	if got.Generation != before.Generation || got.Template() == before.Template() || got.Status.Wave.Of != 2 {
		t.Errorf("generations %d and %d, templates %s and %s, wave %+v", before.Generation, got.Generation, before.Template(), got.Template(), got.Status.Wave)
	}
	for _, name := range []string{"m1", "m2"} {
		if got := data(t, p.members[name], i)["replicas"]; got != "3" {
			t.Errorf("%s has %s replicas", name, got)
		}
	}
	copies := uids(t, p, i)
	put(t, p, slice(ns, "second", "0", "m2"))
	held("two slices with one index", "first and second both have the index 0", copies)
	put(t, p, slice(ns, "second", "2", "m2"))
	held("a gap", "the slice with the index 1 is missing", copies)
	put(t, p, slice(ns, "second", "1", "m2"))
	ready("it is whole again", "m1", "m2")
	env.Must(t, p.hub.Delete(t.Context(), slice(ns, "first", "")))
	held("the first slice has vanished", "the slice with the index 0, which was there before, is missing", copies)
	env.Must(t, p.hub.Delete(t.Context(), slice(ns, "second", "")))
	p.manager.Kill()
	p.manager.Start(t)
	held("the decision has vanished, and the manager has begun anew", "there are none", copies)
	put(t, p, slice(ns, "only", "", "m1", "m2"))
	ready("it is back", "m1", "m2")
	if now := uids(t, p, i); now != copies {
		t.Errorf("the copies are %v, and were %v", now, copies)
	}
	put(t, p, slice(ns, "only", "", "m2"))
	ready("one cluster fewer", "m2")
	put(t, p, slice(ns, "only", ""))
	await(t, p, i, metav1.ConditionFalse, v1beta1.ReasonNotScheduled)
	wait(t, "no cluster has the Instance", func() error {
		if now := uids(t, p, i); now != [2]types.UID{} {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
	put(t, p, slice(ns, "only", "", "m1"))
	ready("a cluster again", "m1")
	out := p.hub.MustKudo(t, 0, "placement", "show", "--instance", i.Name, "-n", ns)
	if !strings.Contains(out, "Decision prod names the clusters: 1") {
		t.Errorf("placement show says %s", out)
	}
	env.Must(t, p.hub.Delete(t.Context(), got))
	wait(t, "the Instance has gone", func() error {
		if now := uids(t, p, i); now != [2]types.UID{} {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
}

// readyMessage returns the message of the condition Ready.
func readyMessage(i *v1beta1.Instance) string {
	for _, c := range i.Status.Conditions {
		if c.Type == v1beta1.ReadyCondition {
			return c.Message
		}
	}
	return ""
}

// checkDecideRight checks C39 and C45 with the personas of one namespace: whoever may only write there, whatever that is, neither lets a
// decision choose clusters, nor chooses them.
func checkDecideRight(t *testing.T, p *planes) {
	ns := p.newNamespace(t)
	ov := version(ns)
	env.Must(t, p.hub.Create(t.Context(), ov))
	all := func(groups, resources, verbs string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: strings.Fields(groups), Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
	}
	instances := rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"instances"}, Verbs: []string{"*"}}
	use := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"use"}}
	versions := all("kudo.dev", "operatorversions operators", "*")
	decisions := all("multicluster.x-k8s.io", "placementdecisions", "get list watch create update patch delete")
	everything := all("*", "*", "*")
	person := func(name string, cluster bool, rules ...rbacv1.PolicyRule) client.Client {
		user := name + "-" + ns
		bind(t, p, ns, user, cluster, rules...)
		return as(t, p.hub, user)
	}
	people := map[string]client.Client{
		"ann: Instances only":                         person("ann", false, instances, use),
		"otto: OperatorVersions only":                 person("otto", false, versions),
		"nadia: all of kudo.dev":                      person("nadia", false, all("kudo.dev", "*", "*"), use),
		"vera: reads":                                 person("vera", false, all("*", "*", "get list watch")),
		"dora: Instances and decisions":               person("dora", false, instances, use, decisions),
		"olga: everything in the namespace":           person("olga", false, everything),
		"pat: place on the decision, and on clusters": person("pat", false, instances, use, decisions, all("multicluster.x-k8s.io", "placementdecisions clusterprofiles", "place")),
	}
	scheduler := person("scheduler", true, decisions)
	admin := person("admin", true, instances, use, all("multicluster.x-k8s.io", "clusterprofiles", "place"))
	decision := func(name string) *v1beta1.Placement {
		return &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: name}}
	}
	follower := gen.Instance("follower", ov, nil)
	follower.Spec.Placement = decision("prod")
	wait(t, "who may place anywhere lets a decision choose", func() error { return admin.Create(t.Context(), follower.DeepCopy()) })
	wait(t, "a scheduler chooses", func() error { return scheduler.Create(t.Context(), slice(ns, "its", "0", "m1")) })
	await(t, p, follower, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	listed := gen.Instance("listed", ov, nil)
	listed.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	env.Must(t, admin.Create(t.Context(), listed))
	for name, person := range people {
		t.Run(name, func(t *testing.T) {
			i := gen.Instance("book", ov, nil)
			i.Spec.Placement = decision("prod")
			denied(t, "create an Instance with a decision", person.Create(t.Context(), i))
			denied(t, "let a decision choose in place of the list", edit(p, person, ns, "listed", func(i *v1beta1.Instance) { i.Spec.Placement = decision("prod") }))
			denied(t, "follow another decision", edit(p, person, ns, "follower", func(i *v1beta1.Instance) { i.Spec.Placement.Decision.Name = "mine" }))
			denied(t, "name the clusters in place of the decision", edit(p, person, ns, "follower", func(i *v1beta1.Instance) {
				i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m2"}}}
			}))
			denied(t, "write a slice", person.Create(t.Context(), slice(ns, "forged", "1", "m2")))
			own := slice(ns, "unlabelled-"+strings.Fields(name)[0][:3], "", "m2")
			own.SetLabels(nil)
			if person.Create(t.Context(), own) == nil { // it belongs to no decision, until it has the label
				own.SetLabels(slice(ns, "", "1").GetLabels())
				denied(t, "make an object a slice", person.Update(t.Context(), own))
			}
			its, err := get(client.Reader(p.hub), slice(ns, "its", ""), ns, "its")
			env.Must(t, err)
			its.Object["decisions"] = slice(ns, "", "", "m2").Object["decisions"]
			denied(t, "change a slice", person.Update(t.Context(), its))
			status := env.Read(t, p.hub, &v1beta1.Instance{}, ns, "follower")
			status.Status.Decision = &v1beta1.DecisionStatus{Name: "prod", Clusters: []string{"m2"}}
			denied(t, "write what the hub has read", person.Status().Update(t.Context(), status))
		})
	}
	for _, name := range []string{"follower", "book", "listed"} {
		if _, err := get(p.members["m2"], &v1beta1.Instance{}, ns, name); err == nil {
			t.Errorf("m2 has Instance %s", name)
		}
	}
	env.Must(t, edit(p, people["ann: Instances only"], ns, "follower", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"REGION": "eu-1"} }))
	await(t, p, follower, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	env.Must(t, admin.Delete(t.Context(), follower))
	env.Must(t, admin.Delete(t.Context(), listed))
}

// denied checks that a request was refused for a lack of rights.
func denied(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v, want that it is forbidden", what, err)
	}
}

// edit edits an Instance as a user who may read it, or may not.
func edit(p *planes, person client.Client, ns, name string, change func(*v1beta1.Instance)) error {
	for {
		i, err := get(p.hub, &v1beta1.Instance{}, ns, name)
		if err != nil {
			return err
		}
		change(i)
		if err := person.Update(context.Background(), i); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// bind gives a user rights in a namespace, or in all.
func bind(t *testing.T, p *planes, ns, user string, cluster bool, rules ...rbacv1.PolicyRule) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}
	if !cluster {
		meta := metav1.ObjectMeta{Namespace: ns, Name: user}
		env.Must(t, p.hub.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
		env.Must(t, p.hub.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}))
		return
	}
	meta := metav1.ObjectMeta{Name: user}
	ref.Kind = "ClusterRole"
	env.Must(t, p.hub.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}))
	env.Must(t, p.hub.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}))
}
