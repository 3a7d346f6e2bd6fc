// Package faults breaks things while plans run, and checks that nothing is lost: nothing foreign changes, no data of users
// goes, each plan continues or fails with a named cause, a second run ends in the same state, and nothing leaks.
package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/lifecycle"
)

var (
	suite env.Suite
	// manager is the manager behind a proxy. All tests share it: one runs at a time.
	manager managerProxy
	// connection is passed by all requests of the tests themselves.
	connection clientGate
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
		return failed(errors.New("the cluster of KUDO_TEST_KUBECONFIG is not the tests' own, and these tests kill its parts: unset it"))
	}
	if err := narrow(); err != nil {
		return failed(err)
	}
	dir, err := os.MkdirTemp("", "kudo-faults-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if suite.Env, err = env.Start("--pod-ready-delay=0s", "--init-arg=--crd-allowed-hosts=127.0.0.1"); err != nil {
		return failed(err)
	}
	defer suite.Stop()
	if suite.Cluster, err = connection.connect(suite.Env); err != nil {
		return failed(err)
	}
	tarballs = lifecycle.ServeTarballs()
	defer tarballs.Close()
	if out, err := suite.Local("kill", "manager"); err != nil {
		return failed(fmt.Errorf("%w: %s", err, out))
	}
	if err := copyPrograms(suite.Env, dir); err != nil {
		return failed(err)
	}
	if err := manager.open(suite.Env, dir); err != nil {
		return failed(err)
	}
	defer manager.close()
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

// extent is how much is wanted: by default an even sample of the cases; all of them with KUDO_FAULTS=all; all of a part of
// the scenarios, say the second of six, with KUDO_FAULTS=2/6. A control plane on which thousands of cases have left their
// definitions gets slow, so that many cases are better run part by part.
var extent = os.Getenv("KUDO_FAULTS")

// thorough reports whether every case is wanted, and not a sample.
func thorough() bool { return extent != "" }

// narrow leaves the wanted part of the scenarios.
func narrow() error {
	n, of := 1, 1
	if extent != "" && extent != "all" {
		if _, err := fmt.Sscanf(extent, "%d/%d", &n, &of); err != nil || n < 1 || n > of {
			return fmt.Errorf("KUDO_FAULTS=%s: want all, or a part such as 2/6", extent)
		}
	}
	var kept []scenario
	for i, s := range scenarios {
		if i%of == n-1 {
			kept = append(kept, s)
		}
	}
	scenarios = kept
	return nil
}
