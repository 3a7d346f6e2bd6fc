package apply

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/gen"
)

// TestHistory: runs and OperatorVersions are written down, and come back as they were.
func TestHistory(t *testing.T) {
	ns, ctx := namespace(t), context.Background()
	store := history.New(cluster, cluster)
	ov := gen.Version(ns, "op", gen.Param("A", "1", ""), gen.ConfigMaps("cm", 20), gen.Serial("deploy", "cm"))
	i := gen.Instance("i", ov, map[string]string{"A": "2"})
	must(t, cluster.Create(ctx, i)) // without its OperatorVersion, so that the manager lets it be

	run := history.Run{Plan: "deploy", Cause: "created", UID: history.RunUID(i.UID, 1), OperatorVersion: ns + "/op", Snapshot: "i-x", Parameters: i.Spec.Parameters}
	left := run
	left.Plan = "update"
	must(t, store.Begin(ctx, i, 1, left))
	must(t, store.Begin(ctx, i, 1, run))
	read, err := store.Read(ctx, i, 1, nil)
	must(t, err)
	if diff := cmp.Diff(run, *read); diff != "" {
		t.Errorf("a left-over that was never committed is replaced: %s", diff)
	}
	for range 2 {
		must(t, store.Keep(ctx, i, "i-x", &ov.Spec))
	}
	spec, err := store.Kept(ctx, ns, "i-x")
	must(t, err)
	if diff := cmp.Diff(ov.Spec, *spec); diff != "" {
		t.Errorf("the OperatorVersion comes back: %s", diff)
	}

	must(t, store.Close(ctx, i, v1beta1.PlanStatus{Revision: 1, Status: v1beta1.FatalError, Message: "m"}))
	revision := &appsv1.ControllerRevision{}
	must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: history.Name("i", 1)}, revision))
	if diff := cmp.Diff(&history.Outcome{Status: v1beta1.FatalError, Message: "m"}, history.OutcomeOf(revision)); diff != "" {
		t.Errorf("the outcome stands on the revision: %s", diff)
	}
	must(t, store.Trim(ctx, i, history.Limit))
	if _, err := store.Read(ctx, i, 1, nil); err != nil {
		t.Errorf("%d runs are kept: %v", history.Limit, err)
	}
	must(t, store.Trim(ctx, i, history.Limit+1))
	if _, err := store.Read(ctx, i, 1, nil); err == nil {
		t.Error("the run beyond the limit is gone")
	}

	t.Log("what a former Instance of the name has left is about to be collected: it is waited for")
	must(t, store.Begin(ctx, i, 2, run))
	next := i.DeepCopy()
	next.UID = "11111111-1111-1111-1111-111111111111"
	for what, err := range map[string]error{"run": store.Begin(ctx, next, 2, run), "snapshot": store.Keep(ctx, next, "i-x", &ov.Spec)} {
		if err == nil || !strings.Contains(err.Error(), "waits for it to go") {
			t.Errorf("the %s of another Instance: %v", what, err)
		}
	}
}

// TestSensitiveHistory: sensitive values are not in ControllerRevisions, and come back: from the Secret, else from those
// that the Instance has now if they are the same, else not at all.
func TestSensitiveHistory(t *testing.T) {
	ns, ctx := namespace(t), context.Background()
	store := history.New(cluster, cluster)
	i := gen.Instance("i", gen.Version(ns, "op"), nil)
	must(t, cluster.Create(ctx, i))
	run := history.Run{Plan: "deploy", UID: history.RunUID(i.UID, 1), Parameters: map[string]string{"A": "open", "P": "first"}, Sensitive: []string{"P"}}
	must(t, store.Begin(ctx, i, 1, run))
	for _, p := range []string{"second", "third"} { // the second was never committed
		run.Parameters = map[string]string{"A": "open", "P": p}
		must(t, store.Begin(ctx, i, 2, run))
	}
	revision := &appsv1.ControllerRevision{}
	must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: history.Name("i", 2)}, revision))
	if text := string(revision.Data.Raw); strings.Contains(text, "third") || !strings.Contains(text, "hmac-sha256:") || !strings.Contains(text, "open") {
		t.Errorf("the run is written down as %s", text)
	}
	values := func(number int64, now map[string]string) string {
		t.Helper()
		read, err := store.Read(ctx, i, number, now)
		must(t, err)
		return read.Parameters["A"] + " " + read.Parameters["P"] + " " + strings.Join(read.Lost, ",")
	}
	for number, want := range map[int64]string{1: "open first ", 2: "open third "} {
		if got := values(number, nil); got != want {
			t.Errorf("run %d has %q, want %q", number, got, want)
		}
	}
	must(t, store.Begin(ctx, i, 3, run))
	if got := values(1, nil); got != "open  P" {
		t.Errorf("the values of the run before the last are not kept any more: %q", got)
	}
	must(t, store.Discard(ctx, i))
	if got := values(3, map[string]string{"P": "third"}); got != "open third " {
		t.Errorf("the value is still known: %q", got)
	}
	if got := values(3, map[string]string{"P": "else"}); got != "open  P" {
		t.Errorf("the value is lost: %q", got)
	}

	t.Log("a Secret of somebody else is not touched")
	foreign := &corev1.Secret{ObjectMeta: gen.Meta(ns, history.SecretName("i")), StringData: map[string]string{"a": "b"}}
	must(t, cluster.Create(ctx, foreign))
	if err := store.Begin(ctx, i, 4, run); err == nil || !strings.Contains(err.Error(), "rename or delete it") {
		t.Errorf("a run of an Instance whose Secret is somebody else's: %v", err)
	}
	must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: foreign.Name}, foreign))
	if len(foreign.Data) != 1 {
		t.Errorf("the foreign Secret has changed: %v", foreign.Data)
	}
}
