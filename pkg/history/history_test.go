package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestRunUID: a run has the same uid however often it is tried, and no two runs share one.
func TestRunUID(t *testing.T) {
	const instance = types.UID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	if got, want := RunUID(instance, 1), types.UID("3af70ff7-7a74-5886-b3d4-248b2cf38381"); got != want {
		t.Errorf("uids of running plans stand in clusters and must not change: %s, want %s", got, want)
	}
	seen := map[types.UID]bool{}
	for _, i := range []types.UID{instance, "6ba7b810-9dad-11d1-80b4-00c04fd430c9", "no uuid", "other"} {
		for n := range int64(5) {
			uid := RunUID(i, n)
			if seen[uid] || uid != RunUID(i, n) || len(uid) != 36 {
				t.Errorf("run %d of %s: %s", n, i, uid)
			}
			seen[uid] = true
		}
	}
}

// TestInHistory shows P28: runs that did not end by themselves have words of their own in the history, and an end.
func TestInHistory(t *testing.T) {
	end, next := metav1.NewMicroTime(time.Unix(5, 0)), metav1.NewMicroTime(time.Unix(9, 0))
	for _, tc := range []struct {
		reason   string
		in, want Outcome
		newest   bool
	}{
		{"it is complete", Outcome{Status: v1beta1.Complete, Finished: &end, Message: ""}, Outcome{Status: v1beta1.Complete, Finished: &end, Message: ""}, false},
		{"it has failed", Outcome{Status: v1beta1.FatalError, Finished: &end, Message: "task a failed: cancelled"}, Outcome{Status: v1beta1.FatalError, Finished: &end, Message: "task a failed: cancelled"}, false},
		{"a user has ended it", Outcome{Status: v1beta1.FatalError, Finished: &end, Message: "cancelled"}, Outcome{Status: Cancelled, Finished: &end, Message: "cancelled"}, false},
		{"also the newest one", Outcome{Status: v1beta1.FatalError, Finished: &end, Message: "cancelled"}, Outcome{Status: Cancelled, Finished: &end, Message: "cancelled"}, true},
		{"it runs", Outcome{Status: v1beta1.InProgress}, Outcome{Status: v1beta1.InProgress}, true},
		{"another one has replaced it", Outcome{Status: v1beta1.InProgress, Finished: nil, Message: "m"}, Outcome{Status: Superseded, Finished: &next, Message: "m"}, false},
		{"while it waited", Outcome{Status: v1beta1.Pending, Finished: nil, Message: "m"}, Outcome{Status: Superseded, Finished: &next, Message: "m"}, false},
		{"nothing is known of its end", Outcome{}, Outcome{}, false},
	} {
		after := &next
		if tc.newest {
			after = nil
		}
		if diff := cmp.Diff(tc.want, tc.in.InHistory(after)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestOutcomeOf: what came of a run, if it was recorded in a way that can be read.
func TestOutcomeOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, annotation string
		want               *Outcome
	}{
		"None":   {"the status has it", "", nil},
		"Broken": {"what cannot be read is not there", "{", nil},
		"Read":   {"status and message", `{"status":"FATAL_ERROR","message":"m"}`, &Outcome{Status: v1beta1.FatalError, Message: "m"}},
	} {
		revision := &appsv1.ControllerRevision{}
		if tc.annotation != "" {
			revision.Annotations = map[string]string{outcomeAnnotation: tc.annotation}
		}
		if diff := cmp.Diff(tc.want, OutcomeOf(revision)); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
}
