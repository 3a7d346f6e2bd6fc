package act

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestWithChildren checks which Instances are deleted with one: those that no other object owns.
func TestWithChildren(t *testing.T) {
	instance := func(name string, owners ...types.UID) *v1beta1.Instance {
		i := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", name)}
		i.UID = types.UID(name)
		for _, uid := range owners {
			i.OwnerReferences = append(i.OwnerReferences, metav1.OwnerReference{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: string(uid), UID: uid})
		}
		return i
	}
	root := instance("root")
	server := apitest.Start(t, root, instance("a-child", "root"), instance("b-of-both", "root", "a-child"), instance("c-grandchild", "a-child"),
		instance("d-shared", "root", "other"), instance("e-below-shared", "d-shared"), instance("other"))
	all, err := WithChildren(t.Context(), server.Client(), root)
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	if diff := cmp.Diff([]string{"root", "a-child", "b-of-both", "c-grandchild"}, names); diff != "" || err != nil {
		t.Errorf("%v, -want +got: %s", err, diff)
	}
}
