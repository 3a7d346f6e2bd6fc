// Package crds has the commands of CustomResourceDefinitions in a cluster.
package crds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/storedversions"
	"kudo.dev/kudo/pkg/text"
)

// New returns the command crds.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "crds", Short: "Migrate the objects of CustomResourceDefinitions",
		Long: "Migrate the objects of CustomResourceDefinitions, with your own rights.",
	}
	command.SetupGroup(cmd)
	cmd.AddCommand(newMigrate(env))
	return cmd
}

type migrateOptions struct {
	env *command.Env

	rate     int
	migrator *storedversions.Migrator
}

func newMigrate(env *command.Env) *cobra.Command {
	o := &migrateOptions{env: env}
	cmd := &cobra.Command{
		Use:   "migrate NAME",
		Short: "Rewrite all objects of a CustomResourceDefinition in its storage version",
		Long: `Rewrite all objects of a CustomResourceDefinition in its storage version, and take the older versions out of its
status.storedVersions. Then a version that is not served may be removed. The manager does so by itself for definitions that kudo
has installed; this command does so for any definition, with your own rights: list and patch its objects, patch
customresourcedefinitions/status. An interrupted command can be repeated.

  kubectl kudo crds migrate backups.example.com
  kubectl kudo crds migrate backups.example.com --rate 200`,
		Args: command.ExactArgs(1, "the name of a CustomResourceDefinition"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().IntVar(&o.rate, "rate", storedversions.DefaultRate, "how many objects are rewritten in a second; 0 for no bound")
	return cmd
}

func (o *migrateOptions) run(ctx context.Context, name string) error {
	if o.rate < 0 {
		return command.UsageError("--rate is %d: give a number of objects, or 0 for no bound", o.rate)
	}
	c, config, _, err := o.env.Connect()
	if err != nil {
		return err
	}
	options := storedversions.Options{Config: config, Mapper: c.RESTMapper(), Clock: clock.RealClock{}, Rate: o.rate}
	if o.migrator, err = storedversions.New(options); err != nil {
		return err
	}
	return o.migrate(ctx, name)
}

// maxFailures is how many steps in a row may fail.
const maxFailures = 5

// retryInterval is the time until a step that has failed is taken again.
const retryInterval = 2 * time.Second

// migrate takes one step after the other.
func (o *migrateOptions) migrate(ctx context.Context, name string) error {
	state := &v1beta1.StoredVersionMigration{Definition: name}
	for failures := 0; ; {
		d, result, err := o.step(ctx, state)
		switch {
		case apierrors.IsNotFound(err) && state.UID == "":
			return fmt.Errorf("the cluster has no CustomResourceDefinition %s: kubectl get crds lists them", name)
		case err != nil:
			if failures++; failures == maxFailures || ctx.Err() != nil || apierrors.IsForbidden(err) {
				return err
			}
			result.After = retryInterval
		case result.Finished:
			o.report(d, state)
			return nil
		case state.RetryTime != nil:
			return errors.New(state.Message)
		default:
			failures = 0
			o.showProgress(state)
		}
		select {
		case <-time.After(result.After):
		case <-ctx.Done():
			return fmt.Errorf("the migration of %s was interrupted: repeat the command", name)
		}
	}
}

func (o *migrateOptions) step(
	ctx context.Context, state *v1beta1.StoredVersionMigration,
) (storedversions.Definition, storedversions.Result, error) {
	d, err := o.migrator.Get(ctx, state.Definition)
	if err != nil {
		return d, storedversions.Result{}, err
	}
	result, err := o.migrator.Step(ctx, d, state, nil)
	return d, result, err
}

func (o *migrateOptions) showProgress(state *v1beta1.StoredVersionMigration) {
	switch {
	case state.StorageVersionMigration != "":
		o.env.Progressf("StorageVersionMigration %s rewrites the objects", state.StorageVersionMigration)
	case state.Of > 0:
		o.env.Progressf("%s of %s objects rewritten", text.Grouped(state.Done), text.Grouped(state.Of))
	}
}

func (o *migrateOptions) report(d storedversions.Definition, state *v1beta1.StoredVersionMigration) {
	if state.UID == "" {
		o.env.Printf("customresourcedefinition %s needs no migration: all objects are stored in version %s", d.Name, d.Storage)
		return
	}
	o.env.Printf("customresourcedefinition %s migrated: all objects are stored in version %s", d.Name, d.Storage)
}
