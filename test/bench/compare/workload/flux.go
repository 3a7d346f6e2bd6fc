package workload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/test/bench/compare/fixture"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/gen"
)

var (
	kustomization = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	gitRepository = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
)

// flux is Flux's kustomize-controller, and a server of archives.
type flux struct {
	plane   *plane.Plane
	process *exec.Cmd
	server  *httptest.Server

	mu       sync.Mutex
	archives map[string][]byte // by path
}

// startFlux starts the program of kustomize-controller, whose log is in a folder.
func startFlux(ctx context.Context, p *plane.Plane, program, dir string) (*flux, error) {
	definitions := [][]byte{definition(kustomization)}
	for _, kind := range []string{gitRepository.Kind, "OCIRepository", "Bucket", "ExternalArtifact"} {
		definitions = append(definitions, definition(gitRepository.GroupVersion().WithKind(kind)))
	}
	err := try(ctx, dir, func(t testing.TB) error {
		p.Define(t, definitions...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "kustomize-controller.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	f := &flux{plane: p, archives: map[string][]byte{}}
	f.process = exec.CommandContext(ctx, program, "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--concurrent=8", "--concurrent-ssa=16",
		"--kube-api-qps=500", "--kube-api-burst=1000", "--log-level=error")
	f.process.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig, "RUNTIME_NAMESPACE=default")
	f.process.Stdout, f.process.Stderr = log, log
	if err := f.process.Start(); err != nil {
		return nil, err
	}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	return f, nil
}

// definition returns a CustomResourceDefinition of a kind whose objects may have any fields. The status of a Kustomization is a resource of its own,
// since its controller writes to that.
func definition(kind schema.GroupVersionKind) []byte {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	subresources := "{}"
	if kind == kustomization {
		subresources = "{status: {}}"
	}
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]s, singular: %[4]s}
  versions:
    - {name: %[5]s, served: true, storage: true, subresources: %[6]s, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, plural.Resource, kind.Group, kind.Kind, singular.Resource, kind.Version, subresources)
}

// stop ends the controller, and the server.
func (f *flux) stop() {
	f.server.Close()
	_ = f.process.Process.Kill()
	_ = f.process.Wait()
}

func (f *flux) cpu() (float64, error) { return plane.CPU(f.process.Process.Pid) }

func (f *flux) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	archive, found := f.archives[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(archive)
}

// artifact serves an archive of n objects, and returns how the status of a source describes it.
func (f *flux) artifact(ns, revision string, n int, one string) map[string]any {
	archive, path := gen.Tarball(fixture.Text(n, "bench", `"a"`, fmt.Sprintf("%q", one))), fmt.Sprintf("/%s/%s.tar.gz", ns, revision)
	f.mu.Lock()
	f.archives[path] = archive
	f.mu.Unlock()
	return map[string]any{
		"path": path, "url": f.server.URL + path, "revision": revision, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive)),
		"lastUpdateTime": "2026-01-01T00:00:00Z", "size": int64(len(archive)),
	}
}

// declare creates a source of n objects, and returns the requests of a Kustomization.
func (f *flux) declare(ctx context.Context, ns string, n int) (*declaration, error) {
	first, second := f.artifact(ns, "first", n, "original"), f.artifact(ns, "second", n, fixture.Changed)
	source := object(gitRepository, ns, "bench", map[string]any{"interval": "1h", "url": "https://example.org/bench"})
	ready := []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": "2026-01-01T00:00:00Z"}}
	source.Object["status"] = map[string]any{"observedGeneration": int64(1), "artifact": first, "conditions": ready}
	if err := f.plane.Create(ctx, source); err != nil {
		return nil, err
	}
	kustomized := object(kustomization, ns, "bench", map[string]any{
		"interval": "1h", "prune": true, "path": "./", "targetNamespace": ns, "sourceRef": map[string]any{"kind": "GitRepository", "name": "bench"},
	})
	change := func(ctx context.Context) error {
		latest := source.DeepCopy()
		if err := unstructured.SetNestedMap(latest.Object, runtime.DeepCopyJSON(second), "status", "artifact"); err != nil {
			return err
		}
		return f.plane.Update(ctx, latest)
	}
	return &declaration{kustomized, []declaredCase{
		{create(f.plane, kustomized), isApplied("first", "")},
		{patch(f.plane, kustomized, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"again"}}}`), isApplied("first", "again")},
		{change, isApplied("second", "again")},
	}}, nil
}

// isApplied returns a function that reports whether a Kustomization is ready with a revision, after a request.
func isApplied(revision, request string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		applied, _, _ := unstructured.NestedString(u.Object, "status", "lastAppliedRevision")
		handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok && condition["type"] == "Ready" && condition["status"] == "True" {
				return applied == revision && handled == request
			}
		}
		return false
	}
}
