// Package monitoring holds the alerts, the dashboard and the runbooks of kudo against the metrics of the manager, by Prometheus' own
// engine.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"sigs.k8s.io/yaml"
)

// Rule is an alert.
type Rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// ParseRules reads the alerts of a PrometheusRule.
func ParseRules(text []byte) ([]Rule, error) {
	var file struct {
		Spec struct {
			Groups []struct{ Rules []Rule }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	var out []Rule
	for _, group := range file.Spec.Groups {
		out = append(out, group.Rules...)
	}
	return out, nil
}

// scrapeEvery is the time between two scrapes of Prometheus, and horizon how long the metrics go on after the last one: longer than any
// alert looks back and waits.
const (
	scrapeEvery = time.Minute
	horizon     = 3 * time.Hour
)

// Firing returns the alerts that fire if the metrics of a manager go on in a straight line, as in the interval between two scrapes. The
// second scrape is of now. A metric that only the second one has keeps its value, and one that only the first one has is not there any
// more.
func Firing(ctx context.Context, rules []Rule, before, after io.Reader, interval time.Duration, now time.Time) ([]string, error) {
	first, err := parseScrape(before)
	if err != nil {
		return nil, err
	}
	last, err := parseScrape(after)
	if err != nil {
		return nil, err
	}
	future, err := extrapolate(ctx, first, last, interval, now)
	if err != nil {
		return nil, err
	}
	defer func() { _ = future.Close() }()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{})})
	defer func() { _ = engine.Close() }()
	var out []string
	for _, r := range rules {
		firing, err := isFiring(ctx, engine, future, r, now.Add(horizon))
		if err != nil {
			return nil, fmt.Errorf("alert %s: %w", r.Alert, err)
		}
		if firing {
			out = append(out, r.Alert)
		}
	}
	return out, nil
}

// isFiring reports whether the expression of an alert has had a result for as long as the alert waits.
func isFiring(ctx context.Context, engine *promql.Engine, series storage.Queryable, r Rule, end time.Time) (bool, error) {
	wait, err := time.ParseDuration(r.For)
	if err != nil {
		return false, err
	}
	query, err := engine.NewRangeQuery(ctx, series, nil, r.Expr, end.Add(-wait), end, scrapeEvery)
	if err != nil {
		return false, err
	}
	defer query.Close()
	result, err := query.Exec(ctx).Matrix()
	return slices.ContainsFunc(result, func(s promql.Series) bool { return len(s.Floats) == int(wait/scrapeEvery)+1 }), err
}

// scrape has the values of the series of kudo, by the text of their labels.
type scrape map[string]sample

// sample is the value of a series.
type sample struct {
	labels labels.Labels
	value  float64
	// counter is set if the value falls only when the manager starts anew.
	counter bool
}

// slope returns by how much the value rises in a second, if it was another one before.
func (s sample) slope(before sample, interval time.Duration) float64 {
	if s.counter && s.value < before.value {
		return s.value / interval.Seconds()
	}
	return (s.value - before.value) / interval.Seconds()
}

// parseScrape reads the text that a manager serves.
func parseScrape(text io.Reader) (scrape, error) {
	reader := expfmt.NewTextParser(model.UTF8Validation)
	families, err := reader.TextToMetricFamilies(text)
	if err != nil {
		return nil, err
	}
	out := scrape{}
	for name, family := range families {
		if !strings.HasPrefix(name, "kudo_") {
			continue
		}
		values, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, family)
		if err != nil {
			return nil, err
		}
		counter := family.GetType() == dto.MetricType_COUNTER || family.GetType() == dto.MetricType_HISTOGRAM
		for _, v := range values {
			set := labels.NewBuilder(labels.EmptyLabels())
			for name, value := range v.Metric {
				set.Set(string(name), string(value))
			}
			out[set.Labels().String()] = sample{set.Labels(), float64(v.Value), counter}
		}
	}
	return out, nil
}

// extrapolate returns a storage with the extrapolated series of the last scrape. No value falls below 0 that was not below. The caller
// closes the storage.
func extrapolate(ctx context.Context, first, last scrape, interval time.Duration, now time.Time) (*teststorage.TestStorage, error) {
	out, err := teststorage.NewWithError()
	if err != nil {
		return nil, err
	}
	into := out.Appender(ctx)
	for key, s := range last {
		slope := 0.0
		if before, known := first[key]; known {
			slope = s.slope(before, interval)
		}
		for after := time.Duration(0); after <= horizon; after += scrapeEvery {
			value := max(s.value+slope*after.Seconds(), min(s.value, 0))
			if _, err := into.Append(0, s.labels, now.Add(after).UnixMilli(), value); err != nil {
				return nil, errors.Join(err, into.Rollback(), out.Close())
			}
		}
	}
	if err := into.Commit(); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}
