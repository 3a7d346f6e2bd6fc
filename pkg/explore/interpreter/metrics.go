package interpreter

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/metrics"
)

// WithMetrics returns a decorator that counts answers by operation and layer, and their time.
func WithMetrics(registry prometheus.Registerer) (func(explore.Chain) explore.Explorer, error) {
	count, took := metrics.NewCounter(metrics.ExploreAnswers), metrics.NewHistogram(metrics.ExploreDuration)
	if err := metrics.Register(registry, count, took); err != nil {
		return nil, err
	}
	return func(chain explore.Chain) explore.Explorer { return &measuredChain{chain, count, took} }, nil
}

type measuredChain struct {
	explore.Chain
	count *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// Layer implements explore.Explorer.
func (m *measuredChain) Layer() explore.Layer { return "" }

// Explore implements explore.Explorer.
func (m *measuredChain) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	began := time.Now()
	answer, known, err := m.Chain.Explore(ctx, r)
	layer, result := string(answer.Layer), "answer"
	if unknown, is := explore.IsUnknown(err); is {
		layer, result = string(unknown.Layer), "unknown"
	} else if !known {
		layer, result = "", "none"
	}
	m.count.WithLabelValues(string(r.Operation), layer, result).Inc()
	m.took.WithLabelValues(string(r.Operation)).Observe(time.Since(began).Seconds())
	return answer, known, err
}
