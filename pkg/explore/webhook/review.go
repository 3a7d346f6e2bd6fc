package webhook

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// reviewKind is the kind of what is sent and comes back.
const reviewKind = "ExploreReview"

// newReview writes the review of a request, and the object in it, which a patch is applied to.
func newReview(uid types.UID, r explore.Request) (object, review []byte, err error) {
	object, err = json.Marshal(r.Object.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("write the request: %w", err)
	}
	kind := r.Object.GroupVersionKind()
	request := &v1alpha1.ExploreRequest{
		UID: uid, Kind: metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Name: r.Object.GetName(), Namespace: r.Object.GetNamespace(),
		Operation: r.Operation, Object: runtime.RawExtension{Raw: object},
	}
	switch r.Operation {
	case explore.Retaining:
		observed, err := json.Marshal(r.Observed.Object)
		if err != nil {
			return nil, nil, fmt.Errorf("write the request: %w", err)
		}
		request.ObservedObject = &runtime.RawExtension{Raw: observed}
	case explore.ReplicaRevising:
		request.DesiredReplicas = &r.Replicas
	case explore.StatusAggregating:
		request.AggregatedStatus = r.Items
	}
	review, err = json.Marshal(&v1alpha1.ExploreReview{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: reviewKind},
		Request:  request,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("write the request: %w", err)
	}
	return object, review, nil
}
