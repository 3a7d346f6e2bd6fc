package ui

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// packaged returns the files of a package with a pod, a ClusterRole and a sensitive parameter.
func packaged(name, version string) fstest.MapFS {
	files := map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: " + name + "\noperatorVersion: " + version + "\nappVersion: \"1.27\"\n" +
			"kubernetesVersion: 1.30.0\nmaintainers: [{name: ann, email: ann@example.org}]\nurl: https://example.org\n" +
			"tasks: [{name: t, kind: Apply, spec: {resources: [pod.yaml, role.yaml]}}]\n" +
			"plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [t]}]}]}}\n",
		"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: [{name: TOKEN, sensitive: true, default: s3cr3t-default}, {name: IMAGE, default: example.org/web:1}]\n",
		"templates/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: \"{{ .Params.IMAGE }}\"}], " +
			"initContainers: [{name: i, image: example.org/init:2}]}\n",
		"templates/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n",
	}
	out := fstest.MapFS{}
	for file, text := range files {
		out[file] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// repositoryOf returns a home whose repository has packages.
func repositoryOf(t *testing.T, packages ...fs.FS) repository.Home {
	t.Helper()
	dir := t.TempDir()
	if err := gen.WriteRepository(dir, packages...); err != nil {
		t.Fatal(err)
	}
	return homeWith(t, repository.Repository{Name: "ours", URL: "file://" + dir})
}

// homeWith returns a home with repositories. The first one is in use.
func homeWith(t *testing.T, all ...repository.Repository) repository.Home {
	t.Helper()
	home := repository.Home{Dir: t.TempDir()}
	err := home.Change(t.Context(), func(l *repository.Repositories) error {
		var failed error
		for _, r := range all {
			failed = errors.Join(failed, l.Add(r))
		}
		return failed
	})
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// TestCatalog shows the packages of a repository: the highest version of each, those that a name finds, and what is said without any.
func TestCatalog(t *testing.T) {
	r := begin(t, "")
	r.remotes.home = repositoryOf(t, packaged("web", "1.0.0"), packaged("web", "1.10.0"), packaged("db", "0.1.0"))
	status, body := r.get(t, "/catalog")
	expect(t, body, "ours", ">db<", `href="/catalog/package?app-version=1.27&amp;name=web&amp;operator-version=1.10.0&amp;repository=ours"`, "1.10.0", "file://", "yes")
	if status != http.StatusOK || strings.Contains(body, "1.0.0<") || strings.Contains(body, "data-live><h") {
		t.Errorf("%d, or a lower version is listed", status)
	}
	if _, body = r.get(t, "/catalog?name=WE"); strings.Contains(body, ">db<") || !strings.Contains(body, ">web<") {
		t.Errorf("a part of a name, in another letter case, finds other packages:\n%s", body)
	}
	_, body = r.get(t, "/catalog?name=none")
	expect(t, body, "Repository ours has no such package.")
	status, body = r.get(t, "/catalog?repository=theirs")
	expect(t, body, "there is no repository &#34;theirs&#34;", `<option>ours`)
	if status != http.StatusNotFound {
		t.Errorf("a repository that is not there: %d", status)
	}
	r.remotes.home = repository.Home{Dir: t.TempDir()}
	status, body = r.get(t, "/catalog")
	expect(t, body, "No repository is configured", "kubectl kudo repo add NAME URL")
	if status != http.StatusOK {
		t.Errorf("without a repository: %d", status)
	}
	r.remotes.home = repository.Home{}
	_, body = r.get(t, "/catalog")
	expect(t, body, "set --home or KUDO_HOME")
	r.remotes.home = homeWith(t, repository.Repository{Name: "registry", URL: "layout:" + t.TempDir()})
	_, body = r.get(t, "/catalog")
	expect(t, body, "Repository registry is a registry, which has no list of packages")
}

// TestCatalogPaging shows the names of 250 packages on three pages, also if all versions of those on the first one were removed.
func TestCatalogPaging(t *testing.T) {
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for n := range 250 {
		fmt.Fprintf(&index, "  p-%03d:\n  - {name: p-%03d, operatorVersion: 1.0.0, urls: [x.tgz], removed: %t}\n", n, n, n < pageSize)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, repository.IndexFileName), []byte(index.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := begin(t, "")
	r.remotes.home = homeWith(t, repository.Repository{Name: "ours", URL: "file://" + dir})
	_, body := r.get(t, "/catalog")
	expect(t, body, "p-000", "All its versions were removed.", "p-099", "1 to 100 of 250", `href="/catalog?page=2&amp;repository=ours"`)
	_, body = r.get(t, "/catalog?page=3&name=p-")
	expect(t, body, ">p-200<", ">p-249<", "201 to 250 of 250", `href="/catalog?name=p-&amp;page=2&amp;repository=ours"`)
	if strings.Contains(body, ">Next<") {
		t.Error("the last page leads to another one")
	}
}

// TestPackagePage shows U9 and what the catalog says of a package: versions, images, rights, plans, parameters without sensitive values, and
// the command that installs it.
func TestPackagePage(t *testing.T) {
	r := begin(t, "lab")
	r.remotes.home = repositoryOf(t, packaged("web", "1.0.0"), packaged("web", "1.10.0"))
	status, body := r.get(t, "/catalog/package?repository=ours&name=web&operator-version=1.0.0&app-version=1.27")
	if status != http.StatusOK {
		t.Errorf("%d", status)
	}
	expect(t, body, "ann ann@example.org", "not signed", "deploy", "kubectl kudo install web --repo ours --operator-version 1.0.0 --app-version 1.27 -n lab --dry-run", "operator-version=1.10.0",
		"<strong>1.0.0</strong>, app 1.27", "example.org/init:2", "example.org/web:1", "pods: create", "In the whole cluster, which no account", "clusterroles.rbac.authorization.k8s.io: create", "TOKEN", "(sensitive)")
	if strings.Contains(body, "s3cr3t") || strings.Contains(body, `href="https`) {
		t.Error("U9: a sensitive value is sent, or there is a link to another site")
	}
	if _, body = r.get(t, "/catalog/package?repository=ours&name=web"); !strings.Contains(body, "<strong>1.10.0</strong>") {
		t.Error("without a version, the highest one is not shown")
	}
	for query, want := range map[string]string{"name=none": "has no package none", "": "names no package", "name=web&operator-version=3": "has no package web 3", "repository=x&name=web": "there is no repository", "name=web&operator-version=1.0.0&app-version=2": "has no package web 1.0.0",
		"name=../web": "package", "name=%2fetc%2fpasswd": "package"} {
		status, body := r.get(t, "/catalog/package?"+query)
		if status != http.StatusNotFound || !strings.Contains(body, want) || strings.Contains(body, "Rights that") {
			t.Errorf("%s: %d, no %q, or a package is shown", query, status, want)
		}
	}
}

// TestPackageElsewhere checks that the address of the page leads to packages of the repositories of the user only: a URL in it is not asked.
func TestPackageElsewhere(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	r := begin(t, "")
	r.remotes.home = repositoryOf(t, packaged("web", "1.0.0"))
	file := strings.TrimSuffix(r.remotes.home.Dir, "/")
	for _, name := range []string{server.URL + "/x.tgz", "file://" + file + "/x.tgz", "oci://" + strings.TrimPrefix(server.URL, "http://") + "/x:1", "layout:" + file + "/x", "./web", "web/../web"} {
		status, body := r.get(t, "/catalog/package?repository=ours&name="+url.QueryEscape(name))
		if status != http.StatusNotFound || !strings.Contains(body, "repository ours has no package") {
			t.Errorf("%s: %d\n%s", name, status, body)
		}
	}
	if asked.Load() > 0 {
		t.Error("another host was asked")
	}
}

// TestPackageSignature shows S17 and S18 on the page: what the policies of the cluster say of a package, and that they cannot be read.
func TestPackageSignature(t *testing.T) {
	requires := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "ours"}}
	requires.Spec.Match = configv1alpha1.PolicyMatch{Operators: []string{"web"}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	requires.Spec.Action = configv1alpha1.RefusePackages
	api := apitest.Start(t)
	api.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	api.Put(requires)
	r := beginOn(t, api, "")
	r.remotes.home = repositoryOf(t, packaged("web", "1.0.0"))
	_, body := r.get(t, "/catalog/package?repository=ours&name=web")
	expect(t, body, "refused</span>", "PackagePolicy ours refuses all packages of operator")
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "PackagePolicy" {
			return nil, apierrors.NewForbidden(configv1alpha1.Resource("packagepolicies"), "", errors.New("ann may not"))
		}
		return nil, nil
	})
	_, body = r.get(t, "/catalog/package?repository=ours&name=web")
	expect(t, body, "not known</span>", "the policies of the cluster cannot be read", "ann may not")
}

