package operatorversion

import (
	"context"
	"testing"

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
