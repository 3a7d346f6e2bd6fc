package paramsource

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

var (
	account = types.NamespacedName{Namespace: "ns", Name: "kudo"}
	defs    = []v1beta1.Parameter{{Name: "HOST"}, {Name: "PASSWORD"}}
)

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: gen.Meta("ns", name), Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name), Data: data}
}

// instance builds an Instance with sources, `open` of whose parameters are in its spec.
func instance(open map[string]string, sources ...v1beta1.ParametersSource) *v1beta1.Instance {
	i := gen.Instance("web", gen.Version("ns", "v"), open)
	i.Spec.ParametersFrom = sources
	return i
}

func source(kind, name string, keys map[string]string) v1beta1.ParametersSource {
	return v1beta1.ParametersSource{Kind: kind, Name: name, Keys: keys}
}

func optional(s v1beta1.ParametersSource) v1beta1.ParametersSource {
	s.Optional = true
	return s
}

// fixture is a Reader on an API server whose reviews allow what denied does not hold.
type fixture struct {
	*apitest.Server
	*Reader
	clock *clocktesting.FakePassiveClock

	mu      sync.Mutex
	denied  map[string]bool
	reviews []authorizationv1.SubjectAccessReviewSpec
	changes []Reference
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{Server: apitest.Start(t, objects...), clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), denied: map[string]bool{}}
	f.Before(f.review(t))
	meta, err := metadata.NewForConfig(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	f.Reader = New(t.Context(), meta, f.Client(), f.clock, func(r Reference) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changes = append(f.changes, r)
	})
	return f
}

// review returns the hook that answers reviews.
func (f *fixture) review(t *testing.T) apitest.Hook {
	return func(r apitest.Request) (any, error) {
		if r.Kind != "SubjectAccessReview" {
			return nil, nil
		}
		review := &authorizationv1.SubjectAccessReview{}
		r.Decode(t, review)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reviews = append(f.reviews, review.Spec)
		review.Status.Allowed = !f.denied[review.Spec.ResourceAttributes.Name]
		return review, nil
	}
}

func (f *fixture) deny(name string, denied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied[name] = denied
}

// values reads what the sources give, and fails the test if that fails.
func (f *fixture) values(t *testing.T, i *v1beta1.Instance) Values {
	t.Helper()
	values, err := f.Values(t.Context(), i, account, defs)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// synced waits until the watch of a kind shows an object in the version that is stored.
func (f *fixture) synced(t *testing.T, object client.Object, kind string) {
	t.Helper()
	r := Reference{kind, client.ObjectKeyFromObject(object)}
	apitest.Eventually(t, "the watch shows "+r.String(), func() bool {
		want := ""
		if stored := f.Server.Get(object); stored != nil {
			want = stored.GetResourceVersion()
		}
		return f.watch(kind).HasSynced() && f.version(r) == want
	})
}

// requests returns the requests for single objects since the last call.
func (f *fixture) requests() []string {
	return slices.DeleteFunc(f.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "watch ") || strings.HasPrefix(r, "list ")
	})
}

