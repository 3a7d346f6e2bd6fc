package placement

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// onServer starts an API server with Instances, which the commands of the test connect to.
func onServer(t *testing.T, instances ...*v1beta1.Instance) *apitest.Server {
	t.Helper()
	server := apitest.Start(t)
	for _, i := range instances {
		server.Put(i)
	}
	t.Setenv("KUBECONFIG", server.Kubeconfig(t, "lab"))
	t.Setenv("KUDO_HOME", t.TempDir())
	return server
}

// book returns an Instance of a hub with a member that is ready, and one that is lost.
func book() *v1beta1.Instance {
	i := gen.Instance("book", gen.Version("lab", "guestbook-1"), map[string]string{"REPLICAS": "6"})
	i.Generation = 7
	since := &metav1.Time{Time: time.Now().Add(-41 * time.Second)}
	four, two := int64(4), int64(2)
	i.Spec.Placement = &v1beta1.Placement{Divide: "REPLICAS", Clusters: []v1beta1.PlacedCluster{{Name: "m1", Weight: 2},
		{Name: "m2", Parameters: map[string]string{"REGION": "eu-2"}}}, Waves: &v1beta1.Waves{Groups: [][]string{{"m1"}, {"m2"}}}}
	i.Status.Members = []v1beta1.MemberStatus{
		{Cluster: "m1", State: v1beta1.MemberReady, Since: since, Plan: "deploy", PlanStatus: v1beta1.Complete, OperatorVersion: "guestbook-1", Replicas: &four},
		{Cluster: "m2", State: v1beta1.MemberLost, Since: since, Plan: "deploy", PlanStatus: v1beta1.Complete, OperatorVersion: "guestbook-1", Replicas: &two,
			Message: "cluster is not reachable\nreported generation 6 of 7"},
	}
	i.Status.Wave = &v1beta1.WaveStatus{Generation: i.Generation, Index: 2, Of: 2, State: v1beta1.WaveStopped, Since: since, Failed: []string{"m2"}}
	i.Status.ObservedGeneration = i.Generation
	i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaveStopped,
		Message: "wave 2 of 2 is stopped, since m2 failed", ObservedGeneration: i.Generation, LastTransitionTime: *since}}
	return i
}

