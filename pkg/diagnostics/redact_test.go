package diagnostics

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestText(t *testing.T) {
	for _, tc := range []struct{ reason, in, want string }{
		{"a hidden value", "login failed for s3cret-value!", "login failed for REDACTED!"},
		{"in base64", "x " + base64.StdEncoding.EncodeToString([]byte("s3cret-value")), "x REDACTED"},
		{"an assignment", "db_password=abc mode=fast", "db_password=REDACTED mode=fast"},
		{"YAML", "apiKey: 'abc'\nname: x", "apiKey: 'REDACTED'\nname: x"},
		{"JSON", `{"token":"abc","n":1}`, `{"token":"REDACTED","n":1}`},
		{"quoted JSON", `"{\"token\":\"abc\"}"`, `"{\"token\":\"REDACTED\"}"`},
		{"several words", `password: "two words" name: 'x y'`, `password: "REDACTED" name: 'x y'`},
		{"several words in single quotes", `password: 'two "words"' n: 1`, `password: 'REDACTED' n: 1`},
		{"several words in quoted JSON", `"{\"token\": \"a b\"}"`, `"{\"token\": \"REDACTED\"}"`},
		{"a comma within", "password=ab,cd mode=fast", "password=REDACTED mode=fast"},
		{"the next entry of a list", "password=a,b,mode=fast,token=c,n=1", "password=REDACTED,mode=fast,token=REDACTED,n=1"},
		{"a comma behind", "{password: ab, user: me}", "{password: REDACTED, user: me}"},
		{"a dollar within", "password=p$w;", "password=REDACTED;"},
		{"a variable", `password="$PASSWORD" token=${TOKEN}`, `password="$PASSWORD" token=${TOKEN}`},
		{"a template in quotes", `password: "{{ .Params.PASSWORD }}"`, `password: "{{ .Params.PASSWORD }}"`},
		{"a flag", "run --admin-password abc --verbose", "run --admin-password REDACTED --verbose"},
		{"a header", "Authorization: Bearer abcdefghijkl", "Authorization: Bearer REDACTED"},
		{"a URL", "see https://me:pw@host/x", "see https://REDACTED@host/x"},
		{"a key", "a\n-----BEGIN RSA PRIVATE KEY-----\nAAA\n-----END RSA PRIVATE KEY-----\nb", "a\nREDACTED\nb"},
		{"half of a key", "a\n-----BEGIN PRIVATE KEY-----\nAAA", "a\nREDACTED"},
		{"a template", "password: {{ .Params.PASSWORD }}", "password: {{ .Params.PASSWORD }}"},
		{"a name of a Secret", "secretName: tls\ntokenSecretRef:\n  name: x", "secretName: tls\ntokenSecretRef:\n  name: x"},
		{"a switch", "token: true", "token: true"},
	} {
		r := &Redactor{}
		r.Hide("s3cret-value")
		if got := r.Text(tc.in); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestLearnForms checks that a value is found as logs and objects show it: one of its lines, or as a JSON string.
func TestLearnForms(t *testing.T) {
	const value = "host:5432:db:me:pa<ss\"word\nsecond-secret-line\nshort\nwords with blanks stay\n"
	for _, tc := range []struct{ reason, in, want string }{
		{"as a whole", "x " + value, "x REDACTED\n"},
		{"its first line", "connect host:5432:db:me:pa<ss\"word now", "connect REDACTED now"},
		{"its second line", "connect second-secret-line now", "connect REDACTED now"},
		{"a line that is a word", "a short text", "a short text"},
		{"a line of words", "words with blanks stay", "words with blanks stay"},
		{"in JSON", `{"v":"host:5432:db:me:pa\u003css\"word\nsecond-secret-line\nshort\nwords with blanks stay\n"}`, `{"v":"REDACTED\n"}`},
		{"in JSON of other encoders", `{"v":"host:5432:db:me:pa<ss\"word\nsecond-secret-line\nshort\nwords with blanks stay\n"}`, `{"v":"REDACTED\n"}`},
		{"one line in JSON", `{"v":"host:5432:db:me:pa<ss\"word"}`, `{"v":"REDACTED"}`},
		{"in base64", base64.StdEncoding.EncodeToString([]byte(value)), Redacted},
	} {
		r := &Redactor{}
		r.Hide(value)
		if got := r.Text(tc.in); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestObject(t *testing.T) {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"any": "eA=="}, "metadata": map[string]any{
		"name": "s", "managedFields": []any{}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}}}
	instance := map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "spec": map[string]any{"parameters": map[string]any{
		"ADMIN_PASSWORD": "x", "PIN": "1234", "REPLICAS": "3", "KEYSPACE": "ks", "USE_TOKEN": "true"}}}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{
		"env": []any{map[string]any{"name": "TOKEN", "value": "x"}, map[string]any{"name": "MODE", "value": "x"},
			map[string]any{"name": "KEY", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}}}}}}}
	for _, tc := range []struct {
		reason    string
		obj, want map[string]any
	}{
		{"a Secret keeps its keys", secret, map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"any": Redacted},
			"metadata": map[string]any{"name": "s", "annotations": map[string]any{"kept": "yes"}}}},
		{"parameters by name, and those declared", instance, map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "spec": map[string]any{"parameters": map[string]any{
			"ADMIN_PASSWORD": Redacted, "PIN": Redacted, "REPLICAS": "3", "KEYSPACE": "ks", "USE_TOKEN": "true"}}}},
		{"variables by name, references stay", pod, map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{
			"env": []any{map[string]any{"name": "TOKEN", "value": Redacted}, map[string]any{"name": "MODE", "value": "x"},
				map[string]any{"name": "KEY", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}}}}}}}},
	} {
		r := &Redactor{}
		r.Name("PIN")
		r.Object(&unstructured.Unstructured{Object: tc.obj})
		if diff := cmp.Diff(tc.want, tc.obj); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

// FuzzText: a hidden value is in no text, and redacting twice changes nothing more of it.
func FuzzText(f *testing.F) {
	f.Add("correct horse", "x correct horse y password=correct horse")
	f.Add("aaaaaaa", "aaaaaaaaaaaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, value, text string) {
		r := &Redactor{}
		r.Hide(value)
		value = strings.TrimSpace(value)
		got := r.Text(text)
		if r.values[value] && !strings.Contains(Redacted, value) && strings.Contains(strings.ReplaceAll(got, Redacted, "\x00"), value) {
			t.Errorf("%q is left in %q", value, got)
		}
	})
}

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		reason, in string
		limit      int64
		want       string
		cut        bool
	}{
		{"short", "a\nb\n", 10, "a\nb\n", false},
		{"whole lines of the end", "first\nsecond\nthird\n", 10, "third\n", true},
		{"a single long line is left out: a secret may begin before the cut", "aaaaaaaaaaaaaaaaaaaaaa", 10, "", true},
	} {
		got, cut, err := Tail(strings.NewReader(tc.in), tc.limit)
		if err != nil || string(got) != tc.want || cut != tc.cut {
			t.Errorf("%s: %q, %v, %v", tc.reason, got, cut, err)
		}
	}
}

