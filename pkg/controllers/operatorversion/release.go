package operatorversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// releaseVersion requests the release of the Installation, and removes the finalizer afterwards. It removes the finalizer at once if the
// namespace is being deleted, or if the version is to be deleted although Instances use it: the Installation is then released later, after
// the last of these Instances.
func (a *action) releaseVersion(ctx context.Context) error {
	if a.installation == nil {
		return a.SetFinalizer(ctx, v1beta1.OperatorVersionFinalizer, false)
	}
	leaves, err := a.leavesUsersBehind(ctx)
	if err != nil {
		return err
	}
	forced := a.Next.Annotations[v1beta1.ForceReleaseAnnotation]
	if leaves {
		forced = "" // not yet known which data would be destroyed then
	}
	if forced == "true" {
		if left, err := a.hasLeft(ctx); left || err != nil {
			return err
		}
	}
	if err := a.releaseInstallation(ctx, forced); err != nil {
		return err
	}
	terminating, err := a.IsNamespaceTerminating(ctx)
	if err != nil || !terminating && !leaves {
		return err
	}
	return a.SetFinalizer(ctx, v1beta1.OperatorVersionFinalizer, false)
}

// hasLeft reports whether the OperatorVersion does not exist any more, although the cache still has it. It was then deleted while Instances
// used it, and their data must not be destroyed by force, even if the last of them is deleted by now.
func (a *action) hasLeft(ctx context.Context) (bool, error) {
	live := &v1beta1.OperatorVersion{}
	err := a.Reader.Get(ctx, client.ObjectKeyFromObject(a.Next), live)
	if apierror.IsObjectNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read OperatorVersion %s/%s: %w", a.Next.Namespace, a.Next.Name, err)
	}
	return live.UID != a.Next.UID || !controllerutil.ContainsFinalizer(live, v1beta1.OperatorVersionFinalizer), nil
}

// leavesUsersBehind reports whether Instances use the OperatorVersion, and its deletion does not wait for them.
func (a *action) leavesUsersBehind(ctx context.Context) (bool, error) {
	if a.Next.Annotations[v1beta1.LeaveUsersAnnotation] != "true" {
		return false, nil
	}
	list := &v1beta1.InstanceList{}
	if err := a.Reader.List(ctx, list); err != nil {
		return false, fmt.Errorf("list Instances that use OperatorVersion %s/%s: %w", a.Next.Namespace, a.Next.Name, err)
	}
	return len(list.UsersOf(client.ObjectKeyFromObject(a.Next))) > 0, nil
}

// releaseInstallation asks for the deletion of the Installation, by force if that is "true", and shows what it waits for.
func (a *action) releaseInstallation(ctx context.Context, forced string) error {
	if forced != a.installation.Annotations[v1beta1.ForceReleaseAnnotation] {
		patch := client.MergeFrom(a.installation.DeepCopy())
		a.installation = a.installation.DeepCopy()
		metav1.SetMetaDataAnnotation(&a.installation.ObjectMeta, v1beta1.ForceReleaseAnnotation, forced)
		if err := a.Client.Patch(ctx, a.installation, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if a.installation.DeletionTimestamp == nil {
		background, uid := metav1.DeletePropagationBackground, a.installation.UID
		err := a.Client.Delete(ctx, a.installation, &client.DeleteOptions{PropagationPolicy: &background,
			Preconditions: &metav1.Preconditions{UID: &uid}})
		return client.IgnoreNotFound(err)
	}
	if waits := meta.FindStatusCondition(a.installation.Status.Conditions, v1beta1.ReleasedCondition); waits != nil {
		a.setCondition(v1beta1.ReleasedCondition, waits.Status, waits.Reason, waits.Message)
		a.Next.Status.AggregatedStatus.Message = waits.Message
	}
	return a.Commit(ctx)
}