// TestRead checks which source wins, which values are sensitive, and what an Instance waits for.
func TestRead(t *testing.T) {
	objects := []client.Object{
		secret("s", map[string]string{"HOST": "s-host", "PASSWORD": "s-password", "other": "s-other"}),
		configMap("c", map[string]string{"HOST": "c-host", "other": "c-other"}),
		&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "binary"), Data: map[string]string{"HOST": "text"}, BinaryData: map[string][]byte{"PASSWORD": {0xff, 0}}},
		configMap("empty", nil),
		&corev1.Secret{ObjectMeta: gen.Meta("other", "foreign"), Data: map[string][]byte{"HOST": []byte("foreign")}},
	}
	for name, tc := range map[string]struct {
		reason  string
		open    map[string]string
		sources []v1beta1.ParametersSource
		want    Values
		waits   string
	}{
		"None":      {"an Instance without sources has no values of them", nil, nil, Values{Given: map[string]string{}}, ""},
		"Whole":     {"without keys, those that name parameters count", nil, []v1beta1.ParametersSource{source("ConfigMap", "c", nil)}, Values{Given: map[string]string{"HOST": "c-host"}}, ""},
		"Sensitive": {"what comes from a Secret is sensitive, in order of names", nil, []v1beta1.ParametersSource{source("Secret", "s", nil)}, Values{map[string]string{"HOST": "s-host", "PASSWORD": "s-password"}, []string{"HOST", "PASSWORD"}}, ""},
		"Later":     {"a later ConfigMap replaces the value of a Secret, which is no longer sensitive", nil, []v1beta1.ParametersSource{source("Secret", "s", nil), source("ConfigMap", "c", nil)}, Values{map[string]string{"HOST": "c-host", "PASSWORD": "s-password"}, []string{"PASSWORD"}}, ""},
		"LaterS":    {"a later Secret makes a value sensitive", nil, []v1beta1.ParametersSource{source("ConfigMap", "c", nil), source("Secret", "s", map[string]string{"HOST": "HOST"})}, Values{map[string]string{"HOST": "s-host"}, []string{"HOST"}}, ""},
		"Open":      {"a value that stands in spec is open anyway", map[string]string{"PASSWORD": "open"}, []v1beta1.ParametersSource{source("Secret", "s", nil)}, Values{map[string]string{"HOST": "s-host", "PASSWORD": "s-password"}, []string{"HOST"}}, ""},
		"Keys":      {"keys rename, and leave out what they do not name", nil, []v1beta1.ParametersSource{source("ConfigMap", "c", map[string]string{"ANY": "other"})}, Values{Given: map[string]string{"ANY": "c-other"}}, ""},
		"Binary":    {"binary data gives values, too", nil, []v1beta1.ParametersSource{source("ConfigMap", "binary", nil)}, Values{Given: map[string]string{"HOST": "text", "PASSWORD": "\xff\x00"}}, ""},
		"Empty":     {"an empty source is there", nil, []v1beta1.ParametersSource{source("ConfigMap", "empty", nil)}, Values{Given: map[string]string{}}, ""},
		"Absent": {"a source that is not there is awaited, by its place", nil, []v1beta1.ParametersSource{source("ConfigMap", "c", nil), source("Secret", "gone", nil)}, Values{},
			"waits for Secret ns/gone, which spec.parametersFrom[1] names and which does not exist: create it, correct the name, or set optional"},
		"Foreign": {"a source of another namespace is not there", nil, []v1beta1.ParametersSource{source("Secret", "foreign", nil)}, Values{},
			"waits for Secret ns/foreign, which spec.parametersFrom[0] names and which does not exist: create it, correct the name, or set optional"},
		"OtherKind": {"a ConfigMap of the name is no Secret", nil, []v1beta1.ParametersSource{source("Secret", "c", nil)}, Values{},
			"waits for Secret ns/c, which spec.parametersFrom[0] names and which does not exist: create it, correct the name, or set optional"},
		"Key": {"of several keys that are not there, the first by name is awaited, in each read the same", nil, []v1beta1.ParametersSource{source("ConfigMap", "c", map[string]string{"A": "z", "B": "b", "C": "c", "HOST": "HOST"})}, Values{},
			`waits for key "b" of ConfigMap ns/c, which spec.parametersFrom[0].keys names and which is not there: add it, correct the name, or set optional`},
		"OptionalAbsent": {"an optional source may be absent", nil, []v1beta1.ParametersSource{optional(source("Secret", "gone", map[string]string{"A": "a"}))}, Values{Given: map[string]string{}}, ""},
		"OptionalKey":    {"a key of an optional source may be absent, and the others count", nil, []v1beta1.ParametersSource{optional(source("Secret", "s", map[string]string{"A": "a", "HOST": "HOST"}))}, Values{map[string]string{"HOST": "s-host"}, []string{"HOST"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, objects...)
			i := instance(tc.open, tc.sources...)
			once, errOnce := Read(t.Context(), f.Client(), i, defs)
			watched, errWatched := f.Values(t.Context(), i, account, defs)
			for by, err := range map[string]error{"Read": errOnce, "Values": errWatched} {
				var missing *MissingError
				switch {
				case tc.waits == "" && err != nil:
					t.Errorf("%s: %s: %v", by, tc.reason, err)
				case tc.waits != "" && (!errors.As(err, &missing) || missing.Error() != tc.waits):
					t.Errorf("%s: %s:\n%v\nwant\n%s", by, tc.reason, err, tc.waits)
				}
			}
			if diff := cmp.Diff(tc.want, once); diff != "" {
				t.Errorf("Read: %s: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, watched); diff != "" {
				t.Errorf("Values: %s: %s", tc.reason, diff)
			}
		})
	}
}

