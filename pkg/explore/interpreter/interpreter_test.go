package interpreter

import (
	"testing"
	"time"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/lua"
)

// TestHub checks C24: only the chains of a hub answer for Instances by the bundled rules.
func TestHub(t *testing.T) {
	host := lua.New(time.Now, lua.DefaultLimits())
	object := exploretest.Object(t, `{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","metadata":{"name":"a","namespace":"b"},`+
		`"spec":{"parameters":{"N":"6"},"placement":{"divide":"N"}}}`)
	for _, hub := range []bool{true, false} {
		all, external, err := New(host, Layers{Hub: hub})
		if err != nil {
			t.Fatal(err)
		}
		for _, chain := range []explore.Chain{all, external} {
			answer, known, err := chain.Explore(t.Context(), explore.Request{Operation: explore.Replica, Object: object})
			if err != nil || known != hub || hub && (answer.Replicas != 6 || answer.Layer != explore.Library) {
				t.Errorf("hub %v: got %+v, known %v, error %v", hub, answer, known, err)
			}
		}
	}
}
