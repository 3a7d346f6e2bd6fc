package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// BenchmarkFairShare: while 1,000 Instances of one namespace are being deployed, the first Instance of another namespace is
// complete within 2 s of its usual time.
func BenchmarkFairShare(b *testing.B) {
	_, c := start(b)
	ctx := context.Background()
	version := func() *v1beta1.OperatorVersion {
		ov := gen.Version(namespace(b, c), "fair", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 3), gen.Serial("deploy", "cm"))
		must(b, c.Create(ctx, ov))
		return ov
	}
	// Each of the quiet namespaces has its first Instance, and none pays for the watch of a kind that no plan has written before.
	crowd, quiet, other := version(), version(), version()
	install(b, c, version(), "warm")
	usual := install(b, c, quiet, "first")
	const instances, clients = 1000, 16
	var work sync.WaitGroup
	names := make(chan int)
	for range clients {
		work.Add(1)
		go func() {
			defer work.Done()
			for n := range names {
				if err := c.Create(ctx, gen.Instance(fmt.Sprintf("i%d", n), crowd, nil)); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	began := time.Now()
	var beside time.Duration
	for n := range instances {
		names <- n
		if n == instances-1 {
			beside = install(b, c, other, "first")
		}
	}
	close(names)
	work.Wait()
	for n := range instances {
		_, err := c.Await(ctx, crowd.Namespace, fmt.Sprintf("i%d", n), 5*time.Minute, env.PlanEnded(v1beta1.DeployPlan, 1))
		must(b, err)
	}
	const most = 2 * time.Second
	if beside > usual+most {
		b.Errorf("beside %d Instances of another namespace, the first one of a namespace took %s, and %s without them: more than %s longer", instances, beside, usual, most)
	}
	b.ReportMetric(float64(usual.Milliseconds()), "ms/usual")
	b.ReportMetric(float64(beside.Milliseconds()), "ms/beside")
	b.ReportMetric(time.Since(began).Seconds(), "s/crowd")
}
