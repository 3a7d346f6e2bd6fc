package lua

import (
	"fmt"
	"testing"

	glua "github.com/yuin/gopher-lua"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

const retain = `function Retain(desiredObj, runtimeObj)
  desiredObj.spec.replicas = runtimeObj.spec.replicas
  return desiredObj
end`

// BenchmarkRetain is a small Retain, with its check for being a fixed point. It shall take at most 50 µs and 300
// allocations.
func BenchmarkRetain(b *testing.B) {
	s, err := Compile(explore.Retaining, retain)
	if err != nil {
		b.Fatal(err)
	}
	h := host()
	r := explore.Request{Operation: explore.Retaining, Object: exploretest.Object(b, deployment), Observed: exploretest.Object(b, observed)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Run(b.Context(), s, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRetainByHand is the same function, called once without limits and checks, on one virtual machine, with
// whole objects as tables. BenchmarkRetain shall take at most 1.3 times as long.
func BenchmarkRetainByHand(b *testing.B) {
	state := glua.NewState()
	defer state.Close()
	if err := state.DoString(retain); err != nil {
		b.Fatal(err)
	}
	function := state.GetGlobal("Retain")
	desired, live := exploretest.Object(b, deployment).Object, exploretest.Object(b, observed).Object
	b.ReportAllocs()
	for b.Loop() {
		if err := state.CallByParam(glua.P{Fn: function, NRet: 1, Protect: true}, exploretest.ToLua(state, desired), exploretest.ToLua(state, live)); err != nil {
			b.Fatal(err)
		}
		if made, ok := exploretest.FromLua(state.Get(-1)).(map[string]any); !ok || made["kind"] != "Deployment" {
			b.Fatal(made)
		}
		state.Pop(1)
	}
}

// BenchmarkEmptyMaps passes 1,000 empty maps through a script that looks at each. It shall take at most 5 ms.
func BenchmarkEmptyMaps(b *testing.B) {
	object := exploretest.Object(b, deployment)
	maps := map[string]any{}
	for i := range 1000 {
		maps[fmt.Sprintf("k%03d", i)] = map[string]any{}
	}
	object.Object["spec"] = maps
	s, err := Compile(explore.Packing, "for k, v in pairs(desiredObj.spec) do if next(v) then error('x') end end return desiredObj")
	if err != nil {
		b.Fatal(err)
	}
	h := host()
	b.ReportAllocs()
	for b.Loop() {
		a, err := h.Run(b.Context(), s, explore.Request{Operation: explore.Packing, Object: object})
		if err != nil || len(a.Object.Object["spec"].(map[string]any)) != 1000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(explore.Retaining, retain); err != nil {
			b.Fatal(err)
		}
	}
}
