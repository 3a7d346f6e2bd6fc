package installation

import (
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
)

func TestState(t *testing.T) {
	subject, block := &v1beta1.OperatorVersion{}, &share.ReleaseBlock{Reason: v1beta1.ReasonInUse}
	for _, tc := range []struct {
		reason string
		o      observation
		want   state
	}{
		{"its object exists", observation{finalizer: true, subject: subject}, held},
		{"an Installation without a finalizer holds, too", observation{subject: subject}, held},
		{"its object does not exist anymore", observation{finalizer: true}, orphaned},
		{"an orphan without a finalizer is deleted, too", observation{}, orphaned},
		{"it was released", observation{deleted: true}, released},
		{"what was released is not asked for again, though its object exists", observation{deleted: true, subject: subject}, released},
		{"its object needs what it holds", observation{deleted: true, finalizer: true, subject: subject, inUse: block}, inUse},
		{"Instances need what the version that does not exist anymore has installed", observation{deleted: true, finalizer: true, inUse: block}, inUse},
		{"its object is being deleted, and nothing needs what it holds", observation{deleted: true, finalizer: true, subject: subject}, releasing},
		{"nothing needs what it holds", observation{deleted: true, finalizer: true}, releasing},
	} {
		if got := tc.o.state(); got != tc.want {
			t.Errorf("%s: state %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestUnknownState: a state without an action is an error.
func TestUnknownState(t *testing.T) {
	a := &action{Object: loop.NewObject(nil, nil, nil, &v1beta1.Installation{})}
	if _, err := a.act(t.Context(), "odd"); err == nil {
		t.Error("an unknown state is no error")
	}
}