// signedLayout returns a home whose repository is a folder in OCI layout with a package that a new key has signed, and the key.
func signedLayout(t *testing.T, pkg fstest.MapFS) (repository.Home, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(err)
	signer, err := trust.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	must(err)
	var packed bytes.Buffer
	_, err = archive.Write(&packed, pkg)
	must(err)
	made, err := artifact.New(packed.Bytes(), time.Time{})
	must(err)
	_, version, err := operators.Convert(made.Package, "")
	must(err)
	wanted, err := trust.PackageOf(version)
	must(err)
	wanted.Digests = map[string]string{trust.SubjectManifest: made.Descriptor().Digest.String()}
	bundle, err := trust.Sign(t.Context(), wanted, signer)
	must(err)
	home := homeWith(t, repository.Repository{Name: "signed", URL: "layout:" + t.TempDir()})
	to := repository.NewRemote(home, 0, nil)
	in, err := to.Repository("signed")
	must(err)
	reference, _, err := to.Push(t.Context(), made, in.URL, false)
	must(err)
	must(to.Attach(t.Context(), reference, made.Descriptor(), [][]byte{bundle}, trust.PredicateType))
	must(to.Close())
	return home, signer.Public.PEM()
}

// TestVerifiedPackage shows S18: the page names the authority that has signed a package in a registry, and the policy that requires it.
func TestVerifiedPackage(t *testing.T) {
	home, key := signedLayout(t, packaged("web", "1.0.0"))
	policy := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
	policy.Spec.Action = configv1alpha1.RequireSignatures
	policy.Spec.Authorities = []configv1alpha1.PolicyAuthority{{Name: "release", Key: &configv1alpha1.AuthorityKey{PublicKey: string(key)}}}
	api := apitest.Start(t)
	api.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	api.Put(policy)
	r := beginOn(t, api, "")
	r.remotes.home = home
	_, body := r.get(t, "/catalog?name=web")
	expect(t, body, "Packages of repository signed", "1.0.0")
	_, body = r.get(t, "/catalog/package?repository=signed&name=web")
	expect(t, body, "verified</span>, 1 signature", "PackagePolicy production: signed by release")
	by, err := r.readJudges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := by.judge(version("a", "db-1.0.0", nil), nil); got.State != signatureRefused || !strings.Contains(got.Message, "is not signed") {
		t.Errorf("another package without a signature: %+v", got)
	}
	api.Remove(policy)
	_, body = r.get(t, "/catalog/package?repository=signed&name=web")
	expect(t, body, "not verified</span>, 1 signature", "no PackagePolicy is for operator")
	api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "ConfigMap" {
			return nil, apierrors.NewForbidden(configv1alpha1.Resource("configmaps"), "", nil)
		}
		return nil, nil
	})
	_, body = r.get(t, "/catalog/package?repository=signed&name=web")
	expect(t, body, "not known</span>, 1 signature", "the settings of kudo, which may require one, cannot be read")
}

