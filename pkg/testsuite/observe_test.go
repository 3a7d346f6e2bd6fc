package testsuite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"kudo.dev/kudo/test/apitest"
)

// parsed returns the objects of a text.
func parsed(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objs, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objs
}

// observing returns an observer in namespace ns, which has observed the objects of a text.
func observing(t *testing.T, step *Step, objects string) *stepObserver {
	t.Helper()
	v := &stepObserver{
		namespace: "ns", step: step, cancel: func() {}, changed: make(chan change, 16), objects: map[string]map[string]*unstructured.Unstructured{},
		since: map[string]string{}, unopened: map[string]*unstructured.Unstructured{},
	}
	for _, obj := range parsed(t, objects) {
		place := placeOf(obj, "ns")
		if v.objects[place] == nil {
			v.objects[place] = map[string]*unstructured.Unstructured{}
		}
		v.objects[place][obj.GetName()] = obj
	}
	return v
}

// TestProblems has the messages about asserts that do not hold, and about errors that do.
func TestProblems(t *testing.T) {
	const a = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
	const b = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {l: x}}\ndata: {k: w, more: z}\n"
	const anyName = "apiVersion: v1\nkind: ConfigMap\n"
	many := ""
	for n := range 12 {
		many += strings.ReplaceAll(a, "name: a", fmt.Sprintf("name: m%02d", n))
	}
	for name, tc := range map[string]struct {
		reason, objects, asserts, errors string
		want                             []string
	}{
		"Met":    {"an assert that holds", a, a, "", nil},
		"Absent": {"an object that does not exist, of which there is no other", "", a, "", []string{"ConfigMap a does not exist"}},
		"Others": {"the objects that do exist are named", b, a, "", []string{"ConfigMap a does not exist; there are b"}},
		"Many": {
			"ten of them", many, a, "",
			[]string{"ConfigMap a does not exist; there are m00, m01, m02, m03, m04, m05, m06, m07, m08, m09"},
		},
		"Differs": {
			"each field that differs", a, strings.ReplaceAll(a, "k: v", "k: x, z: q"), "",
			[]string{"ConfigMap a is not as expected:", `  .data.k: want "x", have "v"`, `  .data.z: want "q", is missing`},
		},
		"AnyName": {"an assert without a name is met by any object", a + b, anyName + "data: {k: w}", "", nil},
		"Nearest": {
			"else the nearest object is shown", a + b, anyName + "data: {k: x, more: z}", "",
			[]string{"ConfigMap b is not as expected:", `  .data.k: want "x", have "w"`},
		},
		"FirstOfEqual": {
			"of two that are as near the first by name", b + a, anyName + "data: {k: x}", "",
			[]string{"ConfigMap a is not as expected:", `  .data.k: want "x", have "v"`},
		},
		"NoneOfKind":     {"without a name and without an object", "", anyName, "", []string{"ConfigMap (of any name) does not exist"}},
		"OtherNamespace": {"an object of another namespace does not count", strings.ReplaceAll(a, "name: a", "name: a, namespace: other"), a, "", []string{"ConfigMap a does not exist"}},
		"Named": {
			"unless the assert names that namespace", strings.ReplaceAll(a, "name: a", "name: a, namespace: other"),
			strings.ReplaceAll(a, "name: a", "name: a, namespace: other"), "", nil,
		},
		"Unwanted":   {"an error that holds", a, "", a, []string{"ConfigMap a must not be there, and is"}},
		"NoError":    {"one whose fields differ does not", a, "", strings.ReplaceAll(a, "k: v", "k: x"), nil},
		"AnyError":   {"an error of any name", a, "", anyName + "data: {k: v}", []string{"ConfigMap (of any name) must not be there, and is"}},
		"Both":       {"asserts come first", a, b, a, []string{"ConfigMap b does not exist; there are a", "ConfigMap a must not be there, and is"}},
		"Everything": {"all asserts are checked", "", a + b, "", []string{"ConfigMap a does not exist", "ConfigMap b does not exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			step := &Step{Asserts: parsed(t, tc.asserts), Errors: parsed(t, tc.errors)}
			if diff := cmp.Diff(tc.want, observing(t, step, tc.objects).problems()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	unknown := parsed(t, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}")
	v := observing(t, &Step{Asserts: unknown}, "")
	v.unopened[placeOf(unknown[0], "ns")] = unknown[0]
	if diff := cmp.Diff([]string{"Thing x: the cluster does not know the kind Thing of example.com/v1"}, v.problems()); diff != "" {
		t.Errorf("a kind that is not served (-want +got):\n%s", diff)
	}
}

// TestTake has changes in the order in which watches show them: what lies before the moments that count is left out.
func TestTake(t *testing.T) {
	at := func(name, version string) *unstructured.Unstructured {
		obj := parsed(t, strings.Replace(object, "app", name, 1))[0]
		obj.SetResourceVersion(version)
		return obj
	}
	place := placeOf(at("a", ""), "ns")
	event := func(kind watch.EventType, name, version string) change {
		return change{place: place, event: watch.Event{Type: kind, Object: at(name, version)}}
	}
	list := func(version string, names ...string) change {
		c := change{place: place, version: version, list: []unstructured.Unstructured{}}
		for _, name := range names {
			c.list = append(c.list, *at(name, version))
		}
		return c
	}
	for name, tc := range map[string]struct {
		reason, since string
		changes       []change
		want          map[string]string
	}{
		"List":     {"a list replaces all", "", []change{list("5", "a", "b"), list("6", "c")}, map[string]string{"c": "6"}},
		"Added":    {"an object is made", "", []change{list("5"), event(watch.Added, "a", "6")}, map[string]string{"a": "6"}},
		"Modified": {"it changes", "", []change{list("5", "a", "b"), event(watch.Modified, "a", "6")}, map[string]string{"a": "6", "b": "5"}},
		"Deleted":  {"it is deleted", "", []change{list("5", "a", "b"), event(watch.Deleted, "a", "6")}, map[string]string{"b": "5"}},
		"Bookmark": {"a bookmark is no object", "", []change{list("5", "a"), event(watch.Bookmark, "x", "6")}, map[string]string{"a": "5"}},
		"Before": {
			"a change that lies before the moments that count", "7",
			[]change{event(watch.Deleted, "a", "6"), event(watch.Modified, "a", "7")}, map[string]string{"a": "4"},
		},
		"After":   {"one behind them", "7", []change{event(watch.Modified, "a", "8")}, map[string]string{"a": "8"}},
		"OldList": {"a list of before", "7", []change{list("7", "b")}, map[string]string{"a": "4"}},
		"NewList": {"a list of afterwards", "7", []change{list("8", "b")}, map[string]string{"b": "8"}},
		"Longer":  {"versions are numbers, not texts", "9", []change{event(watch.Modified, "a", "10")}, map[string]string{"a": "10"}},
		"Odd":     {"versions that cannot be compared count", "7", []change{event(watch.Modified, "a", "x")}, map[string]string{"a": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := observing(t, &Step{}, "")
			v.take(list("4", "a"))
			v.since[place] = tc.since
			for _, c := range tc.changes {
				v.take(c)
			}
			got := map[string]string{}
			for name, obj := range v.objects[place] {
				got[name] = obj.GetResourceVersion()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAwait waits with a clock of its own: for commands that fail, for a change, for the end of the time, and of the context.
func TestAwait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// failures is how often the checks fail.
		failures int
		// cancelled is when the context ends; 0 is never.
		cancelled time.Duration
		took      time.Duration
		want      string
	}{
		"Once":    {"what holds at once", 0, 0, 0, ""},
		"Again":   {"a check that fails is tried again", 3, 0, 3 * recheck, ""},
		"Timeout": {"until the time ends", 1000, 0, 10 * time.Second, "does not hold after 10s:\n    no 1\n    no 2"},
		"Cancel":  {"a user who interrupts gets no list of problems", 1000, time.Second, time.Second, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.cancelled > 0 {
					time.AfterFunc(tc.cancelled, cancel)
				}
				began, left := time.Now(), tc.failures
				err := observing(t, &Step{}, "").await(ctx, 10*time.Second, func(context.Context) []string {
					if left--; left >= 0 {
						return []string{"no 1", "no 2"}
					}
					return nil
				})
				if took := time.Since(began); took != tc.took {
					t.Errorf("%s: it took %s, want %s", tc.reason, took, tc.took)
				}
				if text := fmt.Sprint(err); text != tc.want && (err != nil || tc.want != "") {
					t.Errorf("%s: %q, want %q", tc.reason, text, tc.want)
				}
			})
		})
	}
}

// TestAwaitChange checks that a change is observed when it comes, and that commands are not run before the objects are as expected.
func TestAwaitChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := parsed(t, object)[0]
		v := observing(t, &Step{Asserts: []*unstructured.Unstructured{want}}, "")
		v.since[placeOf(want, "ns")] = "1" // there is nothing to refresh
		v.objects[placeOf(want, "ns")] = map[string]*unstructured.Unstructured{}
		const moment = recheck / 2
		time.AfterFunc(moment, func() {
			live := want.DeepCopy()
			live.SetResourceVersion("2")
			v.changed <- change{place: placeOf(want, "ns"), event: watch.Event{Type: watch.Added, Object: live}}
		})
		began, checked := time.Now(), 0
		err := v.await(t.Context(), time.Minute, func(context.Context) []string { checked++; return nil })
		if took := time.Since(began); err != nil || took != moment || checked != 1 {
			t.Errorf("it took %s and %d checks: %v", took, checked, err)
		}
	})
}

