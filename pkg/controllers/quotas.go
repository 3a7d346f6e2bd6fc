package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// quotaLookup returns a function that reports whether a namespace may have ResourceQuotas. It asks the manager's watch of their metadata,
// which its first call begins, so that a run in a namespace without quotas costs no request. Until the watch has listed them, each
// namespace may have some. The numbers of quotas are not watched: a run reads them with the rights of its account.
func quotaLookup(metadata cache.Cache) func(ctx context.Context, namespace string) (bool, error) {
	kind := corev1.SchemeGroupVersion.WithKind("ResourceQuota")
	return func(ctx context.Context, namespace string) (bool, error) {
		one, list := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
		one.SetGroupVersionKind(kind)
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		informer, err := metadata.GetInformer(ctx, one, cache.BlockUntilSynced(false))
		if err != nil {
			return false, fmt.Errorf("watch ResourceQuotas: %w", err)
		}
		if !informer.HasSynced() {
			return true, nil
		}
		err = metadata.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		return len(list.Items) > 0, err
	}
}
