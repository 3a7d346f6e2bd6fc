package installplan

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("An installPlan that names no plan of the OperatorVersion is refused by the API server", func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	for _, tc := range []struct {
		reason string
		mods   []gen.VersionMod
		want   string
	}{
		{"it names a plan", []gen.VersionMod{gen.Serial("install"), gen.InstallPlan("install")}, ""},
		{"there is no install plan", []gen.VersionMod{gen.Serial("deploy")}, ""},
		{"it names none of the plans", []gen.VersionMod{gen.Serial("deploy"), gen.InstallPlan("setup")}, "there is no plan setup in spec.plans"},
		{"there are no plans", []gen.VersionMod{gen.InstallPlan("install")}, "there is no plan install in spec.plans"},
	} {
		err := suite.Create(ctx, gen.Version(ns, "web", tc.mods...), client.DryRunAll)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.reason, err)
		case tc.want == "":
		case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.installPlan") || !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
		}
	}
})

// It runs alone, as it takes the rule away for moments.
var _ = It("An OperatorVersion from before the rule on installPlan can be labeled, mended and deleted", Serial, Label("disruptive"), func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("operatorversions.kudo.dev")
	const rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"
	env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(definition), definition))
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	kept, _, _ := unstructured.NestedSlice(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-validations")
	if len(kept) != 1 {
		t.Fatalf("the rules of spec are %v, want one", kept)
	}
	text, err := json.Marshal(kept)
	env.Must(t, err)
	env.Must(t, suite.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "`+rules+`"}]`))))
	ov := gen.Version(ns, "web", gen.Serial("deploy"), gen.InstallPlan("setup"))
	env.Eventually(t, "the OperatorVersion is stored", func() string {
		if err := suite.Create(ctx, ov); err != nil {
			return err.Error()
		}
		return ""
	})
	env.Must(t, suite.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "`+rules+`", "value": `+string(text)+`}]`))))
	env.Eventually(t, "the rule is back", func() string {
		if err := suite.Create(ctx, gen.Version(ns, "other", gen.Serial("deploy"), gen.InstallPlan("setup")), client.DryRunAll); err == nil {
			return "it lets everything through"
		}
		return ""
	})
	// Before 1.33, the API server also refuses a status beside a field that was there before the rule.
	if suite.Minor(t) >= 33 {
		env.Eventually(t, "the reason in the status", func() string {
			if got := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "web").Status.AggregatedStatus; !strings.Contains(got.Message, "setup") {
				return fmt.Sprintf("%+v", got)
			}
			return ""
		})
	}
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Labels = map[string]string{"a": "b"} })
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan = "" })
	env.Must(t, suite.Delete(ctx, ov))
	env.Eventually(t, "the deletion of the OperatorVersion", func() string {
		if exists(t, ov.DeepCopy()) {
			return "it is there"
		}
		return ""
	})
})
