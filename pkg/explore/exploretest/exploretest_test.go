package exploretest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
)

// faulty is a layer that answers as a func does.
type faulty func(context.Context, explore.Request) (explore.Answer, bool, error)

func (f faulty) Layer() explore.Layer { return "Faulty" }

func (f faulty) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	return f(ctx, r)
}

// known answers for the kind Ship only.
func known(answer faulty) faulty {
	return func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
		if r.Object.GetKind() != "Ship" {
			return explore.Answer{}, false, nil
		}
		return answer(ctx, r)
	}
}

// copied answers with a copy of the object.
func copied(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	return explore.Answer{Object: r.Object.DeepCopy()}, true, nil
}

// refused answers that it cannot answer, under a name.
func refused(layer explore.Layer, r explore.Request) (explore.Answer, bool, error) {
	return explore.Answer{}, false, &explore.UnknownError{
		Layer: layer, Operation: r.Operation, Object: explore.NameOf(r.Object), Err: errors.New("refused"),
	}
}

// fault is a layer, and what Run says of it; empty if that is right.
type fault struct {
	layer   func() explore.Explorer
	unknown bool
	want    string
}

var faults = map[string]fault{
	"Right": {func() explore.Explorer { return known(copied) }, false, ""},
	"RightUnknown": {func() explore.Explorer {
		return known(func(_ context.Context, r explore.Request) (explore.Answer, bool, error) { return refused("Faulty", r) })
	}, true, ""},
	"Stranger": {func() explore.Explorer { return faulty(copied) }, false, "of a kind without a rule: got an answer"},
	"StrangerError": {func() explore.Explorer {
		return faulty(func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
			if r.Object.GetKind() != "Ship" {
				return refused("Faulty", r)
			}
			return copied(ctx, r)
		})
	}, false, "of a kind without a rule: got an answer"},
	"NoAnswer": {func() explore.Explorer {
		return known(func(context.Context, explore.Request) (explore.Answer, bool, error) {
			return explore.Answer{}, false, nil
		})
	}, false, "got no answer (known false, error <nil>)"},
	"Changes": {func() explore.Explorer {
		return known(func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
			defer r.Object.SetLabels(map[string]string{"a": "b"})
			return copied(ctx, r)
		})
	}, false, "the layer changed what it was given"},
	"Invalid": {func() explore.Explorer {
		return known(func(context.Context, explore.Request) (explore.Answer, bool, error) {
			return explore.Answer{}, true, nil
		})
	}, false, "the layer gives an answer that none may give"},
	"Varies": {func() explore.Explorer {
		asked := 0
		return known(func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
			a, ok, err := copied(ctx, r)
			a.Object.Object["spec"] = asked
			asked++
			return a, ok, err
		})
	}, false, "the answer varies (-first +later)"},
	"Shares": {func() explore.Explorer {
		return known(func(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
			return explore.Answer{Object: r.Object}, true, nil
		})
	}, false, "the answer shares parts with the request: changing one changes the other"},
	"Keeps": {func() explore.Explorer {
		var kept explore.Answer
		return known(func(ctx context.Context, r explore.Request) (answer explore.Answer, ok bool, err error) {
			if kept.Object == nil {
				kept, _, _ = copied(ctx, r)
				kept.Object.Object["spec"] = map[string]any{"list": []any{"a"}}
			}
			answer, _, _ = copied(ctx, r)
			answer.Object.Object["spec"] = kept.Object.Object["spec"]
			return answer, true, nil
		})
	}, false, "the layer keeps parts of an answer that it gave away"},
	"Concurrent": {func() explore.Explorer {
		var asked atomic.Int32
		return known(func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
			if asked.Add(1) == 8 { // after three requests, and three of an answer that was changed
				return refused("Faulty", r)
			}
			return copied(ctx, r)
		})
	}, false, "asked by many at once: got no answer"},
	"Canceled": {func() explore.Explorer {
		return known(func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
			if ctx.Err() != nil {
				return explore.Answer{}, false, nil
			}
			return copied(ctx, r)
		})
	}, false, "with a context that is over the layer has no opinion"},
	"PlainError": {func() explore.Explorer {
		return known(func(context.Context, explore.Request) (explore.Answer, bool, error) {
			return explore.Answer{}, false, errors.New("plain")
		})
	}, true, "got known false, error plain: want an *explore.UnknownError"},
	"OtherName": {func() explore.Explorer {
		return known(func(_ context.Context, r explore.Request) (explore.Answer, bool, error) { return refused("Other", r) })
	}, true, `the error names "Other"`},
	"ChangesUnknown": {func() explore.Explorer {
		return known(func(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
			defer r.Object.SetLabels(map[string]string{"a": "b"})
			return refused("Faulty", r)
		})
	}, true, "the layer changed what it was given"},
}

