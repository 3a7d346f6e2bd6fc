package controllers

import "testing"

// TestMetricsOptions checks that the metrics are open to clients that may read them only, unless that is turned off.
func TestMetricsOptions(t *testing.T) {
	guarded := metricsOptions(Options{MetricsAddress: ":8443", MetricsCertDir: "/certs"})
	if !guarded.SecureServing || guarded.FilterProvider == nil || guarded.CertDir != "/certs" || guarded.BindAddress != ":8443" {
		t.Errorf("metrics by default: %+v", guarded)
	}
	plain := metricsOptions(Options{MetricsAddress: ":8080", MetricsCertDir: "/certs", PlainMetrics: true})
	if plain.SecureServing || plain.FilterProvider != nil || plain.BindAddress != ":8080" {
		t.Errorf("plain metrics: %+v", plain)
	}
}
