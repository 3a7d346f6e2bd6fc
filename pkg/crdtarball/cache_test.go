package crdtarball

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// quick retries without waiting.
func quick(attempts int) Retry {
	return Retry{Attempts: attempts, InitialDelay: time.Nanosecond, MaxDelay: time.Second}
}

func openCache(t testing.TB, dir string, change ...func(*Options)) *Cache {
	t.Helper()
	o := Options{Dir: dir, Retry: quick(1)}
	for _, c := range change {
		c(&o)
	}
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// server serves tarballs by path, with ETags, and counts requests.
type server struct {
	*httptest.Server
	requests atomic.Int64
	mu       sync.Mutex
	tarballs map[string][]byte
	// before may answer in place of the server.
	before func(http.ResponseWriter, *http.Request) bool
}

func serve(t testing.TB, tarballs map[string][]byte) *server {
	t.Helper()
	s := &server{tarballs: tarballs}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tarballs[path] = data
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if s.before != nil && s.before(w, r) {
		return
	}
	s.mu.Lock()
	data, ok := s.tarballs[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	etag := `"` + sum(data) + `"`
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(data)
}

func fromURL(t testing.TB, url string, change ...func(*v1beta1.HTTPSource)) Source {
	t.Helper()
	spec := v1beta1.HTTPSource{URL: url}
	for _, c := range change {
		c(&spec)
	}
	return newTestSource(t, spec, anyHost(nil))
}

// believed is the digest of what a cache has from a source, as the manager remembers it.
func believed(ctx context.Context, c *Cache, source Source) string {
	found, err := c.load(ctx, Key(source.Identity()))
	if _, ok := source.(addressed); ok || err != nil {
		return ""
	}
	return "sha256:" + found.meta.SHA256
}

func resolve(t testing.TB, c *Cache, source Source, policy v1beta1.CRDDownloadPolicy) *Resolved {
	t.Helper()
	resolved, err := c.Resolve(context.Background(), Request{Source: source, Policy: policy, Digest: believed(t.Context(), c, source)})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func refuse(t testing.TB, c *Cache, source Source, policy v1beta1.CRDDownloadPolicy, reason Reason, words string) *Error {
	t.Helper()
	_, err := c.Resolve(context.Background(), Request{Source: source, Policy: policy})
	var e *Error
	if !errors.As(err, &e) || e.Reason != reason || !strings.Contains(err.Error(), words) {
		t.Fatalf("error is %v, not %s with %q", err, reason, words)
	}
	return e
}

func TestOneTarballAVersion(t *testing.T) {
	s := serve(t, map[string][]byte{"/1": tarball(t, "a.example.org"), "/2": tarball(t, "a.example.org", "b.example.org")})
	dir := t.TempDir()
	c := openCache(t, dir)
	for _, tc := range []struct {
		reason, version string
		names           []string
		requests        int64
		fetched         bool
	}{
		{"the first of a version asks", "1", []string{"a.example.org"}, 1, true},
		{"another version is another tarball", "2", []string{"a.example.org", "b.example.org"}, 2, true},
		{"a third of the first version does not ask", "1", []string{"a.example.org"}, 2, false},
	} {
		url, err := Render(s.URL+"/{{ .AppVersion }}", Variables{AppVersion: tc.version})
		if err != nil {
			t.Fatal(err)
		}
		got := resolve(t, c, fromURL(t, url), "")
		if diff := cmp.Diff(tc.names, got.Names); diff != "" || s.requests.Load() != tc.requests || got.Fetched != tc.fetched {
			t.Errorf("%s: %d requests, fetched %t, names -want +got:\n%s", tc.reason, s.requests.Load(), got.Fetched, diff)
		}
		if got.URL != url || got.Digest != "sha256:"+sum(s.tarballs["/"+tc.version]) || got.CachedAt.IsZero() || len(got.Objects()) != len(tc.names) {
			t.Errorf("%s: %+v", tc.reason, got)
		}
	}
	objects := resolve(t, c, fromURL(t, s.URL+"/1"), "").Objects()
	objects[0].SetName("changed")
	if again := resolve(t, c, fromURL(t, s.URL+"/1"), "").Objects(); again[0].GetName() != "a.example.org" {
		t.Error("objects are copies")
	}
	// Another process, as it were.
	if got := resolve(t, openCache(t, dir), fromURL(t, s.URL+"/1"), ""); got.Fetched || s.requests.Load() != 2 {
		t.Error("entries are found by others")
	}
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestFiftyAtOnce(t *testing.T) {
	s := serve(t, map[string][]byte{"/x": tarball(t, "a.example.org")})
	arrived, proceed := make(chan struct{}, 50), make(chan struct{})
	s.before = func(http.ResponseWriter, *http.Request) bool { arrived <- struct{}{}; <-proceed; return false }
	c := openCache(t, t.TempDir())
	other := openCache(t, c.options.Dir)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			// Two caches are as two processes.
			cache, source := []*Cache{c, other}[i%2], fromURL(t, s.URL+"/x", func(h *v1beta1.HTTPSource) { h.SHA256 = sum(s.tarballs["/x"]) })
			got, err := cache.Resolve(context.Background(), Request{Source: source})
			if err != nil || len(got.Names) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	<-arrived
	close(proceed)
	group.Wait()
	if n := s.requests.Load(); n != 1 {
		t.Errorf("fifty made %d requests", n)
	}
}

func TestCancel(t *testing.T) {
	s := serve(t, map[string][]byte{"/x": tarball(t, "a.example.org")})
	arrived, ended := make(chan struct{}), make(chan struct{})
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		close(arrived)
		<-r.Context().Done()
		close(ended)
		return true
	}
	c := openCache(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := c.Resolve(ctx, Request{Source: fromURL(t, s.URL+"/x")})
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("it ends: %v", err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a fetch without a waiting caller continues")
	}
}

// TestCutAtEveryByte serves a tarball that ends early, announced or not, at every offset: never an entry, and success
// right after.
func TestCutAtEveryByte(t *testing.T) {
	data := tarball(t, "a.example.org")
	for name, announced := range map[string]bool{"Length": true, "Chunked": false} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]byte{"/x": data})
			var cut atomic.Int64
			s.before = func(w http.ResponseWriter, _ *http.Request) bool {
				n := cut.Load()
				if n < 0 {
					return false
				}
				if announced {
					w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				}
				_, _ = w.Write(data[:n])
				if f, ok := w.(http.Flusher); ok {
					f.Flush()
				}
				panic(http.ErrAbortHandler)
			}
			dir := t.TempDir()
			c := openCache(t, dir)
			source := fromURL(t, s.URL+"/x")
			for n := range len(data) {
				cut.Store(int64(n))
				e := refuse(t, c, source, "", ReasonConnection, "")
				if entries, err := c.List(); !e.Temporary || err != nil || len(entries) != 0 || leftovers(t, dir) != nil {
					t.Fatalf("cut at %d: %v, entries %v, left over %v, %v", n, e, entries, leftovers(t, dir), err)
				}
			}
			cut.Store(-1)
			if got := resolve(t, c, source, ""); !got.Fetched {
				t.Error("it is fetched right after")
			}
		})
	}
}

