package storedversions

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

var shipKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}

// fixture is a migrator on an API server in memory with ships, stored in v1alpha1.
type fixture struct {
	*apitest.Server
	*Migrator
	t     testing.TB
	clock *clocktesting.FakePassiveClock
	state *v1beta1.StoredVersionMigration
}

func newFixture(t testing.TB, ships int) *fixture {
	t.Helper()
	f := &fixture{Server: apitest.Start(t), t: t, clock: clocktesting.NewFakePassiveClock(now)}
	f.AddKind(shipKind, true)
	f.Put(definitionObject("v1alpha1", "v1"))
	for i := range ships {
		ship := &unstructured.Unstructured{Object: map[string]any{}}
		ship.SetGroupVersionKind(shipKind)
		ship.SetNamespace("ns")
		ship.SetName(fmt.Sprintf("ship-%04d", i))
		f.Put(ship)
	}
	var err error
	if f.Migrator, err = New(Options{Config: f.Config(), Mapper: f.Mapper(), Clock: f.clock}); err != nil {
		t.Fatal(err)
	}
	f.state = &v1beta1.StoredVersionMigration{Definition: "ships.example.com"}
	f.Requests()
	return f
}

// step takes a step, after the time that the one before has asked for.
func (f *fixture) step() (Result, error) {
	f.t.Helper()
	d, err := f.Migrator.Get(f.t.Context(), "ships.example.com")
	if err != nil {
		f.t.Fatal(err)
	}
	result, err := f.Step(f.t.Context(), d, f.state, nil)
	if f.state.RetryTime == nil {
		f.clock.SetTime(f.clock.Now().Add(result.After + time.Second))
	}
	return result, err
}

// finish steps until the migration is over, or refused.
func (f *fixture) finish() Result {
	f.t.Helper()
	for range 100 {
		result, err := f.step()
		if err != nil {
			f.t.Fatal(err)
		}
		if result.Finished || f.state.RetryTime != nil {
			return result
		}
	}
	f.t.Fatal("the migration does not end")
	return Result{}
}

func (f *fixture) stored() []string {
	stored, _, _ := unstructured.NestedStringSlice(f.Server.Get(definitionObject("v1")).Object, "status", "storedVersions")
	return stored
}

// rewritten counts the patches of each ship among requests.
func rewritten(requests []string) map[string]int {
	out := map[string]int{}
	for _, r := range requests {
		if name, is := strings.CutPrefix(r, "patch Ship ns/"); is {
			out[name]++
		}
	}
	return out
}

// TestMigrate checks that each object is rewritten once, page by page, before the old version goes (P18).
func TestMigrate(t *testing.T) {
	f := newFixture(t, 2*maxPage+7)
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && r.Kind == "Ship" && (string(r.Body) != "{}" || slices.Contains(f.stored(), "v1") == false) {
			t.Errorf("%s: %s", r, r.Body)
		}
		return nil, nil
	})
	f.finish()
	requests := f.Requests()
	if last := requests[len(requests)-1]; last != "patch CustomResourceDefinition ships.example.com/status" {
		t.Errorf("the last request is %s", last)
	}
	for name, n := range rewritten(requests) {
		if n != 1 {
			t.Errorf("%s was rewritten %d times", name, n)
		}
	}
	if n := len(rewritten(requests)); n != 2*maxPage+7 || f.state.Done != int64(n) || f.state.Of != int64(n) {
		t.Errorf("%d rewritten, the state is %+v", n, f.state)
	}
	if got := f.stored(); !slices.Equal(got, []string{"v1"}) {
		t.Errorf("storedVersions %v", got)
	}
	if result, err := f.step(); err != nil || !result.Finished {
		t.Errorf("%+v, %v", result, err)
	}
	if got := f.Requests(); slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, "Ship") }) {
		t.Errorf("objects were read of a definition with one stored version: %q", got)
	}
}

// TestFaults loses states, answers and tokens at random: in the end, each object was rewritten after the beginning, and the old version
// went afterwards (P18).
func TestFaults(t *testing.T) {
	const ships = 2*maxPage + 3
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newFixture(t, ships)
		var mu sync.Mutex
		done := map[string]bool{}
		f.Before(func(r apitest.Request) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Verb == "list" && r.Query.Get("continue") != "" && random.IntN(6) == 0:
				return nil, apierrors.NewResourceExpired("too old")
			case random.IntN(400) == 0:
				return nil, apierrors.NewServiceUnavailable("away")
			}
			if r.Verb == "patch" && r.Kind == "Ship" {
				done[r.Name] = true
			}
			if r.Subresource == "status" && len(done) != ships {
				t.Errorf("seed %d: the old version went after %d of %d objects", seed, len(done), ships)
			}
			return nil, nil
		})
		for n := 0; ; n++ {
			if n == 500 {
				t.Fatalf("seed %d: the migration does not end: %+v", seed, f.state)
			}
			before := f.state.DeepCopy()
			d, err := f.Migrator.Get(t.Context(), "ships.example.com")
			if err != nil {
				continue
			}
			result, err := f.Step(t.Context(), d, f.state, nil)
			f.clock.SetTime(f.clock.Now().Add(result.After + time.Second))
			if err == nil && result.Finished {
				break
			}
			if random.IntN(4) == 0 {
				f.state = before // the manager was killed before it wrote the state down
			}
		}
		if len(done) != ships {
			t.Errorf("seed %d: %d objects rewritten", seed, len(done))
		}
	}
}

