package operatorversion

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/trust"
)

// TestObserveVerdict checks S26: policies are asked for the OperatorVersion in its namespace, as an install plan, and not while it is
// being deleted.
func TestObserveVerdict(t *testing.T) {
	f := newFixture(t, &v1beta1.OperatorVersion{}, nil)
	var asked []trust.Request
	f.Judge = func(_ context.Context, r trust.Request) (trust.Verdict, error) {
		asked = append(asked, r)
		return trust.Verdict{Reason: trust.NoSignature, Message: "web is not signed"}, nil
	}
	o, err := f.observe(t.Context(), f.Next)
	if err != nil || o.packageRefusal != "web is not signed" {
		t.Errorf("%+v, %v", o, err)
	}
	if len(asked) != 1 || asked[0].Caller != metrics.CallerOperatorVersion || asked[0].Namespace != "ns" {
		t.Errorf("the policies were asked %+v", asked)
	}
	deleted := f.Next.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: f.clock.Now()}
	if verdict, err := f.observeVerdict(t.Context(), deleted); err != nil || !verdict.Allowed || len(asked) != 1 {
		t.Errorf("while it is being deleted: %+v, %v, %d questions", verdict, err, len(asked))
	}
}

// TestRequeueForVerdict checks S28: a refused OperatorVersion is judged again, since what vouches for it may appear without an event.
func TestRequeueForVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		verdict trust.Verdict
		deleted bool
		before  time.Duration
		want    time.Duration
	}{
		"Refused": {"a parent may appear", trust.Verdict{Reason: trust.NoSignature}, false, 0, refusalInterval},
		"Sooner":  {"another reason comes sooner", trust.Verdict{Reason: trust.NoSignature}, false, time.Second, time.Second},
		"Later":   {"another reason comes later", trust.Verdict{Reason: trust.NoSignature}, false, time.Hour, refusalInterval},
		"Allowed": {"nothing changes by the time", trust.Verdict{Allowed: true, Reason: trust.Verified}, false, 0, 0},
		"Deleted": {"a deletion asks no policy", trust.Verdict{}, true, 0, 0},
		"Until":   {"an authority ends", trust.Verdict{Allowed: true, Reason: trust.Verified, Until: time.Unix(1, 0)}, false, 0, time.Minute},
	} {
		f := newFixture(t, &v1beta1.OperatorVersion{}, nil)
		f.verdict, f.result.RequeueAfter = tc.verdict, tc.before
		if tc.verdict.Until != (time.Time{}) {
			f.verdict.Until = f.clock.Now().Add(time.Minute)
		}
		if tc.deleted {
			f.Next.DeletionTimestamp = &metav1.Time{Time: f.clock.Now()}
		}
		f.requeueForVerdict()
		if f.result.RequeueAfter != tc.want {
			t.Errorf("%s: %s: after %s, want %s", name, tc.reason, f.result.RequeueAfter, tc.want)
		}
	}
}
