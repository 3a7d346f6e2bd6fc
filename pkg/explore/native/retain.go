package native

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
)

// retainer puts those values of the live object into the desired one that belong to a controller or the API server.
// It gets a copy of the desired object, and the live one, which it must neither change nor share.
type retainer func(desired, live map[string]any) error

func retainerOf(kind schema.GroupKind) retainer {
	switch built(kind) {
	case "Service":
		return retainService
	case "Pod":
		return retainPod
	case "ServiceAccount":
		return retainServiceAccount
	case "PersistentVolumeClaim":
		return func(desired, live map[string]any) error { return keep(desired, live, "spec", "volumeName") }
	case "PersistentVolume":
		return retainVolume
	case "Job":
		return retainJob
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return retainWebhooks
	case "CustomResourceDefinition":
		return retainDefinition
	}
	return nil
}

// retain keeps what belongs to others. It has no opinion on kinds without a rule, unless an autoscaler scales the
// object.
func (l *Layer) retain(ctx context.Context, kind schema.GroupKind, r explore.Request) (explore.Answer, bool, error) {
	rule := retainerOf(kind)
	if built(kind) == "Secret" && isToken(r) {
		rule = retainToken
	}
	if rule == nil {
		return l.retainReplicas(ctx, r)
	}
	kept := r.Object.DeepCopy()
	if err := rule(kept.Object, r.Observed.Object); err != nil {
		return explore.Answer{}, false, fmt.Errorf("retain: %w", err)
	}
	return explore.Answer{Object: kept}, true, nil
}

// retainReplicas keeps the autoscaler's number, if the desired object has one to fight over. An object that leaves
// spec.replicas out is not asked about: writing a number there would set the autoscaler's next one back.
func (l *Layer) retainReplicas(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	if l.autoscalers == nil {
		return explore.Answer{}, false, nil
	}
	spec, _ := r.Object.Object["spec"].(map[string]any)
	if _, named := spec["replicas"]; !named {
		return explore.Answer{}, false, nil
	}
	live, found, err := unstructured.NestedFieldNoCopy(r.Observed.Object, "spec", "replicas")
	if err != nil || !found {
		return explore.Answer{}, false, nil
	}
	scaled, err := l.autoscalers.Scales(ctx, r.Object)
	if err != nil {
		return explore.Answer{}, false, fmt.Errorf("is it scaled by an autoscaler: %w", err)
	}
	if !scaled {
		return explore.Answer{}, false, nil
	}
	count, whole := number(live)
	if !whole {
		return explore.Answer{}, false, fmt.Errorf("spec.replicas of the live object is %v: want a whole number", live)
	}
	kept := r.Object.DeepCopy()
	if err := unstructured.SetNestedField(kept.Object, count, "spec", "replicas"); err != nil {
		return explore.Answer{}, false, malformed("spec", err)
	}
	return explore.Answer{Object: kept}, true, nil
}

// retainServiceAccount keeps what the token controller, and controllers of registries, add. Source: Kubernetes'
// documentation of service accounts; imagePullSecrets is an atomic list, so that applying it drops the others' entries.
func retainServiceAccount(desired, live map[string]any) error {
	if err := mergeByKey(desired, live, "name", "secrets"); err != nil {
		return err
	}
	return mergeByKey(desired, live, "name", "imagePullSecrets")
}

// retainVolume keeps the binding, unless the desired object reserves the volume for another claim.
func retainVolume(desired, live map[string]any) error {
	for _, key := range []string{"namespace", "name"} {
		want, err := text(desired, "spec", "claimRef", key)
		if err != nil {
			return err
		}
		is, err := text(live, "spec", "claimRef", key)
		if err != nil {
			return err
		}
		if want != "" && is != want {
			return nil
		}
	}
	return keep(desired, live, "spec", "claimRef")
}

// jobLabels are those that the API server gives to a Job's pods to go with the selector that it makes.
var jobLabels = [...]string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// retainJob keeps the selector that the API server made, and its labels; both are immutable. With manualSelector they
// are the author's.
func retainJob(desired, live map[string]any) error {
	manual, _, err := unstructured.NestedBool(desired, "spec", "manualSelector")
	if err != nil || manual {
		return err
	}
	if err := keep(desired, live, "spec", "selector"); err != nil {
		return err
	}
	for _, label := range jobLabels {
		if err := keep(desired, live, "spec", "template", "metadata", "labels", label); err != nil {
			return err
		}
	}
	return nil
}

const (
	tokenType      = "kubernetes.io/service-account-token"
	tokenAccount   = "kubernetes.io/service-account.name"
	tokenAccountID = "kubernetes.io/service-account.uid"
)

// isToken reports whether the token controller fills both the desired and the live Secret, for the same account.
func isToken(r explore.Request) bool {
	desired, _, _ := unstructured.NestedString(r.Object.Object, "type")
	live, _, _ := unstructured.NestedString(r.Observed.Object, "type")
	return live == tokenType && (desired == "" || desired == tokenType) &&
		(r.Object.GetAnnotations()[tokenAccount] == "" || r.Object.GetAnnotations()[tokenAccount] == r.Observed.GetAnnotations()[tokenAccount])
}

// retainToken keeps what the token controller writes: the token, the CA, the namespace, and the account's uid.
func retainToken(desired, live map[string]any) error {
	if err := keep(desired, live, "metadata", "annotations", tokenAccountID); err != nil {
		return err
	}
	for _, key := range []string{"ca.crt", "namespace", "token"} {
		if err := keep(desired, live, "data", key); err != nil {
			return err
		}
	}
	return nil
}
