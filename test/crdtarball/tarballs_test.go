package crdtarball

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// definition is a CRD whose schema has the properties.
func definition(group, plural, properties string) string {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, plural: %s, singular: %s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}
`, plural, group, group, kind, plural, strings.TrimSuffix(plural, "s"), properties)
}

// server serves tarballs by path, and counts.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	asked atomic.Int64
	down  atomic.Bool
	delay time.Duration
}

// authority is what the certificate of every test server is signed by.
func authority(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// pinned sets the digest of a tarball.
func pinned(body []byte) gen.VersionMod {
	return func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.HTTPSource.SHA256 = digest(body) }
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func serve(t testing.TB) *server {
	s := &server{files: map[string][]byte{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.mu.Lock()
		body, ok := s.files[r.URL.Path]
		s.mu.Unlock()
		switch {
		case s.down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			<-time.After(s.delay)
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) put(path string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = body
}

// version builds an OperatorVersion with a tarball, whose Instances have a ConfigMap and a custom resource.
func version(s *server, ns, app, group, kind, url string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	cr := fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: {{ .Name }}}\nspec: {size: 1}\n", group, kind)
	all := []gen.VersionMod{gen.Param("VALUE", "a", ""), gen.Template("cr.yaml", cr), gen.ConfigMaps("cm", 1), gen.Apply("cr", "cr.yaml"), gen.Serial("deploy", "cr", "cm"),
		func(ov *v1beta1.OperatorVersion) {
			ov.Spec.AppVersion, ov.Spec.Operator.Name = app, "spark"
			ov.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: url, CABundle: authority(s.Server)}}
		}}
	return gen.Version(ns, "spark-"+app, append(all, mods...)...)
}

func unique() string {
	return "group-" + rand.String(8) + ".example.com"
}

func deploy(t testing.TB, ov *v1beta1.OperatorVersion, name string) *v1beta1.Instance {
	t.Helper()
	env.Must(t, suite.Create(ctx, gen.Instance(name, ov, nil)))
	i, err := suite.Await(ctx, ov.Namespace, name, env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Fatalf("deploy of %s is %s: %s", name, st.Status, st.Message)
	}
	return i
}

// waiting waits for an Instance that is PENDING with texts in its message.
func waiting(t testing.TB, ns, name string, texts ...string) *v1beta1.Instance {
	t.Helper()
	i, err := suite.Await(ctx, ns, name, env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		if i == nil || i.Status.AggregatedStatus.Status != v1beta1.Pending || i.Status.PlanStatus["deploy"].Status != v1beta1.Pending {
			return false
		}
		for _, text := range texts {
			if !strings.Contains(i.Status.AggregatedStatus.Message, text) {
				return false
			}
		}
		return true
	})
	env.Must(t, err)
	for _, kind := range []string{v1beta1.ReadyCondition, v1beta1.CRDsReadyCondition} {
		if c := meta.FindStatusCondition(i.Status.Conditions, kind); c == nil || c.Reason != v1beta1.ReasonWaitingForCRDs || c.Status != "False" {
			t.Errorf("condition %s is %+v", kind, c)
		}
	}
	return i
}

func crd(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	obj.SetName(name)
	return obj
}

func exists(t testing.TB, obj client.Object) bool {
	t.Helper()
	err := suite.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

var _ = It("Two Instances of different versions each get the CRDs of their version, and a third of the first version makes no further request", func() {
	t := GinkgoTB()
	group, s, ns, other := unique(), serve(t), suite.NewNamespace(t), suite.NewNamespace(t)
	old := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	s.put("/3.0/crds.tgz", old)
	s.put("/3.1/crds.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}"), definition(group, "pools", "size: {type: integer}")))
	url := s.URL + "/{{ .AppVersion }}/crds.tgz"
	first, second := version(s, ns, "3.0", group, "Job", url, pinned(old)), version(s, other, "3.1", group, "Pool", url)
	first3 := version(s, other, "3.0", group, "Job", url, pinned(old))
	for _, ov := range []*v1beta1.OperatorVersion{first, second, first3} {
		env.Must(t, suite.Create(ctx, ov))
	}
	i := deploy(t, first, "a")
	if c := i.Status.CRDs; c == nil || c.URL != s.URL+"/3.0/crds.tgz" || !strings.HasPrefix(c.Digest, "sha256:") || c.CachedAt == nil || len(c.CRDs) != 1 || c.Download != nil {
		t.Errorf("status.crds: %+v", c)
	}
	if len(i.Status.Conditions) != 1 {
		t.Errorf("an idle Instance has one condition: %+v", i.Status.Conditions)
	}
	if exists(t, crd("pools."+group)) {
		t.Error("the CRDs of another version are there")
	}
	deploy(t, second, "b")
	asked := s.asked.Load()
	deploy(t, first3, "c")
	if asked != 2 || s.asked.Load() != 2 {
		t.Errorf("%d requests for two versions, then %d", asked, s.asked.Load())
	}
	jobs := crd("jobs." + group)
	if !exists(t, jobs) || jobs.GetAnnotations()[v1beta1.ManagedAnnotation] != "true" || len(jobs.GetOwnerReferences()) != 4 {
		t.Errorf("three Instances and the guard own it: %v", jobs.GetOwnerReferences())
	}
	env.Must(t, suite.Delete(ctx, gen.Instance("a", first, nil)))
	env.Must(t, suite.Delete(ctx, gen.Instance("b", second, nil)))
	gone(t, crd("pools."+group))
	if !exists(t, crd("jobs."+group)) {
		t.Error("a definition went that the third Instance needs")
	}
	env.Must(t, suite.Delete(ctx, gen.Instance("c", first3, nil)))
	gone(t, crd("jobs."+group))
})

func gone(t testing.TB, obj client.Object) {
	t.Helper()
	env.Eventually(t, obj.GetName()+" gone", func() string {
		if exists(t, obj) {
			return fmt.Sprint(obj.GetOwnerReferences())
		}
		return ""
	})
}

var _ = It("What cannot be had keeps the Instance PENDING with the reason, and goes on by itself when it can be had", Label("refused"), func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	tarball := func(change func(*v1beta1.CRDTarball)) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) { change(ov.Spec.CRDTarball) }
	}
	good := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	s.put("/page.tgz", gen.Tarball("<html>not found</html>"))
	s.put("/good.tgz", good)
	for app, tc := range map[string]struct {
		url   string
		mod   gen.VersionMod
		texts []string
	}{
		"missing": {s.URL + "/missing.tgz", tarball(func(*v1beta1.CRDTarball) {}), []string{"/missing.tgz", "404"}},
		"page":    {s.URL + "/page.tgz", tarball(func(*v1beta1.CRDTarball) {}), []string{"/page.tgz", "HTML"}},
		"pin":     {s.URL + "/good.tgz?pin", tarball(func(c *v1beta1.CRDTarball) { c.HTTPSource.SHA256 = strings.Repeat("0", 64) }), []string{"content has digest sha256:" + digest(good) + ", not sha256:" + strings.Repeat("0", 64)}},
		"never":   {s.URL + "/good.tgz?never", tarball(func(c *v1beta1.CRDTarball) { c.CRDDownloadPolicy = v1beta1.DownloadNever }), []string{"Never"}},
		"secret":  {s.URL + "/good.tgz?secret", tarball(func(c *v1beta1.CRDTarball) { c.HTTPSource.SecretRef = &v1beta1.SecretReference{Name: "no"} }), []string{"no"}},
	} {
		ov := version(s, ns, app, group, "Job", tc.url, tc.mod)
		env.Must(t, suite.Create(ctx, ov))
		env.Must(t, suite.Create(ctx, gen.Instance(app, ov, nil)))
		waiting(t, ns, app, tc.texts...)
	}
	if exists(t, crd("jobs."+group)) {
		t.Error("something was installed")
	}
	s.put("/missing.tgz", good)
	_, err := suite.Await(ctx, ns, "missing", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	ov := version(s, ns, "template", group, "Job", s.URL+"/{{ .NoSuch }}/x.tgz")
	env.Must(t, suite.Create(ctx, ov))
	env.Must(t, suite.Create(ctx, gen.Instance("template", ov, nil)))
	_, err = suite.Await(ctx, ns, "template", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return c != nil && c.Reason == v1beta1.ReasonInvalidSpec && strings.Contains(c.Message, "NoSuch")
	})
	env.Must(t, err)
})

var _ = It("The policy Always asks again, and uses what it has if the source does not answer", func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	body := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	s.put("/a.tgz", body)
	ov := version(s, ns, "1", group, "Job", s.URL+"/a.tgz", pinned(body), func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.CRDDownloadPolicy = v1beta1.DownloadAlways })
	env.Must(t, suite.Create(ctx, ov))
	deploy(t, ov, "a")
	s.down.Store(true)
	i := deploy(t, ov, "b")
	if c := i.Status.CRDs; !c.Stale || !strings.Contains(c.StaleReason, "503") {
		t.Errorf("status.crds: %+v", c)
	}
	awaitEvent(t, ns, v1beta1.EventCRDsFetched, "/a.tgz")
	awaitEvent(t, ns, v1beta1.EventCRDsStale, "the one fetched at")
	wrong := version(s, ns, "2", group, "Job", s.URL+"/b.tgz")
	s.down.Store(false)
	s.put("/b.tgz", []byte("no archive"))
	env.Must(t, suite.Create(ctx, wrong))
	env.Must(t, suite.Create(ctx, gen.Instance("c", wrong, nil)))
	awaitEvent(t, ns, v1beta1.EventCRDsNotInstalled, "/b.tgz")
})

// awaitEvent waits for an event.
func awaitEvent(t testing.TB, ns, reason, text string) {
	t.Helper()
	env.Eventually(t, "event "+reason, func() string {
		list := &corev1.EventList{}
		env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
		seen := ""
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return ""
			}
			seen += e.Reason + ": " + e.Message + "\n"
		}
		return "there are\n" + seen
	})
}

var _ = It("A live CRD that differs is left as it is, and under IfSafe it is changed if that breaks nothing", func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.put("/1.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}")))
	s.put("/2.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}, color: {type: string}")))
	s.put("/3.tgz", gen.Tarball(definition(group, "jobs", "size: {type: string}")))
	url := s.URL + "/{{ .AppVersion }}.tgz"
	safe := func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.CRDUpdatePolicy = v1beta1.UpdateIfSafe }
	one, two, twoSafe, three := version(s, ns, "1", group, "Job", url), version(s, ns, "2", group, "Job", url), version(s, ns, "2", group, "Job", url, safe), version(s, ns, "3", group, "Job", url, safe)
	twoSafe.Name = "spark-2-safe"
	for _, ov := range []*v1beta1.OperatorVersion{one, two, twoSafe, three} {
		env.Must(t, suite.Create(ctx, ov))
	}
	deploy(t, one, "one")
	env.Must(t, suite.Create(ctx, gen.Instance("two", two, nil)))
	waiting(t, ns, "two", "CustomResourceDefinition jobs."+group, "does not match", "color", "Instance "+ns+"/one")
	deploy(t, twoSafe, "safe")
	_, err := suite.Await(ctx, ns, "two", env.DefaultTimeout, env.PlanEnded("deploy", 1)) // it matches now
	env.Must(t, err)
	env.Must(t, suite.Create(ctx, gen.Instance("three", three, nil)))
	waiting(t, ns, "three", "the change is not safe", "size")
})

var _ = It("An older Instance runs its plans again beside a newer CRD that allows all that its own does", func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.put("/1.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}")))
	s.put("/2.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}, color: {type: string}")))
	s.put("/0.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}, shape: {type: string}")))
	url := s.URL + "/{{ .AppVersion }}.tgz"
	safe := func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.CRDUpdatePolicy = v1beta1.UpdateIfSafe }
	older, newer := version(s, ns, "1", group, "Job", url), version(s, ns, "2", group, "Job", url, safe)
	other := version(s, ns, "0", group, "Job", url)
	for _, ov := range []*v1beta1.OperatorVersion{older, newer, other} {
		env.Must(t, suite.Create(ctx, ov))
	}
	deploy(t, older, "older")
	deploy(t, newer, "newer")
	before := crd("jobs." + group)
	env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(before), before))
	for revision, value := range []string{"b", "c"} {
		i := env.Read(t, suite, &v1beta1.Instance{}, ns, "older")
		patch := client.MergeFrom(i.DeepCopy())
		i.Spec.Parameters = map[string]string{"VALUE": value}
		env.Must(t, suite.Patch(ctx, i, patch))
		i, err := suite.Await(ctx, ns, "older", env.DefaultTimeout, env.PlanEnded("deploy", int64(revision+2)))
		env.Must(t, err)
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			t.Fatalf("run %d of the older Instance is %s: %s", revision+2, st.Status, st.Message)
		}
	}
	deploy(t, older, "late") // a new Instance of the older version, too
	after := crd("jobs." + group)
	env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(after), after))
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("the older Instances have changed the definition: %s", diff)
	}
	env.Must(t, suite.Create(ctx, gen.Instance("other", other, nil))) // which the newer one lacks a field of
	waiting(t, ns, "other", "CustomResourceDefinition jobs."+group, "does not match", "shape")
})

var _ = It("The API server shows the policies that apply if a tarball names none", func() {
	t := GinkgoTB()
	ns, s := suite.NewNamespace(t), serve(t)
	ov := version(s, ns, "1", "x.example.com", "Job", s.URL+"/a.tgz")
	env.Must(t, suite.Create(ctx, ov, client.DryRunAll))
	if got := ov.Spec.CRDTarball.CRDDownloadPolicy; got != v1beta1.DownloadIfNotPresent {
		t.Errorf("the crdDownloadPolicy is %q, want %s", got, v1beta1.DownloadIfNotPresent)
	}
})

var _ = It("Without any network, the tarball comes from ConfigMaps", func() {
	t := GinkgoTB()
	group, ns := unique(), suite.NewNamespace(t)
	body := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	half := len(body) / 2
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "crds-1-a"), BinaryData: map[string][]byte{"part": body[:half]}}))
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "crds-1-b"), BinaryData: map[string][]byte{"part": body[half:]}}))
	ov := version(serve(t), ns, "1", group, "Job", "unused", func(ov *v1beta1.OperatorVersion) {
		ov.Spec.CRDTarball = &v1beta1.CRDTarball{ConfigMapSource: &v1beta1.ConfigMapSource{SHA256: digest(body), ConfigMaps: []v1beta1.ConfigMapPart{{Name: "crds-{{ .AppVersion }}-a"}, {Name: "crds-{{ .AppVersion }}-b"}}}}
	})
	env.Must(t, suite.Create(ctx, ov))
	i := deploy(t, ov, "a")
	if c := i.Status.CRDs; c == nil || !strings.HasPrefix(c.URL, "configmap://"+ns+"/crds-1-a") {
		t.Errorf("status.crds: %+v", c)
	}
})

var _ = It("Fifty Instances with one URL make one request", func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.delay = time.Second
	body := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	s.put("/a.tgz", body)
	ov := version(s, ns, "1", group, "Job", s.URL+"/a.tgz", pinned(body))
	env.Must(t, suite.Create(ctx, ov))
	for n := range 50 {
		env.Must(t, suite.Create(ctx, gen.Instance(fmt.Sprintf("i%d", n), ov, nil)))
	}
	for n := range 50 {
		_, err := suite.Await(ctx, ns, fmt.Sprintf("i%d", n), env.DefaultTimeout, env.PlanEnded("deploy", 1))
		env.Must(t, err)
	}
	if got := s.asked.Load(); got != 1 {
		t.Errorf("%d requests, want one", got)
	}
})

var _ = It("An upgrade gets the CRDs of the new version before its plan, and releases what only the old one had after it", func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.put("/1.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}"), definition(group, "olds", "size: {type: integer}")))
	s.put("/2.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}"), definition(group, "news", "size: {type: integer}")))
	url := s.URL + "/{{ .AppVersion }}.tgz"
	one, two := version(s, ns, "1", group, "Job", url), version(s, ns, "2", group, "New", url)
	env.Must(t, suite.Create(ctx, one))
	env.Must(t, suite.Create(ctx, two))
	deploy(t, one, "i")
	i := env.Read(t, suite, &v1beta1.Instance{}, ns, "i")
	patch := client.MergeFrom(i.DeepCopy())
	i.Spec.OperatorVersion.Name = two.Name
	env.Must(t, suite.Patch(ctx, i, patch))
	_, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded("deploy", 2))
	env.Must(t, err)
	if !exists(t, crd("news."+group)) || !exists(t, crd("jobs."+group)) {
		t.Error("the CRDs of the new version are not there")
	}
	gone(t, crd("olds."+group))
})

var _ = It("The definitions of the version before stay while an upgrade has failed or cannot begin, and when it is taken back", func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.put("/1.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}"), definition(group, "olds", "size: {type: integer}")))
	s.put("/2.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}"), definition(group, "news", "size: {type: integer}")))
	s.put("/3.tgz", gen.Tarball(definition(group, "jobs", "size: {type: string}")))
	url := s.URL + "/{{ .AppVersion }}.tgz"
	one, three := version(s, ns, "1", group, "Job", url), version(s, ns, "3", group, "Job", url)
	two := version(s, ns, "2", group, "New", url, gen.Task("app", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "app"))
	for _, ov := range []*v1beta1.OperatorVersion{one, two, three} {
		env.Must(t, suite.Create(ctx, ov))
	}
	deploy(t, one, "i")
	to := func(ov *v1beta1.OperatorVersion) {
		i := env.Read(t, suite, &v1beta1.Instance{}, ns, "i")
		patch := client.MergeFrom(i.DeepCopy())
		i.Spec.OperatorVersion.Name = ov.Name
		env.Must(t, suite.Patch(ctx, i, patch))
	}
	stays := func(reason string) {
		t.Helper()
		env.Consistently(t, 2*time.Second, func() {
			if old := crd("olds." + group); !exists(t, old) || old.GetDeletionTimestamp() != nil {
				t.Fatalf("%s: the definitions of the version that runs were deleted", reason)
			}
		})
	}
	to(three) // its definitions would break those that are there
	_, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return meta.IsStatusConditionFalse(i.Status.Conditions, v1beta1.CRDsReadyCondition)
	})
	env.Must(t, err)
	to(one)
	_, err = suite.Await(ctx, ns, "i", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return i.Status.AggregatedStatus.Status == v1beta1.Complete
	})
	env.Must(t, err)
	stays("an upgrade was taken back that could not begin")
	to(two)
	i, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded("deploy", 2))
	env.Must(t, err)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError {
		t.Fatalf("the upgrade is %s", st.Status)
	}
	stays("an upgrade has failed")
})

var _ = It("A definition that stays for its objects is taken over again, with them, by a reinstallation, which an event names (P26)", Label("P26"), func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	s.put("/1.tgz", gen.Tarball(definition(group, "jobs", "size: {type: integer}"), definition(group, "pools", "size: {type: integer}")))
	ov := version(s, ns, "1", group, "Job", s.URL+"/{{ .AppVersion }}.tgz")
	env.Must(t, suite.Create(ctx, ov))
	deploy(t, ov, "i")
	data := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(7)}}}
	data.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Job"})
	data.SetNamespace(ns)
	data.SetName("by-hand")
	env.Must(t, suite.Create(ctx, data))
	jobs, pools := crd("jobs."+group), crd("pools."+group)
	if !exists(t, jobs) || !exists(t, pools) {
		t.Fatal("the definitions are not there")
	}
	before, uid := jobs.GetUID(), data.GetUID()
	out := suite.MustKudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--wait")
	env.Contains(t, out, "customresourcedefinition jobs."+group+" stays, since it ", ns+"/by-hand")
	deploy(t, ov, "i")
	if !exists(t, jobs) || jobs.GetUID() != before || jobs.GetDeletionTimestamp() != nil {
		t.Errorf("the definition is %s, not %s", jobs.GetUID(), before)
	}
	if !exists(t, data) || data.GetUID() != uid || data.GetDeletionTimestamp() != nil {
		t.Errorf("the object is %s, not %s", data.GetUID(), uid)
	}
	if size, _, _ := unstructured.NestedInt64(data.Object, "spec", "size"); size != 7 {
		t.Errorf("the data of the object is %d", size)
	}
	awaitEvent(t, ns, v1beta1.EventObjectsReadopted, "The Instance took over again what was kept: ")
	awaitEvent(t, ns, v1beta1.EventObjectsReadopted, "CustomResourceDefinition jobs."+group)
	env.Eventually(t, "the former Installation is released", func() string {
		if !exists(t, jobs) || len(jobs.GetOwnerReferences()) != 2 || jobs.GetUID() != before { // the guard, and the Installation
			return fmt.Sprint(jobs.GetOwnerReferences())
		}
		return ""
	})
	env.Must(t, suite.Delete(ctx, data))
	suite.MustKudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--wait")
	gone(t, jobs)
})
