package instances

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/gen"
)

// book returns an Instance of a hub in two clusters. One of the clusters is lost.
func book(version *v1beta1.OperatorVersion) *v1beta1.Instance {
	i := gen.Instance("book", version, map[string]string{"REPLICAS": "6", "VALUE": "b"})
	i.UID, i.Generation = "book-uid", 7
	since := &metav1.Time{Time: time.Now().Add(-41 * time.Minute)}
	four, two := int64(4), int64(2)
	i.Spec.Placement = &v1beta1.Placement{Divide: "REPLICAS", Clusters: []v1beta1.PlacedCluster{{Name: "m1", Weight: 2}, {Name: "m2"}}}
	i.Status.ObservedGeneration = 7
	i.Status.Members = []v1beta1.MemberStatus{
		{Cluster: "m1", State: v1beta1.MemberReady, Since: since, Plan: "deploy", PlanStatus: v1beta1.Complete, OperatorVersion: version.Name, Replicas: &four},
		{Cluster: "m2", State: v1beta1.MemberLost, Since: since, Plan: "deploy", PlanStatus: v1beta1.Complete, OperatorVersion: version.Name, Replicas: &two,
			Message: "cluster is not reachable; reported generation 6 of 7"},
	}
	i.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.InProgress, ActivePlanName: "deploy"}
	i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: v1beta1.ReasonMembersLost,
		ObservedGeneration: 7, LastTransitionTime: *since}}
	return i
}

// TestGetClusters checks the table of clusters, beside an Instance that runs in one cluster.
func TestGetClusters(t *testing.T) {
	version := web("1.0.0")
	onServer(t, version, site(version), book(version))
	out, _ := commandtest.Expect(t, NewGet, 0, "", "get", "instances", "--clusters")
	want := strings.Join([]string{
		"NAME   CLUSTER   STATE   REPLICAS   PLAN     STATUS        OPERATOR-VERSION   SINCE",
		"book   (2)       Lost    6          deploy   IN_PROGRESS   web-1.27-1.0.0     41m",
		"       m1        Ready   4          deploy   COMPLETE      web-1.27-1.0.0     41m",
		"       m2        Lost    2          deploy   unknown       web-1.27-1.0.0     41m     cluster is not reachable; reported generation 6 of 7",
		"site   -                                     COMPLETE      web-1.27-1.0.0", "",
	}, "\n")
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out, _ = commandtest.Expect(t, NewGet, 0, "", "get", "instances", "book", "--clusters")
	if strings.Count(out, "\n") != 4 {
		t.Errorf("a named Instance has three rows:\n%s", out)
	}
	out, _ = commandtest.Expect(t, NewGet, 0, "", "get", "instances", "--clusters", "-A")
	if !strings.HasPrefix(out, "NAMESPACE   NAME   CLUSTER") {
		t.Errorf("there is no namespace:\n%s", out)
	}
	for _, format := range []string{"json", "yaml", "name"} {
		plain, _ := commandtest.Expect(t, NewGet, 0, "", "get", "instances", "-o", format)
		if out, _ := commandtest.Expect(t, NewGet, 0, "", "get", "instances", "--clusters", "-o", format); out != plain {
			t.Errorf("-o %s: a program reads something else:\n%s", format, out)
		}
	}
	for line, want := range map[string]string{
		"get operators --clusters":         "only Instances are placed on clusters",
		"get all --clusters":               "only Instances are placed on clusters",
		"get instances --clusters -o wide": "kubectl kudo placement show NAME -o wide",
	} {
		if _, errs := commandtest.Expect(t, NewGet, command.ExitUsage, "", strings.Fields(line)...); !strings.Contains(errs, want) {
			t.Errorf("%s: no %q in %s", line, want, errs)
		}
	}
	if _, errs := commandtest.Expect(t, NewGet, 0, "", "get", "instances", "--clusters", "-n", "empty"); errs != "No instances found.\n" {
		t.Errorf("no Instance: %s", errs)
	}
}
