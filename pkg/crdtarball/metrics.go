package crdtarball

import "github.com/prometheus/client_golang/prometheus"

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
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "kudo_crd_tarball_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "kudo_crd_tarball_" + name, Help: help})
	}
	fetches := counter("fetches_total", "Attempts to fetch a tarball of CRDs from its source.")
	hits := counter("hits_total", "Tarballs of CRDs that were in the cache.")
	bytes := counter("received_bytes_total", "Bytes of tarballs that came from their sources.")
	evictions := counter("evictions_total", "Cache entries that were removed to make room.")
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kudo_crd_tarball_failures_total",
		Help: "Tarballs of CRDs that could not be had or refreshed, by reason."}, []string{"reason"})
	entries := gauge("cache_entries", "Entries of the cache of CRD tarballs.")
	size := gauge("cache_bytes", "Bytes of the entries of the cache of CRD tarballs.")
	for _, collector := range []prometheus.Collector{fetches, hits, bytes, evictions, failures, entries, size} {
		if err := registry.Register(collector); err != nil {
			return Metrics{}, err
		}
	}
	return Metrics{
		Fetched: fetches.Inc, Hit: hits.Inc, Evicted: evictions.Inc,
		Received: func(n int64) { bytes.Add(float64(n)) },
		Failed:   func(reason Reason) { failures.WithLabelValues(string(reason)).Inc() },
		Sized:    func(n int, b int64) { entries.Set(float64(n)); size.Set(float64(b)) },
	}, nil
}
