package crdtarball

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// diff previews an Instance of a version, and wants an exit code and texts.
func diff(t testing.TB, ov *v1beta1.OperatorVersion, code int, texts ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "instance.yaml")
	text := fmt.Sprintf("apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: a, namespace: %s}\nspec: {operatorVersion: {name: %s}}\n", ov.Namespace, ov.Name)
	env.Must(t, os.WriteFile(file, []byte(text), 0o600))
	env.Contains(t, suite.MustKudo(t, code, "diff", "-f", file), texts...)
}

var _ = It("A preview shows which definitions a tarball would install and drop, and why a tarball keeps the plan waiting", Label("P6", "P10"), func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	body := gen.Tarball(definition(group, "pools", "size: {type: integer}"))
	s.put("/3.0/crds.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}")))
	s.put("/3.1/crds.tgz", body)
	s.put("/3.2/crds.tgz", body)
	url := s.URL + "/{{ .AppVersion }}/crds.tgz"
	secret := func(ov *v1beta1.OperatorVersion) {
		ov.Spec.CRDTarball.HTTPSource.SecretRef = &v1beta1.SecretReference{Name: "token"}
	}
	first, second := version(s, ns, "3.0", group, "Job", url), version(s, ns, "3.1", group, "Pool", url)
	other, missing := version(s, ns, "3.2", group, "Pool", url, pinned([]byte("another"))), version(s, ns, "3.3", group, "Pool", url)
	guarded := version(s, ns, "3.4", group, "Pool", url, secret)
	for _, ov := range []*v1beta1.OperatorVersion{first, second, other, missing, guarded} {
		env.Must(t, suite.Create(ctx, ov))
	}
	diff(t, first, 1, "+ CustomResourceDefinition jobs."+group, "+ Job "+ns+"/a", "it fits the definition", " 0 unknown")
	if exists(t, crd("jobs."+group)) {
		t.Error("a preview has installed a definition")
	}
	deploy(t, first, "a")
	diff(t, second, 1, "+ CustomResourceDefinition pools."+group, "+ Pool "+ns+"/a", "- CustomResourceDefinition jobs."+group)
	diff(t, other, 4, "? not known: which CustomResourceDefinitions", "digest")
	diff(t, missing, 4, "? not known: which CustomResourceDefinitions", "404")
	asked := s.asked.Load()
	diff(t, guarded, 4, "? not known: which CustomResourceDefinitions")
	if s.asked.Load() != asked {
		t.Error("a preview has asked for a tarball that needs credentials")
	}
	env.Must(t, suite.Patch(ctx, gen.Instance("a", first, nil), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"operatorVersion":{"name":"`+second.Name+`"}}}`))))
	gone(t, crd("jobs."+group))
	if !exists(t, crd("pools."+group)) {
		t.Error("the definition of the new version is not there")
	}
})