// TestJudgeAll checks that the page refuses a package if a policy refuses one of its dependencies, and that the policies of a known namespace
// count, and no others.
func TestJudgeAll(t *testing.T) {
	refuses := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-db"}}
	refuses.Spec.Match = configv1alpha1.PolicyMatch{Operators: []string{"db"}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	refuses.Spec.Action = configv1alpha1.RefusePackages
	api := apitest.Start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"env": "prod"}}})
	api.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	api.Put(refuses)
	web, db := version("a", "web-1.0.0", nil), version("a", "db-1.0.0", func(ov *v1beta1.OperatorVersion) { ov.Spec.Operator.Name = "db" })
	for _, tc := range []struct {
		reason, namespace string
		versions          []*v1beta1.OperatorVersion
		want              state
	}{
		{"a package that no policy is for", "", []*v1beta1.OperatorVersion{web}, signatureMissing},
		{"one that a policy refuses somewhere", "", []*v1beta1.OperatorVersion{db}, signatureRefused},
		{"one that depends on it", "", []*v1beta1.OperatorVersion{db, web}, signatureRefused},
		{"where the policy does not count", "lab", []*v1beta1.OperatorVersion{db, web}, signatureMissing},
		{"where it counts", "shop", []*v1beta1.OperatorVersion{db, web}, signatureRefused},
		{"in a namespace that cannot be read", "none", []*v1beta1.OperatorVersion{db, web}, signatureRefused},
	} {
		got := beginOn(t, api, tc.namespace).judgeAll(t.Context(), tc.versions)
		if got.State != tc.want || len(tc.versions) > 1 && strings.HasPrefix(got.Message, "dependency db: ") != (tc.want == signatureRefused) {
			t.Errorf("%s: %+v", tc.reason, got)
		}
	}
}

