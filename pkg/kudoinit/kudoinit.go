// Package kudoinit puts kudo on a cluster: CRDs, rights, webhooks and the manager.
package kudoinit

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kudo.dev/kudo/manifests"
	"kudo.dev/kudo/pkg/settings"
)

// Options of an installation.
type Options struct {
	// Namespace to install to; DefaultNamespace if empty.
	Namespace string
	// Image of the manager, and when to pull it.
	Image, PullPolicy string
	// CRDsOnly installs nothing but the CRDs.
	CRDsOnly bool
	// External leaves the manager out: it runs outside of the cluster, for development and tests.
	External bool
	// WebhookURL is where an external manager serves the webhooks, such as https://localhost:9443; empty for none.
	WebhookURL string
	// Account is the ServiceAccount that the manager runs under; ServiceAccount if empty. Another one is not made: it
	// must exist in the namespace.
	Account string
	// CertManager lets cert-manager issue the webhooks' certificate, instead of the manager.
	CertManager bool
	// Settings are what the administrator has decided; the strict ones if empty.
	Settings settings.Settings
	// PipeImage is the image that the files of Pipe tasks are read from, with its digest; that of the manager if empty.
	PipeImage string
	// InsecureMetrics lets the manager serve its metrics by plain HTTP to every client.
	InsecureMetrics bool
	// Replicas of the manager's Deployment; two if 0.
	Replicas int32
	// Values are what an administrator chooses about the manager's Deployment. Image, PullPolicy, PipeImage and Replicas above are the results
	// of the Values, the installed state, and the build.
	Values Values
	// Version of kudo that is written on all objects; empty for none.
	Version string
}

// withDefaults fills in what was left empty.
func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Account == "" {
		o.Account = ServiceAccount
	}
	if o.Settings.Mode == "" {
		o.Settings.Mode = settings.Strict
	}
	if o.Settings.DefaultAccount == "" {
		o.Settings.DefaultAccount = settings.DefaultAccount
	}
	return o
}

// DefaultNamespace is where kudo is installed if nothing else is said.
const DefaultNamespace = "kudo-system"

// Objects returns what Options ask for, in the order in which it is to be applied.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	o = o.withDefaults()
	files, err := manifestFiles(o)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, name := range files {
		objs, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		out = append(out, objs...)
		if name == "rbac.yaml" {
			out = append(out, configMap(o))
		}
		if name == "rbac.yaml" && o.Values.Hub {
			out = slices.DeleteFunc(out, isForPlans)
		}
	}
	if o.Values.Hub && !o.CRDsOnly && o.Values.ClustersEngine != inventoryEngine {
		rules, err := instanceRules()
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	out = slices.DeleteFunc(out, func(obj *unstructured.Unstructured) bool { return unwanted(obj, o) })
	for _, obj := range out {
		if err := adapt(obj, o); err != nil {
			return nil, err
		}
	}
	if o.CRDsOnly {
		return out, nil
	}
	// The record of the rules is applied last: rules that the record has and a role lacks were removed by an administrator.
	record, err := valuesMap(o, out)
	return append(out, record), err
}

// manifestFiles are the manifests that Options ask for, in the order in which they are to be applied.
func manifestFiles(o Options) ([]string, error) {
	files, err := fs.Glob(manifests.Files, "crds/*.yaml")
	if err != nil || o.CRDsOnly {
		return files, err
	}
	files = append(files, "rbac.yaml", "policy.yaml")
	if !o.External || o.WebhookURL != "" {
		files = append(files, "webhook.yaml")
	}
	if o.CertManager {
		files = append(files, "certificate.yaml")
	}
	if o.Values.Hub {
		files = slices.Insert(files, slices.Index(files, "policy.yaml"), "hub.yaml")
	}
	if o.External {
		return files, nil
	}
	if o.Values.NetworkPolicy {
		files = append(files, "networkpolicy.yaml")
	}
	files = append(files, "manager.yaml")
	if o.Values.Monitoring {
		files = append(files, monitoringFiles...)
	}
	return files, nil
}

// monitoringFiles are the manifests for Prometheus and Grafana.
var monitoringFiles = []string{"monitoring/servicemonitor.yaml", "monitoring/rules.yaml", "monitoring/dashboard.yaml"}

func read(name string) ([]*unstructured.Unstructured, error) {
	text, err := manifests.Files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split("\n"+string(text), "\n---") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}
