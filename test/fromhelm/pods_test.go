package fromhelm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// adopt takes an example over by an Instance shop, and returns the release, the folder of its package, and its pods of before.
func adopt(t testing.TB, e example, more ...string) (r release, dir string, before map[string]string) {
	t.Helper()
	r = installRelease(t, e)
	before = podStarts(t, r.ns)
	dir = writePackage(t, r)
	for _, text := range more {
		file := filepath.Join(dir, "templates", "service-web.yaml")
		content, err := os.ReadFile(file)
		env.Must(t, err)
		env.Must(t, os.WriteFile(file, append(content, text...), 0o644))
	}
	plane.MustKudo(t, 0, "install", dir, "-n", r.ns, "--instance", "shop", "--adopt", "--wait")
	return r, dir, before
}

// replaced waits until none of the pods of before is there.
func replaced(t testing.TB, ns string, before map[string]string) {
	t.Helper()
	env.Eventually(t, "new pods", func() string {
		now := podStarts(t, ns)
		for name := range before {
			if _, there := now[name]; there {
				return name + " is still there"
			}
		}
		return ""
	})
}

// stay checks that the pods of before are there.
func stay(t testing.TB, after, ns string, before map[string]string) {
	t.Helper()
	now := podStarts(t, ns)
	for name, start := range before {
		if now[name] != start {
			t.Errorf("%s has replaced %s", after, name)
		}
	}
}

var _ = It("P27: after a takeover, only a change of the pods replaces them, and gives them kudo's metadata", Label("from-helm"), func() {
	t := GinkgoTB()
	r, dir, before := adopt(t, named("plain"))
	ns := r.ns
	withheld := func() (hash, instance string) {
		d := env.Read(t, cluster, &appsv1.Deployment{}, ns, "web")
		return d.Annotations[v1beta1.WithheldAnnotation], d.Spec.Template.Labels[v1beta1.InstanceLabel]
	}
	if hash, instance := withheld(); hash != "none" || instance != "" {
		t.Errorf("after the takeover: %q, %q", hash, instance)
	}
	if drift := env.Read(t, cluster, &v1beta1.Instance{}, ns, "shop").Status.Drift; len(drift) > 0 {
		t.Errorf("the takeover is drift: %+v", drift)
	}
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", ns, "-p", "REPLICAS=3", "--wait")
	stay(t, "another number of replicas", ns, before)
	file := filepath.Join(dir, "operator.yaml")
	content, err := os.ReadFile(file)
	env.Must(t, err)
	env.Must(t, os.WriteFile(file, []byte(strings.Replace(string(content), "operatorVersion: 1.2.3", "operatorVersion: 1.3.0", 1)), 0o644))
	plane.MustKudo(t, 0, "upgrade", dir, "--instance", "shop", "-n", ns, "--wait")
	stay(t, "another version with the same pods", ns, before)
	if hash, instance := withheld(); hash != "none" || instance != "" {
		t.Errorf("after the upgrade: %q, %q", hash, instance)
	}
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", ns, "-p", "IMAGE=nginx:2", "--wait")
	replaced(t, ns, before)
	if hash, instance := withheld(); hash != "" || instance != "shop" {
		t.Errorf("after another image: %q, %q", hash, instance)
	}
})

var _ = It("P27: a change of the ConfigMap that pods read replaces them", Label("from-helm"), func() {
	t := GinkgoTB()
	r, _, before := adopt(t, named("config"))
	ns := r.ns
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", ns, "-p", "REPLICAS=2", "--wait")
	stay(t, "another number of replicas", ns, before)
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", ns, "-p", "KEY=b", "--wait")
	replaced(t, ns, before)
})

var _ = It("P27: pods that a template selects by kudo's labels get them at once", Label("from-helm"), func() {
	t := GinkgoTB()
	r, _, before := adopt(t, named("plain"), "---\napiVersion: v1\nkind: Service\nmetadata: {name: by-instance}\n"+
		"spec:\n  selector: {kudo.dev/instance: shop}\n  ports: [{port: 80}]\n")
	replaced(t, r.ns, before)
})