// TestAnswers checks what the answer to a rewritten object means.
func TestAnswers(t *testing.T) {
	ships := schema.GroupResource{Group: "example.com", Resource: "ships"}
	denied := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message, Reason: metav1.StatusReasonForbidden,
			Details: &metav1.StatusDetails{Name: "ship-0000"}}}
	}
	const hook = "admission webhook \"x.example.com\" denied the request: no"
	for _, tc := range []struct {
		reason  string
		answer  error
		refused bool
		fails   bool
	}{
		{"an object that another client has deleted", apierrors.NewNotFound(ships, "ship-0000"), false, false},
		{"an object that another client has written", apierrors.NewConflict(ships, "ship-0000", errors.New("modified")), false, false},
		{"a kind that is not served at the moment", apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", ships, "ship-0000", "404 page not found", 0, true), false, true},
		{"a policy", apierrors.NewForbidden(ships, "ship-0000", errors.New("ValidatingAdmissionPolicy denied request")), true, false},
		{"a schema", apierrors.NewInvalid(shipKind.GroupKind(), "ship-0000", nil), true, false},
		{"a webhook", denied(http.StatusForbidden, hook), true, false},
		{"a webhook with the code of a conflict", denied(http.StatusConflict, hook), true, false},
		{"a webhook with the code of an object that is not found", denied(http.StatusNotFound, hook), true, false},
		{"a webhook that is away", apierrors.NewInternalError(errors.New("failed calling webhook")), false, true},
		{"an API server that is busy", apierrors.NewTooManyRequests("busy", 0), false, true},
		{"a token that is not valid any more", apierrors.NewUnauthorized("no"), false, true},
	} {
		f := newFixture(t, 3)
		f.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "patch" && r.Name == "ship-0001" {
				return nil, tc.answer
			}
			return nil, nil
		})
		f.clock.SetTime(now)
		if _, err := f.step(); err != nil {
			t.Fatal(err)
		}
		result, err := f.step()
		switch {
		case (err != nil) != tc.fails:
			t.Errorf("%s: %v", tc.reason, err)
		case result.Finished == (tc.refused || tc.fails):
			t.Errorf("%s: finished %t", tc.reason, result.Finished)
		case tc.refused != (f.state.Blocked != nil):
			t.Errorf("%s: %+v", tc.reason, f.state)
		case tc.fails && f.state.Done != 0:
			t.Errorf("%s: a page that has failed counts: %+v", tc.reason, f.state)
		}
	}
}

// TestRefused checks that a refused object keeps the old version, is named, and alone is asked for until it is accepted (P18).
func TestRefused(t *testing.T) {
	f := newFixture(t, 10)
	refuses := true
	f.Before(func(r apitest.Request) (any, error) {
		if refuses && r.Verb == "patch" && r.Name == "ship-0003" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "ships"}, "ship-0003", errors.New("it must not sail"))
		}
		return nil, nil
	})
	f.finish()
	if got := f.stored(); len(got) != 2 {
		t.Errorf("storedVersions %v", got)
	}
	if f.state.Done != 9 || f.state.Refused != 1 || f.state.Attempts != 1 || !strings.Contains(f.state.Message, "Ship ns/ship-0003 cannot be rewritten in version v1: ") ||
		!strings.Contains(f.state.Message, "it must not sail") {
		t.Errorf("%+v", f.state)
	}
	f.Requests()
	if result, err := f.step(); err != nil || result.Action != Wait {
		t.Errorf("%+v %v", result, err)
	}
	for attempts := int32(2); attempts < 5; attempts++ {
		f.clock.SetTime(f.state.RetryTime.Time)
		if result, err := f.step(); err != nil || result.Action != Probe || f.state.Attempts != attempts {
			t.Errorf("%+v %v", result, err)
		}
	}
	if got := rewritten(f.Requests()); len(got) != 1 {
		t.Errorf("while it is refused, %v were rewritten", got)
	}
	refuses = false
	f.clock.SetTime(f.state.RetryTime.Time)
	f.finish()
	if got := f.stored(); !slices.Equal(got, []string{"v1"}) {
		t.Errorf("storedVersions %v", got)
	}
}

// TestAllRefused checks that an attempt ends early if all objects are refused.
func TestAllRefused(t *testing.T) {
	f := newFixture(t, 2*maxPage)
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && r.Kind == "Ship" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "ships"}, r.Name, errors.New("no rights"))
		}
		return nil, nil
	})
	f.finish()
	if n := len(rewritten(f.Requests())); n > maxPage {
		t.Errorf("%d objects were tried", n)
	}
}

