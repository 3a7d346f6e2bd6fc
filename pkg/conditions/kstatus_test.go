package conditions

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestKstatus: what kstatus, and with it the tools that stand on it, makes of the conditions (engine rule 19).
func TestKstatus(t *testing.T) {
	type runs = map[string]v1beta1.ExecutionStatus
	for name, tc := range map[string]struct {
		reason   string
		in       *v1beta1.Instance
		unready  []string
		observed int64
		want     status.Status
	}{
		"Running":  {"a plan that runs is progress", instance(runs{"deploy": v1beta1.InProgress}, nil), nil, 7, status.InProgressStatus},
		"Queued":   {"a plan that waits too", instance(runs{"deploy": v1beta1.Complete}, []string{"backup"}), nil, 7, status.InProgressStatus},
		"Unready":  {"so is an object that is not ready", instance(runs{"deploy": v1beta1.Complete}, nil), []string{"Deployment a: 0 of 1"}, 7, status.InProgressStatus},
		"Complete": {"an idle Instance is current", instance(runs{"deploy": v1beta1.Complete}, nil), nil, 7, status.CurrentStatus},
		"Failed":   {"a plan that failed is a failure", instance(runs{"deploy": v1beta1.FatalError}, nil), nil, 7, status.FailedStatus},
		"Old":      {"a status of an older spec says nothing", instance(runs{"deploy": v1beta1.Complete}, nil), nil, 6, status.InProgressStatus},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Status.ObservedGeneration = tc.observed
			Derive(tc.in, tc.unready, false)
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			obj := &unstructured.Unstructured{Object: fields}
			obj.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
			got, err := status.Compute(obj)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tc.want {
				t.Errorf("%s: kstatus says %s (%s), want %s", tc.reason, got.Status, got.Message, tc.want)
			}
		})
	}
}
