package crdtarball

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// BenchmarkFifty: fifty Instances with one URL make one request, and are ready within 1.5 times the time that one takes.
// Both are measured in one run. To be one of the holders of a definition costs each Instance some 50 ms, one after the
// other, as all write the same object: so the ratio is that of the slowest source, and those of faster ones are printed.
func BenchmarkFifty(b *testing.B) {
	const many, most = 50, 1.5
	plane := suite.Begin(b, allowLocal)
	b.Cleanup(suite.Stop)
	suite.Join(b, plane)
	for _, delay := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
		b.Run(delay.String(), func(b *testing.B) {
			for b.Loop() {
				one, all := ready(b, 1, delay), ready(b, many, delay)
				ratio := float64(all) / float64(one)
				b.ReportMetric(one.Seconds(), "s/one")
				b.ReportMetric(all.Seconds(), "s/fifty")
				b.ReportMetric(ratio, "fifty/one")
				if delay >= 15*time.Second && ratio > most {
					b.Errorf("fifty take %s, and one %s: %.2f times as long, want at most %.1f", all, one, ratio, most)
				}
			}
		})
	}
}

// ready creates Instances of a new OperatorVersion with a URL of its own at the same time, and tells how long it takes
// until the last of them is ready.
func ready(b *testing.B, count int, delay time.Duration) time.Duration {
	b.Helper()
	group, s, ns := unique(), serve(b), suite.NewNamespace(b)
	s.delay = delay
	body := pack(b, definition(group, "jobs", "size: {type: integer}"))
	s.put("/a.tgz", body)
	ov := version(s, ns, "1", group, "Job", s.URL+"/a.tgz", pinned(body))
	env.Must(b, suite.Create(ctx, ov))
	began := time.Now()
	var creating sync.WaitGroup
	failed := make([]error, count)
	for n := range count {
		creating.Go(func() { failed[n] = suite.Create(ctx, gen.Instance(fmt.Sprintf("i%d", n), ov, nil)) })
	}
	creating.Wait()
	for n := range count {
		env.Must(b, failed[n])
		i, err := suite.Await(ctx, ns, fmt.Sprintf("i%d", n), env.DefaultTimeout, env.PlanEnded("deploy", 1))
		env.Must(b, err)
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			b.Fatalf("deploy of i%d is %s: %s", n, st.Status, st.Message)
		}
	}
	took := time.Since(began)
	if asked := s.asked.Load(); asked != 1 {
		b.Errorf("%d Instances made %d requests, want one", count, asked)
	}
	return took
}
