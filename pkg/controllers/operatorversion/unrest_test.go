package operatorversion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
)

// look is one look at an object: when, and what it holds.
type look struct {
	at      time.Duration
	content string
}

// flips are changes to and fro, some a second.
func flips(from, to, every time.Duration) []look {
	var out []look
	for at := from; at < to; at += every {
		out = append(out, look{at, "changed"}, look{at + every/2, "right"})
	}
	return out
}

func TestUnrest(t *testing.T) {
	const told = "told"
	for _, tc := range []struct {
		reason string
		state  v1beta1.HoldState
		found  string
		looks  []look
		// want is whether the last look has it compared, and again when it is looked at again.
		want  bool
		again time.Duration
		due   due
	}{
		{reason: "what is as it was is at rest", looks: []look{{0, "right"}}},
		{reason: "a change is awaited to be the last", looks: []look{{0, "changed"}}, again: still},
		{reason: "one that is the last is compared", looks: []look{{0, "changed"}, {still, "changed"}}, want: true, due: rests},
		{reason: "another change is awaited too", looks: []look{{0, "changed"}, {still / 2, "more"}, {still, "more"}}, again: still / 2},
		{reason: "who takes it back within a second is not heard", looks: []look{{0, "changed"}, {still / 2, "right"}, {2 * still, "right"}}},
		{reason: "what does not come to rest is compared while it moves", looks: append(flips(0, patience, still/10), look{patience, "changed"}), want: true, again: still, due: moves},
		{reason: "but not while it is right", looks: append(flips(0, patience, still/10), look{patience, "changed"}, look{patience + 1, "right"}), again: still},
		{reason: "changes with rests in between are no unrest", looks: append(flips(0, 2*still, still/10), look{4 * still, "right"}, look{patience, "changed"}), again: still},
		{reason: "what was told stays while it moves", state: v1beta1.HoldMismatch, looks: append(flips(0, patience, still/10), look{patience, "right"}), again: quiet - still/20},
		{reason: "also if only the condition tells it", found: told, looks: append(flips(0, patience, still/10), look{patience, "right"}), again: quiet - still/20},
		{reason: "it is compared again when it has rested long", state: v1beta1.HoldMismatch, looks: []look{{0, "changed"}, {1, "right"}, {quiet + 1, "right"}}, want: true, due: rests},
		{reason: "a manager that starts takes it for changed just now", state: v1beta1.HoldMismatch, looks: []look{{0, "changed"}}, again: quiet},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := &v1beta1.HeldResource{APIVersion: "v1", Kind: "ConfigMap", Name: "a", State: v1beta1.HoldCreated, Content: "right"}
			if tc.state != "" {
				r.State = tc.state
			}
			began := time.Unix(1000, 0)
			n := &unrest{objects: map[apply.ID]*motion{}}
			if tc.found != "" {
				n.objects[share.IDOf(*r)] = &motion{content: "right", since: began, moved: began, found: tc.found}
			}
			var compare bool
			var again time.Duration
			for _, l := range tc.looks {
				compare, again = n.see(began.Add(l.at), r, l.content)
			}
			if compare != tc.want {
				t.Errorf("compared: %v, want %v", compare, tc.want)
			}
			if diff := cmp.Diff(tc.again, again); diff != "" {
				t.Errorf("looked at again: %s", diff)
			}
			if m := n.objects[share.IDOf(*r)]; m != nil && m.due != tc.due {
				t.Errorf("due is %d, want %d", m.due, tc.due)
			} else if m == nil && tc.due != later {
				t.Error("nothing is known of it")
			}
		})
	}
}
