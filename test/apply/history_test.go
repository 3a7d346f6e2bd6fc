package apply

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("Runs and OperatorVersions are recorded, and come back as they were", Label("history"), func() {
	t := GinkgoTB()
	ns, ctx := cluster.NewNamespace(t), context.Background()
	store := history.New(cluster, cluster, history.NewKeys(cluster, "kudo-system"))
	ov := gen.Version(ns, "op", gen.Param("A", "1", ""), gen.ConfigMaps("cm", 20), gen.Serial("deploy", "cm"))
	i := gen.Instance("i", ov, map[string]string{"A": "2"})
	env.Must(t, cluster.Create(ctx, i)) // without its OperatorVersion, so that the manager lets it be

	run := history.Run{Plan: "deploy", Cause: "created", UID: history.RunUID(i.UID, 1), OperatorVersion: ns + "/op", Snapshot: "i-1", Spec: packed(t, ov), Parameters: i.Spec.Parameters}
	left := run
	left.Spec = packed(t, gen.Version(ns, "op", gen.Param("A", "0", "")))
	refers := run
	refers.Spec, refers.Snapshot = nil, "i-0"
	for _, r := range []history.Run{refers, left, run, run} {
		env.Must(t, store.RecordStart(ctx, i, 1, r))
	}
	read, err := store.Read(ctx, i, 1)
	env.Must(t, err)
	if read.Key == "" {
		t.Error("the key of the seal is printed")
	}
	read.Key = ""
	if diff := cmp.Diff(run, *read); diff != "" {
		t.Errorf("a left-over that was never committed is replaced: %s", diff)
	}
	spec, err := store.ReadVersion(ctx, i, "i-1")
	env.Must(t, err)
	if diff := cmp.Diff(ov.Spec, *spec); diff != "" {
		t.Errorf("the OperatorVersion comes back: %s", diff)
	}

	env.Must(t, store.RecordOutcome(ctx, i, v1beta1.PlanStatus{Revision: 1, Status: v1beta1.FatalError, Message: "m"}))
	revision := &appsv1.ControllerRevision{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: history.Name("i", 1)}, revision))
	if diff := cmp.Diff(&history.Outcome{Status: v1beta1.FatalError, Message: "m"}, history.OutcomeOf(revision)); diff != "" {
		t.Errorf("the outcome stands on the revision: %s", diff)
	}
	t.Log("what a former Instance of the name has left is about to be collected: it is waited for")
	env.Must(t, store.RecordStart(ctx, i, 2, run))
	next := i.DeepCopy()
	next.UID = "11111111-1111-1111-1111-111111111111"
	if err := store.RecordStart(ctx, next, 2, run); err == nil || !strings.Contains(err.Error(), "waiting for its deletion") {
		t.Errorf("the run of another Instance: %v", err)
	}
})

func packed(t testing.TB, ov *v1beta1.OperatorVersion) []byte {
	t.Helper()
	text, err := history.Pack(&ov.Spec)
	env.Must(t, err)
	return text
}

var _ = Describe("The runs beyond the last ten go, and with them the OperatorVersions that nothing refers to any more", Label("trim"), func() {
	for _, tc := range env.Sorted(map[string]struct {
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
	}) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, ctx := cluster.NewNamespace(t), context.Background()
			store := history.New(cluster, cluster, history.NewKeys(cluster, "kudo-system"))
			i, other := gen.Instance("i", gen.Version(ns, "op"), nil), gen.Instance("i-other", gen.Version(ns, "op"), nil)
			env.Must(t, cluster.Create(ctx, i))
			env.Must(t, cluster.Create(ctx, other))
			env.Must(t, store.RecordStart(ctx, other, 1, history.Run{Plan: "deploy", Snapshot: "i-other-1"}))
			want := map[string]bool{"i-other-1": true}
			var newest int64
			for _, snapshot := range strings.Fields(tc.runs) {
				newest++
				env.Must(t, store.RecordStart(ctx, i, newest, history.Run{Plan: "deploy", Snapshot: snapshot}))
				want[history.Name("i", newest)] = true
				for range 2 { // a crash may come in between
					env.Must(t, store.Trim(ctx, i, newest, tc.baseline))
				}
			}
			for _, name := range strings.Fields(tc.gone) {
				delete(want, name)
			}
			list, got := &appsv1.ControllerRevisionList{}, map[string]bool{}
			env.Must(t, cluster.List(ctx, list, client.InNamespace(ns)))
			for _, object := range list.Items {
				got[object.Name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
})

var _ = It("Sensitive values stand in ControllerRevisions sealed, and come back for their run only", Label("sensitive-history", "T27"), func() {
	t := GinkgoTB()
	ns, ctx := cluster.NewNamespace(t), context.Background()
	store := history.New(cluster, cluster, history.NewKeys(cluster, "kudo-system"))
	i := gen.Instance("i", gen.Version(ns, "op"), nil)
	env.Must(t, cluster.Create(ctx, i))
	begin := func(revision int64, p string) {
		t.Helper()
		env.Must(t, store.RecordStart(ctx, i, revision, history.Run{
			Plan: "deploy", UID: history.RunUID(i.UID, revision), Parameters: map[string]string{"A": "open <&>", "P": p}, Sensitive: []string{"P"},
		}))
	}
	begin(1, "first")
	begin(2, "second") // it was never committed
	begin(2, "third")
	before := &appsv1.ControllerRevision{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: history.Name("i", 2)}, before))
	begin(2, "third")
	revision := &appsv1.ControllerRevision{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: history.Name("i", 2)}, revision))
	if revision.UID != before.UID {
		t.Error("a crash came between writing down and the commit: what says the same stays")
	}
	if text := string(revision.Data.Raw); strings.Contains(text, "third") || !strings.Contains(text, "aes-256-gcm:") {
		t.Errorf("the run is recorded as %s", text)
	}
	for number, want := range map[int64]string{1: "open <&> first", 2: "open <&> third"} {
		read, err := store.Read(ctx, i, number)
		env.Must(t, err)
		if got := read.Parameters["A"] + " " + read.Parameters["P"]; got != want {
			t.Errorf("run %d has %q, want %q", number, got, want)
		}
	}
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: history.SecretName("i")}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("values are kept in a Secret: %v", err)
	}
})