var _ = It("P31: a release whose objects are not all taken over is not set aside", Label("from-helm"), func() {
	t := GinkgoTB()
	r, _, _ := adopt(t, named("plain"))
	r.helm(t, "upgrade", "shop", r.chart, "--set", "extra=true", "--force-conflicts")
	env.Contains(t, complete(t, r.ns, 1), fmt.Sprintf("instance %s/shop has not taken over ConfigMap new", r.ns))
	next := gen.HelmRelease(r.ns, "shop", "")
	next.Info.Status, next.Version = "pending-upgrade", 4
	env.Must(t, cluster.Create(t.Context(), gen.HelmSecret(next)))
	env.Contains(t, complete(t, r.ns, 1), "is pending-upgrade")
})

var _ = It("P31: hooks of Helm run with the plans update and cleanup, and not with the takeover", Label("from-helm"), func() {
	t := GinkgoTB()
	r, _, before := adopt(t, named("hooks"))
	job := func() types.UID { return env.Read(t, cluster, &batchv1.Job{}, r.ns, "migrate").UID }
	ofHelm := job()
	complete(t, r.ns, 0)
	plane.MustKudo(t, 0, "plan", "trigger", "--name", "deploy", "--instance", "shop", "-n", r.ns, "--wait")
	if job() != ofHelm {
		t.Error("a run of plan deploy has run a hook")
	}
	ran := completedJobs(t, r.ns)
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", r.ns, "-p", "REPLICAS=2", "--wait")
	stay(t, "another number of replicas", r.ns, before)
	if job() == ofHelm {
		t.Error("an update has not run the hook pre-upgrade")
	}
	plane.MustKudo(t, 0, "uninstall", "--instance", "shop", "-n", r.ns, "--wait")
	env.Eventually(t, "events of the hooks", func() string {
		var names []string
		for uid, name := range completedJobs(t, r.ns) {
			if ran[uid] == "" {
				names = append(names, name)
			}
		}
		if slices.Sort(names); !slices.Equal(names, []string{"drain", "migrate", "prepare"}) {
			return fmt.Sprintf("Jobs %v have run", names)
		}
		return ""
	})
})

// completedJobs returns the names of the Jobs that have completed, by their uids, also of those that were deleted.
func completedJobs(t testing.TB, ns string) map[types.UID]string {
	t.Helper()
	events, out := &corev1.EventList{}, map[types.UID]string{}
	env.Must(t, cluster.List(t.Context(), events, client.InNamespace(ns)))
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "Job" && e.Reason == "Completed" {
			out[e.InvolvedObject.UID] = e.InvolvedObject.Name
		}
	}
	return out
}

var _ = It("P27: another manager withholds alike", Serial, Label("from-helm"), func() {
	t := GinkgoTB()
	if !suite.IsDisposable() {
		t.Skip("the cluster is not the suite's own: its manager cannot be killed")
	}
	r, _, before := adopt(t, named("claims"))
	ns := r.ns
	if out, err := suite.Local("kill", "manager"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := suite.Local("start", "manager"); err != nil {
		t.Fatal(out, err)
	}
	plane.MustKudo(t, 0, "plan", "trigger", "--name", "deploy", "--instance", "shop", "-n", ns, "--wait")
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", ns, "-p", "REPLICAS=3", "--wait")
	stay(t, "another manager", ns, before)
	plane.MustKudo(t, 0, "update", "--instance", "shop", "-n", ns, "-p", "IMAGE=nginx:2", "--wait")
	replacedUIDs(t, ns, before)
})

// replacedUIDs waits until pods of the same names, as those of a StatefulSet, are other ones.
func replacedUIDs(t testing.TB, ns string, before map[string]string) {
	t.Helper()
	env.Eventually(t, "new pods", func() string {
		now := podStarts(t, ns)
		for name, start := range before {
			if now[name] == start || now[name] == "" {
				return name + " is not replaced"
			}
		}
		return ""
	})
}
