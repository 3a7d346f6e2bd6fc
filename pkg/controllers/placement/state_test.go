package placement

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
)

func TestState(t *testing.T) {
	wrong := errors.New("wrong")
	for _, tc := range []struct {
		reason string
		o      observation
		want   state
	}{
		{"it is placed", observation{hasPlacement: true}, placed},
		{"it has no placement", observation{}, unplaced},
		{"its placement is wrong", observation{hasPlacement: true, problem: wrong}, invalid},
		{"a wrong placement needs no finalizer", observation{hasPlacement: true, problem: wrong, lacksFinalizer: true}, invalid},
		{"the finalizer is missing", observation{hasPlacement: true, lacksFinalizer: true}, unprotected},
		{"its decision is not known", observation{hasPlacement: true, unplaceable: true}, undecided},
		{"an Instance without the finalizer needs no decision", observation{hasPlacement: true, unplaceable: true, lacksFinalizer: true}, unprotected},
		{"it is being deleted", observation{deleted: true, hasPlacement: true, problem: wrong}, released},
		{"it is being deleted, and has copies", observation{deleted: true, finalizer: true}, removing},
	} {
		if got := tc.o.state(); got != tc.want {
			t.Errorf("%s: state %q, want %q", tc.reason, got, tc.want)
		}
	}
	a := &action{Object: loop.NewObject(nil, nil, nil, &v1beta1.Instance{})}
	if a.act(t.Context(), "odd") == nil {
		t.Error("an unknown state is no error")
	}
}

// TestForgetClusters checks C47: the clusters of the annotation are given up, but not those that spec.placement names, unless the Instance is
// being deleted.
func TestForgetClusters(t *testing.T) {
	for _, tc := range []struct {
		reason, annotation string
		deleted            bool
		want               []string
		members            int
	}{
		{"none is listed", "", false, nil, 2},
		{"one that has left, and one that is placed", "m1,m2", false, []string{"m2"}, 1},
		{"the Instance is being deleted", "m1,m2", true, []string{"m1", "m2"}, 0},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Annotations: map[string]string{
			v1beta1.ForgetAnnotation: tc.annotation}}}
		i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
		i.Status.Members = []v1beta1.MemberStatus{{Cluster: "m1"}, {Cluster: "m2"}}
		if tc.deleted {
			i.DeletionTimestamp = &metav1.Time{}
		}
		var given []string
		r := &Reconciler{Forget: func(_ types.NamespacedName, cluster string) error {
			given = append(given, cluster)
			return nil
		}}
		a := &action{Reconciler: r, Object: loop.NewObject(nil, nil, nil, i)}
		if err := a.forgetClusters(); err != nil || !slices.Equal(given, tc.want) || len(a.Next.Status.Members) != tc.members {
			t.Errorf("%s: %v were given up, members %+v (%v)", tc.reason, given, a.Next.Status.Members, err)
		}
	}
	wrong := errors.New("wrong")
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.ForgetAnnotation: "m"}}}
	a := &action{Reconciler: &Reconciler{Forget: func(types.NamespacedName, string) error { return wrong }}, Object: loop.NewObject(nil, nil, nil, i)}
	if err := a.forgetClusters(); !errors.Is(err, wrong) {
		t.Errorf("an error of the engine is lost: %v", err)
	}
	a.Reconciler = &Reconciler{}
	if err := a.forgetClusters(); err != nil {
		t.Errorf("an engine that cannot give up: %v", err)
	}
}
