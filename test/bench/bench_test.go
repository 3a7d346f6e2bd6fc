// Package bench measures kudo on a real control plane. Requests are counted at the apiserver.
package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// start brings up a control plane without Deployment controllers, so that hardly anybody but kudo sends requests.
func start(b *testing.B) (*env.Env, *env.Cluster) {
	b.Helper()
	e, err := env.Start("--profile", "api")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Stop)
	c, err := e.Connect()
	if err != nil {
		b.Fatal(err)
	}
	return e, c
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func namespace(b *testing.B, c *env.Cluster) string {
	b.Helper()
	ns, err := c.Namespace(context.Background())
	must(b, err)
	for _, own := range []client.Object{&corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "default")}, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "kube-root-ca.crt")}} {
		env.Eventually(b, own.GetName()+", which each namespace has", env.Condition(func() bool {
			return c.Get(context.Background(), client.ObjectKeyFromObject(own), own) == nil
		}))
	}
	return ns
}

func requests(b *testing.B, c *env.Cluster) env.Requests {
	b.Helper()
	r, err := c.Requests(context.Background())
	must(b, err)
	return r
}

// runEvents is how many events the run of a deploy plan has.
const runEvents = 3

// withEvents returns the requests since earlier ones once those of the events of a run are among them, which are sent after the fact.
func withEvents(b *testing.B, c *env.Cluster, earlier env.Requests) (since env.Requests) {
	b.Helper()
	env.Eventually(b, "all events of the run", func() string {
		since = requests(b, c).Since(earlier)
		if n := since["POST events"] + since["PATCH events"]; n < runEvents {
			return fmt.Sprintf("there are %d of %d", n, runEvents)
		}
		return ""
	})
	return since
}

// pass lets time pass, in which the cluster is left alone: what it is asked for in that time is measured.
func pass(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
	}
}

// install creates an Instance and waits for its deploy plan; it returns how long that took.
func install(b *testing.B, c *env.Cluster, ov *v1beta1.OperatorVersion, name string) time.Duration {
	b.Helper()
	ctx := context.Background()
	began := time.Now()
	must(b, c.Create(ctx, gen.Instance(name, ov, nil)))
	i, err := c.Await(ctx, ov.Namespace, name, time.Minute, env.PlanEnded(v1beta1.DeployPlan, 1))
	must(b, err)
	took := time.Since(began)
	if st := i.Status.PlanStatus[v1beta1.DeployPlan]; st.Status != v1beta1.Complete {
		b.Fatalf("deploy ended with %s: %s", st.Status, st.Message)
	}
	return took
}

// BenchmarkInstall: N objects cost at most N + 10 requests, and 1,000 take under 2.5 s; the same again costs none for an
// object, and one changed of all costs one write.
func BenchmarkInstall(b *testing.B) {
	_, c := start(b)
	ctx := context.Background()
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ov := gen.Version(namespace(b, c), fmt.Sprintf("install-%d", n), gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", n), gen.Serial("deploy", "cm"))
			must(b, c.Create(ctx, ov))
			var first, again env.Requests
			var took, repeat time.Duration
			for i := range b.N {
				name := fmt.Sprintf("i%d", i)
				before := requests(b, c)
				took = install(b, c, ov, name)
				first = withEvents(b, c, before)
				before = requests(b, c)
				repeat = trigger(b, c, ov.Namespace, name)
				again = withEvents(b, c, before)
			}
			// the benchmark's own: POST and LIST, WATCH of the instance; PATCH to trigger
			b.ReportMetric(float64(took.Milliseconds()), "ms/install")
			b.ReportMetric(float64(first.Writes()-1), "writes")
			b.ReportMetric(float64(first.Total()-first.Of("instances"))+float64(first["PATCH instances"]), "requests")
			b.ReportMetric(float64(again.Of("configmaps")), "again-object-requests")
			b.ReportMetric(float64(repeat.Milliseconds()), "ms/again")
			b.Logf("%d objects: %v\nagain: %v", n, first, again)
		})
	}
}

// trigger runs deploy again, and waits for it.
func trigger(b *testing.B, c *env.Cluster, namespace, name string) time.Duration {
	b.Helper()
	ctx := context.Background()
	i := &v1beta1.Instance{}
	must(b, c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, i))
	patch := client.MergeFrom(i.DeepCopy())
	i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: v1beta1.DeployPlan, UID: types.UID(fmt.Sprint(time.Now().UnixNano()))}
	began := time.Now()
	must(b, c.Patch(ctx, i, patch))
	_, err := c.Await(ctx, namespace, name, time.Minute, env.PlanEnded(v1beta1.DeployPlan, 2))
	must(b, err)
	return time.Since(began)
}

// BenchmarkSerialChain: five serial steps of one ConfigMap each complete in under 250 ms.
func BenchmarkSerialChain(b *testing.B) {
	_, c := start(b)
	tasks := []string{"a", "b", "c", "d", "e"}
	mods := []gen.VersionMod{gen.Param("VALUE", "a", ""), gen.Serial("deploy", tasks...)}
	for _, t := range tasks {
		mods = append(mods, gen.ConfigMaps(t, 1))
	}
	ov := gen.Version(namespace(b, c), "chain", mods...)
	must(b, c.Create(context.Background(), ov))
	install(b, c, ov, "warm")
	const rounds = 10
	var sum, best time.Duration
	for i := range b.N * rounds {
		took := install(b, c, ov, fmt.Sprintf("i%d", i))
		if sum += took; best == 0 || took < best {
			best = took
		}
	}
	b.ReportMetric(float64(sum.Milliseconds())/float64(b.N*rounds), "ms/mean")
	b.ReportMetric(float64(best.Milliseconds()), "ms/best")
}

// BenchmarkIdle: a manager with 100 Instances makes no request in a minute beyond its lease and watches. What others ask
// for in a minute is measured with the manager stopped, and taken off.
func BenchmarkIdle(b *testing.B) {
	e, c := start(b)
	if !e.IsDisposable() {
		b.Skip("the cluster is not the benchmark's own: its manager cannot be stopped")
	}
	ov := gen.Version(namespace(b, c), "idle", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 4), gen.Serial("deploy", "cm"))
	must(b, c.Create(context.Background(), ov))
	for i := range 100 {
		install(b, c, ov, fmt.Sprintf("i%d", i))
	}
	// The garbage collector learns of kudo's kinds within a minute of their life, and asks for each owner once then.
	pass(b, 75*time.Second)
	minute := func() env.Requests {
		before := requests(b, c)
		pass(b, time.Minute)
		return requests(b, c).Since(before)
	}
	with := minute()
	if out, err := e.Local("kill", "manager"); err != nil {
		b.Fatal(out, err)
	}
	without := minute()
	b.ReportMetric(float64(with.Total()-without.Total()), "requests/min")
	b.Logf("with the manager: %v\nwithout: %v", with, without)
}
