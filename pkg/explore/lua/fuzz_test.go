package lua

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// FuzzScript compiles and runs scripts.
func FuzzScript(f *testing.F) {
	for _, seed := range []string{
		retain, "return observedObj", "function ReflectStatus(o) return o.spec end", "local t = {} t[1], t.x = 2, 3 return {t}", "return {a = 'x' .. 1 .. {}}",
		"for k, v in pairs(observedObj) do k = v end return {}", "return {('x'):gsub('(x)', '%1%1')}", "goto a ::a:: return {}", "return {...}", "local a <const> = 1",
	} {
		f.Add(seed)
	}
	h := New(noon, sandbox.Limits{Instructions: 20_000, Time: 2 * time.Second, Memory: 4 << 20, Output: 1 << 16, Depth: 20})
	object := exploretest.Object(f, deployment)
	before := exploretest.Object(f, deployment)
	f.Fuzz(func(t *testing.T, source string) {
		for _, operation := range []explore.Operation{explore.Status, explore.Packing} {
			s, err := Compile(operation, source)
			if err != nil {
				continue
			}
			_, _ = h.Run(t.Context(), s, explore.Request{Operation: operation, Object: object})
			if !cmp.Equal(object.Object, before.Object) {
				t.Fatal("the script changed the caller's object")
			}
		}
	})
}
