// Package restore tests what becomes of Instances and install plans when their objects are exported from one control plane and
// created again in another one, as Velero does it (R32, R33, R34).
package restore

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var (
	// source is where objects are exported, target where they are created again. The manager of target is the test's own.
	source, target env.Suite
	ctx            = context.Background()
)

func TestRestore(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Restore")
}

var _ = SynchronizedBeforeSuite(
	func() []byte {
		t := GinkgoTB()
		begun := make(chan []byte)
		go func() {
			defer GinkgoRecover()
			defer close(begun)
			begun <- target.Begin(t)
		}()
		planes := [2][]byte{source.Begin(t), <-begun}
		source.Join(t, planes[0])
		target.Join(t, planes[1])
		out, err := target.Local("kill", "manager")
		Expect(err).NotTo(HaveOccurred(), out)
		copyKey(t)
		data, err := json.Marshal(planes)
		env.Must(t, err)
		return data
	},
	func(data []byte) {
		var planes [2][]byte
		env.Must(GinkgoTB(), json.Unmarshal(data, &planes))
		if source.Cluster == nil {
			source.Join(GinkgoTB(), planes[0])
			target.Join(GinkgoTB(), planes[1])
		}
	},
)

var _ = SynchronizedAfterSuite(func() {}, func() {
	source.Stop()
	target.Stop()
})

// copyKey brings the history key of the source to the target: it is part of the backup.
func copyKey(t testing.TB) {
	t.Helper()
	key := env.Read(t, source.Cluster, &corev1.Secret{}, "kudo-system", keyring.SecretName)
	env.Must(t, client.IgnoreNotFound(target.Delete(ctx, &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName)})))
	env.Must(t, target.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName), Data: key.Data, Type: key.Type}))
}
