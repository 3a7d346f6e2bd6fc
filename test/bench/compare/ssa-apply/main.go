// Command ssa-apply applies the objects of a file by fluxcd/pkg/ssa, as Flux's kustomize-controller does, and waits until
// they are ready. It is a program of its own so that its CPU time can be told.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
)

func main() {
	file := flag.String("f", "", "file of objects")
	namespace := flag.String("n", "default", "namespace of the objects")
	wait := flag.Bool("wait", false, "wait until the objects are ready")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	if err := run(context.Background(), *file, *namespace, *wait); err != nil {
		fmt.Fprintln(os.Stderr, "ssa-apply:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, namespace string, wait bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	poller := polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(c, poller, ssa.Owner{Field: "bench", Group: "bench.kudo.dev"})
	manager.SetOwnerLabels(objects, "bench", namespace)
	manager.SetConcurrency(4) // as kustomize-controller's --concurrent-ssa
	changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil || !wait {
		return err
	}
	return manager.WaitForSetWithContext(ctx, changes.ToObjMetadataSet(), ssa.WaitOptions{Interval: 100 * time.Millisecond, Timeout: 2 * time.Minute})
}
