package controllers

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/exploreconfig"
	"kudo.dev/kudo/pkg/controllers/instance"
	"kudo.dev/kudo/pkg/controllers/operatorversion"
	"kudo.dev/kudo/plans"
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
	p.enqueueWhere(ctx, func(*v1beta1.Instance) bool { return true }, func(*v1beta1.Installation) bool { return true })
}

// enqueueAffected enqueues the Instances and the OperatorVersions that explore rules have answered about, or are about to, and whose
// answers may have changed: those that hold objects of an affected kind, and Instances with a step that renders one. An install plan
// that runs may be about to write any kind.
func (p *parts) enqueueAffected(ctx context.Context, affects exploreconfig.Affects) {
	known := map[schema.GroupVersionKind]bool{}
	affected := func(kind schema.GroupVersionKind) bool {
		answer, asked := known[kind]
		if !asked {
			answer = affects(ctx, kind)
			known[kind] = answer
		}
		return answer
	}
	p.enqueueWhere(ctx, func(i *v1beta1.Instance) bool {
		// rulesChanged is called in each case, since it makes the run drop its answers.
		return p.rulesChanged(client.ObjectKeyFromObject(i), affected) || slices.ContainsFunc(i.Status.Resources,
			func(r v1beta1.ResourceStatus) bool {
				return affected(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
			})
	}, func(i *v1beta1.Installation) bool {
		return slices.ContainsFunc(i.Status.Resources, func(r v1beta1.HeldResource) bool {
			return affected(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
		}) || installing(ctx, p.mgr.GetClient(), i)
	})
}

// enqueueWhere enqueues the Instances for which a condition holds, and the subjects of the Installations for which another one does.
func (p *parts) enqueueWhere(ctx context.Context, instance func(*v1beta1.Instance) bool, holder func(*v1beta1.Installation) bool) {
	enqueueInstances(ctx, p.mgr.GetClient(), instance, p.enqueue)
	enqueueHolders(ctx, p.mgr.GetClient(), holder, p.enqueue,
		func(installation string) { p.versions.Send(operatorversion.ChangeOf(installation)) })
}

// enqueueInstances enqueues the Instances for which a condition holds, or none if they cannot be listed. The condition must not change
// them: they are those of the cache.
func enqueueInstances(ctx context.Context, c client.Reader, condition func(*v1beta1.Instance) bool, enqueue func(types.NamespacedName)) {
	list := &v1beta1.InstanceList{}
	if c.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for i := range list.Items {
		if condition(&list.Items[i]) {
			enqueue(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
}

// enqueueHolders enqueues the subjects of the Installations for which a condition holds: Instances, whose tarballs hold objects, by their
// key, and OperatorVersions by the name of the Installation. It enqueues none if Installations cannot be listed. The condition must not
// change them: they are those of the cache.
func enqueueHolders(ctx context.Context, c client.Reader, condition func(*v1beta1.Installation) bool, instance func(types.NamespacedName),
	version func(installation string)) {
	list := &v1beta1.InstallationList{}
	if c.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for n := range list.Items {
		i := &list.Items[n]
		if !condition(i) {
			continue
		}
		switch subject := i.Spec.Subject; subject.Kind {
		case "Instance":
			instance(types.NamespacedName{Namespace: subject.Namespace, Name: subject.Name})
		case "OperatorVersion":
			version(i.Name)
		}
	}
}

// installing reports whether the install plan of the OperatorVersion of an Installation runs.
func installing(ctx context.Context, c client.Reader, i *v1beta1.Installation) bool {
	if i.Spec.Subject.Kind != "OperatorVersion" {
		return false
	}
	ov := &v1beta1.OperatorVersion{}
	key := types.NamespacedName{Namespace: i.Spec.Subject.Namespace, Name: i.Spec.Subject.Name}
	return c.Get(ctx, key, ov, client.UnsafeDisableDeepCopy) == nil && plans.Running(ov.Status.PlanStatus) != ""
}
