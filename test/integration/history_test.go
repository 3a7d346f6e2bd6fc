package integration

import (
	"encoding/base64"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// records lists the ControllerRevisions of an Instance, each with a "+" if it holds an OperatorVersion.
func records(t testing.TB, ns, name string) []string {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	env.Must(t, cluster.List(t.Context(), list, client.InNamespace(ns), client.MatchingLabels{v1beta1.InstanceLabel: name}))
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var out []string
	for _, object := range list.Items {
		mark := ""
		if strings.Contains(string(object.Data.Raw), `"spec":`) {
			mark = "+"
		}
		out = append(out, object.Name+mark)
	}
	return out
}

// small is a package whose cleanup plan fails at once, so that one sees that it ran.
func small(ns, name string) *v1beta1.OperatorVersion {
	return gen.Version(ns, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Task("fail", "Dummy", v1beta1.TaskSpec{WantErr: true, Fatal: true}),
		gen.Serial("deploy", "cm"), gen.Serial("cleanup", "fail"))
}

// change sets a parameter to the number of the run that this starts, up to a run.
func change(t testing.TB, ns string, from, to int64) {
	t.Helper()
	for n := from; n <= to; n++ {
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": strconv.FormatInt(n, 10)} }))
		status(t, await(t, ns, "i", env.PlanEnded("deploy", n)), "deploy", v1beta1.Complete)
	}
}

// names are the ControllerRevisions of runs that hold nothing but themselves.
func names(from, to int64) []string {
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, history.Name("i", n))
	}
	return out
}

var _ = It("The first run of an OperatorVersion records it for those that follow, and it is deleted when the last run of its version is", Label("held-version"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := small(ns, "one")
	deploy(t, ov, "i", nil)
	is := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, records(t, ns, "i")); diff != "" {
			t.Errorf("the runs of the Instance: %s", diff)
		}
	}
	is("i-1+")
	change(t, ns, 2, 12)
	is(append([]string{"i-1+"}, names(3, 12)...)...)
	out := kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 11 || !strings.HasPrefix(lines[1], "3 ") {
		t.Errorf("the history has other runs than the last ten:\n%s", out)
	}
	contains(t, kudo(t, 1, "rollback", "--instance", "i", "-n", ns, "--to-revision", "1"), "no run 1 any more")

	two := small(ns, "two")
	env.Must(t, cluster.Create(t.Context(), two))
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = two.Name }))
	await(t, ns, "i", env.PlanEnded("deploy", 13))
	is(slices.Concat([]string{"i-1+"}, names(4, 12), []string{"i-13+"})...)
	kudo(t, 0, "rollback", "--instance", "i", "-n", ns, "--to-revision", "12", "--wait")
	is(slices.Concat([]string{"i-1+"}, names(5, 12), []string{"i-13+", "i-14+"})...)
	change(t, ns, 15, 21)
	is(slices.Concat([]string{"i-1+", "i-12", "i-13+", "i-14+"}, names(15, 21))...)
	change(t, ns, 22, 22)
	is(slices.Concat([]string{"i-13+", "i-14+"}, names(15, 22))...)
	change(t, ns, 23, 25)
	is(slices.Concat([]string{"i-14+"}, names(16, 25))...)

	t.Log("the version of the newest run is known after the OperatorVersion is deleted")
	env.Must(t, cluster.Delete(t.Context(), ov))
	env.Must(t, cluster.Delete(t.Context(), get(t, &v1beta1.Instance{}, ns, "i")))
	status(t, await(t, ns, "i", env.PlanEnded("cleanup", 26)), "cleanup", v1beta1.FatalError)
	is(slices.Concat([]string{"i-14+"}, names(17, 26))...)
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return i == nil })
})

