package operatorversion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
)

// look is one observation of an object: its time, and the content of the object.
type look struct {
	at      time.Duration
	content string
}

// flips returns observations of an object that changes back and forth, at an interval.
func flips(from, to, every time.Duration) []look {
	var out []look
	for at := from; at < to; at += every {
		out = append(out, look{at, "changed"}, look{at + every/2, "right"})
	}
	return out
}

func TestDriftTracker(t *testing.T) {
	const told = "told"
	for _, tc := range []struct {
		reason string
		state  v1beta1.HoldState
		found  string
		looks  []look
		// want is whether the last observation has it compared, and again when it is requeued for.
		want  bool
		again time.Duration
		due   comparisonState
	}{
		{reason: "an object that has not changed is not compared", looks: []look{{0, "right"}}},
		{reason: "a change is awaited to be the last", looks: []look{{0, "changed"}}, again: settleAfter},
		{reason: "one that is the last is compared", looks: []look{{0, "changed"}, {settleAfter, "changed"}}, want: true, due: settled},
		{reason: "another change is awaited too", looks: []look{{0, "changed"}, {settleAfter / 2, "more"}, {settleAfter, "more"}}, again: settleAfter / 2},
		{reason: "a change that is taken back within a second is not reported", looks: []look{{0, "changed"}, {settleAfter / 2, "right"}, {2 * settleAfter, "right"}}},
		{reason: "what keeps changing is compared meanwhile", looks: append(flips(0, unstableAfter, settleAfter/10), look{unstableAfter, "changed"}), want: true, again: settleAfter, due: unstable},
		{reason: "but not while it is right", looks: append(flips(0, unstableAfter, settleAfter/10), look{unstableAfter, "changed"}, look{unstableAfter + 1, "right"}), again: settleAfter},
		{reason: "changes with pauses in between do not make an object unstable", looks: append(flips(0, 2*settleAfter, settleAfter/10), look{4 * settleAfter, "right"}, look{unstableAfter, "changed"}), again: settleAfter},
		{reason: "what was reported stays while it changes", state: v1beta1.HoldMismatch, looks: append(flips(0, unstableAfter, settleAfter/10), look{unstableAfter, "right"}), again: clearAfter - settleAfter/20},
		{reason: "also if only the condition says it", found: told, looks: append(flips(0, unstableAfter, settleAfter/10), look{unstableAfter, "right"}), again: clearAfter - settleAfter/20},
		{reason: "it is compared again when it has not changed for long", state: v1beta1.HoldMismatch, looks: []look{{0, "changed"}, {1, "right"}, {clearAfter + 1, "right"}}, want: true, due: settled},
		{reason: "a manager that starts takes it for changed just now", state: v1beta1.HoldMismatch, looks: []look{{0, "changed"}}, again: clearAfter},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := &v1beta1.HeldResource{APIVersion: "v1", Kind: "ConfigMap", Name: "a", State: v1beta1.HoldCreated, ContentHash: "right"}
			if tc.state != "" {
				r.State = tc.state
			}
			began := time.Unix(1000, 0)
			n := &driftTracker{objects: map[apply.ID]*driftingObject{}}
			if tc.found != "" {
				n.objects[share.IDOf(*r)] = &driftingObject{content: "right", since: began, moved: began, found: tc.found}
			}
			var compare bool
			var again time.Duration
			for _, l := range tc.looks {
				compare, again = n.observe(began.Add(l.at), r, l.content)
			}
			if compare != tc.want {
				t.Errorf("compared: %v, want %v", compare, tc.want)
			}
			if diff := cmp.Diff(tc.again, again); diff != "" {
				t.Errorf("requeued: %s", diff)
			}
			if m := n.objects[share.IDOf(*r)]; m != nil && m.due != tc.due {
				t.Errorf("due is %d, want %d", m.due, tc.due)
			} else if m == nil && tc.due != deferred {
				t.Error("nothing is known of it")
			}
		})
	}
}
