package packages

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// policyFile writes a policy that requires a signature of a key for packages of an operator.
func policyFile(t *testing.T, operator, public string) string {
	t.Helper()
	key, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: config.kudo.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: production}\nspec:\n" +
		"  match: {operators: [" + operator + "], namespaceSelector: {matchLabels: {env: production}}}\n" +
		"  action: Require\n  authorities:\n  - name: release\n    key:\n      publicKey: |\n        " +
		strings.ReplaceAll(strings.TrimSpace(string(key)), "\n", "\n        ") + "\n"
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestVerifyPolicy checks S22: the file of a policy judges an archive, whatever namespaces the policy selects.
func TestVerifyPolicy(t *testing.T) {
	home(t)
	private, public := newKey(t)
	_, other := newKey(t)
	archive := packed(t, packageDir(t, "web", "1.0.0"), "web-1.0.0.tgz")
	policy := policyFile(t, "web", public)
	if out, errs := run(t, 3, nil, "verify", archive, "--policy", policy); !strings.Contains(out, "NoSignature") ||
		!strings.Contains(out, "PackagePolicy production requires a signature of release") || !strings.Contains(errs, "policies refuse 1 of 1 packages") {
		t.Errorf("not signed: %s%s", out, errs)
	}
	run(t, 0, nil, "sign", archive, "--key", private)
	if out, _ := run(t, 0, nil, "verify", archive, "--policy", policy); !strings.Contains(out, "Verified") || !strings.Contains(out, "signed by release") {
		t.Errorf("signed: %s", out)
	}
	out, _ := run(t, 3, nil, "verify", archive, "--policy", policyFile(t, "web", other), "-o", "json")
	var said struct{ Verdicts []policyVerdict }
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Verdicts) != 1 || said.Verdicts[0].Verdict != "WrongKey" || said.Verdicts[0].Allowed ||
		!strings.HasPrefix(said.Verdicts[0].Content, "sha256:") {
		t.Errorf("signed by another key: %s", out)
	}
	if out, _ := run(t, 0, nil, "verify", archive, "--policy", policyFile(t, "db", public)); !strings.Contains(out, "NoPolicy") {
		t.Errorf("a policy for another operator: %s", out)
	}
}

// TestDecodePolicies checks S24: a file that cannot be read as policies, as a whole, is an error.
func TestDecodePolicies(t *testing.T) {
	const good = "apiVersion: config.kudo.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: a}\nspec: {action: Allow}\n"
	for _, tc := range []struct {
		reason, text, want string
	}{
		{"one", good, ""},
		{"two, and an empty document", good + "---\n---\n" + good, ""},
		{"nothing", "\n", "it holds no PackagePolicy"},
		{"a field that is not known", good + "extra: 1\n", "unknown field"},
		{"a field of spec that is not known", strings.ReplaceAll(good, "Allow", "Allow, keyless: true"), "unknown field"},
		{"another kind", strings.ReplaceAll(good, "PackagePolicy", "Config"), `there is a "Config"`},
		{"another version", strings.ReplaceAll(good, "v1alpha1", "v1"), "the file must hold PackagePolicies of config.kudo.dev/v1alpha1"},
		{"no name", strings.ReplaceAll(good, "name: a", ""), "each with a name"},
		{"no YAML", "\x00", "control characters"},
	} {
		_, err := decodePolicies([]byte(tc.text))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// FuzzDecodePolicies checks that no file panics, and that what is read has the names that messages show.
func FuzzDecodePolicies(f *testing.F) {
	f.Add([]byte("apiVersion: config.kudo.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: a}\nspec: {action: Allow}\n"))
	f.Add([]byte("---\n- a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policies, err := decodePolicies(data)
		for _, p := range policies {
			if err == nil && (p.Name == "" || p.Kind != "PackagePolicy") {
				t.Errorf("%+v", p.TypeMeta)
			}
		}
	})
}