// TestCutWithoutLength is a server that says by closing the connection that all came: the gzip knows better.
func TestCutWithoutLength(t *testing.T) {
	data := tarball(t, "a.example.org")
	c := openCache(t, t.TempDir())
	source := &rawSource{}
	for n := range len(data) {
		source.data = data[:n]
		refuse(t, c, source, "", ReasonArchive, "")
		if entries, _ := c.List(); len(entries) != 0 {
			t.Fatalf("cut at %d is an entry", n)
		}
	}
	source.data = data
	resolve(t, c, source, "")
}

// rawSource gives bytes.
type rawSource struct {
	data     []byte
	identity string
	err      error
	expect   int64
}

func (r *rawSource) Identity() string { return "raw:" + r.identity }
func (r *rawSource) Pin() string      { return "" }
func (r *rawSource) addressed()       {}
func (r *rawSource) Access() string   { return "" }
func (r *rawSource) Fetch(_ context.Context, to Target, _ Validators) (Fetched, error) {
	if r.err != nil {
		return Fetched{}, r.err
	}
	if r.expect > 0 {
		if err := to.Expect(r.expect); err != nil {
			return Fetched{}, err
		}
	}
	_, err := to.Write(r.data)
	return Fetched{}, err
}

func TestPolicies(t *testing.T) {
	first, second := tarball(t, "a.example.org"), tarball(t, "a.example.org", "b.example.org")
	s := serve(t, map[string][]byte{"/x": first})
	c := openCache(t, t.TempDir())
	source := fromURL(t, s.URL+"/x?token=secret")
	e := refuse(t, c, source, v1beta1.DownloadNever, ReasonNotCached, "crdDownloadPolicy is Never")
	if s.requests.Load() != 0 || strings.Contains(e.Error(), "secret") {
		t.Errorf("with Never, %d requests were sent, or the error shows a secret: %v", s.requests.Load(), e)
	}
	resolve(t, c, source, v1beta1.DownloadAlways)
	if got := resolve(t, c, source, v1beta1.DownloadAlways); got.Fetched || s.requests.Load() != 2 || got.Stale != nil {
		t.Errorf("Always asks, and takes 304 for an answer: %+v", got)
	}
	s.set("/x", second)
	if got := resolve(t, c, source, ""); got.Fetched || len(got.Names) != 1 || s.requests.Load() != 2 {
		t.Errorf("IfNotPresent does not ask: %+v", got)
	}
	if got := resolve(t, c, source, v1beta1.DownloadAlways); got.Fetched || len(got.Names) != 1 || got.Stale == nil || !strings.Contains(got.Stale.Error(), "content has digest") {
		t.Errorf("Always does not take other content than that of the first use: %+v", got)
	}
	if got, err := c.Resolve(context.Background(), Request{Source: source}); err != nil || !got.Fetched || len(got.Names) != 2 {
		t.Errorf("without a digest the source is asked, whatever the cache has: %+v, %v", got, err)
	}
	for reason, bad := range map[string][]byte{"an HTML page": []byte("<html>"), "a wrong archive": second[:100], "wrong documents": pack(t, file("a.yaml", "kind: X\napiVersion: v1\n"))} {
		s.set("/x", bad)
		if got := resolve(t, c, source, v1beta1.DownloadAlways); got.Stale == nil || got.Fetched || len(got.Names) != 2 {
			t.Errorf("the good copy stays when %s comes: %+v", reason, got)
		}
	}
	s.Close()
	if got, err := c.Resolve(context.Background(), Request{Source: source}); err == nil {
		t.Errorf("without a digest the cache is not believed: %+v", got)
	}
	got := resolve(t, c, source, v1beta1.DownloadAlways)
	if got.Stale == nil || len(got.Names) != 2 || strings.Contains(got.Stale.Error(), "secret") || strings.Contains(got.URL, "secret") {
		t.Errorf("with the server down, what is there is used: %+v", got)
	}
	for _, policy := range []v1beta1.CRDDownloadPolicy{v1beta1.DownloadNever, v1beta1.DownloadIfNotPresent} {
		if got := resolve(t, c, source, policy); got.Stale != nil || len(got.Names) != 2 {
			t.Errorf("%s needs no network: %+v", policy, got)
		}
	}
	refuse(t, c, source, "Sometimes", ReasonSpec, "use Always, IfNotPresent or Never")
	refuse(t, openCache(t, t.TempDir()), source, v1beta1.DownloadAlways, ReasonConnection, "")
	meta, err := os.ReadFile(c.path(got.Key, metaName))
	if err != nil || strings.Contains(string(meta), "secret") {
		t.Errorf("meta.json has no secrets: %s %v", meta, err)
	}
}

