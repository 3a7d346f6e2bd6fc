package preview

import (
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// TestShared shows P10: previews name the objects that an install plan joins and that a version releases, with their other holders, and the
// commands do what their previews say.
func TestShared(t *testing.T) {
	t.Parallel()
	ns, first := suite.NewNamespace(t), definitions(replaceOnce(t, definition, "MOST", "64"))
	second := first
	second.files = first.with(t, "operator.yaml", "name: definitions", "name: others")
	id := "CustomResourceDefinition orders.shop.example.com-" + ns
	suite.MustKudo(t, 0, "install", first.write(t, first.files, ns), "--instance", "i", "-n", ns, "--wait")

	check := func(share, holder string, command ...string) {
		t.Helper()
		o := act(t, ns, command)
		n := slices.IndexFunc(o.preview.Shared, func(s preview.Share) bool { return s.Object == id })
		if n < 0 || o.preview.Shared[n].Share != share || !strings.Contains(strings.Join(o.preview.Shared[n].Holders, " "), holder) {
			t.Errorf("want %s beside %s, and the preview has %+v\n%s", share, holder, o.preview.Shared, o.texts)
		}
		if before, after := o.before[id], o.after[id]; before == nil || after == nil || before.GetUID() != after.GetUID() {
			t.Errorf("%s was replaced or deleted\n%s", id, o.texts)
		}
	}
	check(preview.ShareJoin, "definitions-1.0.0", "install", second.write(t, second.files, ns), "--instance", "j", "-n", ns)
	suite.MustKudo(t, 0, "uninstall", "i", "-n", ns, "--wait")
	check(preview.ShareLeave, "others-2.0.0", "uninstall-version", "definitions-1.0.0", "-n", ns)
	suite.MustKudo(t, 0, "uninstall", "j", "-n", ns, "--wait")
	suite.MustKudo(t, 0, "uninstall-version", "others-2.0.0", "-n", ns, "--wait")
	if takeSnapshot(t, ns)[id] != nil {
		env.Eventually(t, "the definition deleted with its last holder", env.Condition(func() bool { return takeSnapshot(t, ns)[id] == nil }))
	}
}
