package share

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// TestDryRunAnswers checks what follows from an answer to the dry run that is no object.
func TestDryRunAnswers(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterRole"}, "app", nil)
	for name, tc := range map[string]struct {
		reason string
		live   bool
		answer error
		action apply.Action
		writes []string
		err    string
	}{
		"Namespace": {"its namespace may come with the same step", false, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "apps"),
			apply.Created, []string{"apply ClusterRole app"}, ""},
		"NotFound": {"another object that is not there is an error", false, apierrors.NewNotFound(roles, "app"), apply.Failed, nil, "not found"},
		"Immutable": {"a field that cannot change is a mismatch, with the answer as its reason", true, invalid, apply.Failed, nil,
			"ClusterRole app exists already and does not match: rules[0].verbs[0] is \"list\", and the package wants \"get\". It belongs to OperatorVersion ns/db-1.0, and was not changed (" + invalid.Error() + ")"},
		"Invalid": {"an object that is not there is no mismatch", false, invalid, apply.Failed, nil, "is invalid"},
		"Refused": {"an answer that is no verdict", true, apierrors.NewForbidden(roles, "app", errors.New("no")), apply.Failed, nil, "is forbidden: no"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.live {
				f.Put(role(t, "list", true, f.db))
			}
			f.answer("apply ClusterRole app (dry run)", tc.answer)
			change := f.install(t, f.Session(f.web, Policy{SameOperator: true}, nil), role(t, "get", false))
			var mismatch *MismatchError
			if change.Action != tc.action || errors.As(change.Err, &mismatch) != (name == "Immutable") ||
				(change.Err == nil) != (tc.err == "") || change.Err != nil && !strings.Contains(change.Err.Error(), tc.err) {
				t.Errorf("%s: %v, %v", tc.reason, change.Action, change.Err)
			}
			if diff := cmp.Diff(tc.writes, writes(f.Requests()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// retainer keeps the rules of the live object, or fails.
type retainer struct{ err error }

func (r retainer) Retain(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kept := desired.DeepCopy()
	kept.Object["rules"] = observed.Object["rules"]
	return kept, r.err
}

// TestRetainedFields checks that a field that is retained is no difference, and that nothing is written if that is not known.
func TestRetainedFields(t *testing.T) {
	f := newFixture(t)
	live := f.Put(role(t, "list", true, f.web, f.db))
	f.retain = retainer{errors.New("the script failed")}
	change := f.install(t, f.Session(f.web, Policy{}, nil), role(t, "get", false))
	if change.Err == nil || !strings.Contains(change.Err.Error(), "the script failed") || !cmp.Equal(live, f.Server.Get(live)) {
		t.Errorf("%v, %v", change.Action, change.Err)
	}
	f.retain = retainer{}
	change = f.install(t, f.Session(f.web, Policy{}, nil), role(t, "get", false))
	if change.Err != nil || change.Action != apply.Unchanged || !cmp.Equal(live, f.Server.Get(live)) {
		t.Errorf("a retained field is a difference: %v, %v", change.Action, change.Err)
	}
}

// TestLive checks that an object that cannot be read is no object that does not exist.
func TestLive(t *testing.T) {
	f := newFixture(t)
	live := f.Put(role(t, "get", true, f.web))
	if got, err := f.Live(t.Context(), holdOf(live)); err != nil || !cmp.Equal(live, got) {
		t.Errorf("%v, %v", got, err)
	}
	deleted := holdOf(live)
	deleted.Name = "deleted"
	if got, err := f.Live(t.Context(), deleted); got != nil || err != nil {
		t.Errorf("an object that does not exist: %v, %v", got, err)
	}
	f.answer("get ClusterRole app", apierrors.NewForbidden(roles, "app", errors.New("no")))
	if got, err := f.Live(t.Context(), holdOf(live)); got != nil || err == nil || !strings.Contains(err.Error(), "is forbidden: no") {
		t.Errorf("an object that cannot be read: %v, %v", got, err)
	}
	if state := State(live, f.web); state != v1beta1.HoldCreated {
		t.Errorf("held as %s", state)
	}
}
