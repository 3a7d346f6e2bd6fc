package tenancy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// tarballCases are attacks by those who hold what CRD tarballs are fetched from.
func tarballCases() []attackCase {
	return []attackCase{
		{finding: "9", name: "changed content under a pin", reason: "whoever writes the source of a tarball installs nothing else by it", begin: pinned, ready: ended("x"), strike: repacks, holds: unpacked},
		{finding: "14", name: "a foreign realm", reason: "a registry has its credentials shown to no other host", begin: peopled, strike: challenges, holds: unseen},
	}
}

// jobs is the name of the CustomResourceDefinition that a namespace's tarball holds; pools that of one which an attack adds.
func (s *stage) jobs() string  { return "jobs." + s.ns + ".example.com" }
func (s *stage) pools() string { return "pools." + s.ns + ".example.com" }

// tarball packs CustomResourceDefinitions, whose objects have a field.
func tarball(field string, names ...string) []byte {
	var documents []string
	for _, name := range names {
		plural, group, _ := strings.Cut(name, ".")
		documents = append(documents, fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %[1]s}\nspec:\n  group: %[2]s\n  scope: Namespaced\n"+
			"  names: {kind: K%[3]s, listKind: K%[3]sList, plural: %[3]s, singular: %[3]s1}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n"+
			"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[4]s: {type: integer}}}}}}\n", name, group, plural, field))
	}
	return gen.Tarball(documents...)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pinned is an Instance with the definitions of a tarball in a ConfigMap, which nadia may write.
func pinned(t *testing.T, s *stage) {
	peopled(t, s)
	tenants.allow(s.jobs(), installer)
	good := tarball("size", s.jobs())
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(s.ns, "crds"), BinaryData: map[string][]byte{"crds.tgz": good}}))
	ov := gen.Version(s.ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ov.Spec.CRDTarball = &v1beta1.CRDTarball{CRDDownloadPolicy: v1beta1.DownloadAlways, CRDUpdatePolicy: v1beta1.UpdateIfSafe,
		ConfigMapSource: &v1beta1.ConfigMapSource{ConfigMaps: []v1beta1.ConfigMapPart{{Name: "crds"}}, SHA256: digest(good)}}
	env.Must(t, suite.Create(ctx, ov))
	env.Must(t, suite.Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
	s.saved = digest(good)
}

// repacks: nadia puts another tarball in its place, and has a run started.
func repacks(t *testing.T, s *stage) {
	evil := tarball("color", s.jobs(), s.pools())
	source := env.Read(t, as(t, nadia), &corev1.ConfigMap{}, s.ns, "crds")
	source.BinaryData["crds.tgz"] = evil
	env.Must(t, as(t, nadia).Update(ctx, source))
	env.Must(t, as(t, nadia).Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, "x")}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"VALUE":"b"}}}`))))
	s.saved = "content has digest sha256:" + digest(evil) + ", not sha256:" + s.saved.(string)
}

// unpacked: the Instance says what is wrong, and what was installed is as it was.
func unpacked(t *testing.T, s *stage) {
	s.await(t, "x", func(i *v1beta1.Instance) bool {
		return strings.Contains(i.Status.AggregatedStatus.Message, s.saved.(string)) || i.Status.CRDs != nil && strings.Contains(i.Status.CRDs.StaleReason, s.saved.(string))
	})
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := suite.Get(ctx, client.ObjectKey{Name: s.pools()}, crd); !apierrors.IsNotFound(err) {
		t.Errorf("the definition of the other tarball exists (%v)", err)
	}
	if err := suite.Get(ctx, client.ObjectKey{Name: s.jobs()}, crd); client.IgnoreNotFound(err) != nil || strings.Contains(fmt.Sprint(crd.Object["spec"]), "color") {
		t.Errorf("the definition has changed: %v %v", err, crd.Object["spec"])
	}
}

// host is a server that writes down what it is shown.
type host struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newHost(t *testing.T, answer http.HandlerFunc) *host {
	h := &host{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header["Authorization"]))
		h.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *host) name() string { return strings.TrimPrefix(h.URL, "https://") }

// requests are those that the host has seen.
func (h *host) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// challenges: a registry names a token service of another host.
func challenges(t *testing.T, s *stage) {
	foreign := newHost(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"token":"t","access_token":"t"}`))
	})
	registry := newHost(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="lab",scope="repository:lab/crds:pull"`, foreign.URL))
		w.WriteHeader(http.StatusUnauthorized)
	})
	auth := base64.StdEncoding.EncodeToString([]byte("puller:" + password))
	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(s.ns, "pull"), Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry.name(), auth)}}))
	ov := gen.Version(s.ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ov.Spec.CRDTarball = &v1beta1.CRDTarball{OCISource: &v1beta1.OCISource{
		// A repository of its own: while a manager that has stopped holds the lock of a cache entry, another one cannot fetch it.
		Ref: registry.name() + "/" + s.ns + "/crds@sha256:" + strings.Repeat("a", 64), SecretRef: &v1beta1.SecretReference{Name: "pull"},
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw}),
	}}
	env.Must(t, suite.Create(ctx, ov))
	env.Must(t, as(t, ann).Create(ctx, named(gen.Instance("x", ov, nil), "kudo")))
	s.saved = []*host{registry, foreign}
}

func unseen(t *testing.T, s *stage) {
	hosts := s.saved.([]*host)
	i := s.await(t, "x", says("is not a host of"))
	env.Contains(t, i.Status.AggregatedStatus.Message, "realm "+hosts[1].name()+" is not a host of "+hosts[0].name()+": it would get the credentials of the registry; if it issues its tokens, list it in oci-token-realms")
	// It may have the port of the registry of a case that has ended, whose Instance is still tried, without credentials.
	pulls := regexp.MustCompile(`^GET /v2/\S* \[\]$`)
	if seen := slices.DeleteFunc(hosts[1].requests(), pulls.MatchString); len(seen) > 0 {
		t.Errorf("the foreign host was asked %q", seen)
	}
	if len(hosts[0].requests()) == 0 {
		t.Error("the registry was not asked")
	}
}
