package installplan

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("Objects that hold data survive the deletion of kudo's own definitions, with their content", SpecPriority(1), Label("disruptive", "slow"), func() {
	t := GinkgoTB()
	own, err := env.Start()
	env.Must(t, err)
	t.Cleanup(own.Stop)
	if !own.IsDisposable() {
		t.Skip("the cluster is not the test's own: kudo cannot be removed from it")
	}
	shared := suite
	defer func() { suite = shared }()
	suite.Env = own
	suite.Cluster, err = own.Connect()
	env.Must(t, err)

	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	ship := f.ship(ns, "kon-tiki")
	env.Must(t, suite.Create(ctx, ship))
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "foreign")}))
	for _, name := range []string{"installations.kudo.dev", "operatorversions.kudo.dev", "instances.kudo.dev", "operators.kudo.dev"} {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(crds)
		crd.SetName(name)
		env.Must(t, suite.Delete(ctx, crd))
	}
	env.Consistently(t, 3*time.Second, func() { // the garbage collector takes 0.3 s
		for name, obj := range f.objects() {
			if !exists(t, obj) || obj.GetDeletionTimestamp() != nil {
				t.Errorf("%s was deleted", name)
			}
		}
		if !exists(t, ship) || !exists(t, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "foreign")}) {
			t.Error("user data was deleted")
		}
	})
})
