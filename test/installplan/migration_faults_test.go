package installplan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
)

// managerProxy is a manager of the test's own, and the proxy through which it reaches the apiserver.
type managerProxy struct {
	t     testing.TB
	proxy *apiproxy.Proxy
	env   *env.Env

	mu sync.Mutex
	// handle is called for each request; if it is nil, the proxy sends the request on.
	handle func(r *http.Request, forward apiproxy.Forward) (*http.Response, error)
	// process is the manager that runs.
	process *exec.Cmd
}

// startManagerProxy starts a manager behind a proxy, on a control plane whose own manager is dead.
func startManagerProxy(t testing.TB, e *env.Env) *managerProxy {
	t.Helper()
	h := &managerProxy{t: t, env: e}
	var err error
	h.proxy, err = apiproxy.Start(e.ManagerKubeconfig(), t.TempDir(), func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		h.mu.Lock()
		handle := h.handle
		h.mu.Unlock()
		if handle == nil {
			return forward(r)
		}
		return handle(r, forward)
	})
	env.Must(t, err)
	t.Cleanup(func() {
		h.kill()
		h.proxy.Close()
	})
	h.start()
	return h
}

func (h *managerProxy) set(handle func(r *http.Request, forward apiproxy.Forward) (*http.Response, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handle = handle
}

func (h *managerProxy) start() {
	h.process = h.env.Manager("--kubeconfig", h.proxy.Kubeconfig, "--leader-elect=false", "--webhook-port=0", "--migration-rate=0",
		"--cache-dir", filepath.Join(h.t.TempDir(), "cache"))
	env.Must(h.t, h.process.Start())
}

func (h *managerProxy) kill() {
	_ = h.process.Process.Kill()
	_ = h.process.Wait()
}

// isProgress reports whether a request writes down the progress of a migration.
func isProgress(r *http.Request) bool {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/installations/") {
		return false
	}
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return err == nil && bytes.Contains(text, []byte(`"migrations"`))
}

// isPage reports whether a request reads a page of the fleet's ships that are to be rewritten: of these, the metadata is enough. The ships
// of another spec may be read at the same time.
func (f fleet) isPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/apis/"+f.group()+"/") && strings.HasSuffix(r.URL.Path, "/ships") && r.URL.Query().Get("limit") != "" &&
		strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
}

// expired is the answer to a token that has expired, with another one or none.
func expired(r *http.Request, token string) (*http.Response, error) {
	answer := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.").Status()
	answer.Kind, answer.APIVersion, answer.Continue = "Status", "v1", token
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusGone, Status: "410 Gone", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text))}, err
}

// inconsistent is the token that the apiserver offers in place of one that has expired: for the rest of the objects as they are then.
func inconsistent(t testing.TB, token string) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	env.Must(t, err)
	content := map[string]any{}
	env.Must(t, json.Unmarshal(text, &content))
	content["rv"] = -1
	text, err = json.Marshal(content)
	env.Must(t, err)
	return base64.RawURLEncoding.EncodeToString(text)
}

