// Package faults breaks things while plans run, and checks that nothing is lost: nothing foreign changes, no data of users
// goes, each plan goes on or fails with a named cause, a second run ends in the same state, and nothing leaks.
package faults

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/test/env"
)

var (
	suite env.Suite
	// line is the connection between the manager and the apiserver. All tests share it: there is one manager at a time.
	line wire
	// door is passed by all requests of the tests themselves.
	door gate
	// tarballs serves CRD tarballs.
	tarballs *httptest.Server
	ctx      = context.Background()
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(zap.New())
	if file := os.Getenv(handsFile); file != "" {
		os.Exit(steppedManager(file))
	}
	os.Exit(run(m))
}

// run starts a control plane whose own manager is dead: the tests have theirs, behind a proxy.
func run(m *testing.M) int {
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		fmt.Println("the cluster of KUDO_TEST_KUBECONFIG is not the tests' own: nothing of it is killed, and no test runs")
		return 0
	}
	dir, err := os.MkdirTemp("", "kudo-faults-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if suite.Env, err = env.Start("--pod-ready-delay=0s"); err != nil {
		return failed(err)
	}
	defer suite.Stop()
	if suite.Cluster, err = door.connect(suite.Env); err != nil {
		return failed(err)
	}
	tarballs = serveTarballs()
	defer tarballs.Close()
	if out, err := suite.Local("kill", "manager"); err != nil {
		return failed(fmt.Errorf("%w: %s", err, out))
	}
	if err := copyPrograms(suite.Env, dir); err != nil {
		return failed(err)
	}
	if err := line.open(suite.Env, dir); err != nil {
		return failed(err)
	}
	defer line.close()
	return m.Run()
}

// copyPrograms keeps the programs that are tested as they are, should a build replace them meanwhile.
func copyPrograms(e *env.Env, dir string) error {
	for _, name := range []string{"manager", "kubectl-kudo", "kudo-local"} {
		from := filepath.Join(e.Bin, name)
		if err := os.Link(from, filepath.Join(dir, name)); err == nil {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			return err
		}
	}
	e.Bin = dir
	return nil
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// thorough tells whether every case is wanted, and not an even sample of them: KUDO_FAULTS=all.
func thorough() bool { return strings.EqualFold(os.Getenv("KUDO_FAULTS"), "all") }
