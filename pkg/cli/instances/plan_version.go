package instances

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
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/plans"
)

// withOperatorVersionFlag makes a command of an Instance work on the install plan of an OperatorVersion too, if --operator-version is
// given.
func withOperatorVersionFlag(env *command.Env, cmd *cobra.Command, run func(ctx context.Context, c client.WithWatch,
	ov *v1beta1.OperatorVersion) error) *cobra.Command {
	var name string
	cmd.Flags().StringVar(&name, "operator-version", "", "name of an OperatorVersion, for its install plan instead of an Instance's plans")
	instance := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if name == "" {
			return instance(cmd, args)
		}
		if cmd.Flags().Changed("instance") {
			return command.UsageError("--instance and --operator-version exclude each other")
		}
		c, _, namespace, err := env.Connect()
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

func versionStatus(env *command.Env, output *string, w *command.WaitFlags) func(context.Context, client.WithWatch,
	*v1beta1.OperatorVersion) error {
	return func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
		if err := installs(ov); err != nil {
			return err
		}
		var failed error
		if w.Wait {
			failed = env.WaitForVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(w.Time), command.UntilInstalled(ov.UID))
			if err := c.Get(ctx, client.ObjectKeyFromObject(ov), ov); err != nil {
				return errors.Join(failed, err)
			}
		}
		if *output != "" {
			return errors.Join(failed, env.PrintValue(*output, ov.Status))
		}
		details := ""
		if failed == nil { // else the error has them
			details = env.ExplainVersion(ctx, c, ov)
		}
		return errors.Join(failed, env.Print(command.FormatInstallPlan(ov, env.Now()), details))
	}
}

func retryVersion(env *command.Env, w *command.WaitFlags) func(context.Context, client.WithWatch, *v1beta1.OperatorVersion) error {
	return func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
		if err := installs(ov); err != nil {
			return err
		}
		_, st := plans.LatestRun(ov.Status.PlanStatus)
		if st.Status != v1beta1.FatalError {
			return fmt.Errorf("the install plan of operatorversion %s/%s has not failed: it is %s", ov.Namespace, ov.Name,
				ov.Status.AggregatedStatus.Status)
		}
		patch := client.MergeFrom(ov.DeepCopy())
		metav1.SetMetaDataAnnotation(&ov.ObjectMeta, v1beta1.RetryAnnotation, string(st.UID))
		if err := c.Patch(ctx, ov, patch); err != nil {
			return err
		}
		env.Printf("install plan of operatorversion %s/%s is being retried", ov.Namespace, ov.Name)
		if !w.Wait {
			return nil
		}
		return env.WaitForVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(w.Time), command.UntilInstalled(ov.UID))
	}
}
