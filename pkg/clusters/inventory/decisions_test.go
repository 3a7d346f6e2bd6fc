package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/test/apitest"
)

// sliceOf returns a PlacementDecision of namespace lab that names ClusterProfiles.
func sliceOf(name, decision, index string, profiles ...string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(DecisionKind)
	out.SetNamespace("lab")
	out.SetName(name)
	out.SetLabels(map[string]string{DecisionKeyLabel: decision})
	if index != "" {
		out.SetLabels(map[string]string{DecisionKeyLabel: decision, DecisionIndexLabel: index})
	}
	entries := []any{}
	for _, p := range profiles {
		entries = append(entries, map[string]any{"clusterProfileRef": map[string]any{"name": p}})
	}
	out.Object["decisions"] = entries
	return out
}

// follower is an engine that follows the decisions of a server, and notes the Instances that it has announced.
type follower struct {
	*Engine
	server *apitest.Server

	mu        sync.Mutex
	announced map[string]bool
}

// newFollower starts a follower, which ends with the test.
func newFollower(t *testing.T, server *apitest.Server) *follower {
	t.Helper()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{server: server, announced: map[string]bool{}}
	d, err := newDecisions(client, func(instance types.NamespacedName) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.announced[instance.Name] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Engine = &Engine{Options: Options{ClusterNamespace: "fleet"}, decisions: d}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return f
}

// takeAnnounced returns the Instances that were announced since the last call.
func (f *follower) takeAnnounced() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for name := range f.announced {
		out = append(out, name)
	}
	clear(f.announced)
	slices.Sort(out)
	return out
}

// decidedBy returns an Instance of namespace lab that follows a decision.
func decidedBy(name, decision string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	i.Spec.Placement = &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: decision}}
	return i
}

// expect waits until a decision has come to clusters, or is held with some words.
func (f *follower) expect(t *testing.T, i *v1beta1.Instance, want []string, held string) {
	t.Helper()
	apitest.Eventually(t, "the decision of "+i.Name+" is "+strings.Join(want, " ")+held, func() bool {
		got, err := f.Decide(t.Context(), i)
		if hold := new(clusters.HoldError); held != "" {
			return errors.As(err, &hold) && strings.Contains(hold.Message, held)
		}
		return err == nil && got.Name == i.Spec.Placement.Decision.Name && slices.Equal(got.Clusters, want)
	})
}

// TestDecisions checks C45: slices are followed from when an Instance has a decision, and each change announces the Instances that it is for.
func TestDecisions(t *testing.T) {
	server := apitest.Start(t)
	server.AddKind(DecisionKind, true)
	f := newFollower(t, server)
	server.Put(sliceOf("other", "dev", "", "m3"))
	unlabeled := sliceOf("unlabeled", "", "", "m9")
	unlabeled.SetLabels(nil)
	server.Put(unlabeled)
	if requests := server.Requests(); len(requests) > 0 {
		t.Errorf("without an Instance that has a decision, the hub is asked %v", requests)
	}
	web, db := decidedBy("web", "prod"), decidedBy("db", "dev")
	f.expect(t, web, nil, "there are none")
	f.expect(t, db, []string{"lab/m3"}, "")
	f.takeAnnounced()
	if kept := f.decisions.informer.GetStore().ListKeys(); !slices.Equal(kept, []string{"lab/other"}) {
		t.Errorf("of objects that belong to a decision and others, these are kept: %v", kept)
	}
	for _, step := range []struct {
		reason    string
		put       *unstructured.Unstructured
		announced []string
		clusters  []string
		held      string
	}{
		{"a slice", sliceOf("a", "prod", "0", "m1"), []string{"web"}, []string{"lab/m1"}, ""},
		{"a second slice, with a cluster again", sliceOf("b", "prod", "1", "m2", "m1"), []string{"web"}, []string{"lab/m1", "lab/m2"}, ""},
		{"a slice that changes hands", sliceOf("b", "dev", "", "m2"), []string{"db", "web"}, []string{"lab/m1"}, ""},
		{"an index that is missing", sliceOf("c", "prod", "2", "m1"), []string{"web"}, nil, "the slice with the index 1 is missing"},
		{"an entry that names nothing", sliceOf("c", "prod", "1", ""), []string{"web"}, nil, "clusterProfileRef"},
		{"no cluster", sliceOf("c", "prod", "1"), []string{"web"}, []string{"lab/m1"}, ""},
	} {
		server.Put(step.put)
		f.expect(t, web, step.clusters, step.held)
		var seen []string
		apitest.Eventually(t, step.reason+" announces "+strings.Join(step.announced, " "), func() bool {
			seen = append(seen, f.takeAnnounced()...)
			slices.Sort(seen)
			return slices.Equal(slices.Compact(slices.Clone(seen)), step.announced)
		})
	}
	server.Remove(sliceOf("a", "prod", "0"))
	server.Remove(sliceOf("c", "prod", "1"))
	f.expect(t, web, nil, "there are none")
	f.takeAnnounced()
	f.decisions.follow(types.NamespacedName{Namespace: "lab", Name: "web"}, types.NamespacedName{Namespace: "lab"})
	server.Put(sliceOf("a", "prod", "0", "m1"))
	server.Put(sliceOf("other", "dev", "", "m4"))
	apitest.Eventually(t, "the other Instance is announced", func() bool { return slices.Equal(f.takeAnnounced(), []string{"db"}) })
}

// TestDecisionsUnread checks C45: what keeps the hub from reading decisions is said, with the remedy.
func TestDecisionsUnread(t *testing.T) {
	f := newFollower(t, apitest.Start(t))
	f.expect(t, decidedBy("web", "prod"), nil, "does not serve PlacementDecisions")
	slices := schema.GroupResource{Group: DecisionKind.Group, Resource: "placementdecisions"}
	for want, err := range map[string]error{
		"install their CustomResourceDefinition": apierrors.NewNotFound(slices, ""),
		"kubectl kudo init --hub --upgrade":      apierrors.NewForbidden(slices, "", errors.New("no right")),
		"cannot be read: etcd is away":           errors.New("etcd is away"),
	} {
		if got := unreadable(err); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestTrim checks that of a slice only what is read is kept, and that another object is left.
func TestTrim(t *testing.T) {
	full := sliceOf("a", "prod", "0", "m1")
	want := full.DeepCopy()
	full.Object["status"] = map[string]any{"note": strings.Repeat("x", 1000)}
	full.SetAnnotations(map[string]string{"note": strings.Repeat("x", 1000)})
	full.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "scheduler"}})
	got, err := trim(full)
	if diff := cmp.Diff(want.Object, got.(*unstructured.Unstructured).Object); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	last := cache.DeletedFinalStateUnknown{Key: "lab/a"}
	if got, err := trim(last); err != nil || got != last || decisionOf(last) != (types.NamespacedName{}) {
		t.Errorf("%v, %v", got, err)
	}
}
