// Package pipes tests Pipe tasks on a real control plane. Its nodes cannot run commands, so the test says what the files of
// a pod hold; all else is real.
package pipes

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/pkg/controllers"
	"kudo.dev/kudo/test/env"
)

var (
	suite env.Suite
	// made are the files of all pods, on process 1.
	made = &files{content: map[string]string{
		"index.html": "<p>hello</p>", "key.pem": "secret", "env": "# made\nA=1\nB=x=y\n", "huge": strings.Repeat("x", 1<<20+1),
	}}
	stopManager = func() {}
)

func TestPipes(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Pipes")
}

var _ = SynchronizedBeforeSuite(func() []byte {
	t := GinkgoTB()
	plane := suite.Begin(t)
	if !suite.IsDisposable() {
		t.Skip("the cluster is not the suite's own: its manager cannot be replaced")
	}
	if out, err := suite.Local("kill", "manager"); err != nil {
		t.Fatal(out, err)
	}
	startManager(t)
	return plane
}, func(plane []byte) { suite.Join(GinkgoTB(), plane) })

var _ = SynchronizedAfterSuite(func() {}, func() {
	stopManager()
	suite.Stop()
})

// startManager runs a manager in the suite's first process, under the rights of the ServiceAccount.
func startManager(t testing.TB) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", suite.ManagerKubeconfig())
	env.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := controllers.NewManager(ctx, config, controllers.Options{
		Namespace: "kudo-system", MetricsAddress: "0", HealthAddress: "0", Workers: 4, PipeImage: "kudo-manager:dev", Executor: made,
	})
	env.Must(t, err)
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	stopManager = func() { cancel(); <-done }
}
