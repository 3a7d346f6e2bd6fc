package kudoinit

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager is the field manager of what is installed.
const manager = "kudo-init"

// createdAnnotation on the namespace says that init has made it, and so may remove it.
const createdAnnotation = "kudo.dev/created-by"

// Progress is called for each object that was applied.
type Progress func(obj *unstructured.Unstructured, created bool)

// Apply puts the objects on the cluster. What is there already is brought up to date.
func Apply(ctx context.Context, c client.Client, objs []*unstructured.Unstructured, progress Progress) error {
	for _, obj := range objs {
		left, err := leaveNarrowed(ctx, c, obj)
		if err != nil {
			return err
		}
		if left {
			continue
		}
		sent, live := obj.DeepCopy(), &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		absent := apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(obj), live))
		if obj.GetKind() == "Namespace" && (absent || live.Annotations[createdAnnotation] == manager) {
			annotate(sent, createdAnnotation, manager)
		}
		if err := put(ctx, c, sent); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		progress(obj, absent)
	}
	return nil
}

// leaveNarrowed reports whether an object is the role of install plans, and an administrator has changed it.
func leaveNarrowed(ctx context.Context, c client.Client, obj *unstructured.Unstructured) (bool, error) {
	if obj.GetKind() != "ClusterRole" || obj.GetName() != installRole {
		return false, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GroupVersionKind())
	found, err := getIfPresent(ctx, c, live, "", obj.GetName())
	return found && narrowed(live), err
}

// put applies an object. cert-manager's own webhook, which may have come up with this very minute, is waited for.
func put(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for tries := 0; ; tries++ {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner(manager), client.ForceOwnership)
		if tries == certManagerTries || !apierrors.IsInternalError(err) || !strings.HasPrefix(obj.GetAPIVersion(), certManagerGroup+"/") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

const (
	certManagerGroup, certManagerVersion = "cert-manager.io", "v1"
	// certManagerTries is how many seconds cert-manager's webhook may take to come up.
	certManagerTries = 60
)

// CertManager says what is wrong if the cluster does not serve cert-manager's kinds.
func CertManager(c client.Client) error {
	for _, kind := range []string{"Issuer", "Certificate"} {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: certManagerGroup, Kind: kind}, certManagerVersion)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("cert-manager is not installed on this cluster, or does not serve %s/%s: install cert-manager 1.0 or later, or leave --cert-manager out, and the manager issues the certificate itself", certManagerGroup, certManagerVersion)
		}
		if err != nil {
			return fmt.Errorf("look for cert-manager: %w", err)
		}
	}
	return nil
}
