// Package volumes plays the volume provisioner of the cluster: every claim is
// given a volume, whatever class it names, because the packages that are tried
// here name classes of clusters they were written for.
package volumes

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// resync heals what an error or a missed event has left behind.
const resync = 30 * time.Second

// Run makes and deletes volumes until ctx ends.
func Run(ctx context.Context, config *rest.Config, local Local) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client of the volume loop: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	core := factory.Core().V1()
	loop := &loop{
		local:   local,
		client:  client,
		claims:  core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]()),
	}
	if err := loop.watch(core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("listing %s: %w", kind, context.Cause(ctx))
		}
	}
	go func() {
		<-ctx.Done()
		loop.queue.ShutDown()
	}()
	for loop.next(ctx) {
	}
	return nil
}

// item is a claim, or a volume when there is no namespace.
type item struct{ namespace, name string }

type loop struct {
	local   Local
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	queue   workqueue.TypedRateLimitingInterface[item]
}

func (l *loop) watch(claims, volumes cache.SharedIndexInformer) error {
	enqueue := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		switch o := object.(type) {
		case *corev1.PersistentVolumeClaim:
			l.queue.Add(item{o.Namespace, o.Name})
			l.queue.Add(item{name: volumeName(o)})
		case *corev1.PersistentVolume:
			l.queue.Add(item{name: o.Name})
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	}
	for _, informer := range []cache.SharedIndexInformer{claims, volumes} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching claims and volumes: %w", err)
		}
	}
	return nil
}

func (l *loop) next(ctx context.Context) bool {
	it, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(it)
	handle := l.volume
	if it.namespace != "" {
		handle = l.claim
	}
	if err := handle(ctx, it); err != nil {
		slog.Error("volumes: will try again", "namespace", it.namespace, "name", it.name, "err", err)
		l.queue.AddRateLimited(it)
		return true
	}
	l.queue.Forget(it)
	return true
}

// claim makes the volume of a claim that waits for one.
func (l *loop) claim(ctx context.Context, it item) error {
	claim, err := l.claims.PersistentVolumeClaims(it.namespace).Get(it.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading claim %s/%s: %w", it.namespace, it.name, err)
	}
	if !needsVolume(claim) {
		return nil
	}
	all, err := l.volumes.List(everything)
	if err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	for _, v := range all {
		if isVolumeFor(v, claim) {
			return nil
		}
	}
	if l.local.Node != "" {
		if err := os.MkdirAll(l.local.path(volumeName(claim)), 0o755); err != nil {
			return fmt.Errorf("making the folder of a volume: %w", err)
		}
	}
	_, err = l.client.CoreV1().PersistentVolumes().Create(ctx, l.local.volumeFor(claim), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the volume of claim %s/%s: %w", it.namespace, it.name, err)
	}
	return nil
}

// volume deletes a volume of ours whose claim no longer exists.
func (l *loop) volume(ctx context.Context, it item) error {
	volume, err := l.volumes.Get(it.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading volume %s: %w", it.name, err)
	}
	if !isOwn(volume) || volume.DeletionTimestamp != nil {
		return nil
	}
	ref := volume.Spec.ClaimRef
	claim, err := l.claims.PersistentVolumeClaims(ref.Namespace).Get(ref.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if err == nil && claim.UID == ref.UID && volume.Status.Phase != corev1.VolumeReleased {
		return nil
	}
	err = l.client.CoreV1().PersistentVolumes().Delete(ctx, it.name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting volume %s of the deleted claim %s/%s: %w", it.name, ref.Namespace, ref.Name, err)
	}
	if l.local.Node == "" {
		return nil
	}
	if err := os.RemoveAll(l.local.path(it.name)); err != nil {
		return fmt.Errorf("deleting the folder of a volume: %w", err)
	}
	return nil
}
