package plane

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metrics = `# HELP rest_client_requests_total Number of HTTP requests, partitioned by status code, method, and host.
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 7
rest_client_requests_total{code="404",host="127.0.0.1:1",method="GET"} 2
rest_client_requests_total{code="200",host="127.0.0.1:1",method="PATCH"} 1e+03
controller_runtime_reconcile_total{controller="instance",result="success"} 5
controller_runtime_reconcile_total{controller="instance",result="requeue"} 2
controller_runtime_reconcile_total{controller="operatorversion",result="success"} 9
workqueue_depth{controller="instance",name="instance",priority="0"} 3
workqueue_depth{controller="operatorversion",name="operatorversion",priority=""} 4
go_gc_heap_live_bytes 1.5e+06
`

func TestManagerMetrics(t *testing.T) {
	m := Manager{Sent: map[string]int{}}
	if err := m.parse(strings.NewReader(metrics)); err != nil {
		t.Fatal(err)
	}
	want := Manager{Sent: map[string]int{"GET": 9, "PATCH": 1000}, Reconciled: 7, Waiting: 3, Live: 1.5e6}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error("codes and results are summed, and other controllers do not count", diff)
	}
	if err := m.parse(strings.NewReader("go_gc_heap_live_bytes many\n")); err == nil {
		t.Error("what is no number must be told")
	}
}

func FuzzManagerMetrics(f *testing.F) {
	f.Add(metrics)
	f.Fuzz(func(_ *testing.T, text string) {
		m := Manager{Sent: map[string]int{}}
		_ = m.parse(strings.NewReader(text))
	})
}

func TestOwnProcess(t *testing.T) {
	cpu, err := CPU(os.Getpid())
	if err != nil || cpu < 0 || cpu > 600 {
		t.Errorf("a test has used some CPU time: %v, %v", cpu, err)
	}
	rss, err := RSS(os.Getpid())
	if err != nil || rss < 1<<20 || rss > 1<<32 {
		t.Errorf("a test has some memory: %v, %v", rss, err)
	}
	if _, err := CPU(1 << 30); err == nil {
		t.Error("a process that is not there must be told")
	}
}
