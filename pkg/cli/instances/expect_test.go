package instances

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/gen"
)

// TestExpect checks that a command continues only if its effects are still those that were reviewed. If not, it shows the differences from
// the file, or the whole preview if a digest is given (P16).
func TestExpect(t *testing.T) {
	version := web("1.0.0")
	server := onServer(t, version, site(version))
	instance := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	server.Read(instance)
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "site", UID: instance.UID, Controller: ptr.To(true)}
	live := &corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "site-apply-0"), Data: map[string]string{"key": "b"}}
	live.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "site"}
	live.OwnerReferences = []metav1.OwnerReference{owner}
	server.Put(live)
	update := func(code int, flags ...string) string {
		t.Helper()
		out, errs := commandtest.Expect(t, NewUpdate, code, "", append([]string{"update", "site", "-p", "VALUE=c"}, flags...)...)
		return out + errs
	}
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	asJSON, asYAML := update(0, "--dry-run", "-o", "json"), update(0, "--dry-run", "-o", "yaml")
	reviewed, second := write("p.json", asJSON), write("p.yaml", asYAML)
	_, digest, _ := strings.Cut(asYAML, "digest: ")
	digest, _, _ = strings.Cut(digest, "\n")
	live.Data["key"] = "other" // another user changes what was reviewed
	server.Put(live)
	for _, tc := range []struct {
		reason, expect string
		code           int
		want, lacks    []string
	}{
		{"a file shows the difference", reviewed, command.ExitFailed, []string{"- ConfigMap lab/site-apply-0: .data.key: b -> c\n", "+ ConfigMap lab/site-apply-0: .data.key: other -> c\n",
			"nothing was changed", "give the digest sha256:"}, []string{"1 plan, 1 step"}},
		{"of either format", second, command.ExitFailed, []string{"- ConfigMap lab/site-apply-0: .data.key: b -> c\n"}, nil},
		{"a digest shows the preview", digest, command.ExitFailed, []string{".data.key: other -> c\n", "1 plan, 1 step", "nothing was changed"}, []string{"difference"}},
		{"no preview", write("bad", "a: b"), command.ExitUsage, []string{"holds no preview of " + preview.Version}, nil},
		{"no text", write("no", "\x00"), command.ExitUsage, []string{"--expect "}, nil},
		{"another version", write("old", "apiVersion: preview.kudo.dev/v0\ndigest: sha256:1"), command.ExitUsage, []string{"holds no preview"}, nil},
		{"no file", filepath.Join(dir, "none"), command.ExitUsage, []string{"--expect: ", "no such file"}, nil},
		{"a folder", dir, command.ExitUsage, []string{"regular file"}, nil},
		{"nothing, as of a script that has failed", "", command.ExitUsage, []string{"give the digest that --dry-run has printed"}, nil},
	} {
		out := update(tc.code, "--expect", tc.expect)
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", tc.reason, want, out)
			}
		}
		for _, lacks := range tc.lacks {
			if strings.Contains(out, lacks) {
				t.Errorf("%s: %q in\n%s", tc.reason, lacks, out)
			}
		}
		if server.Read(instance); instance.Spec.Parameters["VALUE"] != "b" {
			t.Fatalf("%s: the Instance was changed: %v", tc.reason, instance.Spec.Parameters)
		}
	}
	live.Data["key"] = "b"
	server.Put(live)
	if out := update(0, "--expect", reviewed); !strings.Contains(out, "instance lab/site updated") {
		t.Errorf("the same would happen: %s", out)
	}
}