var _ = Describe("A migration of stored versions amid faults", Ordered, Serial, SpecPriority(1), Label("P18", "stored-versions-faults", "disruptive", "slow"), func() {
	const ships = 1700 // four pages
	var h *managerProxy
	var before env.Suite
	BeforeAll(func() {
		t := GinkgoTB()
		own, err := env.Start("--profile", "api")
		env.Must(t, err)
		DeferCleanup(own.Stop)
		if !own.IsDisposable() {
			Skip("the cluster is not the tests' own: its manager cannot be killed")
		}
		before = suite
		DeferCleanup(func() { suite = before })
		suite.Env = own
		suite.Cluster, err = own.Connect()
		env.Must(t, err)
		if out, err := own.Local("kill", "manager"); err != nil {
			t.Fatal(err, out)
		}
	})
	// begin installs a definition with ships in v1alpha1, and returns the version that changes its storage version.
	begin := func(t testing.TB) (f fleet, first, second *v1beta1.OperatorVersion) {
		var ns string
		f, ns = newFleet(), suite.NewNamespace(t)
		first, second = f.defines(ns, "1.0.0", alphaStorage), f.defines(ns, "1.1.0", alpha, v1Storage)
		h = startManagerProxy(t, suite.Env)
		complete(t, install(t, first))
		f.build(t, ns, "v1alpha1", ships)
		return f, first, second
	}

	It("is finished by the managers that follow one that is killed at each write of its progress", func() {
		t := GinkgoTB()
		f, first, second := begin(t)
		death, over := make(chan struct{}), make(chan struct{})
		kills, commit := 0, false
		h.set(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
			if !isProgress(r) {
				return forward(r)
			}
			if commit = !commit; commit { // every other time, the write is lost
				if answer, err := forward(r); err == nil {
					_ = answer.Body.Close()
				}
			}
			select {
			case death <- struct{}{}:
				<-r.Context().Done()
			case <-over: // the write of the last page comes after the end of the migration
			}
			return nil, apiproxy.ErrCut
		})
		env.Must(t, suite.Create(ctx, second))
		go func() {
			defer GinkgoRecover()
			defer close(over)
			f.migrated(t, "v1", first, second)
		}()
		for alive := true; alive; {
			select {
			case <-death:
				kills++
				h.kill()
				h.start()
			case <-over:
				alive = false
			}
		}
		h.set(nil)
		if kills < 1+2*3 {
			t.Errorf("the manager was killed %d times, want once at the beginning, and twice for each page but the last", kills)
		}
		t.Logf("killed %d times", kills)
		complete(t, ended(t, second, 1))
		f.storedIn(t, ships, "v1")
		env.Eventually(t, "no migration", func() string {
			if left := f.migrations(first, second); len(left) > 0 {
				return fmt.Sprintf("%+v", left)
			}
			return ""
		})
	})

	It("goes on after a token that has expired, from where the apiserver says or from the beginning", func() {
		t := GinkgoTB()
		f, first, second := begin(t)
		// A page is read again when another client has changed the Installation meanwhile: what counts is what follows an expired token.
		var mu sync.Mutex
		var afterFirst, offered string
		var followed []string
		stage := 0
		h.set(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
			if !f.isPage(r) {
				return forward(r)
			}
			mu.Lock()
			defer mu.Unlock()
			switch token := r.URL.Query().Get("continue"); {
			case stage == 0 && token != "": // the apiserver offers no other token
				stage = 1
				return expired(r, "")
			case stage == 1:
				afterFirst, stage = token, 2
			case stage == 2 && token != "":
				offered, stage = inconsistent(t, token), 3
				return expired(r, offered)
			case stage == 3:
				followed = append(followed, token)
			}
			return forward(r)
		})
		env.Must(t, suite.Create(ctx, second))
		f.migrated(t, "v1", first, second)
		complete(t, ended(t, second, 1))
		f.storedIn(t, ships, "v1")
		mu.Lock()
		defer mu.Unlock()
		if stage != 3 || afterFirst != "" {
			t.Errorf("stage %d: the page after the first expired token has the token %q, want the beginning", stage, afterFirst)
		}
		if len(followed) < 2 || followed[0] != offered || slices.Contains(followed, "") {
			t.Errorf("the pages after the second expired token are %q, want %q first, and the rest", followed, offered)
		}
	})

	It("begins again when the storage version changes half-way, to and fro", func() {
		t := GinkgoTB()
		f, first, second := begin(t)
		arrived, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.set(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
			if f.isPage(r) && r.URL.Query().Get("continue") != "" {
				once.Do(func() {
					close(arrived)
					<-goOn
				})
			}
			return forward(r)
		})
		env.Must(t, suite.Create(ctx, second))
		select {
		case <-arrived:
		case <-t.Context().Done():
			t.Fatal("there was no second page")
		}
		// A ship that the migration has passed is written in the old version again.
		f.change(t, alphaStorage, v1)
		env.Eventually(t, "a ship that is stored in the old version again", func() string {
			f.touch(t, first.Namespace, "ship-00000")
			stored, err := suite.Stored("/registry/" + f.group() + "/ships/" + first.Namespace + "/ship-00000")
			env.Must(t, err)
			if len(stored) != 1 || !strings.Contains(string(stored[""]), `"apiVersion":"`+f.group()+`/v1alpha1"`) {
				return fmt.Sprintf("%s", stored)
			}
			return ""
		})
		f.change(t, alpha, v1Storage)
		close(goOn)
		f.migrated(t, "v1", first, second)
		f.storedIn(t, ships, "v1")
	})
})
