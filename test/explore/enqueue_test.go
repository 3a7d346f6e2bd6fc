package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// witness is a webhook that is asked for the health of all objects in a namespace: once in each reconcile.
type witness struct {
	namespace string

	mu    sync.Mutex
	asked map[string]int
}

func (w *witness) healthy(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Namespace == w.namespace {
		w.asked[r.Kind.Kind+" "+r.Name]++
	}
	return server.Healthy(true, ""), nil
}

// take returns the names of the objects that were asked about since the last call, in order.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for name := range w.asked {
		out = append(out, name)
	}
	clear(w.asked)
	slices.Sort(out)
	return out
}

// reconciles makes a change until it reconciles the wanted Instances, whose objects of the kind then have a status, and no others. The API
// server may tell of the end of a run, which enqueues its Instance, after the end was seen: so a change that reconciles more is made again, with
// another number, which stands for N in the status.
func (w *witness) reconciles(t testing.TB, kind string, wanted []*v1beta1.Instance, what, status string, change func(n int)) {
	t.Helper()
	var names []string
	for _, i := range wanted {
		names = append(names, kind+" "+i.Name)
	}
	n := 0
	env.Eventually(t, fmt.Sprintf("reconciles of %d Instances after %s", len(wanted), what), func() string {
		w.take()
		n++
		change(n)
		for _, i := range wanted {
			env.Eventually(t, "the answer of "+what, func() string { return reflected(t, i, kind, strings.ReplaceAll(status, "N", fmt.Sprint(n))) })
		}
		if got := w.take(); !slices.Equal(got, names) {
			return fmt.Sprintf("%d objects were asked about, the first %v", len(got), got[:min(len(got), 10)])
		}
		return ""
	})
}

var _ = It("A change of explore rules reconciles the Instances with objects of their kind only", Serial, Label("C66"), func() {
	t := GinkgoTB()
	define(t, kind("Urn", "urns"))
	ns := suite.NewNamespace(t)
	w := &witness{namespace: ns, asked: map[string]int{}}
	url, bundle := serveHere(t, server.Operations{
		v1alpha1.ExploreHealthy: w.healthy,
		v1alpha1.ExploreStatus: func(context.Context, *server.Request) (*v1alpha1.ExploreResponse, error) {
			return server.Status(map[string]any{"webhook": true})
		},
	})
	hook := func(name, operation, resource, policy string) string {
		text := strings.ReplaceAll(gadgetHook("["+operation+"]", url, bundle), "gadgets", name)
		return strings.Replace(strings.Replace(text, "resources: ["+name+"]", "resources: ["+resource+"]", 1), "apiGroups: [explore.example.com]",
			`apiGroups: ["", explore.example.com]`, 1) + "  failurePolicy: " + policy + "\n"
	}
	configure(t, strings.Replace(hook("witness", "ExploreHealthy", `urns, configmaps`, "Ignore"), "timeoutSeconds: 1", "timeoutSeconds: 30", 1))
	bare := gen.Version(ns, "bare", gen.Param("VALUE", "1", ""), gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
	env.Must(t, suite.Create(ctx, bare))
	urns := operator(ns, [][2]string{{"urn", "apiVersion: " + group + "\nkind: Urn\nmetadata: {name: {{ .Name }}}\nspec: {}\n"}})
	env.Must(t, suite.Create(ctx, urns))
	var instances, wanted []*v1beta1.Instance
	for n := range 12 {
		ov := bare
		if n%4 == 0 {
			ov = urns
		}
		i := gen.Instance(fmt.Sprintf("i%02d", n), ov, nil)
		env.Must(t, suite.Create(ctx, i))
		if instances = append(instances, i); ov == urns {
			wanted = append(wanted, i)
		}
	}
	for _, i := range instances {
		complete(t, i, 1)
	}
	reconciled := func(what, status string, change func(n int)) {
		t.Helper()
		w.reconciles(t, "Urn", wanted, what, status, change)
	}
	configure(t, config("urns", group, "Urn", "statusLua: return {n = 0}"))
	reconciled("a rule of a Config that is edited", `{"n":N}`, func(n int) {
		merge(t, configOf(t, "urns"), fmt.Sprintf(`{"spec":{"explorations":[{"apiVersion":"%s","kind":"Urn","statusLua":"return {n = %d}"}]}}`, group, n), false)
	})
	env.Must(t, suite.Delete(ctx, configOf(t, "urns")))
	reconciled("a webhook that comes", `{"webhook":true}`, func(n int) {
		if n > 1 {
			env.Must(t, suite.Delete(ctx, parse(t, hook("urns", "ExploreStatus", "urns", "Fail"))[0]))
			for _, i := range wanted {
				env.Eventually(t, "no status without the webhook", func() string {
					if got := reflected(t, i, "Urn", `{"webhook":true}`); got == "" {
						return "it is there"
					}
					return ""
				})
			}
			w.take()
		}
		configure(t, hook("urns", "ExploreStatus", "urns", "Fail"))
	})
})
