package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/instance"
	"kudo.dev/kudo/pkg/controllers/operatorversion"
)

// send passes a change of an object on to the controllers that it may concern.
func (p *parts) send(obj *unstructured.Unstructured) {
	p.instances.Send(obj)
	if len(v1beta1.OwningInstallations(obj)) > 0 {
		p.versions.Send(obj)
		p.installations.Send(obj)
	}
}

// enqueue enqueues an Instance.
func (p *parts) enqueue(key types.NamespacedName) { p.instances.Send(instance.ChangeOf(key)) }

// enqueueAll enqueues all Instances, and all OperatorVersions that hold objects: what their plans decide by has changed.
func (p *parts) enqueueAll(ctx context.Context) {
	enqueueInstances(ctx, p.mgr.GetClient(), p.enqueue)
	enqueueVersions(ctx, p.mgr.GetClient(), func(installation string) { p.versions.Send(operatorversion.ChangeOf(installation)) })
}

// enqueueInstances enqueues all Instances, or none if they cannot be listed.
func enqueueInstances(ctx context.Context, c client.Reader, enqueue func(types.NamespacedName)) {
	list := &v1beta1.InstanceList{}
	if c.List(ctx, list) != nil {
		return
	}
	for i := range list.Items {
		enqueue(client.ObjectKeyFromObject(&list.Items[i]))
	}
}

// enqueueVersions enqueues all OperatorVersions that have an Installation, by its name, or none if Installations cannot be listed.
func enqueueVersions(ctx context.Context, c client.Reader, enqueue func(installation string)) {
	list := &v1beta1.InstallationList{}
	if c.List(ctx, list) != nil {
		return
	}
	for _, i := range list.Items {
		if i.Spec.Subject.Kind == "OperatorVersion" {
			enqueue(i.Name)
		}
	}
}
