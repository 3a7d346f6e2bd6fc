package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// tarball packs a CustomResourceDefinition.
func tarball(t *testing.T, name string) []byte {
	t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	text := fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s}, spec: {group: %s, scope: Namespaced,
names: {plural: %s, kind: Kind}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`, name, group, plural)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	err := packed.WriteHeader(&tar.Header{Name: "crd.yaml", Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(packed, text)
	}
	if err := errors.Join(err, packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// source is a Source whose fetches return what a test sends, one after the other.
type source struct {
	identity string
	// results are what fetches return: bytes or an error.
	results chan any
	// begun counts fetches, and canceled those whose context ended.
	begun, canceled atomic.Int32
}

func newSource(identity string) *source {
	return &source{identity: identity, results: make(chan any, 10)}
}

func (s *source) Identity() string { return s.identity }
func (s *source) Pin() string      { return "" }
func (s *source) Access() string   { return "" }

func (s *source) Fetch(ctx context.Context, to crdtarball.Target, _ crdtarball.Validators) (crdtarball.Fetched, error) {
	s.begun.Add(1)
	select {
	case <-ctx.Done():
		s.canceled.Add(1)
		return crdtarball.Fetched{}, &crdtarball.Error{Reason: crdtarball.ReasonCanceled, Err: ctx.Err(), Temporary: true}
	case result := <-s.results:
		if err, failed := result.(error); failed {
			return crdtarball.Fetched{}, err
		}
		_, err := to.Write(result.([]byte))
		return crdtarball.Fetched{}, err
	}
}

// fixture is a Fetcher with a clock that a test sets, and what it has enqueued.
type fixture struct {
	*Fetcher
	clock *clocktesting.FakeClock
	stop  context.CancelFunc

	mu       sync.Mutex
	enqueued map[types.NamespacedName]int
}

var (
	web   = types.NamespacedName{Namespace: "ns", Name: "web"}
	other = types.NamespacedName{Namespace: "ns", Name: "other"}
)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), enqueued: map[types.NamespacedName]int{}}
	dir, err := os.MkdirTemp("", "kudo-fetch-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	options := Options{Cache: crdtarball.Options{Dir: dir, Retry: crdtarball.Retry{Attempts: 1}, Clock: clock.RealClock{}}, Clock: f.clock}
	f.Fetcher = New(ctx, options, func(key types.NamespacedName) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.enqueued[key]++
	})
	t.Cleanup(func() {
		stop()
		apitest.Eventually(t, "no fetch writes into the folder any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	return f
}

func (f *fixture) count(key types.NamespacedName) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.enqueued[key]
}

func (f *fixture) poll(t *testing.T, run string, s *source) (*crdtarball.Resolved, error) {
	t.Helper()
	resolved, _, err := f.Poll(web, run, wanted(s))
	return resolved, err
}

func wanted(s *source) Wanted {
	return Wanted{Source: s, Tarball: &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: s.identity}}}
}

// done waits until a fetch of the Instance has ended.
func (f *fixture) done(t *testing.T) {
	t.Helper()
	apitest.Eventually(t, "the fetch has ended", func() bool {
		f.Fetcher.mu.Lock()
		defer f.Fetcher.mu.Unlock()
		return f.jobs[web] != nil && f.jobs[web].done
	})
}

// TestPollFetchesOnce checks that a reconcile does not wait, is repeated at the end, and has one fetch for one run.
func TestPollFetchesOnce(t *testing.T) {
	f, s := newFixture(t), newSource("https://a.example.org/x")
	for range 3 {
		if resolved, err := f.poll(t, "run-1", s); resolved != nil || err != nil {
			t.Fatalf("before the end: %v, %v", resolved, err)
		}
	}
	apitest.Eventually(t, "the fetch has begun", func() bool { return s.begun.Load() == 1 })
	before := f.count(web)
	s.results <- tarball(t, "ships.example.org")
	apitest.Eventually(t, "the Instance is enqueued", func() bool { return f.count(web) > before })
	f.done(t)
	for range 3 {
		resolved, err := f.poll(t, "run-1", s)
		if err != nil || resolved == nil {
			t.Fatalf("at the end: %v, %v", resolved, err)
		}
		if diff := cmp.Diff([]string{"ships.example.org"}, resolved.Names); diff != "" {
			t.Error(diff)
		}
	}
	if got := s.begun.Load(); got != 1 {
		t.Errorf("one run fetches %d times", got)
	}
	if f.count(other) > 0 {
		t.Error("an Instance that has not asked is enqueued")
	}
}

// TestPollAsksAgain checks what makes a fetch another one: a run, or what is wanted.
func TestPollAsksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		run    string
		change func(*Wanted)
		again  bool
	}{
		"Same":   {"the same run has asked already", "run-1", func(*Wanted) {}, false},
		"Run":    {"another run asks again: a tarball of the policy Always may have changed", "run-2", func(*Wanted) {}, true},
		"URL":    {"another URL is another tarball", "run-1", func(w *Wanted) { w.Tarball.HTTPSource.URL = "https://b.example.org/x" }, true},
		"Policy": {"another policy may ask the source again", "run-1", func(w *Wanted) { w.Tarball.CRDDownloadPolicy = v1beta1.DownloadAlways }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(t), newSource("https://a.example.org/x")
			if _, err := f.poll(t, "run-1", s); err != nil {
				t.Fatal(err)
			}
			apitest.Eventually(t, "the fetch has begun", func() bool { return s.begun.Load() == 1 })
			second := newSource("https://a.example.org/second")
			w := wanted(s)
			tc.change(&w)
			w.Source = second
			if _, _, err := f.Poll(web, tc.run, w); err != nil {
				t.Fatal(err)
			}
			if !tc.again {
				s.results <- tarball(t, "ships.example.org")
				f.done(t)
				if got := second.begun.Load(); got != 0 {
					t.Errorf("%s: %d fetches", tc.reason, got)
				}
				return
			}
			apitest.Eventually(t, "the first fetch is given up and the second has begun", func() bool { return s.canceled.Load() == 1 && second.begun.Load() == 1 })
			second.results <- tarball(t, "boats.example.org")
			f.done(t)
			resolved, _, err := f.Poll(web, tc.run, w)
			if err != nil || resolved.Names[0] != "boats.example.org" {
				t.Errorf("%s: %v, %v", tc.reason, resolved, err)
			}
		})
	}
}

// TestPollBacksOff checks when a fetch that failed is tried again, and that its error is shown until one has succeeded.
func TestPollBacksOff(t *testing.T) {
	f, s := newFixture(t), newSource("https://a.example.org/x")
	failure := func(retryAfter time.Duration) error {
		return &crdtarball.Error{Reason: crdtarball.ReasonStatus, Err: errors.New("503"), Temporary: true, RetryAfter: retryAfter}
	}
	begun := int32(0)
	for n, tc := range []struct {
		reason     string
		retryAfter time.Duration
		wait       time.Duration
	}{
		{"the first failure", 0, 2 * time.Second},
		{"each further one doubles", 0, 4 * time.Second},
		{"a source that asks for less does not shorten it", time.Second, 8 * time.Second},
		{"one that asks for more is left alone for so long", 5 * time.Minute, 5 * time.Minute},
		{"the back-off is bounded", 0, 30 * time.Second},
		{"and stays so", 0, 30 * time.Second},
	} {
		s.results <- failure(tc.retryAfter)
		_, errBefore := f.poll(t, "run", s)
		if (errBefore == nil) != (n == 0) {
			t.Errorf("%s: while it is tried again, the last error is %v", tc.reason, errBefore)
		}
		begun++
		apitest.Eventually(t, "the fetch has begun", func() bool { return s.begun.Load() == begun })
		f.done(t)
		if _, err := f.poll(t, "run", s); err == nil || !strings.Contains(err.Error(), "503") {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		f.clock.Step(tc.wait - time.Nanosecond)
		if _, err := f.poll(t, "run", s); err == nil {
			t.Errorf("%s: the error is no longer shown", tc.reason)
		}
		f.Fetcher.mu.Lock()
		again := !f.jobs[web].done
		f.Fetcher.mu.Unlock()
		if again {
			t.Fatalf("%s: it was tried again before %s", tc.reason, tc.wait)
		}
		before := f.count(web)
		f.clock.Step(time.Nanosecond)
		apitest.Eventually(t, "the Instance is enqueued for the next try", func() bool { return f.count(web) > before })
	}
	s.results <- tarball(t, "ships.example.org")
	if _, err := f.poll(t, "run", s); err == nil {
		t.Error("what is shown flaps while the fetch is tried again")
	}
	apitest.Eventually(t, "it has succeeded", func() bool {
		resolved, err := f.poll(t, "run", s)
		return resolved != nil && err == nil
	})
}

// TestPollShowsProgress checks that a reconcile sees how far the fetch is, with the cause of the attempt before.
func TestPollShowsProgress(t *testing.T) {
	f, s := newFixture(t), newSource("https://a.example.org/x")
	if _, err := f.poll(t, "run", s); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the first attempt is shown", func() bool {
		_, progress, _ := f.Poll(web, "run", wanted(s))
		return progress.Attempt == 1
	})
	if f.count(web) == 0 {
		t.Error("progress is shown without a reconcile")
	}
	s.results <- &crdtarball.Error{Reason: crdtarball.ReasonTimeout, Err: errors.New("silent"), Temporary: true}
	f.done(t)
	f.clock.Step(time.Minute)
	_, progress, err := f.Poll(web, "run", wanted(s))
	if progress.Bytes != 0 || err == nil {
		t.Errorf("the next try begins anew: %+v, %v", progress, err)
	}
}

// TestForget checks that a fetch ends with its Instance, and that a new Instance of the name asks again.
func TestForget(t *testing.T) {
	f, s := newFixture(t), newSource("https://a.example.org/x")
	f.Forget(web) // there is none
	if _, err := f.poll(t, "run", s); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the fetch has begun", func() bool { return s.begun.Load() == 1 })
	f.Forget(other)
	if s.canceled.Load() > 0 {
		t.Error("the fetch of another Instance was ended")
	}
	f.Forget(web)
	apitest.Eventually(t, "the fetch is given up", func() bool { return s.canceled.Load() == 1 })
	s.results <- tarball(t, "ships.example.org")
	if resolved, err := f.poll(t, "run", s); resolved != nil || err != nil {
		t.Errorf("what was forgotten is remembered: %v, %v", resolved, err)
	}
	apitest.Eventually(t, "the new fetch is done", func() bool {
		resolved, _ := f.poll(t, "run", s)
		return resolved != nil
	})
}

// TestStop checks that all fetches end with the manager, and that none is enqueued later for its failure.
func TestStop(t *testing.T) {
	f, s := newFixture(t), newSource("https://a.example.org/x")
	if _, err := f.poll(t, "run", s); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the fetch has begun", func() bool { return s.begun.Load() == 1 })
	f.stop()
	apitest.Eventually(t, "the fetch is given up", func() bool { return s.canceled.Load() == 1 })
	f.done(t)
	if f.clock.HasWaiters() {
		t.Error("a timer is left of a fetch that ended with the manager")
	}
}

// TestPollRace lets reconciles, new runs and deletions of many Instances overlap.
func TestPollRace(t *testing.T) {
	f := newFixture(t)
	data := tarball(t, "ships.example.org")
	var workers sync.WaitGroup
	for n := range 8 {
		key := types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("i-%d", n%4)}
		s := newSource(fmt.Sprintf("https://a.example.org/%d", n%2))
		workers.Go(func() {
			for i := range 30 {
				select {
				case s.results <- data:
				default:
				}
				if _, _, err := f.Poll(key, fmt.Sprintf("run-%d", i/10), wanted(s)); err != nil {
					var failed *crdtarball.Error
					if !errors.As(err, &failed) || failed.Reason != crdtarball.ReasonCanceled {
						t.Errorf("%s: %v", key, err)
					}
				}
				if i%7 == 0 {
					f.Forget(key)
				}
			}
		})
	}
	workers.Wait()
}

// TestPollWithoutCache checks that a cache that cannot be opened is an error of this try, and not remembered.
func TestPollWithoutCache(t *testing.T) {
	f, s := newFixture(t), newSource("https://a.example.org/x")
	good := f.options.Cache.Dir
	f.options.Cache.Dir = "/proc/1/kudo-cache"
	if _, err := f.poll(t, "run", s); err == nil || !strings.Contains(err.Error(), "making the cache folder /proc/1/kudo-cache") {
		t.Errorf("without a folder: %v", err)
	}
	f.options.Cache.Dir = good
	s.results <- tarball(t, "ships.example.org")
	apitest.Eventually(t, "it is fetched once the folder is there", func() bool {
		resolved, _ := f.poll(t, "run", s)
		return resolved != nil
	})
}

// TestCluster checks that Secrets and ConfigMaps of sources keep the error of the API server, with their names.
func TestCluster(t *testing.T) {
	server := apitest.Start(t, &corev1.Secret{ObjectMeta: gen.Meta("ns", "s"), Data: map[string][]byte{"a": []byte("b")}}, &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "c")})
	cluster := Cluster{server.Client()}
	if s, err := cluster.Secret(t.Context(), "ns", "s"); err != nil || string(s.Data["a"]) != "b" {
		t.Errorf("%v, %v", s, err)
	}
	if c, err := cluster.ConfigMap(t.Context(), "ns", "c"); err != nil || c.Name != "c" {
		t.Errorf("%v, %v", c, err)
	}
	_, errSecret := cluster.Secret(t.Context(), "ns", "c")
	_, errConfigMap := cluster.ConfigMap(t.Context(), "other", "c")
	for want, err := range map[string]error{
		`Secret ns/c: secrets "c" not found`: errSecret, `ConfigMap other/c: configmaps "c" not found`: errConfigMap,
	} {
		if !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestResolveHosts checks which hosts an Instance and an OperatorVersion may name in their crdTarball blocks.
func TestResolveHosts(t *testing.T) {
	block := func(host string) *v1beta1.CRDTarball {
		return &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://" + host + "/x"}}
	}
	for name, tc := range map[string]struct {
		reason            string
		hosts             []string
		version, instance *v1beta1.CRDTarball
		refused           bool
	}{
		"VersionAny":       {"an author of versions may name any host, if the administrator has named none", nil, block("a.example.org"), nil, false},
		"VersionListed":    {"or one of those that he has", []string{"a.example.org"}, block("a.example.org"), nil, false},
		"VersionUnlisted":  {"and no other", []string{"b.example.org"}, block("a.example.org"), nil, true},
		"InstanceAny":      {"an Instance may not name any host", nil, nil, block("a.example.org"), true},
		"InstanceListed":   {"but those of the administrator", []string{"a.example.org"}, nil, block("a.example.org"), false},
		"InstanceVersion":  {"and those of its version", nil, block("a.example.org"), block("a.example.org"), false},
		"InstanceOther":    {"and no other", nil, block("a.example.org"), block("b.example.org"), true},
		"InstanceUnlisted": {"a version gives its Instances no host that the administrator refuses", []string{"b.example.org"}, block("a.example.org"), block("a.example.org"), true},
		"InstancePort":     {"another port of the host is another host", nil, block("a.example.org:8443"), block("a.example.org:9443"), true},
		"InstanceScheme":   {"and so is one that the version does not spell out", []string{"a.example.org:443"}, block("a.example.org"), block("a.example.org:9443"), true},
		"InstanceDefault":  {"the port that a scheme has anyway is no other", []string{"a.example.org:443"}, block("a.example.org"), block("a.example.org:443"), false},
	} {
		f := New(t.Context(), Options{Policy: func() Policy { return Policy{Hosts: tc.hosts} }}, nil)
		instance := &v1beta1.Instance{}
		instance.Spec.CRDTarball = tc.instance
		wanted, err := f.Resolve(instance, "ns", &v1beta1.OperatorVersionSpec{CRDTarball: tc.version})
		if err == nil {
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = wanted.Source.Fetch(canceled, nil, crdtarball.Validators{})
		}
		var failed *crdtarball.Error
		if !errors.As(err, &failed) || (failed.Reason == crdtarball.ReasonRefused) != tc.refused {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}

// TestResolveNamespace checks whose Secret a block names: that of the namespace of its author.
func TestResolveNamespace(t *testing.T) {
	block := &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://a.example.org/x", SecretRef: &v1beta1.SecretReference{Name: "login"}}}
	for reason, tc := range map[string]struct {
		version, instance, policy *v1beta1.CRDTarball
		want                      string
	}{
		"the Instance's own block names a Secret beside the Instance": {instance: block, version: block, want: "tenant/login"},
		"a version's block names one beside the version":              {version: block, want: "library/login"},
	} {
		read := ""
		secrets := secretsFunc(func(namespace, name string) error {
			read = namespace + "/" + name
			return errors.New("enough")
		})
		f := New(t.Context(), Options{Access: crdtarball.Access{Secrets: secrets}}, nil)
		instance := &v1beta1.Instance{}
		instance.Namespace, instance.Spec.CRDTarball = "tenant", tc.instance
		wanted, err := f.Resolve(instance, "library", &v1beta1.OperatorVersionSpec{CRDTarball: tc.version})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wanted.Source.Fetch(t.Context(), nil, crdtarball.Validators{}); err == nil {
			t.Fatal("fetched without its Secret")
		}
		if read != tc.want {
			t.Errorf("%s: read %s, want %s", reason, read, tc.want)
		}
	}
}

type secretsFunc func(namespace, name string) error

func (f secretsFunc) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return nil, f(namespace, name)
}

// TestAge: the age of a fetch counts from the first poll of a run, goes on while the fetch is tried again, and begins anew with another run.
func TestAge(t *testing.T) {
	f, s := newFixture(t), newSource("source")
	age := func(run string) time.Duration {
		_, progress, _ := f.Poll(web, run, wanted(s))
		return progress.Age
	}
	for _, step := range []struct {
		reason, run string
		after, want time.Duration
	}{
		{"the fetch begins", "1", 0, 0},
		{"it is under way", "1", time.Second, time.Second},
		{"still", "1", time.Minute, 61 * time.Second},
		{"another run", "2", time.Minute, 0},
		{"it is under way, too", "2", time.Second, time.Second},
	} {
		f.clock.Step(step.after)
		if got := age(step.run); got != step.want {
			t.Errorf("%s: the age is %s, want %s", step.reason, got, step.want)
		}
	}
	s.results <- errors.New("no route")
	apitest.Eventually(t, "a fetch that has failed", func() bool {
		_, _, err := f.Poll(web, "2", wanted(s))
		return err != nil
	})
	f.clock.Step(time.Minute)
	if got := age("2"); got != 61*time.Second {
		t.Errorf("after a failure, the age is %s", got)
	}
}