// TestShow checks the table of clusters, and the lines below it.
func TestShow(t *testing.T) {
	onServer(t, book())
	out, _ := commandtest.Expect(t, New, 0, "", "placement", "show", "book")
	want := []string{
		"CLUSTER   STATE   REPLICAS   PLAN     STATUS     OPERATOR-VERSION   SINCE   MESSAGE",
		"m1        Ready   4          deploy   COMPLETE   guestbook-1        41s",
		"m2        Lost    2          deploy   unknown    guestbook-1        41s     cluster is not reachable reported generation 6 of 7",
		"Wave 2 of 2: Stopped for 41s, failed: m2",
		"Ready: False (WaveStopped): wave 2 of 2 is stopped, since m2 failed",
	}
	seconds := strings.NewReplacer("42s", "41s", "43s", "41s", "44s", "41s")
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(seconds.Replace(out)), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out, _ = commandtest.Expect(t, New, 0, "", "placement", "show", "--instance", "book", "-o", "wide")
	for _, want := range []string{"CLUSTER   WAVE   WEIGHT   VALUES   STATE", "m1        1      2                 Ready", "m2        2      1        REGION   Lost"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestShowForPrograms checks what programs read, also before the hub has reported anything.
func TestShowForPrograms(t *testing.T) {
	fresh := book()
	fresh.Name, fresh.Status = "fresh", v1beta1.InstanceStatus{}
	onServer(t, book(), fresh)
	for name, want := range map[string]string{"book": "Lost 2 Stopped False", "fresh": "Unknown 0  "} {
		out, _ := commandtest.Expect(t, New, 0, "", "placement", "show", name, "-o", "json")
		var got placed
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Members == nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		wave, ready := v1beta1.WaveState(""), ""
		if got.Wave != nil {
			wave, ready = got.Wave.State, got.Ready.Status
		}
		if text := strings.Join([]string{got.State, string(rune('0' + len(got.Members))), string(wave), ready}, " "); text != want {
			t.Errorf("%s: %q, want %q", name, text, want)
		}
	}
	out, _ := commandtest.Expect(t, New, 0, "", "placement", "show", "fresh")
	for _, want := range []string{"m1        Unknown\n", "The hub has acted upon generation 0 of 7.", "Ready: Unknown, the hub has not reported anything yet"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestEdits checks what the commands write, and what they refuse.
func TestEdits(t *testing.T) {
	left, copied, plain := book(), book(), book()
	left.Name, copied.Name, plain.Name = "left", "copied", "plain"
	left.Status = v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}}}
	copied.Annotations = map[string]string{v1beta1.KarmadaUIDAnnotation: "u", v1beta1.KarmadaGenerationAnnotation: "7"}
	plain.Spec.Placement = nil
	server := onServer(t, book(), left, copied, plain)
	for _, tc := range []struct {
		line string
		code int
		want string
	}{
		{"resume book", 0, "instance lab/book resumed: wave 2 of 2 goes on"},
		{"pause book", 0, "instance lab/book paused: no further wave begins"},
		{"pause book", command.ExitError, "paused already"},
		{"pause copied", command.ExitError, "run the command on the hub"},
		{"show copied", command.ExitError, "run the command on the hub"},
		{"show plain", command.ExitError, "has no spec.placement: it runs in this cluster"},
		{"show none", command.ExitError, "instance lab/none does not exist"},
		{"free copied", command.ExitError, "a hub manages instance lab/copied"},
		{"free book", command.ExitError, "is placed on clusters from here"},
		{"free left", 0, "instance lab/left freed: no hub manages it any more"},
		{"free left", command.ExitError, "it is free already"},
		{"free", command.ExitUsage, "--instance is missing"},
		{"show book -o name", command.ExitUsage, `invalid output format "name": use yaml, json or wide`},
		{"shw", command.ExitUsage, "did you mean show"},
	} {
		out, errs := commandtest.Expect(t, New, tc.code, "", append([]string{"placement"}, strings.Fields(tc.line)...)...)
		if !strings.Contains(out+errs, tc.want) {
			t.Errorf("%s: no %q in\n%s%s", tc.line, tc.want, out, errs)
		}
	}
	got := book()
	server.Read(got)
	if !got.Spec.Placement.Waves.Paused || got.Annotations[v1beta1.ResumeAnnotation] == "" {
		t.Errorf("the rollout of book is %+v, its annotations are %v", got.Spec.Placement.Waves, got.Annotations)
	}
	server.Read(left)
	if left.Spec.Placement != nil {
		t.Error("the Instance that was left is still placed")
	}
}

// TestFreeWarns checks that the user learns of a change that the hub had not released.
func TestFreeWarns(t *testing.T) {
	left := book()
	left.Status = v1beta1.InstanceStatus{ObservedGeneration: left.Generation - 1, PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {}}}
	onServer(t, left)
	_, errs := commandtest.Expect(t, New, 0, "", "placement", "free", "book")
	if !strings.Contains(errs, "may have a change that the hub had not released") {
		t.Errorf("no warning: %s", errs)
	}
}

// TestForget checks C47: the command writes which cluster is given up, and refuses one that is placed.
func TestForget(t *testing.T) {
	leaving := book()
	leaving.Spec.Placement = &v1beta1.Placement{Clusters: leaving.Spec.Placement.Clusters[:1]}
	server := onServer(t, leaving)
	commandtest.Expect(t, New, command.ExitUsage, "", "placement", "forget", "book")
	_, errs := commandtest.Expect(t, New, 1, "", "placement", "forget", "book", "--cluster", "m1")
	if !strings.Contains(errs, "take the cluster out of spec.placement.clusters first") {
		t.Errorf("a cluster that is placed is given up: %s", errs)
	}
	out, _ := commandtest.Expect(t, New, 0, "", "placement", "forget", "book", "--cluster", "m2")
	if !strings.Contains(out, "is not waited for in cluster m2 any more") {
		t.Errorf("the command says %q", out)
	}
	if got := server.Get(leaving).GetAnnotations(); got[v1beta1.ForgetAnnotation] != "m2" {
		t.Errorf("annotations %v", got)
	}
}