// TestTrim checks that the old version stays if the definition has changed before the end (P18).
func TestTrim(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(crd *unstructured.Unstructured)
		want   bool
	}{
		{"another storage version, and back again", func(crd *unstructured.Unstructured) { crd.SetGeneration(3) }, false},
		{"a label", func(crd *unstructured.Unstructured) { crd.SetLabels(map[string]string{"a": "b"}) }, true},
	} {
		f := newFixture(t, 3)
		conflicts := 0
		f.Before(func(r apitest.Request) (any, error) {
			if r.Subresource == "status" {
				conflicts++
				if conflicts == 1 {
					return nil, apierrors.NewConflict(schema.GroupResource{Resource: "customresourcedefinitions"}, r.Name, errors.New("changed"))
				}
			}
			return nil, nil
		})
		if _, err := f.step(); err != nil {
			t.Fatal(err)
		}
		d, err := f.Migrator.Get(t.Context(), "ships.example.com")
		if err != nil {
			t.Fatal(err)
		}
		crd := f.Server.Get(definitionObject("v1")).DeepCopy()
		tc.change(crd)
		f.Put(crd)
		result, err := f.Step(t.Context(), d, f.state, nil) // by what was read before the change
		if err != nil || result.Finished != tc.want || (len(f.stored()) == 1) != tc.want {
			t.Errorf("%s: %+v, %v, storedVersions %v", tc.reason, result, err, f.stored())
		}
	}
}

// TestResume checks where a migration continues after a token that has expired.
func TestResume(t *testing.T) {
	for offered, want := range map[string]string{"": "", "next": "next", "old": ""} {
		expired := apierrors.NewResourceExpired("too old")
		expired.ErrStatus.Continue = offered
		state := &v1beta1.StoredVersionMigration{Continue: "old"}
		if resume(state, expired); state.Continue != want {
			t.Errorf("offered %q: %q, want %q", offered, state.Continue, want)
		}
	}
}

// TestLoss checks that nothing is rewritten, and no version goes, while the storage version takes less than what is stored: whoever has
// changed it need not be kudo (P18).
func TestLoss(t *testing.T) {
	f := newFixture(t, 3)
	crd := definitionObject("v1alpha1", "v1")
	versions := crd.Object["spec"].(map[string]any)["versions"].([]any)
	schema := func(properties map[string]any) map[string]any {
		return map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}
	}
	versions[0].(map[string]any)["schema"] = schema(map[string]any{"legacy": map[string]any{"type": "string"}})
	versions[1].(map[string]any)["schema"] = schema(map[string]any{})
	f.Put(crd)
	f.Requests()
	for range 3 { // the attempts of which the message speaks
		if result := f.finish(); result.Finished {
			t.Fatal("it has finished")
		}
		f.clock.SetTime(f.state.RetryTime.Time)
	}
	if len(rewritten(f.Requests())) > 0 || len(f.stored()) != 2 {
		t.Errorf("objects were rewritten, or a version was dropped: %v", f.stored())
	}
	if !strings.Contains(f.state.Message, "would lose fields") || !strings.Contains(f.state.Message, "legacy") || f.state.Attempts != 3 {
		t.Errorf("%d attempts: %q", f.state.Attempts, f.state.Message)
	}
	crd.Object["metadata"].(map[string]any)["generation"] = int64(2)
	versions[1].(map[string]any)["schema"] = versions[0].(map[string]any)["schema"]
	f.Put(crd)
	f.state.RetryTime = nil // another generation begins another migration
	if result := f.finish(); !result.Finished {
		t.Errorf("it does not finish with a schema that takes all: %+v", f.state)
	}
}

// TestIsRefusal checks which answers are about an object: whoever admits may choose any code for a denial (P18).
func TestIsRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		code   int32
		text   string
		want   bool
	}{
		"Invalid":     {"the object does not fit the schema", 422, "Ship is invalid", true},
		"Webhook":     {"a webhook denies with an error of a server", 500, `admission webhook "w" denied the request: no`, true},
		"WebhookWait": {"a webhook asks to come again", 429, `admission webhook "w" denied the request: later`, true},
		"Policy":      {"a policy denies with the code of a missing login", 401, `ships "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, true},
		"Unreached":   {"a webhook that does not answer", 500, `Internal error occurred: failed calling webhook "w"`, false},
		"Login":       {"credentials that are not taken", 401, "Unauthorized", false},
		"Busy":        {"a server with too much to do", 429, "too many requests", false},
		"Conflict":    {"another write came first", 409, "the object has been modified", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: tc.code, Message: tc.text}}
			if got := isRefusal(err); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestOutdatedDefinition checks that no migration begins by a definition as it was before the last one ended, which a cache may show (P18).
func TestOutdatedDefinition(t *testing.T) {
	f := newFixture(t, 3)
	outdated, err := f.Migrator.Get(t.Context(), "ships.example.com")
	if err != nil {
		t.Fatal(err)
	}
	f.finish()
	f.Requests()
	state := &v1beta1.StoredVersionMigration{Definition: "ships.example.com"}
	result, err := f.Step(t.Context(), outdated, state, nil)
	if err != nil || !result.Finished || state.UID != "" {
		t.Errorf("%+v, %v: %+v", result, err, state)
	}
	if requests := f.Requests(); len(rewritten(requests)) > 0 {
		t.Errorf("requests %q", requests)
	}
}
