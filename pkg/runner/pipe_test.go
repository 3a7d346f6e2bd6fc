package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/podexec"
)

// endless is a file of which there is always more.
type endless struct{}

// Output implements Executor.
func (endless) Output(ctx context.Context, _ string, _ podexec.Container, _ []string, _ int) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestEndlessFile: the read of a file that never ends, such as a FIFO without a writer, is canceled, with an error that names the file, and
// is repeated later.
func TestEndlessFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{exec: endless{}}
		began := time.Now()
		_, err := r.artifacts(t.Context(), apply.Account{Namespace: "a", Name: "b"}, &pipeRun{pod: &unstructured.Unstructured{}, pipes: []v1beta1.PipeSpec{{File: "/out/fifo"}}})
		if took := time.Since(began); took != readTimeout {
			t.Errorf("given up after %s", took)
		}
		if err == nil || apply.IsFatal(err) || !strings.Contains(err.Error(), "file /out/fifo could not be read within 1m0s") {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestWaiterUser checks that the waiter runs as the user that wrote the files, and complies with restricted pod security (T37).
func TestWaiterUser(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		pod, init map[string]any
		want      map[string]any
	}{
		{"an image's user is root unless the pod names another", nil, nil, map[string]any{"runAsUser": int64(0)}},
		{"the user of the initContainer", nil, map[string]any{"runAsUser": int64(7), "privileged": true}, map[string]any{"runAsUser": int64(7)}},
		{"that of the pod is the waiter's anyway", map[string]any{"runAsUser": int64(7)}, nil, map[string]any{}},
		{"a cluster that gives users to pods does", map[string]any{"runAsNonRoot": true}, nil, map[string]any{}},
		{"which the container may ask for", nil, map[string]any{"runAsNonRoot": true}, map[string]any{"runAsNonRoot": true}},
		{"and may leave open", map[string]any{"runAsNonRoot": false}, nil, map[string]any{"runAsUser": int64(0)}},
	} {
		init := map[string]any{"name": "make"}
		if tc.init != nil {
			init["securityContext"] = tc.init
		}
		spec := map[string]any{"initContainers": []any{init}}
		if tc.pod != nil {
			spec["securityContext"] = tc.pod
		}
		pod := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		addWaiter(pod, map[string]any{"name": "out"}, "manager")
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		got := containers[0].(map[string]any)["securityContext"].(map[string]any)
		tc.want["allowPrivilegeEscalation"] = false
		tc.want["capabilities"] = map[string]any{"drop": []any{"ALL"}}
		tc.want["seccompProfile"] = map[string]any{"type": "RuntimeDefault"}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		if !hasWaiter(pod, pod.DeepCopy()) {
			t.Errorf("%s: the pod has another waiter than its copy", tc.reason)
		}
		other := pod.DeepCopy()
		addWaiter(other, map[string]any{"name": "out"}, "another")
		if hasWaiter(other, pod) || hasWaiter(&unstructured.Unstructured{}, pod) {
			t.Errorf("%s: a pod with another waiter, or none, counts as one with this waiter", tc.reason)
		}
	}
}
