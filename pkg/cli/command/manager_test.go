package command

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// writes records the field managers of writes.
type writes struct {
	client.WithWatch
	managers []string
}

func (w *writes) Create(_ context.Context, _ client.Object, opts ...client.CreateOption) error {
	o := client.CreateOptions{}
	w.managers = append(w.managers, o.ApplyOptions(opts).FieldManager)
	return nil
}

func (w *writes) Patch(_ context.Context, _ client.Object, _ client.Patch, opts ...client.PatchOption) error {
	o := client.PatchOptions{}
	o.ApplyOptions(opts)
	w.managers = append(w.managers, o.FieldManager)
	return nil
}

// TestNameClient (P28): writes of Instances name the command, unless the caller names a field manager.
func TestNameClient(t *testing.T) {
	instance, other := &v1beta1.Instance{}, &corev1.ConfigMap{}
	for _, tc := range []struct {
		reason, command string
		object          client.Object
		own             []client.FieldOwner
		want            string
	}{
		{"a command", "kubectl kudo update", instance, nil, "kubectl-kudo/update"},
		{"one of two words", "kubectl kudo plan retry", instance, nil, "kubectl-kudo/plan/retry"},
		{"another kind", "kubectl kudo update", other, nil, ""},
		{"a manager of the caller", "kubectl kudo update", instance, []client.FieldOwner{"x"}, "x"},
		{"no command", "", instance, nil, ""},
	} {
		w := &writes{}
		c := nameClient(w, tc.command)
		var creates []client.CreateOption
		var patches []client.PatchOption
		for _, own := range tc.own {
			creates, patches = append(creates, own), append(patches, own)
		}
		if c.Create(t.Context(), tc.object, creates...) != nil || c.Patch(t.Context(), tc.object, client.MergeFrom(tc.object), patches...) != nil ||
			len(w.managers) != 2 || w.managers[0] != tc.want || w.managers[1] != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, w.managers, tc.want)
		}
	}
}
