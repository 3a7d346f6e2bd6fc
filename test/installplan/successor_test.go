package installplan

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("An OperatorVersion without install plan does not take the place of one whose Instances need what it has installed", Label("successor", "T19"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	otto := as(t, ns, "otto", rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: []string{"get", "create", "patch", "delete"}})
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	use(t, ov, ns, "user")
	env.Eventually(t, "the annotation", func() string { // roles take a moment
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kudo.dev/leave-users":"true"}}}`))
		if err := otto.Patch(ctx, ov.DeepCopy(), patch); err != nil {
			return err.Error()
		}
		return ""
	})
	env.Must(t, otto.Delete(ctx, ov.DeepCopy()))
	absent(t, ov)
	plain := gen.Version(ns, "fleet", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, otto.Create(ctx, plain))
	for n := range 4 { // each change of the Instance has the Installation reconciled
		value(t, ns, "user", fmt.Sprint(n))
		_, err := suite.Await(ctx, ns, "user", env.DefaultTimeout, env.PlanEnded("deploy", int64(n)+2))
		env.Must(t, err)
		f.held(t, ov, "Instance "+ns+"/user")
	}
	env.Must(t, suite.Delete(ctx, gen.Instance("user", ov, nil)))
	env.Eventually(t, "the end of the Installation", func() string {
		if i := holder(ov); i != nil {
			return fmt.Sprintf("%+v", i.Status)
		}
		return ""
	})
	f.all(t, false)
})
