package explore

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// TestDeclare checks rule C54: components count instead of the replicas, and each as often as it has replicas.
func TestDeclare(t *testing.T) {
	needs := func(cpu string) *v1alpha1.ReplicaRequirements {
		return &v1alpha1.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	broken := errors.New("out of order")
	for _, tc := range []struct {
		reason              string
		components, replica *Answer
		err                 error
		want                string
		replicas            int64
		known               bool
	}{
		{reason: "no layer knows the kind"},
		{"replicas", nil, &Answer{Replicas: 3, Requirements: needs("500m")}, nil, "1500m", 3, true},
		{"replicas that request nothing", nil, &Answer{Replicas: 3}, nil, "", 3, true},
		{"none is a number", nil, &Answer{Requirements: needs("1")}, nil, "0", 0, true},
		{"components instead of replicas", &Answer{Components: []v1alpha1.Component{
			{Name: "master", Replicas: 1, ReplicaRequirements: needs("2")}, {Name: "worker", Replicas: 4, ReplicaRequirements: needs("250m")},
			{Name: "idle", Replicas: 2},
		}}, &Answer{Replicas: 99}, nil, "3", 7, true},
		{"an object without components has replicas", &Answer{}, &Answer{Replicas: 2}, nil, "", 2, true},
		{"an object without components whose replicas are not known", &Answer{}, nil, nil, "", 0, false},
		{"an answer that cannot be had", nil, nil, broken, "", 0, false},
	} {
		ask := func(_ context.Context, r Request) (Answer, bool, error) {
			answer := map[Operation]*Answer{Components: tc.components, Replica: tc.replica}[r.Operation]
			if answer == nil {
				return Answer{}, false, tc.err
			}
			return *answer, true, nil
		}
		got, known, err := Declare(t.Context(), ask, &unstructured.Unstructured{})
		cpu := ""
		if quantity, has := got.Requests[corev1.ResourceCPU]; has {
			cpu = quantity.String()
		}
		if !errors.Is(err, tc.err) || known != tc.known || got.Replicas != tc.replicas || cpu != trimmed(tc.want) {
			t.Errorf("%s: %d replicas, cpu %q (known %v, error %v), want %d and %q", tc.reason, got.Replicas, cpu, known, err, tc.replicas, tc.want)
		}
	}
	sum := Declared{Replicas: 1}
	sum.Add(Declared{Replicas: 2, Requests: needs("300m").ResourceRequest})
	sum.Add(Declared{Replicas: 1, Requests: needs("1").ResourceRequest})
	if diff := cmp.Diff(Declared{Replicas: 4, Requests: needs("1300m").ResourceRequest}, sum); diff != "" {
		t.Errorf("objects add up (-want +got):\n%s", diff)
	}
}

// trimmed is the form of a quantity that its text has after a calculation.
func trimmed(quantity string) string {
	if quantity == "" {
		return ""
	}
	q := resource.MustParse(quantity)
	return q.String()
}
