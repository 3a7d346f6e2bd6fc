package act

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestForgetCluster checks C47: a cluster is given up only if it is to lose its copy.
func TestForgetCluster(t *testing.T) {
	for _, tc := range []struct {
		reason, cluster string
		deleted         bool
		want            string
	}{
		{"it is leaving", "m2", false, ""},
		{"it is placed", "m1", false, "take the cluster out of spec.placement.clusters first"},
		{"the Instance is being deleted", "m1", true, ""},
		{"it has no copy", "m3", false, "has no copy in cluster m3"},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", Annotations: map[string]string{
			v1beta1.ForgetAnnotation: "m9"}}}
		i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
		i.Status.Members = []v1beta1.MemberStatus{{Cluster: "m1"}, {Cluster: "m2"}}
		if tc.deleted {
			i.DeletionTimestamp = &metav1.Time{}
		}
		forget := ForgetCluster{i, tc.cluster}
		change, err := forget.Change(t.Context(), nil)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			continue
		}
		if err != nil {
			continue
		}
		change.Apply(i)
		change.Apply(i)
		if got := i.Annotations[v1beta1.ForgetAnnotation]; got != "m9,"+tc.cluster {
			t.Errorf("%s: the annotation is %q", tc.reason, got)
		}
	}
	if got := (ForgetCluster{&v1beta1.Instance{}, "m2"}).Command(); !strings.HasSuffix(got, "--cluster m2") {
		t.Errorf("the command is %q", got)
	}
}
