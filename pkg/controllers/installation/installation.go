// Package installation is the controller of Installations: it releases what they hold when the object that they are for
// goes, or has gone without a word.
package installation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/requeue"
	"kudo.dev/kudo/pkg/share"
)

// Reconciler releases Installations.
type Reconciler struct {
	// Client reads kudo's own kinds from a cache that shows what was written through it.
	Client client.Client
	// Reader reads live.
	Reader client.Reader
	Share  *share.Engine
	Events record.EventRecorder

	queue *requeue.Queue
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i := &v1beta1.Installation{}
	if err := r.queue.Read(ctx, req.NamespacedName, i, r.Client, r.Reader); err != nil {
		if apierrors.IsNotFound(err) {
			r.queue.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return r.queue.Failed(ctx, req.NamespacedName, err)
	}
	result, err := r.reconcile(ctx, i.DeepCopy())
	if err != nil {
		return r.queue.Failed(ctx, req.NamespacedName, err)
	}
	r.queue.Seen(req.NamespacedName)
	r.queue.Done(req.NamespacedName)
	return result, nil
}

func (r *Reconciler) reconcile(ctx context.Context, i *v1beta1.Installation) (ctrl.Result, error) {
	subject, err := r.subject(ctx, i)
	if err != nil {
		return ctrl.Result{}, err
	}
	if i.DeletionTimestamp == nil {
		if subject != nil {
			return ctrl.Result{}, nil
		}
		background := metav1.DeletePropagationBackground
		err := r.Client.Delete(ctx, i, &client.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &i.UID}})
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !controllerutil.ContainsFinalizer(i, v1beta1.InstallationFinalizer) {
		return ctrl.Result{}, nil
	}
	block, err := r.inUse(ctx, i, subject)
	if err != nil {
		return ctrl.Result{}, err
	}
	if block != nil {
		return r.wait(ctx, i, block)
	}
	return r.release(ctx, i)
}

// subject returns the object that the Installation is for; nil if it is gone: a live answer that names it, or another uid.
func (r *Reconciler) subject(ctx context.Context, i *v1beta1.Installation) (client.Object, error) {
	var subject client.Object = &v1beta1.OperatorVersion{}
	if i.Spec.For.Kind == "Instance" {
		subject = &v1beta1.Instance{}
	}
	key := types.NamespacedName{Namespace: i.Spec.For.Namespace, Name: i.Spec.For.Name}
	for _, reader := range []client.Reader{r.Client, r.Reader} { // the cache may lag
		err := reader.Get(ctx, key, subject)
		switch {
		case err == nil && subject.GetUID() == i.Spec.For.UID:
			return subject, nil
		case err != nil && !apply.Gone(err):
			return nil, fmt.Errorf("%s %s: %w", i.Spec.For.Kind, key, err)
		}
	}
	return nil, nil
}

// inUse says who still needs what is held; nil if nobody does. An Installation that was deleted by hand stays as it is
// until its object goes: nothing that is in use is taken away.
func (r *Reconciler) inUse(ctx context.Context, i *v1beta1.Installation, subject client.Object) (*share.Block, error) {
	name := fmt.Sprintf("%s %s/%s", i.Spec.For.Kind, i.Spec.For.Namespace, i.Spec.For.Name)
	if subject != nil && subject.GetDeletionTimestamp() == nil {
		return &share.Block{Reason: v1beta1.ReasonInUse, Message: name + " needs what is held: delete that, and the Installation goes with it"}, nil
	}
	if i.Spec.For.Kind != "OperatorVersion" {
		return nil, nil
	}
	if subject == nil {
		successor := &v1beta1.OperatorVersion{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: i.Spec.For.Namespace, Name: i.Spec.For.Name}, successor)
		if err != nil && !apply.Gone(err) {
			return nil, err
		}
		// Instances of the name are the successor's, whose own install plan has brought all that they need. One without an
		// install plan has brought nothing, and anybody may have written it.
		if err == nil && successor.Spec.InstallPlan != "" && successor.Installed() {
			return nil, nil
		}
	}
	users, err := r.users(ctx, i)
	if err != nil || len(users) == 0 {
		return nil, err
	}
	return &share.Block{Reason: v1beta1.ReasonInUse, Message: fmt.Sprintf("%s is in use by %s: uninstall or upgrade it first", name, listed(users))}, nil
}

// users are the Instances that run the OperatorVersion.
func (r *Reconciler) users(ctx context.Context, i *v1beta1.Installation) ([]string, error) {
	list := &v1beta1.InstanceList{}
	if err := r.Client.List(ctx, list); err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: i.Spec.For.Namespace, Name: i.Spec.For.Name}
	var out []string
	for n := range list.Items {
		if user := &list.Items[n]; user.Uses(key) {
			out = append(out, fmt.Sprintf("Instance %s/%s", user.Namespace, user.Name))
		}
	}
	slices.Sort(out)
	return out, nil
}

// shown bounds how many users are named.
const shown = 3

func listed(users []string) string {
	text := ""
	for n, user := range users {
		switch {
		case n == shown:
			return fmt.Sprintf("%s and %d more", text, len(users)-shown)
		case n > 0:
			text += ", "
		}
		text += user
	}
	return text
}

// release lets go of all that is held, in reverse order of installation, when nothing is in the way of any of it.
func (r *Reconciler) release(ctx context.Context, i *v1beta1.Installation) (ctrl.Result, error) {
	forced := i.Annotations[v1beta1.ForceReleaseAnnotation] == "true"
	session := r.Share.Session(i, share.Policy{}, share.Inventory(i.Status.Resources))
	if !forced {
		block, err := session.Blocked(ctx)
		if err != nil {
			return ctrl.Result{}, err
		}
		if block != nil {
			return r.wait(ctx, i, block)
		}
	}
	var left []v1beta1.HeldResource
	for n := len(i.Status.Resources) - 1; n >= 0; n-- {
		removal := session.Leave(ctx, i.Status.Resources[n], forced)
		if removal.Err != nil {
			return ctrl.Result{}, removal.Err
		}
		if !removal.Gone {
			left = append(left, i.Status.Resources[:n+1]...)
			written := i.DeepCopy()
			i.Status.Resources = left
			return r.commit(ctx, written, i, &share.Block{Reason: v1beta1.ReasonReleasing, Message: removal.Waiting})
		}
	}
	patch := client.MergeFromWithOptions(i.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(i, v1beta1.InstallationFinalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Client.Patch(ctx, i, patch))
}

func (r *Reconciler) wait(ctx context.Context, i *v1beta1.Installation, block *share.Block) (ctrl.Result, error) {
	return r.commit(ctx, i.DeepCopy(), i, block)
}

// commit writes what the release waits for.
func (r *Reconciler) commit(ctx context.Context, written, i *v1beta1.Installation, block *share.Block) (ctrl.Result, error) {
	before := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReleasedCondition).DeepCopy()
	meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
		Type: v1beta1.ReleasedCondition, Status: metav1.ConditionFalse, Reason: block.Reason, Message: block.Message, ObservedGeneration: i.Generation,
	})
	again := ctrl.Result{RequeueAfter: lookAgain}
	if equality.Semantic.DeepEqual(written.Status, i.Status) {
		return again, nil
	}
	if err := r.Client.Status().Patch(ctx, i, client.MergeFromWithOptions(written, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if before == nil || before.Reason != block.Reason {
		r.Events.Event(i, corev1.EventTypeWarning, v1beta1.EventReleaseWaits, block.Message)
	}
	return again, nil
}
