package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// fixed is a layer that always answers the same.
type fixed struct {
	layer  explore.Layer
	answer explore.Answer
	known  bool
	err    error
}

func (f fixed) Layer() explore.Layer { return f.layer }

func (f fixed) Explore(context.Context, explore.Request) (explore.Answer, bool, error) {
	return f.answer, f.known, f.err
}

func TestChain(t *testing.T) {
	no := func(l explore.Layer) fixed { return fixed{layer: l} }
	yes := func(l explore.Layer) fixed {
		return fixed{layer: l, answer: explore.Answer{Healthy: true}, known: true}
	}
	broken := fixed{layer: explore.Webhook, err: errors.New("timed out")}
	for name, tc := range map[string]struct {
		reason string
		chain  explore.Chain
		layer  explore.Layer
		err    string
	}{
		"First":   {"the first answer wins", explore.NewChain(yes(explore.User), yes(explore.Webhook), nil, nil), explore.User, ""},
		"Next":    {"no opinion asks the next", explore.NewChain(no(explore.User), no(explore.Webhook), no(explore.Library), yes(explore.Native)), explore.Native, ""},
		"None":    {"no layer has one", explore.NewChain(no(explore.User), nil, nil, no(explore.Native)), "", ""},
		"Empty":   {"there are no layers", explore.NewChain(nil, nil, nil, nil), "", ""},
		"Unknown": {"a layer that fails ends the search", explore.NewChain(no(explore.User), broken, nil, yes(explore.Native)), "", "ExploreHealthy of X a is unknown: webhook: timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Request{Operation: explore.Healthy, Object: exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`)}
			answer, known, err := tc.chain.Explore(t.Context(), r)
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if answer.Layer != tc.layer || known != (tc.layer != "") {
				t.Errorf("%s: answered by %q (%v), want %q", tc.reason, answer.Layer, known, tc.layer)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}`
	for name, tc := range map[string]struct {
		reason                 string
		operation              explore.Operation
		object, observed, then string
		err                    string
	}{
		"Same":          {"nothing changes", explore.Packing, head + "}", "", head + "}", ""},
		"Name":          {"identity stays", explore.Packing, head + "}", "", `{"apiVersion":"v1","kind":"X","metadata":{"name":"b"}}`, `name was changed from "a" to "b": the identity of an object must stay`},
		"Namespace":     {"also what was not set", explore.Packing, head + "}", "", `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"n"}}`, `namespace was changed from nothing to "n": the identity of an object must stay`},
		"Kind":          {"and the kind", explore.Retaining, head + "}", head + "}", `{"apiVersion":"v1","kind":"Y","metadata":{"name":"a"}}`, `kind was changed from "X" to "Y": the identity of an object must stay`},
		"ReviseStatus":  {"revising leaves the status", explore.ReplicaRevising, head + "}", "", head + `,"status":{"x":1}}`, "status was changed: the operation must not write it"},
		"ReviseSpec":    {"and writes the rest", explore.ReplicaRevising, head + "}", "", head + `,"spec":{"x":1}}`, ""},
		"Status":        {"aggregating writes the status", explore.StatusAggregating, head + "}", "", head + `,"status":{"x":1}}`, ""},
		"StatusSpec":    {"what else it writes is dropped, and no error", explore.StatusAggregating, head + "}", "", head + `,"spec":{"x":1}}`, ""},
		"Generation":    {"a generation of 0 does not matter", explore.StatusAggregating, head + "}", "", `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","generation":0}}`, ""},
		"Retain":        {"values of either", explore.Retaining, head + `,"spec":{"a":1}}`, head + `,"spec":{"b":[{"c":1}]}}`, head + `,"spec":{"a":1,"b":[{"c":2}]}}`, ""},
		"RetainAdds":    {"no others", explore.Retaining, head + `,"spec":{"a":1}}`, head + `,"spec":{"b":[{"c":1}]}}`, head + `,"spec":{"a":1,"b":[{"d":2}]}}`, ".spec.b[0].d is in neither the desired nor the observed object: retaining must not add fields"},
		"RetainOrder":   {"entries of lists may change places", explore.Retaining, head + `,"spec":{"l":[{"a":1},{"b":1}]}}`, head + "}", head + `,"spec":{"l":[{"b":1},{"a":1}]}}`, ""},
		"RetainDeep":    {"lists in lists", explore.Retaining, head + `,"spec":{"l":[[1],[{"a":1}]]}}`, head + "}", head + `,"spec":{"l":[[{"a":2}],[{"b":1}]]}}`, ".spec.l[1][0].b is in neither the desired nor the observed object: retaining must not add fields"},
		"RetainEmpty":   {"empty values are none", explore.Retaining, head + `}`, head + "}", head + `,"spec":{"l":[],"m":{},"n":null}}`, ""},
		"RetainNewList": {"no new lists", explore.Retaining, head + `,"spec":{"l":[]}}`, head + "}", head + `,"spec":{"l":[1]}}`, ".spec.l[0] is in neither the desired nor the observed object: retaining must not add fields"},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Request{Operation: tc.operation, Object: exploretest.Object(t, tc.object)}
			if tc.observed != "" {
				r.Observed = exploretest.Object(t, tc.observed)
			}
			err := explore.Check(r, &explore.Answer{Object: exploretest.Object(t, tc.then)})
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

func TestParseOperation(t *testing.T) {
	for name, want := range map[string]explore.Operation{
		"Retain": explore.Retaining, "InterpretReplica": explore.Replica, "ReviseReplica": explore.ReplicaRevising, "InterpretStatus": explore.Status,
		"AggregateStatus": explore.StatusAggregating, "InterpretHealth": explore.Healthy, "InterpretDependency": explore.Dependencies,
		"exploreretaining": explore.Retaining, "Pack": explore.Packing,
	} {
		if got, err := explore.ParseOperation(name); got != want || err != nil {
			t.Errorf("%s is %q (%v), want %s", name, got, err, want)
		}
	}
	for _, operation := range explore.Operations() {
		if got, err := explore.ParseOperation(string(operation)); got != operation || err != nil {
			t.Errorf("%s is %q (%v)", operation, got, err)
		}
	}
	if _, err := explore.ParseOperation("Explore"); err == nil {
		t.Error("Explore is no operation")
	}
}

func TestChanges(t *testing.T) {
	from := exploretest.Object(t, `{"kind":"X","apiVersion":"v1","spec":{"a":1,"l":[{"b":1},2],"e":{}}}`).Object
	to := exploretest.Object(t, `{"kind":"X","apiVersion":"v1","spec":{"a":2,"l":[{"b":3},2],"n":true}}`).Object
	want := "[.spec.a: 1 -> 2 .spec.l[0].b: 1 -> 3 .spec.n: (none) -> true]"
	if diff := cmp.Diff(want, fmt.Sprint(explore.Changes(from, to))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
