package controllers

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/settings"
)

// onlySettings keeps all ConfigMaps but the one with the settings out of the manager's cache.
func onlySettings(namespace string) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", settings.ConfigMap)},
	}}
}

// currentSettings reads the settings from the cache.
type currentSettings struct {
	reader client.Reader
	key    types.NamespacedName

	mu sync.Mutex
	// version is the resourceVersion of what was parsed last.
	version string
	parsed  settings.Settings
}

// get returns the settings. What cannot be read is the strict choice.
func (c *currentSettings) get(ctx context.Context) settings.Settings {
	object := &corev1.ConfigMap{}
	if err := c.reader.Get(ctx, c.key, object); err != nil {
		if !apierror.IsObjectNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "cannot read the settings: the strict ones count", "configMap", c.key.String())
			return settings.Strictest()
		}
		return settings.Default()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != object.ResourceVersion {
		var err error
		if c.parsed, err = settings.Parse(object.Data); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "a setting is wrong: the strict choice counts", "configMap", c.key.String())
		}
		c.version = object.ResourceVersion
	}
	return c.parsed
}

// tarballPolicy is what the settings say of CRD tarballs.
func (c *currentSettings) tarballPolicy() fetch.Policy {
	return fetch.PolicyOf(c.get(context.Background()))
}

// privilege makes it seen where Instances run with the rights of kudo.
type privilege struct {
	reader    client.Reader
	settings  *currentSettings
	events    record.EventRecorder
	namespace string
}

// Start implements manager.Runnable: an event on kudo's Namespace says at each start that all namespaces are privileged.
func (p *privilege) Start(ctx context.Context) error {
	if p.settings.get(ctx).Mode != settings.Privileged {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := p.reader.Get(ctx, types.NamespacedName{Name: p.namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	p.events.Event(namespace, corev1.EventTypeWarning, v1beta1.EventPrivilegedMode,
		"Plans of Instances that name no ServiceAccount run with the rights of kudo in all namespaces: whoever may create Instances is an "+
			"administrator of the cluster")
	return nil
}

// count is the number of privileged namespaces.
func (p *privilege) count() float64 {
	ctx := context.Background()
	list, options := &corev1.NamespaceList{}, []client.ListOption{client.MatchingLabels{v1beta1.PrivilegedLabel: "true"}}
	if p.settings.get(ctx).Mode == settings.Privileged {
		options = nil
	}
	if err := p.reader.List(ctx, list, options...); err != nil {
		return -1
	}
	return float64(len(list.Items))
}

// Describe implements prometheus.Collector.
func (p *privilege) Describe(out chan<- *prometheus.Desc) {
	out <- metrics.Desc(metrics.PrivilegedNamespaces)
}

// Collect implements prometheus.Collector.
func (p *privilege) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(metrics.Desc(metrics.PrivilegedNamespaces), prometheus.GaugeValue, p.count())
}

// installer is kudo's own account of a namespace.
func installer(namespace string) apply.Account {
	return apply.Account{Namespace: namespace, Name: settings.InstallerAccount}
}
