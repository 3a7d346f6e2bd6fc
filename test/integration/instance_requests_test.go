package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const fourObjects = `apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Name }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Name }}"}
spec: {selector: {app: "{{ .Name }}"}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: 0
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: main, image: nginx}]}
`

// countRequests returns the requests that the API server has served.
func countRequests() env.Requests {
	GinkgoHelper()
	sent, err := cluster.Requests(context.Background())
	env.Must(GinkgoTB(), err)
	return sent
}

// awaitQuiet waits until the namespaces of earlier specs have gone: their end costs requests, too. After hundreds of them, it takes minutes.
func awaitQuiet() {
	GinkgoHelper()
	env.Within(GinkgoTB(), 5*time.Minute, "no namespace is being deleted", func() string {
		list := &corev1.NamespaceList{}
		env.Must(GinkgoTB(), cluster.List(context.Background(), list))
		for _, ns := range list.Items {
			if ns.DeletionTimestamp != nil {
				return ns.Name
			}
		}
		return ""
	})
}

var _ = It("An Instance of four objects costs the manager ten requests", Serial, Label("requests-of-an-instance"), func() {
	t := GinkgoTB()
	awaitQuiet()
	ns, ctx := cluster.NewNamespace(t), context.Background()
	ov := gen.Version(ns, "four", gen.Template("four.yaml", fourObjects), gen.Apply("all", "four.yaml"), gen.Serial("deploy", "all"))
	// cost returns the requests that the manager makes for an Instance: no other client asks for these kinds in this way.
	n := 0
	cost := func() (total int, sent env.Requests) {
		n++
		before, name := countRequests(), fmt.Sprintf("i%d", n)
		env.Must(t, cluster.Create(ctx, gen.Instance(name, ov, nil)))
		await(t, ns, name, env.PlanEnded(v1beta1.DeployPlan, 1))
		env.Eventually(t, "the events of the run", func() string {
			if sent = countRequests().Since(before); sent["POST events"]+sent["PATCH events"] < 3 {
				return fmt.Sprint(sent)
			}
			return ""
		})
		for _, kind := range []string{"serviceaccounts", "configmaps", "services", "deployments"} {
			total += sent["GET "+kind] + sent["LIST "+kind] + sent["APPLY "+kind] + sent["PATCH "+kind]
		}
		return total + sent["PATCH instances"] + sent["POST controllerrevisions"] + sent["POST events"] + sent["PATCH events"], sent
	}
	deploy(t, ov, "warm", nil)
	const most = 4 + 1 + 2 + 3 // its objects, the record of its run, its status before the first write and at the end, the events of the run
	for range 3 {              // until the names of the kinds are known
		cost()
	}
	least, best := 0, env.Requests{}
	for range 5 { // on a busy machine, the Deployment of one may not be seen in time
		if total, sent := cost(); least == 0 || total < least {
			least, best = total, sent
		}
	}
	if least > most {
		t.Errorf("%d requests for an Instance, and not %d: %v", least, most, best)
	}
})

var _ = It("No request reads the ancestors of an Instance", Serial, Label("requests-of-an-instance"), func() {
	t := GinkgoTB()
	awaitQuiet()
	ns, ctx := cluster.NewNamespace(t), context.Background()
	env.Must(t, cluster.Create(ctx, gen.Version(ns, "g0-0.1.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))))
	var first *v1beta1.OperatorVersion
	for n := range 4 {
		first = gen.Version(ns, fmt.Sprintf("g%d-0.1.0", n+1), gen.Serial("deploy", "child"), gen.Task("child", v1beta1.KudoOperatorTask,
			v1beta1.TaskSpec{Package: fmt.Sprintf("g%d", n), OperatorVersion: "0.1.0"}))
		env.Must(t, cluster.Create(ctx, first))
	}
	before := countRequests()
	env.Must(t, cluster.Create(ctx, gen.Instance("i", first, nil)))
	await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
	if sent := countRequests().Since(before); sent["GET instances"] > 4 { // the test reads, too
		t.Errorf("%d requests read Instances: %v", sent["GET instances"], sent)
	}
})

var _ = It("Steps whose objects are ready at once cost a request for each object, and no commit between", Serial, Label("requests-of-an-instance"), func() {
	t := GinkgoTB()
	awaitQuiet()
	ns, ctx := cluster.NewNamespace(t), context.Background()
	const steps = 40
	tasks, templates := []string(nil), []gen.VersionMod{gen.Param("VALUE", "a", "")}
	for n := range steps {
		name := fmt.Sprintf("t%d", n)
		tasks, templates = append(tasks, name), append(templates, gen.ConfigMaps(name, 1))
	}
	ov := gen.Version(ns, "steps", append(templates, gen.Serial("deploy", tasks...))...)
	deploy(t, ov, "warm", nil)
	before := countRequests()
	env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
	i := await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
	sent := countRequests().Since(before)
	if sent["APPLY configmaps"] != steps || sent["PATCH instances"] > 4 { // slow machines, on which a step waits for what the mirror shows, have one more
		t.Errorf("the requests are %v", sent)
	}
	status(t, i, v1beta1.DeployPlan, v1beta1.Complete)
	if len(i.Status.Resources) != steps {
		t.Errorf("the inventory has %d objects", len(i.Status.Resources))
	}
})
