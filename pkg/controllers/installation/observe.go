package installation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
)

// observation is what a reconcile has read.
type observation struct {
	// deleted is set if the Installation is being deleted, finalizer if it is kept until it is released.
	deleted, finalizer bool
	// subject is the object that the Installation is for, or nil if it does not exist anymore.
	subject client.Object
	// inUse says which objects need what is held; nil if none does. It is read only of an Installation that is being deleted.
	inUse *share.ReleaseBlock
	// definitions are those that may have to be migrated. They are read only of an Installation that holds what its object needs.
	definitions definitions
	// migrations is set if the status names migrations, also of definitions that are not to be migrated any more.
	migrations bool
}

// observe reads what the state depends on.
func (r *Reconciler) observe(ctx context.Context, i *v1beta1.Installation) (o observation, err error) {
	o.deleted, o.finalizer = i.DeletionTimestamp != nil, controllerutil.ContainsFinalizer(i, v1beta1.InstallationFinalizer)
	o.migrations = len(i.Status.Migrations) > 0
	if o.subject, err = r.observeSubject(ctx, i); err != nil {
		return o, err
	}
	switch {
	case o.deleted && o.finalizer:
		o.inUse, err = r.observeUse(ctx, i, o.subject)
	case !o.deleted && o.subject != nil:
		o.definitions, err = r.observeDefinitions(ctx, i)
	}
	return o, err
}

// observeSubject returns the object that the Installation is for. It returns nil only if a live answer says that the object does not exist,
// or has another uid.
func (r *Reconciler) observeSubject(ctx context.Context, i *v1beta1.Installation) (client.Object, error) {
	var subject client.Object = &v1beta1.OperatorVersion{}
	if i.Spec.Subject.Kind == "Instance" {
		subject = &v1beta1.Instance{}
	}
	key := types.NamespacedName{Namespace: i.Spec.Subject.Namespace, Name: i.Spec.Subject.Name}
	for _, reader := range []client.Reader{r.Client, r.Reader} { // the cache may lag
		err := reader.Get(ctx, key, subject)
		switch {
		case err == nil && subject.GetUID() == i.Spec.Subject.UID:
			return subject, nil
		case err != nil && !apierror.IsObjectNotFound(err):
			return nil, fmt.Errorf("%s %s: %w", i.Spec.Subject.Kind, key, err)
		}
	}
	return nil, nil
}

// observeUse says which objects still need what is held, or returns nil if none does. An Installation that a user has deleted
// stays as it is until its object is deleted: nothing that is in use is taken away.
func (r *Reconciler) observeUse(ctx context.Context, i *v1beta1.Installation, subject client.Object) (*share.ReleaseBlock, error) {
	name := fmt.Sprintf("%s %s/%s", i.Spec.Subject.Kind, i.Spec.Subject.Namespace, i.Spec.Subject.Name)
	if subject != nil && subject.GetDeletionTimestamp() == nil {
		return &share.ReleaseBlock{Reason: v1beta1.ReasonInUse, Message: name + " needs what is held: delete that, and the Installation goes " +
			"with it"}, nil
	}
	if i.Spec.Subject.Kind != "OperatorVersion" {
		return nil, nil
	}
	if subject == nil {
		successor := &v1beta1.OperatorVersion{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: i.Spec.Subject.Namespace, Name: i.Spec.Subject.Name}, successor)
		if err != nil && !apierror.IsObjectNotFound(err) {
			return nil, err
		}
		// Instances of the name are the successor's, whose own install plan has brought all that they need. One without an
		// install plan has brought nothing, and any user of the namespace may have written it.
		if err == nil && successor.Spec.InstallPlan != "" && successor.Installed() {
			return nil, nil
		}
	}
	users, err := r.listUsers(ctx, i)
	if err != nil || len(users) == 0 {
		return nil, err
	}
	message := fmt.Sprintf("%s is in use by %s: uninstall or upgrade it first", name, text.List(users, maxListed))
	if subject != nil {
		message += ", or let the OperatorVersion go without it by kubectl kudo uninstall-version --leave-users"
	}
	return &share.ReleaseBlock{Reason: v1beta1.ReasonInUse, Message: message}, nil
}

// listUsers lists the Instances that run the OperatorVersion. It reads live: the cache would wait for a slow write of any Instance.
func (r *Reconciler) listUsers(ctx context.Context, i *v1beta1.Installation) ([]string, error) {
	list := &v1beta1.InstanceList{}
	if err := r.Reader.List(ctx, list); err != nil {
		return nil, err
	}
	var out []string
	for _, user := range list.UsersOf(types.NamespacedName{Namespace: i.Spec.Subject.Namespace, Name: i.Spec.Subject.Name}) {
		out = append(out, "Instance "+user.String())
	}
	return out, nil
}

// maxListed bounds how many users are named.
const maxListed = 3
