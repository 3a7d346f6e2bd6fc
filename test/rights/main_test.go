// Package rights shows on a real control plane that the rights which kudo computes for the plans of a package are enough,
// and that none of them is too much.
package rights

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/pkg/controllers"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/test/env"
)

var (
	suite env.Suite
	// playsFiles is set if files of Pipe tasks can be read: nodes that are played run no commands, so the test's own manager
	// says what they hold.
	playsFiles bool
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most of the time, plans wait for pods
	suite.Setup = setup
	suite.Main(m)
}

// setup replaces the manager of a control plane of the test's own.
func setup() (func() error, error) {
	if !suite.IsDisposable() {
		return func() error { deleteShared(); return nil }, nil
	}
	stop, err := manage()
	if err != nil {
		return nil, err
	}
	return func() error { deleteShared(); stop(); return nil }, nil
}

// files answers `cat -- FILE`.
type files struct{}

// Output implements runner.Executor.
func (files) Output(_ context.Context, _ string, _ podexec.Container, command []string, _ int) ([]byte, error) {
	return []byte("content of " + path.Base(command[len(command)-1])), nil
}

// manage replaces the manager by one of the test's own, with the same rights.
func manage() (stop func(), err error) {
	if out, err := suite.Local("kill", "manager"); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	config, err := clientcmd.BuildConfigFromFlags("", suite.ManagerKubeconfig())
	if err != nil {
		return nil, err
	}
	cache, err := os.MkdirTemp("", "kudo-test-crds-")
	if err != nil {
		return nil, err
	}
	options := controllers.Options{Namespace: "kudo-system", MetricsAddress: "0", HealthAddress: "0", Workers: 8, PipeImage: "kudo-manager:dev", Executor: files{}}
	options.Tarballs.Cache.Dir, options.Tarballs.Cache.Limits = cache, crdtarball.DefaultLimits()
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := controllers.NewManager(ctx, config, options)
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	playsFiles = true
	return func() { cancel(); <-done; _ = os.RemoveAll(cache) }, nil
}
