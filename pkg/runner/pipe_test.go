package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// endless is a file of which there is always more.
type endless struct{}

// Output implements Executor.
func (endless) Output(ctx context.Context, _, _, _, _ string, _ []string, _ int) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A file that never ends, such as a FIFO that nobody writes, is given up, named, and read again later.
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
