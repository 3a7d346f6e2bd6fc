package crdtarball

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// change gives a setting of the cluster another value for the time of a test.
func change(t testing.TB, key, value string) {
	t.Helper()
	object := &corev1.ConfigMap{}
	env.Must(t, suite.Get(ctx, types.NamespacedName{Namespace: "kudo-system", Name: settings.ConfigMap}, object))
	put := func(value *string) {
		patch, err := json.Marshal(map[string]any{"data": map[string]*string{key: value}})
		env.Must(t, err)
		env.Must(t, suite.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
	}
	old, had := object.Data[key]
	t.Cleanup(func() {
		if had {
			put(&old)
		} else {
			put(nil)
		}
	})
	put(&value)
}

// hostOf is the host of a server, with its port.
func hostOf(s *server) string { return strings.TrimPrefix(s.URL, "https://") }

var _ = It("Only the hosts that the settings list are asked, and a host that is added to them is asked without another change", Serial, func() {
	t := GinkgoTB()
	group, allowed, s, ns := unique(), serve(t), serve(t), suite.NewNamespace(t)
	body := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	allowed.put("/a.tgz", body)
	s.put("/a.tgz", body)
	change(t, settings.AllowedHostsKey, hostOf(allowed))
	one, two := version(allowed, ns, "1", group, "Job", allowed.URL+"/a.tgz"), version(s, ns, "2", group, "Job", s.URL+"/a.tgz")
	env.Must(t, suite.Create(ctx, one))
	env.Must(t, suite.Create(ctx, two))
	deploy(t, one, "one")
	env.Must(t, suite.Create(ctx, gen.Instance("two", two, nil)))
	waiting(t, ns, "two", "the host "+hostOf(s)+" is not among the allowed hosts", settings.AllowedHostsKey)
	if got := s.asked.Load(); got != 0 {
		t.Errorf("the host that is not allowed got %d requests, want none", got)
	}
	change(t, settings.AllowedHostsKey, hostOf(allowed)+","+hostOf(s))
	i, err := suite.Await(ctx, ns, "two", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Errorf("deploy is %s: %s", st.Status, st.Message)
	}
})

var _ = It("An OperatorVersion with an install plan and without a tarball gets that of the default URL, and one without an install plan gets none", Serial, func() {
	t := GinkgoTB()
	if !suite.IsDisposable() {
		t.Skip("needs a manager that trusts the servers of the tests, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.put("/spark/1.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}")))
	change(t, settings.DefaultCRDURLKey, s.URL+"/{{ .OperatorName }}/{{ .AppVersion }}.tgz")
	without := func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball = nil }
	plain := version(s, ns, "1", group, "Job", "", without, gen.Serial("deploy", "cm"))
	plain.Name = "plain"
	installed := version(s, ns, "1", group, "Job", "", without, gen.Serial("install"), gen.InstallPlan("install"))
	env.Must(t, suite.Create(ctx, plain))
	env.Must(t, suite.Create(ctx, installed))
	if i := deploy(t, plain, "plain"); i.Status.CRDs != nil || s.asked.Load() != 0 {
		t.Errorf("without an install plan, status.crds is %+v after %d requests, want none", i.Status.CRDs, s.asked.Load())
	}
	i := deploy(t, installed, "installed")
	if c := i.Status.CRDs; c == nil || c.URL != s.URL+"/spark/1.tgz" {
		t.Errorf("status.crds is %+v, want the default URL", c)
	}
	if !exists(t, crd("jobs."+group)) {
		t.Error("the CustomResourceDefinition of the default URL is not there")
	}
})
