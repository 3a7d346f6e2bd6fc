package kudoinit

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renewal is how long a manager that works may take to renew its lease: it does so every two seconds.
const renewal = 10 * time.Second

// manager checks that one works, and which.
func (i *inspection) manager(ctx context.Context) []Finding {
	works := Finding{Check: "manager works", State: OK}
	holder, err := Leader(ctx, i.client, i.live.Namespace)
	switch {
	case err != nil:
		works.State, works.Message, works.Remedy = Failed, err.Error(), "kubectl get pods -n "+i.live.Namespace+" -l app=kudo-manager"
	case i.live.External:
		works.Message = "outside of the cluster, as " + holder
	default:
		works.Message = "as " + holder
	}
	if i.live.External {
		if err != nil {
			works.Message, works.Remedy = "there is no Deployment of it, and outside of the cluster "+works.Message, again+
				", or start the external manager"
		}
		return []Finding{works}
	}
	return []Finding{works, i.managerVersion(ctx)}
}

// managerVersion compares the Deployment's version with the installed one.
func (i *inspection) managerVersion(ctx context.Context) Finding {
	found := Finding{Check: "version of the manager", State: OK}
	deployment := &appsv1.Deployment{}
	if there, err := getIfPresent(ctx, i.client, deployment, i.live.Namespace, deploymentName); err != nil || !there {
		return Finding{found.Check, Failed, "Deployment " + deploymentName + " cannot be read", again}
	}
	version := deployment.Spec.Template.Annotations[VersionAnnotation]
	found.Message = fmt.Sprintf("%s, image %s", orUnknown(version), i.live.Image)
	if version != i.version || Image != "" && !isOwn(i.live.Image) {
		found.State, found.Remedy = Warning, again
		found.Message += ", and this command is " + orUnknown(i.version)
	}
	return found
}

// Leader waits until the leading manager renews its lease, and returns its name. It compares no times, since the clocks may differ. An
// error says that no manager is running.
func Leader(ctx context.Context, c client.Client, namespace string) (string, error) {
	lease := &coordinationv1.Lease{}
	there, err := getIfPresent(ctx, c, lease, namespace, leaseName)
	if err != nil {
		return "", err
	}
	if !there || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return "", fmt.Errorf("no manager runs: the lease %s/%s has no holder", namespace, leaseName)
	}
	first, renewed := lease.Spec.RenewTime, lease.DeepCopy()
	ctx, cancel := context.WithTimeout(ctx, renewal)
	defer cancel()
	err = poll(ctx, func() (string, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(lease), renewed); err != nil {
			return "", err
		}
		if renewed.Spec.RenewTime.Equal(first) {
			return fmt.Sprintf("%s, which has the lease %s/%s, has stopped renewing it", ptr.Deref(lease.Spec.HolderIdentity, ""), namespace,
				leaseName), nil
		}
		return "", nil
	})
	if err != nil {
		return "", fmt.Errorf("no manager runs: %s", strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error()))
	}
	if holder := ptr.Deref(renewed.Spec.HolderIdentity, ""); holder != "" {
		return holder, nil
	}
	return "", fmt.Errorf("no manager runs: the last one has given its lease up")
}
