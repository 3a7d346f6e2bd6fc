package kudoinit

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// WaitForPolicies waits until the API server enforces the policies, which takes about a second after they were written. It sends a request
// that they must refuse: a dry run of a foreground deletion of an Installation, which it creates for this purpose and deletes afterwards.
func WaitForPolicies(ctx context.Context, c client.Client) error {
	probe := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{GenerateName: "kudo-init-probe-"}}
	probe.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: DefaultNamespace, Name: "kudo-init-probe",
		UID: types.UID(uuid.NewString())}
	if err := c.Create(ctx, probe); err != nil {
		return fmt.Errorf("probe the policies: %w", err)
	}
	defer func() { _ = client.IgnoreNotFound(c.Delete(context.WithoutCancel(ctx), probe)) }()
	foreground := metav1.DeletePropagationForeground
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := c.Delete(ctx, probe.DeepCopy(), &client.DeleteOptions{PropagationPolicy: &foreground, DryRun: []string{metav1.DryRunAll}})
		switch {
		case apierrors.IsForbidden(err):
			return nil
		case apierrors.IsNotFound(err): // a manager has deleted it, since there is no such Instance
			probe.ResourceVersion, probe.Name = "", ""
			probe.UID = ""
			if err := c.Create(ctx, probe); err != nil {
				return fmt.Errorf("probe the policies: %w", err)
			}
			if ctx.Err() == nil {
				continue // at once: the manager will delete this one too
			}
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("probe the policies: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the policies are not in force yet: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}
