// Package faults breaks things while plans run, and checks that nothing is lost.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const job = `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Name }}-{{ .PlanName }}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: job
        image: busybox
        command: [sh, -c, "true"]
`

// The manager is killed many times at random moments: every plan ends, each run is there once, and all objects are as
// the last run wants them.
func TestManagerKilledAtRandom(t *testing.T) {
	e, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	if !e.Own() {
		t.Skip("the cluster is not the test's own: its manager cannot be killed")
	}
	if out, err := e.Local("kill", "manager"); err != nil {
		t.Fatal(out, err)
	}
	c, err := e.Connect()
	must(t, err)
	ctx := context.Background()
	ns, err := c.Namespace(ctx)
	must(t, err)
	mods := []gen.VersionMod{gen.Param("VALUE", "a", ""), gen.Template("job.yaml", job), gen.Apply("job", "job.yaml"),
		gen.Task("clean", "Delete", v1beta1.TaskSpec{Resources: []string{"job.yaml"}})}
	steps := []string{"job", "clean"}
	for i := range 6 {
		name := fmt.Sprintf("s%d", i)
		mods, steps = append(mods, gen.ConfigMaps(name, 5)), append(steps, name)
	}
	ov := gen.Version(ns, "killed", append(mods, gen.Serial("deploy", append(steps, "job", "clean")...))...)
	must(t, c.Create(ctx, ov))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const instances = 6
	for i := range instances {
		must(t, c.Create(ctx, gen.Instance(fmt.Sprintf("i%d", i), ov, nil)))
	}
	killUntil(t, e, c, ns, random, instances, 1)
	check(t, c, ns, instances, 1, "a")
	for i := range instances {
		instance := &v1beta1.Instance{}
		must(t, c.Get(ctx, types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("i%d", i)}, instance))
		patch := client.MergeFrom(instance.DeepCopy())
		instance.Spec.Parameters = map[string]string{"VALUE": "b"}
		must(t, c.Patch(ctx, instance, patch))
	}
	killUntil(t, e, c, ns, random, instances, 2)
	check(t, c, ns, instances, 2, "b")
}

// killUntil starts the manager and kills it a random moment later, again and again, until all plans have ended.
func killUntil(t *testing.T, e *env.Env, c *env.Cluster, ns string, random *rand.Rand, instances int, run int64) {
	t.Helper()
	deadline := time.Now().Add(4 * time.Minute)
	for kills := 0; ; kills++ {
		life := time.Duration(300+random.IntN(900)) * time.Millisecond
		if kills > 40 {
			life = 20 * time.Second // enough of it
		}
		manager := e.Manager("--leader-elect=false", "--webhook-port=0")
		must(t, manager.Start())
		time.Sleep(life)
		must(t, manager.Process.Kill())
		_ = manager.Wait()
		ended := 0
		for i := range instances {
			instance := &v1beta1.Instance{}
			must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("i%d", i)}, instance))
			if env.Ended("deploy", run)(instance) {
				ended++
			}
		}
		if ended == instances {
			t.Logf("run %d: all plans ended after %d kills", run, kills+1)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %d: %d of %d plans ended after %d kills", run, ended, instances, kills+1)
		}
	}
}

func check(t *testing.T, c *env.Cluster, ns string, instances int, run int64, value string) {
	t.Helper()
	ctx := context.Background()
	for i := range instances {
		name := fmt.Sprintf("i%d", i)
		instance := &v1beta1.Instance{}
		must(t, c.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, instance))
		if st := instance.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete || st.Revision != run {
			t.Errorf("%s: run %d is %s: %s", name, st.Revision, st.Status, st.Message)
		}
		revisions := &appsv1.ControllerRevisionList{}
		must(t, c.List(ctx, revisions, client.InNamespace(ns), client.MatchingLabels{v1beta1.InstanceLabel: name}))
		runs := 0
		for _, r := range revisions.Items {
			if r.Revision > 0 {
				runs++
			}
		}
		if int64(runs) != run {
			t.Errorf("%s: %d runs were written down, want %d", name, runs, run)
		}
		for s := range 6 {
			for n := range 5 {
				cm := &corev1.ConfigMap{}
				must(t, c.Get(ctx, types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("%s-s%d-%d", name, s, n)}, cm))
				if cm.Data["key"] != value {
					t.Errorf("ConfigMap %s has %v, want %s", cm.Name, cm.Data, value)
				}
			}
		}
		if len(instance.Status.Resources) != 30 {
			t.Errorf("%s: the inventory has %d objects, want 30 ConfigMaps", name, len(instance.Status.Resources))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
