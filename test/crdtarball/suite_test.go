// Package crdtarball tests the CRD tarballs of Instances on a real control plane.
package crdtarball

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/env"
)

// allowLocal lets tarballs come from servers of the tests.
const allowLocal = "--init-arg=--crd-allowed-hosts=127.0.0.1"

// hasNativeMigration is set if the control plane migrates stored versions itself, which servers of earlier versions cannot.
var hasNativeMigration = os.Getenv("KUDO_TEST_KUBERNETES") == "" && os.Getenv("KUDO_TEST_KUBECONFIG") == ""

var (
	suite env.Suite
	ctx   = context.Background()
)

func TestCRDTarballs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "CRD tarballs")
}

var _ = SynchronizedBeforeSuite(
	func() []byte {
		t := GinkgoTB()
		server := serve(t)
		file := filepath.Join(t.TempDir(), "authority.pem")
		env.Must(t, os.WriteFile(file, authority(server.Server), 0o600))
		t.Setenv("SSL_CERT_FILE", file) // the manager takes it over
		args := []string{allowLocal}
		if hasNativeMigration {
			args = append(args, "--feature-gates=StorageVersionMigrator=true", "--runtime-config=storagemigration.k8s.io/v1beta1=true")
		}
		return suite.Begin(t, args...)
	},
	func(data []byte) { suite.Join(GinkgoTB(), data) },
)

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
