package explore

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/cmd/explore-sample/sample"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// sampleWebhook is explore-sample as a process, at an address and with a certificate that outlive it.
type sampleWebhook struct {
	program, address, certificate, key string
	bundle                             []byte
	cmd                                *exec.Cmd
}

func newSampleWebhook(t testing.TB) *sampleWebhook {
	t.Helper()
	dir := t.TempDir()
	w := &sampleWebhook{program: filepath.Join(dir, "explore-sample"), certificate: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	build := exec.Command("go", "build", "-o", w.program, "./cmd/explore-sample")
	build.Dir = sourcetree.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, bundle, err := sample.SelfSigned([]string{"127.0.0.1"}, time.Now())
	env.Must(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	env.Must(t, err)
	env.Must(t, os.WriteFile(w.certificate, bundle, 0o600))
	env.Must(t, os.WriteFile(w.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	w.bundle, w.address = bundle, env.FreeAddress(t)
	w.start(t)
	t.Cleanup(func() { w.stop(t) })
	return w
}

func (w *sampleWebhook) start(t testing.TB) {
	t.Helper()
	w.cmd = exec.Command(w.program, "--listen", w.address, "--hosts", "127.0.0.1", "--certificate", w.certificate, "--key", w.key)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	env.Must(t, err)
	env.Must(t, w.cmd.Start())
	if _, err := out.Read(make([]byte, 1024)); err != nil { // it says so when it serves
		t.Fatalf("explore-sample did not start: %v", err)
	}
}

func (w *sampleWebhook) stop(t testing.TB) {
	t.Helper()
	if w.cmd == nil {
		return
	}
	env.Must(t, w.cmd.Process.Signal(syscall.SIGTERM))
	_ = w.cmd.Wait()
	w.cmd = nil
}

// configuration is the one of the proposal, with the address and the certificate filled in.
func (w *sampleWebhook) configuration(t testing.TB, pairs ...string) string {
	t.Helper()
	return read(t, "testdata/seed-example.yaml", append(pairs, "xxx:443", w.address, "{{caBundle}}", base64.StdEncoding.EncodeToString(w.bundle))...)
}

const fooGroup, barGroup = sample.FooGroup + "/v1alpha1", sample.BarGroup + "/v1alpha1"

func sampleKinds(t testing.TB) {
	t.Helper()
	define(t, read(t, filepath.Join(sourcetree.Root(), "cmd", "explore-sample", "sample", "crds.yaml")))
}

// fooAndBar is an operator of a Foo, and a Bar that needs it and another Foo.
func fooAndBar(ns string) *v1beta1.OperatorVersion {
	return operator(ns, [][2]string{
		{"foo", `apiVersion: foo.example.com/v1alpha1
kind: Foo
metadata: {name: foo}
spec:
  image: {{ .Params.IMAGE }}
  assigned:
    a: mine
{{- if eq .Params.B "yes" }}
    b: theirs
{{- end }}
`},
		{"bar", `apiVersion: bar.example.com/v1alpha1
kind: Bar
metadata: {name: {{ .Namespace }}}
spec:
  foos: [{namespace: {{ .Namespace }}, name: foo}, {namespace: {{ .Namespace }}, name: other}]
`}}, gen.Param("IMAGE", "one", ""), gen.Param("B", "yes", ""))
}

var _ = Describe("Webhooks of the example:", Ordered, ContinueOnFailure, func() {
	It("The webhooks of the proposal's example let a plan wait, say for what, and keep what was assigned", func() {
		t := GinkgoTB()
		sampleKinds(t)
		bare := suite.NewNamespace(t)
		suite.Grant(t, bare, sample.BarGroup, "bars") // Bars are of the whole cluster
		i := install(t, fooAndBar(bare), nil)
		complete(t, i, 1)
		set(t, i, `{"parameters":{"B":"no"}}`)
		complete(t, i, 2)
		if got := field(live(t, fooGroup, "Foo", bare, "foo"), "spec.assigned"); got != "map[a:mine]" {
			t.Errorf("a value that is not rendered any more was kept: %s", got)
		}
		env.Must(t, suite.Delete(ctx, i))

		w := newSampleWebhook(t)
		configure(t, w.configuration(t))
		ns := suite.NewNamespace(t)
		suite.Grant(t, ns, sample.BarGroup, "bars")
		i = install(t, fooAndBar(ns), nil)
		says(t, i, "Foo", ns+"/foo", "its controller has not seen the last change yet")
		answer := func() {
			foo := live(t, fooGroup, "Foo", ns, "foo")
			merge(t, foo, `{"status":{"phase":"Ready","observedGeneration":`+field(foo, "metadata.generation")+`}}`, true)
		}
		answer()
		says(t, i, "Bar", "needs Foo "+ns+"/other: missing")
		create(t, "apiVersion: foo.example.com/v1alpha1\nkind: Foo\nmetadata: {name: other, namespace: "+ns+"}\n")
		bar := live(t, barGroup, "Bar", "", ns)
		merge(t, bar, `{"status":{"message":"warms up"}}`, true)
		says(t, i, "Bar", "warms up")
		merge(t, bar, `{"status":{"ready":true}}`, true)
		complete(t, i, 1)
		set(t, i, `{"parameters":{"B":"no","IMAGE":"two"}}`)
		says(t, i, "has not seen the last change")
		answer()
		complete(t, i, 2)
		if got := field(live(t, fooGroup, "Foo", ns, "foo"), "spec.assigned"); got != "map[a:mine b:theirs]" {
			t.Errorf("the webhook keeps what was assigned: %s", got)
		}
		env.Must(t, suite.Delete(ctx, i))
	})

	It("Nothing is written and no object is called healthy while the webhook cannot be asked, unless its failurePolicy says so", func() {
		t := GinkgoTB()
		sampleKinds(t)
		w := newSampleWebhook(t)
		text := w.configuration(t)
		configure(t, text)
		ns := suite.NewNamespace(t)
		ov := fooAndBar(ns)
		ov.Spec.Plans[v1beta1.DeployPlan].Phases[0].Steps = ov.Spec.Plans[v1beta1.DeployPlan].Phases[0].Steps[:1]
		w.stop(t)
		i := install(t, ov, nil)
		says(t, i, "its health is not known", "ExploreHealthy of Foo "+ns+"/foo", "webhook example/foo.example.com", w.address, "connection refused")
		w.start(t)
		says(t, i, "its controller has not seen the last change yet")
		foo := live(t, fooGroup, "Foo", ns, "foo")
		merge(t, foo, `{"status":{"phase":"Ready","observedGeneration":1}}`, true)
		complete(t, i, 1)

		w.stop(t)
		set(t, i, `{"parameters":{"IMAGE":"two"}}`)
		if status := says(t, i, "ExploreRetaining of Foo "+ns+"/foo is unknown", "webhook example/foo.example.com", "connection refused"); status != v1beta1.TransientError {
			t.Errorf("the step is %s: it is tried again", status)
		}
		if got := field(live(t, fooGroup, "Foo", ns, "foo"), "spec.image"); got != "one" {
			t.Errorf("nothing is overwritten on an answer that cannot be had: image is %s", got)
		}
		configuration := parse(t, text)[0]
		merge(t, configuration, `{"webhooks":`+ignoring(t, w)+`}`, false)
		ready(t, configuration, "True")
		says(t, i, "Foo generation is 2, but latest observed generation is 1") // kudo's own rules
		merge(t, foo, `{"status":{"observedGeneration":2}}`, true)
		complete(t, i, 2)
		if got := field(live(t, fooGroup, "Foo", ns, "foo"), "spec.image"); got != "two" {
			t.Errorf("with failurePolicy Ignore the next layer is asked: image is %s", got)
		}
		env.Must(t, suite.Delete(ctx, i))
	})
})

// ignoring are the webhooks of the example with failurePolicy Ignore, as JSON.
func ignoring(t testing.TB, w *sampleWebhook) string {
	t.Helper()
	o := parse(t, w.configuration(t, "failurePolicy: Fail", "failurePolicy: Ignore"))[0]
	text, err := json.Marshal(o.Object["webhooks"])
	env.Must(t, err)
	return string(text)
}

// serveHere serves a webhook inside the test, and returns its URL and bundle.
func serveHere(t testing.TB, handler http.Handler) (url, bundle string) {
	t.Helper()
	certificate, pemBundle, err := sample.SelfSigned([]string{"127.0.0.1"}, time.Now())
	env.Must(t, err)
	s := newTLSServer(handler, certificate)
	t.Cleanup(s.Close)
	return s.URL, base64.StdEncoding.EncodeToString(pemBundle)
}

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.explore.example.com}
spec:
  group: explore.example.com
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, x-kubernetes-preserve-unknown-fields: true},
      status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

func gadgetHook(operations, url, bundle string) string {
	return `apiVersion: config.kudo.dev/v1alpha1
kind: ResourceExploringWebhookConfiguration
metadata: {name: gadgets}
webhooks:
- name: gadgets.example.com
  rules: [{operations: ` + operations + `, apiGroups: [explore.example.com], apiVersions: ["*"], resources: [gadgets], scope: Namespaced}]
  clientConfig: {url: "` + url + `", caBundle: ` + bundle + `}
  exploreReviewVersions: [v1alpha1]
  timeoutSeconds: 1
`
}

const gadget = "apiVersion: explore.example.com/v1\nkind: Gadget\nmetadata: {name: gadget}\nspec: {size: {{ .Params.SIZE }}}\n"

var _ = Describe("Webhooks of one kind:", Ordered, ContinueOnFailure, func() {
	It("A webhook packs, revises and gives a status", func() {
		t := GinkgoTB()
		define(t, gadgets)
		spec := func(r *server.Request, key string, value any) (*v1alpha1.ExploreResponse, error) {
			before, after := map[string]any{}, map[string]any{}
			if err := r.Decode(&before); err != nil {
				return nil, err
			}
			if err := r.Decode(&after); err != nil {
				return nil, err
			}
			after["spec"].(map[string]any)[key] = value
			return r.Patch(before, after)
		}
		url, bundle := serveHere(t, server.Operations{
			v1alpha1.ExplorePacking: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
				return spec(r, "packed", true)
			},
			v1alpha1.ExploreReplicaRevising: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
				return spec(r, "size", *r.DesiredReplicas)
			},
			v1alpha1.ExploreStatus: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
				return server.Status(map[string]any{"from": r.Name})
			},
		})
		configure(t, gadgetHook("[ExplorePacking, ExploreReplicaRevising, ExploreStatus]", url, bundle))
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"gadget", gadget}}, gen.Param("SIZE", "3", "")), nil)
		complete(t, i, 1)
		o := live(t, "explore.example.com/v1", "Gadget", ns, "gadget")
		if field(o, "spec.packed") != "true" || field(o, "spec.size") != "3" {
			t.Errorf("the webhook packs: %v", o.Object["spec"])
		}
		env.Eventually(t, "the status in that of the Instance", func() string { return reflected(t, i, "Gadget", `{"from":"gadget"}`) })
		set(t, i, `{"suspend":true}`)
		complete(t, i, 2)
		if o = live(t, "explore.example.com/v1", "Gadget", ns, "gadget"); field(o, "spec.size") != "0" {
			t.Errorf("a suspended Instance has no replicas: %v", o.Object["spec"])
		}
	})

	It("A webhook that times out again and again is not asked for a while, and its configuration says so", func() {
		t := GinkgoTB()
		define(t, gadgets)
		ns := suite.NewNamespace(t)
		well := make(chan struct{})
		url, bundle := serveHere(t, server.Operations{v1alpha1.ExploreHealthy: func(c context.Context, _ *server.Request) (*v1alpha1.ExploreResponse, error) {
			select {
			case <-well:
			case <-c.Done():
			}
			return server.Healthy(true, ""), nil
		}})
		text := gadgetHook("[ExploreHealthy]", url, bundle)
		configure(t, text)
		i := install(t, operator(ns, [][2]string{{"gadget", gadget}}, gen.Param("SIZE", "3", "")), nil)
		says(t, i, "webhook gadgets/gadgets.example.com", "no whole answer within 1s")
		n := 0
		env.Eventually(t, "a configuration that is not Ready", func() string {
			n++ // what waits is looked at now and then only; a change of it is looked at at once
			merge(t, live(t, "explore.example.com/v1", "Gadget", ns, "gadget"), fmt.Sprintf(`{"status":{"n":%d}}`, n), true)
			c := live(t, "config.kudo.dev/v1alpha1", "ResourceExploringWebhookConfiguration", "", "gadgets")
			if text := field(c, "status.conditions"); !all(text, []string{"status:False"}) {
				return text
			}
			return ""
		})
		message := ready(t, parse(t, text)[0], "False")
		env.Contains(t, message, "gadgets.example.com", "did not answer within 1s")
		close(well)
		complete(t, i, 1)
		ready(t, parse(t, text)[0], "True")
	})
})
