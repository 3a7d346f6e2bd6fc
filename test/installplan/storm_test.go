package installplan

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// observedWrites is what the manager has written of an OperatorVersion: when, to what, and whether its drift went again.
type observedWrites struct {
	mu   sync.Mutex
	at   []time.Time
	what []string
	back bool
}

// listen notes each change of a list's objects.
func (w *observedWrites) listen(t testing.TB, what string, list client.ObjectList, opts ...client.ListOption) {
	t.Helper()
	env.Must(t, suite.List(ctx, list, opts...))
	raw := client.ListOptions{}
	raw.ApplyOptions(opts)
	raw.Raw = raw.AsListOptions()
	raw.Raw.ResourceVersion = list.GetResourceVersion()
	watching, err := suite.Watch(ctx, list, &raw)
	env.Must(t, err)
	t.Cleanup(watching.Stop)
	go func() {
		for e := range watching.ResultChan() {
			if e.Type != watch.Added && e.Type != watch.Modified {
				continue
			}
			w.mu.Lock()
			w.at, w.what = append(w.at, time.Now()), append(w.what, what)
			if ov, is := e.Object.(*v1beta1.OperatorVersion); is && len(w.at) > 1 && len(ov.Status.Drift) == 0 {
				w.back = true
			}
			w.mu.Unlock()
		}
	}()
}

// flip changes a ConfigMap to and fro, as another client, 50 times a second, and leaves it as the package wants it. It returns the longest time
// between two changes.
func flip(ctx context.Context, key types.NamespacedName) (gap time.Duration, err error) {
	tick := time.NewTicker(time.Second / 50)
	defer tick.Stop()
	last := time.Now()
	for n := 0; ; n++ {
		over := ctx.Err() != nil
		value := fmt.Sprintf("z%d", n) // each time another value: the report must not follow
		if n%2 == 1 || over {
			value = "a"
		}
		cm := &corev1.ConfigMap{ObjectMeta: gen.Meta(key.Namespace, key.Name)}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"`+value+`"}}`))
		if err := suite.Patch(context.Background(), cm, patch, client.FieldOwner("foreign-writer")); err != nil || over {
			return gap, err
		}
		gap, last = max(gap, time.Since(last)), time.Now()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

var _ = It("An object that another client changes to and fro all the time is reported one write at a time, and then no more", SpecPriority(1), Label("storm", "slow"), func() {
	// On a machine that stalls, the object may not change for a moment, and counts as settled.
	for attempts := 5; attempts > 0 && !storm(attempts == 1); attempts-- {
	}
})

// storm has another client change an object to and fro, and compares what is reported. It returns false, and compares nothing, if that client was
// stalled for so long that the object counts as settled, unless it is the last attempt.
func storm(isLast bool) bool {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: " + ns + "}\ndata: {key: a}\n"
	ov := gen.Version(ns, "storm", gen.Template("shared.yaml", text), gen.Apply("all", "shared.yaml"), gen.Serial("install", "all"), gen.InstallPlan("install"))
	complete(t, install(t, ov))
	heard := &observedWrites{}
	heard.listen(t, "event", &corev1.EventList{}, client.InNamespace(ns), client.MatchingFields{"reason": v1beta1.EventObjectMismatch})
	heard.listen(t, "OperatorVersion", &v1beta1.OperatorVersionList{}, client.InNamespace(ns))
	heard.listen(t, "Installation", &v1beta1.InstallationList{}, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", ov.InstallationName())})

	limited, calm := context.WithTimeout(ctx, 50*time.Second)
	defer calm()
	gap, err := flip(limited, types.NamespacedName{Namespace: ns, Name: "shared"})
	env.Must(t, err)
	if gap > time.Second/2 && !isLast {
		uninstall(t, ov)
		return false
	}
	heard.mu.Lock()
	at, what, back := heard.at, heard.what, heard.back
	heard.mu.Unlock()
	if len(at) == 0 || what[0] != "OperatorVersion" || len(at) > 3 || back {
		t.Errorf("written in 50 s: %q (drift taken back: %v), want the drift, and later the inventory and the event", what, back)
	}
	for i := 1; i < len(at); i++ {
		if since := at[i].Sub(at[i-1]); since < 5*time.Second { // they are 15 s apart
			t.Errorf("%s was written %s after %s", what[i], since, what[i-1])
		}
	}
	now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "storm")
	if len(now.Status.Drift) != 1 {
		t.Fatalf("drift %+v", now.Status.Drift)
	}
	env.Contains(t, now.Status.Drift[0].Message, "ConfigMap "+ns+"/shared was changed since it was installed, last by foreign-writer")
	if got := states(t, ov)["ConfigMap"]; got != v1beta1.HoldMismatch {
		t.Errorf("it is %s, want Mismatch", got)
	}
	ended := time.Now()
	env.Eventually(t, "no drift", func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "storm")
		if len(now.Status.Drift) > 0 {
			return now.Status.Drift[0].Message
		}
		return ""
	})
	t.Logf("%s; back to normal after %s", strings.Join(what, ", "), time.Since(ended).Round(time.Second))
	if took := time.Since(ended); took > 2*time.Minute {
		t.Errorf("the drift went %s after the last change", took)
	}
	if got := states(t, ov)["ConfigMap"]; got != v1beta1.HoldCreated {
		t.Errorf("it is %s, want Created", got)
	}
	uninstall(t, ov)
	return true
}
