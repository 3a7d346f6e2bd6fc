package install

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("The command init --verify tries each policy, and names one that refuses nothing any more", Label("verify-policies", "slow"), func() {
	t := GinkgoTB()
	e, c := startBare(t)
	ctx := context.Background()
	e.MustKudo(t, 0, "init", "--wait", "--kudo-image", "example.org/kudo:1")
	always := []string{"kudo-install", "kudo-instance-crds", "kudo-force-release", "kudo-installations", "kudo-account", "kudo-version", "kudo-adopt",
		"kudo-package-policies", "kudo-status", "kudo-history", "kudo-privileged", "kudo-home", "kudo-sources-1", "kudo-sources-2", "kudo-fence"}
	// states returns what is said of each policy that is tried.
	states := func() map[string]string {
		t.Helper()
		out, _ := e.Kudo("init", "--verify") // no manager runs, so that there are findings
		said := map[string]string{}
		for _, line := range strings.Split(out, "\n") {
			if fields := strings.Fields(line); len(fields) > 4 && fields[1] == "policy" && fields[3] == "in" {
				said[fields[2]] = fields[0] + " " + strings.Join(fields[5:], " ")
			}
		}
		return said
	}
	wants := func(said map[string]string, text string, policies ...string) {
		t.Helper()
		for _, policy := range policies {
			if !strings.Contains(said[policy], text) {
				t.Errorf("%s: %q lacks %q", policy, said[policy], text)
			}
		}
	}

	t.Log("without objects that the others look at")
	said := states()
	wants(said, "OK", always...)
	for _, policy := range []string{"kudo-finalizer", "kudo-leave-users", "kudo-privileged-use"} {
		if said[policy] != "" {
			t.Errorf("%s cannot have been tried, and is said to be %q", policy, said[policy])
		}
	}

	t.Log("with them")
	ov := gen.Version("default", "plain", gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ov.Finalizers = []string{v1beta1.OperatorVersionFinalizer}
	env.Must(t, c.Create(ctx, ov))
	env.Must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", "privileged")}))
	env.Must(t, c.Patch(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", "privileged")}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/privileged":"true"}}}`))))
	sometimes := []string{"kudo-finalizer", "kudo-leave-users", "kudo-privileged-use"}
	said = states()
	wants(said, "OK", append(sometimes, always...)...)
	if now := env.Read(t, c, &v1beta1.OperatorVersion{}, "default", "plain"); len(now.Finalizers) != 1 || len(now.Annotations) != 0 {
		t.Errorf("a probe has changed the OperatorVersion: %+v", now.ObjectMeta)
	}

	t.Log("policies that bite no more")
	changed := append(slices.Clone(sometimes), "kudo-force-release", "kudo-sources-1", "kudo-sources-2", "kudo-fence")
	for _, name := range changed {
		policy := env.Read(t, c, &admissionregistrationv1.ValidatingAdmissionPolicy{}, "", name)
		for n := range policy.Spec.Validations {
			policy.Spec.Validations[n].Expression = "true"
		}
		env.Must(t, c.Update(ctx, policy))
	}
	env.Eventually(t, "all of them are found", func() string { // policies take about a second
		said = states()
		for _, name := range changed {
			if !strings.HasPrefix(said[name], "FAILED") {
				return name + ": " + said[name]
			}
		}
		return ""
	})
	wants(said, "it does not refuse what it must", "kudo-finalizer", "kudo-force-release", "kudo-fence")
	wants(said, "or user kudo:probe:", "kudo-sources-1", "kudo-sources-2")
	wants(said, "or ServiceAccount kudo-manager has more rights", "kudo-leave-users")
	wants(said, "it does not warn of what it must", "kudo-privileged-use")
	e.MustKudo(t, 0, "init", "--upgrade", "--wait", "--kudo-image", "example.org/kudo:1")
	wants(states(), "OK", append(sometimes, always...)...)
	env.Eventually(t, "no Namespace of a probe is left", func() string {
		list := &corev1.NamespaceList{}
		env.Must(t, c.List(ctx, list))
		for _, ns := range list.Items {
			if strings.HasPrefix(ns.Name, "kudo-init-probe") {
				return ns.Name
			}
		}
		return ""
	})
})
