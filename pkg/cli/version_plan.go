package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// onVersion makes a command of an Instance work on the install plan of an OperatorVersion too, if --operator-version is
// given.
func (t *tool) onVersion(cmd *cobra.Command, run func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error) *cobra.Command {
	var name string
	cmd.Flags().StringVar(&name, "operator-version", "", "name of an OperatorVersion, for its install plan instead of an Instance's plans")
	instance := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if name == "" {
			return instance(cmd, args)
		}
		if cmd.Flags().Changed("instance") {
			return usage("--instance and --operator-version exclude each other")
		}
		c, _, namespace, err := t.connect()
		if err != nil {
			return err
		}
		ov, err := findVersion(cmd.Context(), c, namespace, name)
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, ov)
	}
	return cmd
}

// findVersion reads an OperatorVersion that has an install plan.
func findVersion(ctx context.Context, c client.Client, namespace, name string) (*v1beta1.OperatorVersion, error) {
	ov := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, ov); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("operatorversion %s/%s does not exist: kubectl kudo get operatorversions lists them", namespace, name)
		}
		return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, name, err)
	}
	return ov, nil
}

// installs refuses an OperatorVersion without install plan.
func installs(ov *v1beta1.OperatorVersion) error {
	if ov.Spec.InstallPlan == "" {
		return fmt.Errorf("operatorversion %s/%s has no install plan", ov.Namespace, ov.Name)
	}
	return nil
}

// versionVerdict says whether a wait for an OperatorVersion is over. A nil one is gone.
type versionVerdict func(*v1beta1.OperatorVersion) (done bool, err error)

// installed is the verdict of a wait for the end of the install plan; besides is the uid of a run that does not count.
func installed(uid, besides types.UID) versionVerdict {
	return func(ov *v1beta1.OperatorVersion) (bool, error) {
		switch {
		case ov == nil, ov.UID != uid:
			return true, fmt.Errorf("the OperatorVersion was deleted")
		case ov.Spec.InstallPlan == "":
			return true, nil
		case ov.Status.ObservedGeneration < ov.Generation:
			return false, nil
		}
		st := ov.Status.PlanStatus[ov.Spec.InstallPlan]
		if besides != "" && st.UID == besides {
			return false, nil
		}
		switch a := ov.Status.AggregatedStatus; a.Status {
		case v1beta1.FatalError:
			return true, &codeError{ExitFailed, fmt.Errorf("install plan %s of operatorversion %s/%s failed: %s", ov.Spec.InstallPlan, ov.Namespace, ov.Name, a.Message)}
		case v1beta1.Complete:
			return true, nil
		}
		return false, nil
	}
}

// awaitVersion follows an OperatorVersion until the verdict is in, and draws its install plan meanwhile.
func (t *tool) awaitVersion(ctx context.Context, c client.WithWatch, key types.NamespacedName, limit time.Duration, over versionVerdict) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, start := screen{t: t}, time.Now()
	var ov *v1beta1.OperatorVersion
	draw := func() {
		if t.terminal() && ov != nil {
			s.draw(installTree(ov, time.Now()) + fmt.Sprintf("%s elapsed", time.Since(start).Round(time.Second)))
		}
	}
	for {
		known := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		done, err := observe(ctx, c, &v1beta1.OperatorVersionList{}, known, draw, func(obj client.Object) (bool, error) {
			ov, _ = obj.(*v1beta1.OperatorVersion)
			return over(ov)
		})
		switch {
		case done:
			draw()
			return err
		case ctx.Err() == context.DeadlineExceeded:
			message := "it has no status: is the manager running?"
			if ov != nil && ov.Status.AggregatedStatus.Message != "" {
				message = ov.Status.AggregatedStatus.Message
			} else if ov != nil && ov.Status.AggregatedStatus.Status != "" {
				message = "its install plan is " + string(ov.Status.AggregatedStatus.Status)
			}
			return &codeError{ExitTimeout, fmt.Errorf("operatorversion %s is not done after %s: %s", key, limit, message)}
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			return err
		}
	}
}

func (t *tool) versionStatus(output *string, w *waiting) func(context.Context, client.WithWatch, *v1beta1.OperatorVersion) error {
	return func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
		if err := installs(ov); err != nil {
			return err
		}
		var failed error
		if w.wait {
			failed = t.awaitVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(w.time), installed(ov.UID, ""))
			if err := c.Get(ctx, client.ObjectKeyFromObject(ov), ov); err != nil {
				return errors.Join(failed, err)
			}
		}
		if *output != "" {
			return errors.Join(failed, t.printAny(*output, ov.Status))
		}
		_, err := fmt.Fprint(t.out, installTree(ov, time.Now()))
		return errors.Join(failed, err)
	}
}

func (t *tool) retryVersion(w *waiting) func(context.Context, client.WithWatch, *v1beta1.OperatorVersion) error {
	return func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
		if err := installs(ov); err != nil {
			return err
		}
		st := ov.Status.PlanStatus[plans.Last(ov.Status.PlanStatus)]
		if st.Status != v1beta1.FatalError {
			return fmt.Errorf("the install plan of operatorversion %s/%s has not failed: it is %s", ov.Namespace, ov.Name, ov.Status.AggregatedStatus.Status)
		}
		patch := client.MergeFrom(ov.DeepCopy())
		metav1.SetMetaDataAnnotation(&ov.ObjectMeta, v1beta1.RetryAnnotation, string(st.UID))
		if err := c.Patch(ctx, ov, patch); err != nil {
			return err
		}
		t.say("install plan of operatorversion %s/%s is being retried", ov.Namespace, ov.Name)
		if !w.wait {
			return nil
		}
		return t.awaitVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(w.time), installed(ov.UID, st.UID))
	}
}