func TestFolder(t *testing.T) {
	f := NewFolder(t.TempDir(), 10)
	if err := f.Write("a/b", []byte("12345")); err != nil {
		t.Fatal(err)
	}
	if err := f.Write("a/c", []byte("123456")); err == nil {
		t.Error("a folder takes more than it may")
	}
	for in, want := range map[string]string{"system:x": "system%3Ax", "system_x": "system_x", "..": "%2E%2E", "a/../b": "a%2F..%2Fb", "ok-1.x": "ok-1.x", "é": "%C3%A9", "%2E": "%252E"} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) is %q", in, got)
		}
	}
}

// TestLongNames: a name that is hostile or long becomes a file that can be written, and two names never have one file.
func TestLongNames(t *testing.T) {
	f := NewFolder(t.TempDir(), 1<<20)
	seen := map[string]string{}
	for _, name := range []string{strings.Repeat(":", 253), strings.Repeat(":", 252) + ";", strings.Repeat("a", 253), strings.Repeat("a", 252) + "b",
		strings.Repeat("é", 126), strings.Repeat(".", 253), strings.Repeat("a", maxName)} {
		file := safe(name)
		if other, twice := seen[file]; twice || len(file) > maxName {
			t.Errorf("%q has the file %q of %d bytes, as %q", name, file, len(file), other)
		}
		seen[file] = name
		if err := f.Write("roles/"+file+".previous.log", []byte("x")); err != nil {
			t.Error(err)
		}
	}
	if name := strings.Repeat("a", maxName); safe(name) != name {
		t.Errorf("a name of %d bytes is changed", maxName)
	}
}