var _ = It("A ControllerRevision that kudo did not make has the name of the cleanup plan's record: the Instance stays and says so, until that is deleted. One that never ran anything has nothing to clean up", Label("cleanup-name-taken"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	foreign := func(name string) *appsv1.ControllerRevision {
		r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta(ns, name), Revision: 1, Data: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}
		env.Must(t, cluster.Create(t.Context(), r))
		return r
	}
	ov := small(ns, "one")
	ran, theirs := deploy(t, ov, "i", nil), foreign("i-2")
	env.Must(t, cluster.Delete(t.Context(), ran))
	message := "plan cleanup cannot be started: ControllerRevision " + ns + "/i-2 exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. " +
		"Delete it, or remove the finalizer kudo.dev.instance.cleanup, which leaves what the plan would clean up"
	await(t, ns, "i", unready(v1beta1.ReasonRecordNameTaken, message))
	hasEvent(t, ns, "RecordNameTaken: "+message)
	contains(t, kudo(t, 4, "uninstall", "--instance", "i", "-n", ns, "--wait", "--wait-time", "1s"), message)
	if now := get(t, &appsv1.ControllerRevision{}, ns, "i-2"); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the ControllerRevision was changed: %+v", now)
	}
	env.Must(t, cluster.Delete(t.Context(), theirs))
	status(t, await(t, ns, "i", env.PlanEnded("cleanup", 2)), "cleanup", v1beta1.FatalError)
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	await(t, ns, "i", gone)

	foreign("never-1")
	env.Must(t, cluster.Create(t.Context(), gen.Instance("never", ov, nil)))
	taken := unready(v1beta1.ReasonRecordNameTaken, "ControllerRevision "+ns+"/never-1 exists and is no record of kudo", "Delete it, or give the Instance another name")
	never := await(t, ns, "never", taken)
	env.Must(t, cluster.Delete(t.Context(), never))
	await(t, ns, "never", gone)

	theirs = foreign("later-1")
	env.Must(t, cluster.Create(t.Context(), gen.Instance("later", ov, nil)))
	await(t, ns, "later", unready(v1beta1.ReasonRecordNameTaken, "ControllerRevision "+ns+"/later-1 exists"))
	contains(t, kudo(t, 3, "plan", "wait", "--instance", "later", "-n", ns), "later-1 exists and is no record of kudo")
	env.Must(t, cluster.Delete(t.Context(), theirs))
	status(t, await(t, ns, "later", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
})

var _ = It("After a crash during the first run, an OperatorVersion that was changed before the manager came back is the one that the run records", Label("left-over-version"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov, before := small(ns, "one"), gen.Version(ns, "one", gen.Serial("deploy"))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
	i := await(t, ns, "i", notReady(v1beta1.ReasonOperatorVersionNotFound))
	spec, err := history.Pack(&before.Spec)
	env.Must(t, err)
	store := history.New(cluster, cluster, history.NewKeys(cluster, "kudo-system"))
	env.Must(t, store.RecordStart(t.Context(), i, 1, history.Run{
		Plan: "deploy", Cause: "instance created", UID: history.RunUID(i.UID, 1), OperatorVersion: ns + "/one", Snapshot: "i-1", Spec: spec,
	}))
	env.Must(t, cluster.Create(t.Context(), ov))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
	kept, err := store.ReadVersion(t.Context(), i, "i-1")
	env.Must(t, err)
	if diff := cmp.Diff(ov.Spec, *kept); diff != "" {
		t.Errorf("the run holds another version than it ran: %s", diff)
	}
})

var _ = It("Parameters and version that together are more than an object may hold are refused, until they are less", Label("run-over-the-limit"), func() {
	t := GinkgoTB()
	ns, noise := cluster.NewNamespace(t), make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	text := base64.StdEncoding.EncodeToString(noise) // it can be compressed to no less than the noise
	ov := small(ns, "one")
	ov.Spec.Templates["noise.yaml"] = "# " + text[:1_200_000]
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, map[string]string{"VALUE": text[:600_000]})))
	i := await(t, ns, "i", notReady(v1beta1.ReasonInvalidSpec))
	contains(t, i.Status.Conditions[0].Message, "run 1", "with its parameters and its OperatorVersion", "too large")
	if i.Status.Baseline != nil {
		t.Errorf("what was not started was taken for answered: %+v", i.Status.Baseline)
	}
	change(t, ns, 1, 1)
})