// TestSignatureOf checks which state an OperatorVersion has by its signatures and its condition Verified.
func TestSignatureOf(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		signatures []string
		condition  metav1.ConditionStatus
		verdict    trust.Reason
		generation int64
		want       state
	}{
		{"no signature, no policy", nil, "", "", 0, signatureMissing},
		{"a signature that no policy has looked at", []string{"s"}, "", "", 0, signatureUnproven},
		{"a signature that a policy wants", []string{"s"}, metav1.ConditionTrue, trust.Verified, 0, signatureVerified},
		{"a signature of older content", []string{"s"}, metav1.ConditionTrue, trust.Verified, 1, signatureUnproven},
		{"a signature that a policy does not know", []string{"s"}, metav1.ConditionFalse, trust.WrongKey, 0, signatureUnproven},
		{"content that a policy revokes", []string{"s"}, metav1.ConditionFalse, trust.Revoked, 0, signatureRefused},
		{"an operator that a policy refuses", nil, metav1.ConditionFalse, trust.Refused, 0, signatureRefused},
		{"no signature where a policy wants one", nil, metav1.ConditionFalse, trust.NoSignature, 0, signatureUnproven},
		{"no signature where none is required", nil, metav1.ConditionUnknown, trust.NotRequired, 0, signatureMissing},
	} {
		ov := version("a", "web-1.0.0", func(ov *v1beta1.OperatorVersion) {
			ov.Generation = tc.generation
			ov.Spec.Provenance = &v1beta1.Provenance{Signatures: tc.signatures}
			if tc.condition != "" {
				ov.Status.Conditions = append(ov.Status.Conditions, metav1.Condition{Type: v1beta1.VerifiedCondition, Status: tc.condition, Reason: string(tc.verdict), Message: "PackagePolicy p"})
			}
		})
		if got := signatureOf(ov); got.State != tc.want || got.Signatures != len(tc.signatures) || (got.Message == "") != (tc.condition == "") {
			t.Errorf("%s: %+v", tc.reason, got)
		}
	}
}

