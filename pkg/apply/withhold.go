package apply

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
)

// withhold returns the object to write over a live one that another tool has made: without kudo's metadata where it would do nothing but
// replace pods, or cannot be written.
//
//	claim templates that lack it                                    withheld: they cannot be changed
//	a pod template that lacks it:
//	    the object is taken over now, or was taken over so
//	        and a dry run without it leaves the pod template as it is   withheld
//	        the pod template changes anyway                             written
//	    what the pods read has changed since                            written: the pods are to be replaced
//	    something selects pods by it                                    written
//	    another client has removed it                                   written
//
// The live object alone decides, so that each write of each manager decides alike. Only an object that was taken over costs a dry run.
func (e *Engine) withhold(ctx context.Context, resource dynamic.ResourceInterface, body, live *unstructured.Unstructured, claim Claim,
	o Options) (*unstructured.Unstructured, error) {
	if claim != Ours {
		return body, nil
	}
	body = enhance.WithoutClaimMetadata(body, live)
	if !isTakenOver(body, live, o) || o.SelectsPods != nil && o.SelectsPods() {
		return body, nil
	}
	candidate := enhance.WithoutTemplateMetadata(body, live)
	written, err := e.send(ctx, resource, candidate, live, claim, metav1.ApplyOptions{FieldManager: o.Manager,
		DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run") {
		return body, nil // a webhook has side effects: it is better to replace pods than to stop
	}
	if err != nil {
		return nil, err
	}
	if enhance.SamePods(written, live) {
		return candidate, nil
	}
	return body, nil
}

// isTakenOver reports whether an object is taken over from another tool, whose pod template lacks kudo's metadata: by this write, or by an
// earlier one since which what its pods read has not changed.
func isTakenOver(body, live *unstructured.Unstructured, o Options) bool {
	if !enhance.LacksMetadata(live) {
		return false
	}
	if withheld, marked := live.GetAnnotations()[v1beta1.WithheldAnnotation]; marked {
		return withheld == enhance.WithheldHash(body)
	}
	return o.Known[IDOf(live)].UID != live.GetUID()
}