// TestValuesReadsOnce checks that a source is read again after a change, and not before.
func TestValuesReadsOnce(t *testing.T) {
	f := newFixture(t, secret("s", map[string]string{"HOST": "one"}))
	i := instance(nil, source("Secret", "s", nil))
	f.values(t, i)
	f.synced(t, secret("s", nil), "Secret")
	f.values(t, i)
	f.requests()
	for range 3 {
		if got := f.values(t, i).Given["HOST"]; got != "one" {
			t.Errorf("HOST is %q", got)
		}
	}
	if got := f.requests(); len(got) > 0 {
		t.Errorf("what has not changed is read again: %v", got)
	}
	f.Put(secret("s", map[string]string{"HOST": "two"}))
	f.synced(t, secret("s", nil), "Secret")
	if got := f.values(t, i).Given["HOST"]; got != "two" {
		t.Errorf("after a change, HOST is %q", got)
	}
	if diff := cmp.Diff([]string{"create SubjectAccessReview", "get Secret ns/s"}, f.requests()); diff != "" {
		t.Errorf("a change costs one read: %s", diff)
	}
}

// TestValuesAsksForMetadata checks that the watch of all Secrets holds none of their content.
func TestValuesAsksForMetadata(t *testing.T) {
	f := newFixture(t, secret("s", map[string]string{"HOST": "one"}), secret("unused", map[string]string{"token": "t"}))
	var mu sync.Mutex
	var full []string
	f.After(func(r apitest.Request) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Name == "" && r.Kind == "Secret" && !strings.Contains(r.Accept, "as=PartialObjectMetadata") {
			full = append(full, r.String())
		}
		return nil, nil
	})
	f.values(t, instance(nil, source("Secret", "s", nil)))
	f.synced(t, secret("unused", nil), "Secret")
	mu.Lock()
	defer mu.Unlock()
	if len(full) > 0 {
		t.Errorf("all Secrets are read with their content: %v", full)
	}
	item, exists, err := f.watch("Secret").GetStore().GetByKey("ns/unused")
	if err != nil || !exists {
		t.Fatalf("the watch holds no ns/unused: %v", err)
	}
	stored := f.Server.Get(secret("unused", nil))
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unused", ResourceVersion: stored.GetResourceVersion()}}
	if diff := cmp.Diff(want, item); diff != "" {
		t.Errorf("the watch holds more than is used: %s", diff)
	}
}

// TestChangesAreReported checks that a change of a source is reported by kind and name, and that a deleted one is forgotten.
func TestChangesAreReported(t *testing.T) {
	f := newFixture(t, configMap("c", map[string]string{"HOST": "one"}))
	i := instance(nil, source("ConfigMap", "c", nil))
	f.values(t, i)
	f.synced(t, configMap("c", nil), "ConfigMap")
	reported := func(what string, want Reference) {
		t.Helper()
		apitest.Eventually(t, what, func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.changes) == 0 {
				return false
			}
			got := f.changes[0]
			f.changes = f.changes[1:]
			if got != want {
				t.Errorf("%s: %v was reported, want %v", what, got, want)
			}
			return true
		})
	}
	c := Reference{"ConfigMap", types.NamespacedName{Namespace: "ns", Name: "c"}}
	reported("the first event", c)
	f.Put(configMap("c", map[string]string{"HOST": "two"}))
	reported("an update", c)
	f.Put(configMap("new", nil))
	reported("a creation that no Instance has asked for", Reference{"ConfigMap", types.NamespacedName{Namespace: "ns", Name: "new"}})
	f.values(t, i)
	f.Remove(configMap("c", nil))
	reported("a deletion", c)
	f.Reader.mu.Lock()
	left := len(f.read)
	f.Reader.mu.Unlock()
	if left != 0 {
		t.Errorf("the content of a deleted source is kept %d times", left)
	}
	var missing *MissingError
	if _, err := f.Values(t.Context(), i, account, defs); !errors.As(err, &missing) {
		t.Errorf("a deleted source is awaited, and not served from memory: %v", err)
	}
	f.Put(configMap("c", map[string]string{"HOST": "three"}))
	reported("a creation", c)
	if got := f.values(t, i).Given["HOST"]; got != "three" {
		t.Errorf("HOST of the new object of the name is %q", got)
	}
}

