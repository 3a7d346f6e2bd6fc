package placement

import (
	"errors"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
)

func TestState(t *testing.T) {
	wrong := errors.New("wrong")
	for _, tc := range []struct {
		reason string
		o      observation
		want   state
	}{
		{"it is placed", observation{hasPlacement: true}, placed},
		{"it has no placement", observation{}, unplaced},
		{"its placement is wrong", observation{hasPlacement: true, problem: wrong}, invalid},
		{"a wrong placement needs no finalizer", observation{hasPlacement: true, problem: wrong, lacksFinalizer: true}, invalid},
		{"the finalizer is missing", observation{hasPlacement: true, lacksFinalizer: true}, unprotected},
		{"it is being deleted", observation{deleted: true, hasPlacement: true, problem: wrong}, released},
		{"it is being deleted, and has copies", observation{deleted: true, finalizer: true}, removing},
	} {
		if got := tc.o.state(); got != tc.want {
			t.Errorf("%s: state %q, want %q", tc.reason, got, tc.want)
		}
	}
	a := &action{Object: loop.NewObject(nil, nil, nil, &v1beta1.Instance{})}
	if a.act(t.Context(), "odd") == nil {
		t.Error("an unknown state is no error")
	}
}
