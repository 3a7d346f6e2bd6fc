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

// BenchmarkFifty: fifty Instances with one URL make one request, and wait for the source once: they are ready within 1.5
// times what one takes from the source, and fifty take if the source answers at once. All is measured in one run.
// Against the time of one alone the bound holds for slow sources: the work of the other 49 Instances, some 16 requests
// each, keeps processors busy for seconds, whatever the source does.
func BenchmarkFifty(b *testing.B) {
	const many, most = 50, 1.5
	plane := suite.Begin(b, allowLocal)
	b.Cleanup(suite.Stop)
	suite.Join(b, plane)
	ready(b, 1, 0) // the first Instance of a manager takes longer
	oneAtOnce, allAtOnce := ready(b, 1, 0), ready(b, many, 0)
	for _, delay := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
		b.Run(delay.String(), func(sub *testing.B) {
			for sub.Loop() {
				one, all := ready(b, 1, delay), ready(b, many, delay)
				ratio := float64(all) / float64(one)
				work := float64(all) / float64(one+allAtOnce-oneAtOnce)
				sub.ReportMetric(one.Seconds(), "s/one")
				sub.ReportMetric(all.Seconds(), "s/fifty")
				sub.ReportMetric(ratio, "fifty/one")
				sub.ReportMetric(work, "fifty/work")
				if work > most {
					sub.Errorf("fifty take %s, one %s, and without the source %s and %s: %.2f times as long as work and source, want at most %.1f",
						all, one, allAtOnce, oneAtOnce, work, most)
				}
				if delay >= 15*time.Second && ratio > most {
					sub.Errorf("fifty take %s, and one %s: %.2f times as long, want at most %.1f", all, one, ratio, most)
				}
			}
		})
	}
}

// ready creates Instances of a new OperatorVersion with a URL of its own at the same time, and returns how long it takes
// until the last of them is ready. They stay until the benchmark ends: their removal would slow down what is measured next.
func ready(b *testing.B, count int, delay time.Duration) time.Duration {
	b.Helper()
	group, s, ns := unique(), serve(b), suite.NewNamespace(b)
	s.delay = delay
	body := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
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
