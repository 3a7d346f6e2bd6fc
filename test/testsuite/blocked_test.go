package testsuite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// dropFinalizers takes the finalizers off what the cases of the folder blocked have made.
func dropFinalizers(ctx context.Context) {
	t := GinkgoTB()
	for _, name := range namespaces(t) {
		for _, obj := range []client.Object{&corev1.ConfigMap{ObjectMeta: gen.Meta(name, "held")}, &v1beta1.Instance{ObjectMeta: gen.Meta(name, "web")}} {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			env.Must(t, client.IgnoreNotFound(suite.Patch(ctx, obj, patch)))
		}
	}
}

// blockedNamespaces waits until a run has said what blocks the deletion of the namespaces of both cases, and returns them: that of the
// object, and that of the Instance.
func blockedNamespaces(t testing.TB, printed func() string) (object, instance string) {
	t.Helper()
	for name, namespace := range map[string]*string{"object": &object, "instance": &instance} {
		env.Within(t, 3*time.Minute, "what blocks the namespace of case "+name, func() string {
			_, line, found := strings.Cut(linesOf(printed(), name), "if that client does not run any more:\n")
			if !found {
				return "the output is " + printed()
			}
			_, after, _ := strings.Cut(line, " -n ")
			*namespace, _, _ = strings.Cut(after, " ")
			return ""
		})
	}
	return object, instance
}

var _ = It("What blocks the deletion of a namespace is listed, with the command that ends it, and the run ends once it is done", Serial, Label("P30", "blocked"), func() {
	t := GinkgoTB()
	DeferCleanup(deleteKept)
	DeferCleanup(dropFinalizers)
	cmd, errs := command(t, t.TempDir(), suite.Kubeconfig, testdata(t, "blocked"))
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	env.Must(t, err)
	defer func() { _ = file.Close() }()
	cmd.Stdout = file
	printed := func() string {
		text, err := os.ReadFile(file.Name())
		env.Must(t, err)
		return string(text)
	}
	env.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()

	object, instance := blockedNamespaces(t, printed)
	for name, want := range map[string][]string{
		"object": {"these objects block the deletion of namespace " + object + ":\n    configmaps/held waits for example.org/backup, example.org/dns\na finalizer is removed",
			"kubectl patch configmaps/held -n " + object + " "},
		"instance": {"these objects block the deletion of namespace " + instance + ":\n    instances.kudo.dev/web waits for example.org/audit\na finalizer is removed",
			"kubectl patch instances.kudo.dev/web -n " + instance + " "},
	} {
		lines := linesOf(printed(), name)
		contains(t, lines, want...)
		_, remedy, _ := strings.Cut(lines, "if that client does not run any more:\n")
		remedy, _, _ = strings.Cut(remedy, "\n")
		contains(t, paste(t, strings.TrimSpace(remedy)), " patched")
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0: %s%s", code, printed(), errs)
	}
	contains(t, printed(), "2 passed, 0 failed", "!still exists")
	if left := namespaces(t); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
})