// i1 is the uid in the record of the first run of its owner.
func i1(record *appsv1.ControllerRevision) string {
	return string(history.RunUID(record.OwnerReferences[0].UID, 1))
}

var _ = Describe("A record is read only as kudo has written it, for its owner and its number", Label("sealed-history", "T25"), func() {
	ctx := context.Background()
	for _, tc := range env.Sorted(map[string]struct {
		reason string
		forge  func(record *appsv1.ControllerRevision, other *v1beta1.Instance)
		want   string
	}{
		"Same": {"it is read whoever has written it down again", func(*appsv1.ControllerRevision, *v1beta1.Instance) {}, ""},
		"Order": {"the order of keys is no content", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) {
			r.Data.Raw = fmt.Appendf(nil, `{"uid":"%s",%s`, i1(r), bytes.ReplaceAll(r.Data.Raw[1:], []byte(`,"uid":"`+i1(r)+`"`), nil))
		}, ""},
		"Outcome": {"the outcome is not sealed, and only shown", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) { r.Annotations["kudo.dev/outcome"] = "{}" }, ""},
		"Data": {"not with other data", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) {
			r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte("worker"), []byte("deploy"))
		}, "was not written by this kudo"},
		"Unsealed":  {"T29: not without a seal", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) { r.Annotations = nil }, "was not written by this kudo"},
		"Number":    {"not with another number", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) { r.Revision = 7 }, "was not written by this kudo"},
		"Ownerless": {"not without owner", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) { r.OwnerReferences, r.Labels = nil, nil }, "was not written by this kudo"},
		"OtherOwner": {"not with another owner", func(r *appsv1.ControllerRevision, other *v1beta1.Instance) {
			r.OwnerReferences[0].Name, r.OwnerReferences[0].UID = other.Name, other.UID
		}, "was not written by this kudo"},
		"Renamed": {"not by the name of another run", func(r *appsv1.ControllerRevision, _ *v1beta1.Instance) { r.Name = "i-2" }, "is missing"},
	}) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns := cluster.NewNamespace(t)
			store := history.New(cluster, cluster, history.NewKeys(cluster, "kudo-system"))
			i, other := gen.Instance("i", gen.Version(ns, "op"), nil), gen.Instance("other", gen.Version(ns, "op"), nil)
			env.Must(t, cluster.Create(ctx, i))
			env.Must(t, cluster.Create(ctx, other))
			env.Must(t, store.RecordStart(ctx, i, 1, history.Run{Plan: "deploy", UID: history.RunUID(i.UID, 1), ServiceAccount: "worker"}))
			record := &appsv1.ControllerRevision{}
			env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "i-1"}, record))
			env.Must(t, cluster.Delete(ctx, record.DeepCopy()))
			record.ResourceVersion, record.UID = "", ""
			tc.forge(record, other)
			env.Must(t, cluster.Create(ctx, record))
			_, err := store.Read(ctx, i, 1)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !history.Unusable(err) || !strings.Contains(err.Error(), "ControllerRevision "+ns+"/i-1 "+tc.want)):
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	It("a run has the uid of its number, and no record is written without a key", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		i := gen.Instance("i", gen.Version(ns, "op"), nil)
		env.Must(t, cluster.Create(ctx, i))
		store := history.New(cluster, cluster, history.NewKeys(cluster, "kudo-system"))
		env.Must(t, store.RecordStart(ctx, i, 2, history.Run{Plan: "deploy", UID: history.RunUID(i.UID, 1)}))
		if _, err := store.Read(ctx, i, 2); !history.Unusable(err) {
			t.Errorf("a run has the uid of its number: %v", err)
		}
		none := history.New(cluster, cluster, history.NewKeys(cluster, ns))
		if err := none.RecordStart(ctx, i, 3, history.Run{}); err == nil || !strings.Contains(err.Error(), "Secret "+ns+"/kudo-history-key") {
			t.Errorf("without a key: %v", err)
		}
	})
})
