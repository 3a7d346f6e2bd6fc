package installplan

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("An install plan needs a value of a required parameter only if one of its templates uses the parameter", func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	required := func(name string) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) {
			ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: name, Required: ptr.To(true)})
		}
	}
	store := gen.Template("store.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: store}\ndata: {size: \"{{ .Params.SIZE }}\"}\n")
	plans := []gen.VersionMod{required("PASSWORD"), store, gen.Template("login.yaml",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: \"{{ .Params.PASSWORD }}\"}\n"),
		gen.Apply("store", "store.yaml"), gen.Apply("login", "login.yaml"), gen.Serial("install", "store"), gen.Serial("deploy", "login"), gen.InstallPlan("install")}

	By("the parameter is one that only Instances use")
	env.Must(t, suite.Create(ctx, gen.Version(ns, "other", append(plans, gen.Param("SIZE", "1Gi", ""))...)))
	env.Eventually(t, "the install plan is complete", env.Condition(func() bool {
		return env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "other").Installed()
	}))

	By("the parameter is one that the install plan uses")
	ns = suite.NewNamespace(t)
	env.Must(t, suite.Create(ctx, gen.Version(ns, "own", append(plans, required("SIZE"))...)))
	env.Eventually(t, "the install plan has failed and names the parameter", func() string {
		st := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "own").Status.PlanStatus["install"]
		if st.Status != v1beta1.FatalError || !strings.Contains(st.Message, `parameter "SIZE" is required but has no value and no default`) ||
			!strings.Contains(st.Message, "set it with --install-parameter SIZE=…") {
			return string(st.Status) + " " + st.Message
		}
		return ""
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"installParameters":{"SIZE":"2Gi"}}}`))
	env.Must(t, suite.Patch(ctx, &v1beta1.OperatorVersion{ObjectMeta: gen.Meta(ns, "own")}, patch))
	env.Eventually(t, "the install plan is complete", env.Condition(func() bool {
		return env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "own").Installed()
	}))
	if got := env.Read(t, suite, &corev1.ConfigMap{}, ns, "store").Data["size"]; got != "2Gi" {
		t.Errorf("the size is %s", got)
	}
})
