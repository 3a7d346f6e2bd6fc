package installation

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
)

// release releases all that is held, in reverse order of installation, unless one of the objects blocks it. This is checked here and not in
// observe, since the check also protects an object against new users.
func (a *action) release(ctx context.Context) (loop.Result, error) {
	forced, err := a.isForced(ctx)
	if err != nil {
		return loop.Result{}, err
	}
	session := a.Share.Session(a.Next, share.Policy{}, share.Inventory(a.Next.Status.Resources))
	if !forced {
		block, err := session.Blocked(ctx)
		if err != nil {
			return loop.Result{}, err
		}
		if block != nil {
			return a.reportBlocked(block), nil
		}
	}
	for n, r := range slices.Backward(a.Next.Status.Resources) {
		removal := session.Release(ctx, r, forced)
		if removal.Err != nil {
			return loop.Result{}, removal.Err
		}
		if !removal.Done {
			a.Next.Status.Resources = slices.Clone(a.Next.Status.Resources[:n+1])
			return a.reportBlocked(&share.ReleaseBlock{Reason: v1beta1.ReasonReleasing, Message: removal.Waiting}), nil
		}
	}
	return loop.Done, a.SetFinalizer(ctx, v1beta1.InstallationFinalizer, false)
}

// isForced reports whether objects that hold data are destroyed with the others. It reads the Installation live, and after the users: when
// an OperatorVersion is deleted and leaves users behind, the force is withdrawn before the last user is deleted.
func (a *action) isForced(ctx context.Context) (bool, error) {
	if a.Next.Annotations[v1beta1.ForceReleaseAnnotation] != "true" {
		return false, nil
	}
	live := &v1beta1.Installation{}
	if err := a.Reader.Get(ctx, client.ObjectKeyFromObject(a.Next), live); err != nil {
		return false, fmt.Errorf("read Installation %s: %w", a.Next.Name, err)
	}
	return live.UID == a.Next.UID && live.Annotations[v1beta1.ForceReleaseAnnotation] == "true", nil
}
