package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/diagnostics"
)

type diagnosticsOptions struct {
	instance, file, dir string
	since               seconds
}

func (t *tool) diagnosticsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "diagnostics", Short: "Collect what helps to find out what is wrong"}
	group(cmd)
	o := &diagnosticsOptions{}
	collect := &cobra.Command{
		Use:   "collect --instance NAME",
		Short: "Collect all about an Instance and its children into an archive, without what is secret",
		Long: `Collect an Instance, its children, what they run, their history, objects, events, pods and logs, and the manager's, into
a .tar.gz. The data of Secrets, sensitive parameters, and what looks like a credential are left out. What could not be
collected is listed in the archive, in errors.yaml.

  kubectl kudo diagnostics collect --instance db
  kubectl kudo diagnostics collect --instance db -O diag --log-since 2h`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.collect(cmd.Context(), o) },
	}
	instanceFlag(collect, &o.instance)
	f := collect.Flags()
	f.StringVarP(&o.file, "output", "o", "", "archive to write (default diag-NAMESPACE-NAME.tar.gz)")
	f.StringVarP(&o.dir, "output-directory", "O", "", "folder to write to, instead of an archive")
	f.StringVar(&o.dir, "dir", "", "the same as --output-directory")
	f.Var(&o.since, "log-since", "take lines of logs that are not older than this only: seconds, or a duration such as 2h")
	collect.MarkFlagsMutuallyExclusive("output", "output-directory", "dir")
	cmd.AddCommand(collect)
	return cmd
}

func (t *tool) collect(ctx context.Context, o *diagnosticsOptions) (err error) {
	if o.instance == "" {
		return errNoInstance
	}
	c, config, namespace, err := t.connect()
	if err != nil {
		return err
	}
	target := o.dir
	if target == "" {
		target = o.file
	}
	if target == "" {
		target = fmt.Sprintf("diag-%s-%s.tar.gz", namespace, o.instance)
	}
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s exists already: remove it, or choose another name with --output or --output-directory", target)
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// Beside the target, so that it can be renamed, and so that nobody finds half of it there.
	dir, err := os.MkdirTemp(filepath.Dir(target), ".kudo-diag-")
	if err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	limits := diagnostics.DefaultLimits()
	collector := &diagnostics.Collector{
		Client: c, Set: set, Version: Version, Since: time.Duration(o.since), Limits: limits,
		Progress: func(what string) { t.progress("collecting: %s", what) },
	}
	failed, err := collector.Collect(ctx, types.NamespacedName{Namespace: namespace, Name: o.instance}, diagnostics.NewFolder(dir, limits.Total))
	if err != nil {
		return err
	}
	if o.dir != "" {
		err = os.Rename(filepath.Join(dir, "diag"), target)
	} else {
		err = packFolder(dir, target)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	if len(failed) > 0 {
		t.warn("%d things could not be collected, or not in full: errors.yaml lists them. The first is %s: %s", len(failed), failed[0].What, failed[0].Error)
	}
	t.say("diagnostics of instance %s/%s written to %s", namespace, o.instance, target)
	return nil
}

// packFolder writes an archive of a folder, in full or not at all.
func packFolder(dir, target string) error {
	file, err := os.CreateTemp(filepath.Dir(target), ".kudo-diag-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = archive.Write(file, os.DirFS(dir))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
