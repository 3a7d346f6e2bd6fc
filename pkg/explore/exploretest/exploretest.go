// Package exploretest is the conformance test of the layers of package explore: what holds for every layer, whatever
// kinds it answers for.
package exploretest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// Case is a question that the layer under test has an opinion on, and its answer.
type Case struct {
	// Name of the subtest.
	Name    string
	Request explore.Request
	// Check looks at the answer, if it is not nil; it has passed explore.Check before.
	Check func(t *testing.T, a explore.Answer)
	// Unknown is true if the layer must return *explore.UnknownError.
	Unknown bool
}

// Run checks a layer: it has no opinion on kinds without a rule; it answers the cases, each time with the same value,
// also if asked by many at once, and refuses by *explore.UnknownError under its own name; it neither changes nor keeps what
// it is given; and it heeds the context.
func Run(t *testing.T, layer explore.Explorer, cases ...Case) {
	t.Helper()
	t.Run("no opinion on kinds without a rule", func(t *testing.T) { stranger(t, layer) })
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Unknown {
				refuses(t, layer, c)
				return
			}
			first := ask(t, layer, c)
			if c.Check != nil {
				c.Check(t, first)
			}
			owned(t, layer, c, first)
			checkConcurrent(t, layer, c)
			checkCanceled(t, layer, c)
		})
	}
}

// stranger asks about a kind that no layer knows.
func stranger(t *testing.T, layer explore.Explorer) {
	for _, operation := range explore.Operations() {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "unknown.invalid/v1", "kind": "Stranger", "metadata": map[string]any{"name": "x", "namespace": "y"},
		}}
		r := explore.Request{Operation: operation, Object: object}
		if operation == explore.Retaining {
			r.Observed = object.DeepCopy()
		}
		if a, known, err := layer.Explore(t.Context(), r); known || err != nil {
			t.Errorf("%s of a kind without a rule: got an answer (%+v, %v), want no opinion", operation, a, err)
		}
	}
}

// ask asks a few times, and wants the request unchanged and the answers the same.
func ask(t *testing.T, layer explore.Explorer, c Case) explore.Answer {
	t.Helper()
	before := Text(t, c.Request)
	var first explore.Answer
	for i := range 3 {
		a, known, err := layer.Explore(t.Context(), c.Request)
		if err != nil || !known {
			t.Fatalf("got no answer (known %v, error %v)", known, err)
		}
		if after := Text(t, c.Request); after != before {
			t.Fatalf("the layer changed what it was given:\n%s", cmp.Diff(before, after))
		}
		if err := explore.Check(c.Request, &a); err != nil {
			t.Fatalf("the layer gives an answer that none may give: %v", err)
		}
		if i == 0 {
			first = a
		} else if diff := cmp.Diff(Text(t, first), Text(t, a)); diff != "" {
			t.Fatalf("the answer varies (-first +later):\n%s", diff)
		}
	}
	return first
}

// owned wants an answer to be the caller's: changing it changes neither the request nor later answers.
func owned(t *testing.T, layer explore.Explorer, c Case, first explore.Answer) {
	t.Helper()
	if first.Object == nil {
		return
	}
	request, answer := Text(t, c.Request), Text(t, first)
	overwriteAll(first.Object.Object)
	if Text(t, c.Request) != request {
		t.Error("the answer shares parts with the request: changing one changes the other")
	}
	if again := ask(t, layer, c); Text(t, again) != answer {
		t.Error("the layer keeps parts of an answer that it gave away")
	}
}

// overwriteAll overwrites every value below a map or list.
func overwriteAll(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			overwriteAll(v[key])
			v[key] = "scribble"
		}
	case []any:
		for i := range v {
			overwriteAll(v[i])
			v[i] = "scribble"
		}
	}
}

// checkConcurrent asks from several goroutines at once; run with -race.
func checkConcurrent(t *testing.T, layer explore.Explorer, c Case) {
	t.Helper()
	var wait sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wait.Go(func() {
			a, known, err := layer.Explore(t.Context(), c.Request)
			if err != nil || !known {
				t.Errorf("asked by many at once: got no answer (known %v, error %v)", known, err)
				return
			}
			answers[i] = Text(t, a)
		})
	}
	wait.Wait()
	if slices.Sort(answers); answers[0] != answers[len(answers)-1] {
		t.Errorf("asked by many at once, the answer varies:\n%s", cmp.Diff(answers[0], answers[len(answers)-1]))
	}
}

// checkCanceled asks with a context that is over: the layer answers all the same, or says that it cannot answer, but has no
// "no opinion", since the next layer would then be asked.
func checkCanceled(t *testing.T, layer explore.Explorer, c Case) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, known, err := layer.Explore(ctx, c.Request); !known && err == nil {
		t.Error("with a context that is over the layer has no opinion: it must answer, or say that the answer is unknown")
	}
}

func refuses(t *testing.T, layer explore.Explorer, c Case) {
	t.Helper()
	before := Text(t, c.Request)
	_, known, err := layer.Explore(t.Context(), c.Request)
	unknown, ok := explore.IsUnknown(err)
	if known || !ok {
		t.Fatalf("got known %v, error %v: want an *explore.UnknownError", known, err)
	}
	if unknown.Layer != layer.Layer() || unknown.Operation != c.Request.Operation || unknown.Object != explore.NameOf(c.Request.Object) {
		t.Errorf("the error names %q, %q and %q: want the layer, the operation and the object", unknown.Layer, unknown.Operation, unknown.Object)
	}
	if Text(t, c.Request) != before {
		t.Error("the layer changed what it was given")
	}
}

// Text is a value as JSON, for comparing. All maps are in order.
func Text(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// Object reads an object from JSON.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

// Items makes aggregated status items of the names of clusters and as many statuses in JSON; "" is no status.
func Items(names []string, statuses ...string) []v1alpha1.AggregatedStatusItem {
	items := make([]v1alpha1.AggregatedStatusItem, len(statuses))
	for i, status := range statuses {
		items[i] = v1alpha1.AggregatedStatusItem{ClusterName: names[i], Applied: true}
		if status != "" {
			items[i].Status = &runtime.RawExtension{Raw: []byte(status)}
		}
	}
	return items
}