func TestPin(t *testing.T) {
	first, second := tarball(t, "a.example.org"), tarball(t, "b.example.org")
	s := serve(t, map[string][]byte{"/x": first})
	c := openCache(t, t.TempDir())
	pinned := func(data []byte) Source {
		return fromURL(t, s.URL+"/x", func(h *v1beta1.HTTPSource) { h.SHA256 = sum(data) })
	}
	refuse(t, c, pinned(second), "", ReasonPin, "content has digest sha256:"+sum(first)+", not sha256:"+sum(second))
	if entries, _ := c.List(); len(entries) != 0 {
		t.Error("a wrong pin makes no entry")
	}
	resolve(t, c, pinned(first), "")
	refuse(t, c, pinned(second), "", ReasonPin, "")
	refuse(t, c, pinned(second), v1beta1.DownloadNever, ReasonNotCached, "has another tarball of that URL")
	resolve(t, c, pinned(first), v1beta1.DownloadNever)
	s.set("/x", second)
	if got := resolve(t, c, pinned(second), ""); !got.Fetched {
		t.Errorf("a new pin fetches: %+v", got)
	}
}

// TestManyAtOnce resolves, refreshes, evicts and reads with two caches on one folder: whatever comes is whole.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var caches []*Cache
	for range 2 {
		caches = append(caches, openCache(t, dir, func(o *Options) { o.MaxBytes = 4000 }))
	}
	names := map[string]string{}
	var versions [][]byte
	for i := range 4 {
		name := fmt.Sprintf("k%d.example.org", i)
		versions = append(versions, tarball(t, name))
		names["sha256:"+sum(versions[i])] = name
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 30 {
				source := &rawSource{identity: fmt.Sprint((worker + i) % 3), data: versions[(worker*i)%4]}
				policy := []v1beta1.CRDDownloadPolicy{"", v1beta1.DownloadAlways, v1beta1.DownloadNever}[i%3]
				got, err := caches[worker%2].Resolve(context.Background(), Request{Source: source, Policy: policy})
				var e *Error
				if errors.As(err, &e) && e.Reason == ReasonNotCached && strings.Contains(err.Error(), "does not have it") {
					continue
				}
				if err != nil || got.Stale != nil || len(got.Names) != 1 || got.Names[0] != names[got.Digest] {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	group.Wait()
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// TestLockWait is a process that has stopped while it fetches: others wait for a time, say where the lock is but not the key, and
// use the copy that they have.
func TestLockWait(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, func(o *Options) { o.LockWait = 100 * time.Millisecond })
	source := &rawSource{identity: "a", data: tarball(t, "a.example.org")}
	unlock, err := openCache(t, dir).lock(t.Context(), Key(source.Identity()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resolve(t.Context(), Request{Source: source})
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonTimeout || !e.Temporary || !strings.Contains(err.Error(), "end what has opened a file .lock-* in "+dir) || strings.Contains(err.Error(), Key(source.Identity())) {
		t.Errorf("an entry that another process has locked: %v", err)
	}
	own, err := c.lock(t.Context(), Key("b"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, own)
	if own, err = c.lock(t.Context(), Key("b")); err != nil {
		t.Fatalf("a caller of the same process is not waited for: %v", err)
	}
	own()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.lock(ended, Key(source.Identity())); !errors.As(err, &e) || e.Reason != ReasonCanceled {
		t.Errorf("a caller that has given up: %v", err)
	}
	unlock()
	first, err := c.Resolve(t.Context(), Request{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	if unlock, err = openCache(t, dir).lock(t.Context(), Key(source.Identity())); err != nil {
		t.Fatal(err)
	}
	defer unlock()
	got, err := c.Resolve(t.Context(), Request{Source: source, Policy: v1beta1.DownloadAlways, Digest: first.Digest})
	if err != nil || got.Stale == nil || got.Digest != first.Digest {
		t.Errorf("an entry that is known and locked: %+v, %v", got, err)
	}
	done, ok := openCache(t, dir).tryLock(usePrefix, Key(source.Identity()))
	if !ok {
		t.Fatal("the entry is in use")
	}
	defer done()
	if _, err := c.Resolve(t.Context(), Request{Source: source, Policy: v1beta1.DownloadNever, Digest: first.Digest}); err != nil {
		t.Errorf("an entry that a process has stopped to evict: %v", err)
	}
}

// TestProgress reports at the start, and then no more often than every five seconds.
func TestProgress(t *testing.T) {
	fake := testclock.NewFakeClock(time.Now())
	c := openCache(t, t.TempDir(), func(o *Options) { o.Clock = fake })
	data := tarball(t, "a.example.org")
	source := &slowSource{data: data, each: func() { fake.Step(time.Second) }}
	var seen []Progress
	if _, err := c.Resolve(context.Background(), Request{Source: source, Progress: func(p Progress) { seen = append(seen, p) }}); err != nil {
		t.Fatal(err)
	}
	want := []Progress{{Attempt: 1}, {Attempt: 1, Bytes: 5, Total: int64(len(data))}, {Attempt: 1, Bytes: 10, Total: int64(len(data))}}
	if diff := cmp.Diff(want, seen[:3]); diff != "" || len(seen) != 1+len(data)/5 {
		t.Errorf("%d reports, first -want +got:\n%s", len(seen), diff)
	}
}

// slowSource takes a second for each byte.
type slowSource struct {
	rawSource
	data []byte
	each func()
}

func (s *slowSource) Fetch(_ context.Context, to Target, _ Validators) (Fetched, error) {
	if err := to.Expect(int64(len(s.data))); err != nil {
		return Fetched{}, err
	}
	for i := range s.data {
		s.each()
		if _, err := to.Write(s.data[i : i+1]); err != nil {
			return Fetched{}, err
		}
	}
	return Fetched{}, nil
}

func BenchmarkCachedResolve(b *testing.B) {
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("k%d.example.org", i)
	}
	c := openCache(b, b.TempDir())
	source := &rawSource{data: tarball(b, names...)}
	resolve(b, c, source, "")
	b.ResetTimer()
	for b.Loop() {
		resolve(b, c, source, "")
	}
}