// TestRetryTransient waits with a clock of its own for errors that pass.
func TestRetryTransient(t *testing.T) {
	passes, stays := errors.New("passes"), errors.New("stays")
	for name, tc := range map[string]struct {
		reason string
		// answers of the tries, of which the last one repeats.
		answers []error
		tries   int
		took    time.Duration
		want    error
	}{
		"None":    {"no error", []error{nil}, 1, 0, nil},
		"Stays":   {"an error that does not pass", []error{stays}, 1, 0, stays},
		"Passes":  {"one that passes", []error{passes, passes, nil}, 3, 200 * time.Millisecond, nil},
		"Becomes": {"one that becomes another", []error{passes, stays}, 2, 100 * time.Millisecond, stays},
		"Endless": {"one that passes never", []error{passes}, 102, patience + 100*time.Millisecond, passes},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				err := retryTransient(t.Context(), func(err error) bool { return errors.Is(err, passes) }, func() error {
					tries++
					return tc.answers[min(tries, len(tc.answers))-1]
				})
				if took := time.Since(began); !errors.Is(err, tc.want) || tries != tc.tries || took != tc.took {
					t.Errorf("%s: %v after %d tries and %s", tc.reason, err, tries, took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := retryTransient(ctx, func(error) bool { return true }, func() error { return passes }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the context ends: %v", err)
		}
	})
}

// TestFirstRead has a server that lists later than an assert may take: the time of the assert begins with what the list shows.
func TestFirstRead(t *testing.T) {
	const timeout = 100 * time.Millisecond
	cluster, server := newCluster(t, configMap("app", map[string]string{"a": "1"}))
	step := &Step{Asserts: parsed(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: \"2\"}")}
	v, err := observe(t.Context(), cluster, step, "ns")
	if err != nil {
		t.Fatal(err)
	}
	defer v.stop()
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "list" {
			<-time.After(2 * timeout)
		}
		return nil, nil
	})
	if err = v.await(t.Context(), timeout, func(context.Context) []string { return nil }); err == nil || !strings.Contains(err.Error(), `want "2", have "1"`) {
		t.Errorf("got %v, want what differs", err)
	}
}