// TestRightsAreChecked checks that a source is read with the rights of the account, for as long as it has them.
func TestRightsAreChecked(t *testing.T) {
	f := newFixture(t, secret("s", map[string]string{"HOST": "one"}), configMap("c", map[string]string{"PASSWORD": "p"}))
	i := instance(nil, source("Secret", "s", nil), source("ConfigMap", "c", nil))
	f.values(t, i)
	want := []authorizationv1.SubjectAccessReviewSpec{
		{
			User: "system:serviceaccount:ns:kudo", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: "ns", Name: "s"},
		},
		{
			User: "system:serviceaccount:ns:kudo", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "configmaps", Namespace: "ns", Name: "c"},
		},
	}
	if diff := cmp.Diff(want, f.reviews); diff != "" {
		t.Errorf("the question is whether this account may get this object: %s", diff)
	}
	f.synced(t, secret("s", nil), "Secret")
	f.synced(t, configMap("c", nil), "ConfigMap")
	f.values(t, i)
	f.deny("s", true)
	for _, step := range []struct {
		reason  string
		forward time.Duration
		refused bool
	}{
		{"a decision counts for a while", 0, false},
		{"until the last moment", maxDecisionAge - time.Nanosecond, false},
		{"then it is asked for again", time.Nanosecond, true},
		{"and a refusal is not remembered as an answer", 0, true},
		{"a clock that was set back makes no decision new", -time.Hour, true},
	} {
		f.clock.SetTime(f.clock.Now().Add(step.forward))
		_, err := f.Values(t.Context(), i, account, defs)
		var missing *MissingError
		if errors.As(err, &missing) != step.refused || err != nil && !step.refused {
			t.Errorf("%s: %v", step.reason, err)
		}
		const text = "ServiceAccount ns/kudo, with whose rights the plans run, must not read Secret s, which spec.parametersFrom names: give it the verb get on secrets"
		if step.refused && err.Error() != text {
			t.Errorf("%s: %v, want %s", step.reason, err, text)
		}
	}
	f.deny("s", false)
	f.requests()
	if got := f.values(t, i).Given["HOST"]; got != "one" {
		t.Errorf("after the account has the right again, HOST is %q", got)
	}
	if got := f.requests(); slices.Contains(got, "get Secret ns/s") {
		t.Errorf("a new decision about unchanged content costs no read: %v", got)
	}
	f.values(t, i)
	if got := f.requests(); len(got) > 0 {
		t.Errorf("the new decision counts as long as the first one: %v", got)
	}
}

// TestAccountsShareNothing checks that what one account may read is not given to another.
func TestAccountsShareNothing(t *testing.T) {
	f := newFixture(t, secret("s", map[string]string{"HOST": "one"}))
	i := instance(nil, source("Secret", "s", nil))
	f.values(t, i)
	f.synced(t, secret("s", nil), "Secret")
	f.values(t, i)
	f.deny("s", true)
	var missing *MissingError
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	if got, err := f.Values(t.Context(), i, other, defs); !errors.As(err, &missing) {
		t.Errorf("an account that may not read the Secret gets %v, %v", got.Given, err)
	}
	for _, none := range []types.NamespacedName{{}, {Name: "kudo"}, {Namespace: "ns"}} {
		_, err := f.Values(t.Context(), i, none, defs)
		if err == nil || err.Error() != "Secret ns/s must not be read without a ServiceAccount" {
			t.Errorf("account %q: %v", none, err)
		}
	}
}

