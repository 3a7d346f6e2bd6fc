package apply

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

	run := history.Run{Plan: "deploy", Cause: "created", UID: history.RunUID(i.UID, 1), OperatorVersion: ns + "/op", Snapshot: "i-1", Spec: packed(t, ov), Parameters: i.Spec.Parameters}
	left := run
	left.Spec = packed(t, gen.Version(ns, "op", gen.Param("A", "0", "")))
	refers := run
	refers.Spec, refers.Snapshot = nil, "i-0"
	for _, r := range []history.Run{refers, left, run, run} {
		must(t, store.Begin(ctx, i, 1, r))
	}
	read, err := store.Read(ctx, i, 1, nil)
	must(t, err)
	if diff := cmp.Diff(run, *read); diff != "" {
		t.Errorf("a left-over that was never committed is replaced: %s", diff)
	}
	spec, err := store.Kept(ctx, ns, "i-1")
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
	t.Log("what a former Instance of the name has left is about to be collected: it is waited for")
	must(t, store.Begin(ctx, i, 2, run))
	next := i.DeepCopy()
	next.UID = "11111111-1111-1111-1111-111111111111"
	if err := store.Begin(ctx, next, 2, run); err == nil || !strings.Contains(err.Error(), "waits for it to go") {
		t.Errorf("the run of another Instance: %v", err)
	}
}

func packed(t *testing.T, ov *v1beta1.OperatorVersion) []byte {
	t.Helper()
	text, err := history.Pack(&ov.Spec)
	must(t, err)
	return text
}

// TestTrim: the runs beyond the last ten go, and with them the OperatorVersions that nothing refers to any more.
func TestTrim(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// runs are the ControllerRevisions to which runs 1, 2, ... refer.
		runs string
		// baseline is that to which the status refers, before the newest run.
		baseline string
		// gone are those that go; all others stay.
		gone string
	}{
		"Ten":           {"they are kept, whatever they refer to", "i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-10", "i-1", ""},
		"Held":          {"the first holds what the others run", "i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1 i-1", "i-1", "i-2"},
		"HeldByOneOnly": {"a run that is kept refers to it", "i-1 i-1 i-1 i-4 i-4 i-4 i-4 i-4 i-4 i-4 i-4 i-4", "i-4", "i-2"},
		"Unused":        {"the oldest run that is kept holds another", "i-1 i-1 i-3 i-3 i-3 i-3 i-3 i-3 i-3 i-3 i-3 i-3", "i-3", "i-1 i-2"},
		"Baseline":      {"the newest run may yet be given up", "i-1 i-2 i-2 i-2 i-2 i-2 i-2 i-2 i-2 i-2 i-2 i-12", "i-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ns, ctx := namespace(t), context.Background()
			store := history.New(cluster, cluster)
			i, other := gen.Instance("i", gen.Version(ns, "op"), nil), gen.Instance("i-other", gen.Version(ns, "op"), nil)
			must(t, cluster.Create(ctx, i))
			must(t, cluster.Create(ctx, other))
			must(t, store.Begin(ctx, other, 1, history.Run{Plan: "deploy", Snapshot: "i-other-1"}))
			want := map[string]bool{"i-other-1": true}
			var newest int64
			for _, snapshot := range strings.Fields(tc.runs) {
				newest++
				must(t, store.Begin(ctx, i, newest, history.Run{Plan: "deploy", Snapshot: snapshot}))
				want[history.Name("i", newest)] = true
				for range 2 { // a crash may come in between
					must(t, store.Trim(ctx, i, newest, tc.baseline))
				}
			}
			for _, name := range strings.Fields(tc.gone) {
				delete(want, name)
			}
			list, got := &appsv1.ControllerRevisionList{}, map[string]bool{}
			must(t, cluster.List(ctx, list, client.InNamespace(ns)))
			for _, object := range list.Items {
				got[object.Name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
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
