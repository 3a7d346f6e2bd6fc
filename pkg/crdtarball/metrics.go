package crdtarball

import (
	"github.com/prometheus/client_golang/prometheus"

	"kudo.dev/kudo/pkg/metrics"
)

// Metrics are told what a cache does. Each function may be nil; they are called by many goroutines.
type Metrics struct {
	// Fetched: a source is asked, once for each attempt.
	Fetched func()
	// Hit: a tarball was in the cache.
	Hit func()
	// Received bytes of tarballs, of failed attempts too.
	Received func(bytes int64)
	// Failed: a tarball could not be had or refreshed, after all attempts.
	Failed func(Reason)
	// Sized: the cache has so many entries and bytes now.
	Sized func(entries int, bytes int64)
	// Evicted: an entry was removed to make room.
	Evicted func()
}

func (m Metrics) fetched() {
	if m.Fetched != nil {
		m.Fetched()
	}
}

func (m Metrics) hit() {
	if m.Hit != nil {
		m.Hit()
	}
}

func (m Metrics) received(bytes int64) {
	if m.Received != nil && bytes > 0 {
		m.Received(bytes)
	}
}

func (m Metrics) failed(reason Reason) {
	if m.Failed != nil {
		m.Failed(reason)
	}
}

func (m Metrics) sized(entries int, bytes int64) {
	if m.Sized != nil {
		m.Sized(entries, bytes)
	}
}

func (m Metrics) evicted() {
	if m.Evicted != nil {
		m.Evicted()
	}
}

// NewMetrics makes Metrics that Prometheus collects from a registry, such as controller-runtime's. The error is the
// registry's, if it has metrics of these names already.
func NewMetrics(registry prometheus.Registerer) (Metrics, error) {
	fetches, hits := metrics.NewCounter(metrics.TarballFetches), metrics.NewCounter(metrics.TarballHits)
	bytes, evictions := metrics.NewCounter(metrics.TarballReceivedBytes), metrics.NewCounter(metrics.TarballEvictions)
	failures := metrics.NewCounter(metrics.TarballFailures)
	entries, size := metrics.NewGauge(metrics.TarballCacheEntries), metrics.NewGauge(metrics.TarballCacheBytes)
	if err := metrics.Register(registry, fetches, hits, bytes, evictions, failures, entries, size); err != nil {
		return Metrics{}, err
	}
	// A series begins at 0, and not at its first event, which a rate would not see.
	received, count, total := bytes.WithLabelValues(), entries.WithLabelValues(), size.WithLabelValues()
	return Metrics{
		Fetched: fetches.WithLabelValues().Inc, Hit: hits.WithLabelValues().Inc, Evicted: evictions.WithLabelValues().Inc,
		Received: func(n int64) { received.Add(float64(n)) },
		Failed:   func(reason Reason) { failures.WithLabelValues(string(reason)).Inc() },
		Sized: func(n int, b int64) {
			count.Set(float64(n))
			total.Set(float64(b))
		},
	}, nil
}
