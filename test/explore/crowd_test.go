package explore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// crowd is the number of Instances. Three of them have an object of the kind whose rules change.
const crowd = 1000

// slowHook is a webhook for the statuses of Pans, which does not answer while it is stuck.
type slowHook struct{ stuck atomic.Bool }

func (s *slowHook) status(c context.Context, _ *server.Request) (*v1alpha1.ExploreResponse, error) {
	if s.stuck.Load() {
		<-c.Done()
	}
	return server.Status(map[string]any{"n": 0})
}

var _ = It("Of a thousand Instances, a rule for the kind of three reconciles these three, and so does a webhook that stops and starts answering",
	Serial, Label("C66", "crowd"), func() {
		t := GinkgoTB()
		define(t, kind("Pan", "pans"))
		ns := suite.NewNamespace(t)
		w, slow := &witness{namespace: ns, asked: map[string]int{}}, &slowHook{}
		url, bundle := serveHere(t, server.Operations{v1alpha1.ExploreHealthy: w.healthy, v1alpha1.ExploreStatus: slow.status})
		hook := func(name, operation, resources string, seconds int) string {
			text := strings.ReplaceAll(gadgetHook("["+operation+"]", url, bundle), "gadgets", name)
			return strings.NewReplacer("resources: ["+name+"]", "resources: ["+resources+"]", "apiGroups: [explore.example.com]",
				`apiGroups: ["", explore.example.com]`, "timeoutSeconds: 1\n", fmt.Sprintf("timeoutSeconds: %d\n", seconds)).Replace(text)
		}
		configure(t, hook("witness", "ExploreHealthy", "pans, configmaps", 30))
		bare := gen.Version(ns, "bare", gen.Param("VALUE", "1", ""), gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
		pans := operator(ns, [][2]string{{"pan", "apiVersion: " + group + "\nkind: Pan\nmetadata: {name: {{ .Name }}}\nspec: {}\n"}})
		env.Must(t, suite.Create(ctx, bare))
		env.Must(t, suite.Create(ctx, pans))
		var wanted []*v1beta1.Instance
		var creations errgroup.Group
		creations.SetLimit(8)
		for n := range crowd {
			i := gen.Instance(fmt.Sprintf("i%04d", n), bare, nil)
			if n%(crowd/3+1) == 0 {
				i = gen.Instance(i.Name, pans, nil)
				wanted = append(wanted, i)
			}
			creations.Go(func() error { return suite.Create(ctx, i) })
		}
		env.Must(t, creations.Wait())
		env.Within(t, 10*time.Minute, "the end of all plans", func() string { // a busy machine takes minutes
			list, complete := &v1beta1.InstanceList{}, 0
			env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
			for _, i := range list.Items {
				if i.Status.PlanStatus[v1beta1.DeployPlan].Status == v1beta1.Complete {
					complete++
				}
			}
			if complete < crowd {
				return fmt.Sprintf("%d of %d are complete", complete, crowd)
			}
			return ""
		})

		configure(t, config("pans", group, "Pan", "statusLua: return {n = 0}"))
		w.reconciles(t, "Pan", wanted, "a rule of a Config that is edited", `{"n":N}`, func(n int) {
			merge(t, configOf(t, "pans"), fmt.Sprintf(`{"spec":{"explorations":[{"apiVersion":"%s","kind":"Pan","statusLua":"return {n = %d}"}]}}`, group, n), false)
		})
		env.Must(t, suite.Delete(ctx, configOf(t, "pans")))

		// A breaker, which no edit accompanies.
		text := hook("pans", "ExploreStatus", "pans", 1)
		configure(t, text)
		for _, i := range wanted {
			env.Eventually(t, "the status by the webhook", func() string { return reflected(t, i, "Pan", `{"n":0}`) })
		}
		w.take()
		slow.stuck.Store(true)
		n := 0
		env.Eventually(t, "a webhook that is not asked for a while", func() string {
			for _, i := range wanted { // each change of an object is a question
				n++
				merge(t, live(t, group, "Pan", ns, i.Name), fmt.Sprintf(`{"status":{"n":%d}}`, n), true)
			}
			c := live(t, "config.kudo.dev/v1alpha1", "ResourceExploringWebhookConfiguration", "", "pans")
			if conditions := field(c, "status.conditions"); !all(conditions, []string{"status:False"}) {
				return conditions
			}
			return ""
		})
		slow.stuck.Store(false)
		ready(t, parse(t, text)[0], "True") // after a pause of 30 s
		for _, i := range wanted {
			env.Eventually(t, "a status that is known again", func() string {
				for _, r := range env.Read(t, suite, &v1beta1.Instance{}, ns, i.Name).Status.Resources {
					if r.StatusUnknown {
						return "it is not known"
					}
				}
				return ""
			})
		}
		for _, name := range w.take() {
			if !strings.HasPrefix(name, "Pan ") {
				t.Errorf("%s was asked about, which has nothing to do with the webhook", name)
			}
		}
	})
