package crdtarball

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestDisplayHidesSecrets checks that neither user nor query nor fragment of a URL is shown.
func TestDisplayHidesSecrets(t *testing.T) {
	for _, tc := range []struct{ reason, raw, want string }{
		{"a password with an at sign", "https://me:hunter2@hunter2@a.example/x", "https://a.example/x"},
		{"a fragment with a question mark", "https://a.example/x#y?hunter2", "https://a.example/x"},
		{"a query with a user-like part", "https://a.example?x=/me:hunter2@b", "https://a.example?…"},
		{"no path", "https://me:hunter2@a.example", "https://a.example"},
		{"no URL", "x", "x"},
	} {
		if got := Display(tc.raw); got != tc.want || strings.Contains(got, "hunter2") {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestWithoutSecrets checks that the URL in an error of net/http is shown as Display shows it, and that the text is bounded.
func TestWithoutSecrets(t *testing.T) {
	raw := "https://me:hunter2@a.example/x?token=hunter2"
	err := fmt.Errorf("fetch: %w", &url.Error{Op: "Get", URL: raw, Err: errors.New("dial " + raw + " failed")})
	if got, want := withoutSecrets(err), "fetch: Get https://a.example/x?…: dial https://a.example/x?… failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := withoutSecrets(errors.New(strings.Repeat("é", 5000))); len(got) > 700 || !strings.HasPrefix(got, "é") {
		t.Errorf("the text has %d bytes", len(got))
	}
}

// TestClassifyDisk checks which failures of the cache folder pass, and that each names its remedy.
func TestClassifyDisk(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		err       error
		want      Reason
		text      string
		temporary bool
	}{
		{"a full disk", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ReasonDisk, "using the cache: the disk of the cache folder is full: make room or enlarge it: write x", true},
		{"a full quota", syscall.EDQUOT, ReasonDisk, "make room or enlarge it", true},
		{"a limit of the process", syscall.EFBIG, ReasonDisk, "take no file of that size", false},
		{"a folder that is read-only", syscall.EROFS, ReasonDisk, "mount it writable, or use what is in it by crdDownloadPolicy Never", false},
		{"a folder of another user", fs.ErrPermission, ReasonDisk, "give it to the user that runs this", false},
		{"another failure", errors.New("odd"), ReasonDisk, "using the cache: odd", false},
		{"a caller that waits no more", fmt.Errorf("read: %w", context.Canceled), ReasonCanceled, "using the cache: read: context canceled", true},
		{"a deadline", context.DeadlineExceeded, ReasonCanceled, "deadline exceeded", true},
	} {
		got := classifyDisk("using the cache", tc.err)
		if got.Reason != tc.want || got.Temporary != tc.temporary || !strings.Contains(got.Error(), tc.text) || !errors.Is(got, tc.err) {
			t.Errorf("%s: got %s, %t: %v", tc.reason, got.Reason, got.Temporary, got)
		}
	}
}

// TestWrapSource checks that an error names its source without secrets, and that the error that was given stays.
func TestWrapSource(t *testing.T) {
	if wrapSource("https://a.example", nil) != nil {
		t.Error("no error is no error")
	}
	inner := fail(ReasonPin, "another digest")
	var e *Error
	if err := wrapSource("https://me:hunter2@a.example/x?hunter2", fmt.Errorf("fetch: %w", inner)); !errors.As(err, &e) || e.Reason != ReasonPin ||
		err.Error() != "CRD tarball https://a.example/x?…: another digest" {
		t.Errorf("got %v", err)
	}
	if inner.URL != "" || inner.Error() != "CRD tarball: another digest" {
		t.Errorf("the error that was given was changed: %v", inner)
	}
	if err := wrapSource("https://a.example", errors.New("odd")); !errors.As(err, &e) || e.Reason != ReasonDisk {
		t.Errorf("an error of another type is one of the cache: %v", err)
	}
}

// TestDocumentsFindings checks what is said of each file that holds something else than CustomResourceDefinitions.
func TestDocumentsFindings(t *testing.T) {
	const good = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.a.example}, spec: {group: a.example, names: {plural: %[1]s}, versions: [{name: v1}]}}\n"
	crd := func(name string) string { return fmt.Sprintf(good, name) }
	edit := func(old, new string) string { return strings.Replace(crd("x"), old, new, 1) }
	for _, tc := range []struct{ reason, text, want string }{
		{"a page", " \n<!DOCTYPE HTML><title>Log in</title>", "f.yaml is an HTML page, as servers send it for an error or a login"},
		{"markup", "<Error><Code>AccessDenied</Code></Error>", "f.yaml is markup (it begins with <), no YAML"},
		{"a page behind a mark of its encoding", "\ufeff<html>", "f.yaml is an HTML page"},
		{"bytes", "a\x00b", "f.yaml is binary, no text"},
		{"no YAML", "a: [", "cannot be read: "},
		{"a list", "[a]", "f.yaml line 1 is no object but a list"},
		{"a number", "7", "f.yaml line 1 is no object but a number"},
		{"a truth value", "true", "f.yaml line 1 is no object but a boolean"},
		{"a text", "hello", `f.yaml line 1 is no object but the text "hello"`},
		{"another kind in the second document", crd("x") + "---\n{apiVersion: v1, kind: Secret, metadata: {name: s}}\n", `f.yaml line 3 is a Secret of v1, named "s"`},
		{"no kind", "{metadata: {name: x}}", "has no apiVersion and kind"},
		{"a kind without a version", "{kind: CustomResourceDefinition}", "is a CustomResourceDefinition of nothing"},
		{"the version of before", edit("k8s.io/v1", "k8s.io/v1beta1"), "which Kubernetes no longer serves: convert it to apiextensions.k8s.io/v1"},
		{"no name", edit("name: x.a.example", "labels: {}"), "is a CustomResourceDefinition without metadata.name"},
		{"a name that is a number", edit("name: x.a.example", "name: 5"), "is a CustomResourceDefinition without metadata.name"},
		{"no group", edit("group: a.example, ", ""), `the CustomResourceDefinition "x.a.example" needs spec.group and spec.names.plural`},
		{"another name", edit("name: x.a", "name: y.a"), `the CustomResourceDefinition "y.a.example" must be named "x.a.example"`},
		{"no versions", edit("[{name: v1}]", "[]"), `the CustomResourceDefinition "x.a.example" has no spec.versions`},
		{"labels that are numbers", edit("name: x.a.example}", "name: x.a.example, labels: {a: 5}}"), `has metadata.labels that are no map of strings`},
		{"annotations that are a list", edit("name: x.a.example}", "name: x.a.example, annotations: [a]}"), `has metadata.annotations that are no map of strings`},
		{"a name that comes twice", crd("x") + "---\n" + crd("x"), `f.yaml line 3 the CustomResourceDefinition x.a.example is declared twice, first in f.yaml line 1`},
	} {
		got, err := Documents(fstest.MapFS{"f.yaml": {Data: []byte(tc.text)}, "a.json": {Data: []byte(crd("other"))}}, Limits{})
		var e *Error
		if got != nil || !errors.As(err, &e) || e.Reason != ReasonDocuments || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestDocumentsOrderAndLimits checks the order of the definitions, the bounds of all files together, and what a long list of
// mistakes becomes.
func TestDocumentsOrderAndLimits(t *testing.T) {
	crd := func(name string) string {
		return fmt.Sprintf("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.a.example}, spec: {group: a.example, names: {plural: %[1]s}, versions: [{name: v1}]}}\n", name)
	}
	tree := fstest.MapFS{
		"b/1.YAML": {Data: []byte(crd("third") + "---\n---\n" + crd("fourth"))}, "a/z.yml": {Data: []byte(crd("second"))}, "a/a.json": {Data: []byte(crd("first"))},
		"LICENSE": {Data: []byte("<html>")}, "empty.yaml": {Data: []byte("# nothing\n")},
	}
	found, err := Documents(tree, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	size := 0
	for _, object := range found {
		names = append(names, strings.TrimSuffix(object.GetName(), ".a.example"))
	}
	if got := strings.Join(names, " "); got != "first second third fourth" {
		t.Errorf("by path, and then by place: %s", got)
	}
	for name, file := range tree {
		if name != "LICENSE" {
			size += len(file.Data)
		}
	}
	if _, err := Documents(tree, Limits{Documents: int64(size)}); err != nil {
		t.Errorf("as many bytes as are allowed, and files of other names do not count: %v", err)
	}
	if _, err := Documents(tree, Limits{Documents: int64(size) - 1}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("empty.yaml: the documents have more than the %d bytes allowed in all", size-1)) {
		t.Errorf("one byte more, in the last file: %v", err)
	}
	if _, err := Documents(tree, Limits{Nodes: 20}); err == nil || !strings.Contains(err.Error(), "hold more than the 20 values allowed in all") {
		t.Errorf("values of all files are counted: %v", err)
	}
	if _, err := Documents(fstest.MapFS{"README": {}, "LICENSE": {}}, Limits{}); err == nil || !strings.Contains(err.Error(), "files must end in .yaml, .yml or .json, and there are only LICENSE, README") {
		t.Errorf("the files that are there are named: %v", err)
	}
	if _, err := Documents(fstest.MapFS{}, Limits{}); err == nil || !strings.Contains(err.Error(), "it has no files with documents in them") {
		t.Errorf("no files: %v", err)
	}
	bad := fstest.MapFS{"f.yaml": {Data: []byte(strings.Repeat("---\n7\n", shownFindings+3))}}
	if _, err := Documents(bad, Limits{}); err == nil || !strings.HasSuffix(err.Error(), "; and 3 more") {
		t.Errorf("a long list is cut: %v", err)
	}
}

// TestRetryWait checks the bounds of the wait between attempts.
func TestRetryWait(t *testing.T) {
	r := Retry{}.withDefaults()
	for _, tc := range []struct {
		reason  string
		attempt int
		random  float64
		asked   time.Duration
		want    time.Duration
	}{
		{"half of the first back-off", 1, 0, 0, 250 * time.Millisecond},
		{"all of it, by chance", 1, 1, 0, 500 * time.Millisecond},
		{"doubled", 3, 1, 0, 2 * time.Second},
		{"the longest", 20, 1, 0, time.Minute},
		{"after many attempts", 1000, 0, 0, 30 * time.Second},
		{"no less than the source asks for", 1, 1, 7 * time.Second, 7 * time.Second},
		{"no less than the back-off", 3, 1, time.Second, 2 * time.Second},
	} {
		if got := r.wait(tc.attempt, tc.random, tc.asked); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
	given := Retry{Attempts: 1, InitialDelay: time.Second, MaxDelay: 2 * time.Second, Attempt: time.Minute}
	if got := given.withDefaults(); got != given {
		t.Errorf("what is given stays: %+v", got)
	}
}

// TestBinaryPart checks which key of a ConfigMap holds a part of a tarball.
func TestBinaryPart(t *testing.T) {
	one := &corev1.ConfigMap{BinaryData: map[string][]byte{"a": []byte("x")}, Data: map[string]string{"readme": "y"}}
	two := &corev1.ConfigMap{BinaryData: map[string][]byte{"a": nil, "b": []byte("x")}}
	for _, tc := range []struct {
		reason    string
		from      *corev1.ConfigMap
		key, want string
		wrong     string
	}{
		{"the only key", one, "", "x", ""},
		{"a key by name", two, "b", "x", ""},
		{"an empty part", two, "a", "", ""},
		{"several keys", two, "", "", "has 2 keys in binaryData: one of them must be named in key"},
		{"no key", &corev1.ConfigMap{}, "", "", "has 0 keys in binaryData"},
		{"a text", one, "readme", "", "has the key readme in data: put a part of a tarball into binaryData"},
		{"another key", one, "c", "", "has no key c in binaryData"},
	} {
		got, err := binaryPart(tc.from, tc.key)
		if string(got) != tc.want || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: got %q, %v", tc.reason, got, err)
		}
	}
	_, err := newConfigMapSource(v1beta1.ConfigMapSource{}, "ns", Access{})
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonSpec || !strings.Contains(err.Error(), "configMapSource.configMaps is empty: name the ConfigMaps") {
		t.Errorf("a source without ConfigMaps: %v", err)
	}
}

// TestProxyPort checks the port of a proxy whose URL names none.
func TestProxyPort(t *testing.T) {
	for text, want := range map[string]string{
		"http://p.example": "80", "https://p.example": "443", "socks5://p.example": "1080", "socks5h://p.example": "1080", "socks5://p.example:9": "9", "http://p.example:3128": "3128",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := proxyPort(u); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