// faultVariable names the fault that the process is for. A test that must fail runs in a process of its own.
const faultVariable = "EXPLORETEST_FAULT"

const ship = `{"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}, "spec": {"list": [{"b": "c"}]}}`

// TestFault runs the conformance test on the layer that the environment names.
func TestFault(t *testing.T) {
	name := os.Getenv(faultVariable)
	if name == "" {
		return // TestRun starts it
	}
	f := faults[name]
	Run(t, f.layer(), Case{Name: "case", Request: explore.Request{Operation: explore.Packing, Object: Object(t, ship)}, Unknown: f.unknown})
}

// TestRun checks that the conformance test fails for each fault of a layer, and says which, and passes for a right layer.
func TestRun(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFault$", "-test.v")
			command.Env = append(os.Environ(), faultVariable+"="+name)
			output, err := command.CombinedOutput()
			if (err == nil) != (f.want == "") || !strings.Contains(string(output), f.want) {
				t.Errorf("%v, want %q in\n%s", err, f.want, output)
			}
			if failed := strings.Count(string(output), "_test.go:") + strings.Count(string(output), "exploretest.go:"); f.want == "" && failed > 0 {
				t.Errorf("a right layer is at fault:\n%s", output)
			}
		})
	}
}

// TestCheckIsCalled checks that a case looks at the answer, once.
func TestCheckIsCalled(t *testing.T) {
	called := 0
	Run(t, known(copied), Case{
		Name: "case", Request: explore.Request{Operation: explore.Packing, Object: Object(t, ship)},
		Check: func(t *testing.T, a explore.Answer) {
			called++
			if a.Object.GetName() != "a" {
				t.Errorf("%v", a.Object)
			}
		},
	})
	if called != 1 {
		t.Errorf("called %d times", called)
	}
}

// TestItems checks that no status is none, and that each status stands with its cluster.
func TestItems(t *testing.T) {
	items := Items([]string{"a", "b", "c"}, `{"x": 1}`, "")
	if len(items) != 2 {
		t.Fatalf("%+v", items)
	}
	if items[0].ClusterName != "a" || string(items[0].Status.Raw) != `{"x": 1}` || !items[0].Applied {
		t.Errorf("%+v", items[0])
	}
	if items[1].ClusterName != "b" || items[1].Status != nil || !items[1].Applied {
		t.Errorf("%+v", items[1])
	}
}

// TestText checks that equal values have equal texts, whatever the order of their maps.
func TestText(t *testing.T) {
	value := map[string]any{"b": []any{int64(1), nil}, "a": map[string]any{"d": true, "c": "x"}}
	const want = "{\n \"a\": {\n  \"c\": \"x\",\n  \"d\": true\n },\n \"b\": [\n  1,\n  null\n ]\n}"
	if diff := cmp.Diff(want, Text(t, value)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if object := Object(t, ship); !strings.Contains(Text(t, object), `"kind": "Ship"`) {
		t.Errorf("%s", Text(t, object))
	}
}