// TestHostileRepository shows U9: what a repository and its packages say is text, and no part of it is a link, an element, or a control
// character.
func TestHostileRepository(t *testing.T) {
	attack := strings.ReplaceAll(strings.ReplaceAll(hostile, "\x1b", `\x1b`), "\u202e", "")
	attack = strings.ReplaceAll(strings.ReplaceAll(attack, "\u2066", ""), `"`, `\"`)
	bad := packaged("web", "1.0.0")
	bad["operator.yaml"].Data = []byte(strings.NewReplacer("name: ann", `name: "`+attack+`"`, "url: https://example.org", `url: "javascript:alert(1)"`).Replace(string(bad["operator.yaml"].Data)))
	bad["params.yaml"].Data = []byte(`{apiVersion: kudo.dev/v1beta1, parameters: [{name: IMAGE, description: "` + attack + `", default: "` + attack + `"}]}`)
	bad["templates/pod.yaml"].Data = []byte(`{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, image: "` + attack + `"}]}}`)
	r := begin(t, "")
	r.remotes.home = repositoryOf(t, bad)
	for _, path := range []string{"/catalog", "/catalog/package?repository=ours&name=web"} {
		_, body := r.get(t, path)
		checkHarmless(t, path, body)
		if path != "/catalog" && !strings.Contains(body, "&lt;script&gt;alert(1)") {
			t.Errorf("the text of others is not shown at all:\n%s", body)
		}
	}
	for _, index := range []string{"entries: {'<script>': [{name: '<script>', operatorVersion: 1.0.0}]}", "entries: {web: [{name: web, operatorVersion: '" + strings.ReplaceAll(attack, "'", "") + "', description: \"" + attack + "\"}]}",
		"<script>alert(1)</script>", "entries: {web: {}}"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("apiVersion: v1\n" + index)) }))
		r.remotes.home = homeWith(t, repository.Repository{Name: "them", URL: server.URL, Username: "ann", Password: "s3cr3t"}, repository.Repository{Name: "edited", URL: server.URL})
		file := filepath.Join(r.remotes.home.Dir, "repository", "repositories.yaml")
		edited, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		edited = []byte(strings.Replace(string(edited), "name: edited\n  url: http://", "name: edited\n  url: http://ann:s3cr3t@", 1))
		if err := os.WriteFile(file, edited, 0o600); err != nil || !strings.Contains(string(edited), "ann:s3cr3t@") {
			t.Fatal(err, string(edited))
		}
		for _, path := range []string{"/catalog?repository=them", "/catalog/package?repository=them&name=web", "/catalog?repository=edited", "/catalog?repository=%3Cscript%3E&name=%22%3E%3Cscript%3E"} {
			_, body := r.get(t, path)
			checkHarmless(t, path, body)
			if strings.Contains(body, "s3cr3t") {
				t.Errorf("%s has what may be secret in an address", path)
			}
		}
		server.Close()
	}
}

// TestCatalogHangs checks a repository that does not answer: other pages are shown, a third page of the catalog says that it must wait, and
// a user who leaves a page frees its place.
func TestCatalogHangs(t *testing.T) {
	hang, release := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang.Done() }))
	t.Cleanup(server.Close)
	t.Cleanup(release)
	r := begin(t, "")
	r.remotes.home = homeWith(t, repository.Repository{Name: "ours", URL: server.URL})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxRemotes {
		go func() {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/catalog", nil)
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		}()
	}
	r.await(t, "both places are taken", func() bool { return len(r.remotes.reads) == maxRemotes })
	if status, _ := r.get(t, "/instances"); status != http.StatusOK {
		t.Errorf("another page waits for the repository: %d", status)
	}
	r.remotes.limit = 50 * time.Millisecond // of the pages from now on
	if status, body := r.get(t, "/catalog"); status != http.StatusServiceUnavailable || !strings.Contains(body, "other pages read repositories") {
		t.Errorf("a third page: %d", status)
	}
	cancel()
	r.await(t, "both places are free", func() bool { return len(r.remotes.reads) == 0 })
	if status, body := r.get(t, "/catalog"); status != http.StatusGatewayTimeout || !strings.Contains(body, "did not answer in time") {
		t.Errorf("a repository that does not answer in time: %d", status)
	}
}

// TestMapper checks that the requests that find kinds end after a time, although they have no context.
func TestMapper(t *testing.T) {
	hang, release := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang.Done() }))
	t.Cleanup(server.Close)
	t.Cleanup(release)
	mapper, err := newMapper(&rest.Config{Host: server.URL}, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "x.io", Kind: "Site"}, "v1"); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("the error is %v", err)
	}
}