// TestAbsentSourceNeedsRights checks that an account without rights does not learn which Secrets are there.
func TestAbsentSourceNeedsRights(t *testing.T) {
	f := newFixture(t, secret("there", nil))
	for _, name := range []string{"there", "absent"} {
		f.deny(name, true)
		_, err := f.Values(t.Context(), instance(nil, source("Secret", name, nil)), account, defs)
		if err == nil || !strings.Contains(err.Error(), "must not read Secret "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := f.requests(); slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "get ") }) {
		t.Errorf("without rights nothing is read: %v", got)
	}
}

// TestErrorsAreNotAwaited checks that errors of the API server are no MissingError: they are retried, and name the object.
func TestErrorsAreNotAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, verb, kind string
		err                error
		want               string
	}{
		"Review":    {"a review that cannot be asked for", "create", "SubjectAccessReview", apierrors.NewInternalError(errors.New("etcd")), "ask whether ServiceAccount ns/kudo may read Secret s: Internal error occurred: etcd"},
		"Read":      {"a read that fails", "get", "Secret", apierrors.NewTooManyRequestsError("slow down"), "Secret ns/s: Too many requests: slow down"},
		"Forbidden": {"kudo itself may not read it", "get", "Secret", apierrors.NewForbidden(corev1.Resource("secrets"), "s", errors.New("no")), `Secret ns/s: secrets "s" is forbidden: no`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, secret("s", map[string]string{"HOST": "one"}))
			i := instance(nil, optional(source("Secret", "s", nil)))
			review := f.review(t)
			f.Before(func(r apitest.Request) (any, error) {
				if r.Verb == tc.verb && r.Kind == tc.kind {
					return nil, tc.err
				}
				return review(r)
			})
			_, err := f.Values(t.Context(), i, account, defs)
			var missing *MissingError
			if err == nil || errors.As(err, &missing) || err.Error() != tc.want {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
			f.Before(review)
			if got := f.values(t, i).Given["HOST"]; got != "one" {
				t.Errorf("afterwards HOST is %q", got)
			}
		})
	}
	f := newFixture(t)
	f.Before(func(apitest.Request) (any, error) { return nil, apierrors.NewUnauthorized("no token") })
	if _, err := Read(t.Context(), f.Client(), instance(nil, optional(source("ConfigMap", "c", nil))), defs); !apierrors.IsUnauthorized(err) {
		t.Errorf("Read does not take an error for an absent source: %v", err)
	}
}

// TestReplacedSource checks that an object that was deleted and made again of the same name is not taken for the first one.
func TestReplacedSource(t *testing.T) {
	f := newFixture(t, secret("s", map[string]string{"HOST": "one"}))
	i := instance(nil, source("Secret", "s", nil))
	f.values(t, i)
	f.synced(t, secret("s", nil), "Secret")
	f.Remove(secret("s", nil))
	f.Put(secret("s", map[string]string{"HOST": "two"}))
	f.synced(t, secret("s", nil), "Secret")
	if got := f.values(t, i).Given["HOST"]; got != "two" {
		t.Errorf("HOST is %q", got)
	}
}

// TestValuesRace lets many workers read sources that change: each value is one that was stored, and the last one is read last.
func TestValuesRace(t *testing.T) {
	f := newFixture(t, secret("s", map[string]string{"HOST": "0"}))
	i := instance(nil, source("Secret", "s", nil))
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for n := range 4 {
		by := types.NamespacedName{Namespace: "ns", Name: "account-" + string(rune('a'+n%2))}
		workers.Go(func() {
			for ctx.Err() == nil {
				if _, err := f.Values(t.Context(), i, by, defs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 10 {
		f.Put(secret("s", map[string]string{"HOST": string(rune('a' + n))}))
		f.synced(t, secret("s", nil), "Secret")
	}
	cancel()
	workers.Wait()
	if got := f.values(t, i).Given["HOST"]; got != "j" {
		t.Errorf("after all changes HOST is %q", got)
	}
}
