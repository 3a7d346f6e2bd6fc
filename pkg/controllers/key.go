package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
)

// historyKeys returns the keys of the Secret that init has made in kudo's namespace. It is watched by itself, since the
// manager may read it by its name only, and before all controllers, which ask for it. changed is called when it changes.
func historyKeys(ctx context.Context, mgr manager.Manager, config *rest.Config, namespace string,
	changed func()) (*history.SecretKeys, error) {
	watched, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{
			namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", keyring.SecretName)},
		}}
	})
	if err != nil {
		return nil, fmt.Errorf("set up the watch of Secret %s/%s: %w", namespace, keyring.SecretName, err)
	}
	informer, err := watched.GetCache().GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("set up the watch of Secret %s/%s: %w", namespace, keyring.SecretName, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				changed()
			}
		},
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}
	return history.NewKeys(watched.GetCache(), namespace), mgr.Add(watched)
}
