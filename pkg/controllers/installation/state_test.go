package installation

import (
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/storedversions"
)

func TestState(t *testing.T) {
	subject, block := &v1beta1.OperatorVersion{}, &share.ReleaseBlock{Reason: v1beta1.ReasonInUse}
	due := definitions{due: []storedversions.Definition{{Name: "a"}}}
	for _, tc := range []struct {
		reason string
		o      observation
		want   state
	}{
		{"its object exists", observation{finalizer: true, subject: subject}, held},
		{"an Installation without a finalizer holds, too", observation{subject: subject}, held},
		{"a definition is not known, or another Installation migrates it", observation{subject: subject, definitions: definitions{unseen: []string{"a"}, waits: true}}, held},
		{"a definition is to be migrated", observation{finalizer: true, subject: subject, definitions: due}, migrating},
		{"a migration is named that is not due any more", observation{finalizer: true, subject: subject, migrations: true}, migrating},
		{"an orphan migrates nothing", observation{finalizer: true, migrations: true, definitions: due}, orphaned},
		{"what was released migrates nothing", observation{deleted: true, subject: subject, migrations: true, definitions: due}, released},
		{"what is in use, and is being deleted, migrates nothing", observation{deleted: true, finalizer: true, subject: subject, inUse: block, migrations: true}, inUse},
		{"what is to be released migrates nothing", observation{deleted: true, finalizer: true, subject: subject, migrations: true}, releasing},
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
