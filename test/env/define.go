package env

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// DefineFiles creates the CustomResourceDefinitions in files, and waits until their kinds are served.
func (c *Cluster) DefineFiles(t testing.TB, files fs.FS, patterns ...string) {
	t.Helper()
	var texts [][]byte
	for _, pattern := range patterns {
		names, err := fs.Glob(files, pattern)
		Must(t, err)
		if len(names) == 0 {
			t.Fatalf("no file is like %s", pattern)
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			Must(t, err)
			texts = append(texts, text)
		}
	}
	c.Define(t, texts...)
}

// Define creates CustomResourceDefinitions, and waits until their kinds are served. Versions are converted without a webhook.
func (c *Cluster) Define(t testing.TB, texts ...[]byte) {
	t.Helper()
	served, err := discovery.NewDiscoveryClientForConfig(c.Config)
	Must(t, err)
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, text := range texts {
		obj := &unstructured.Unstructured{}
		Must(t, yaml.Unmarshal(text, &obj.Object))
		unstructured.RemoveNestedField(obj.Object, "spec", "conversion")
		Must(t, c.Create(context.Background(), obj))
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, definition))
		definitions = append(definitions, definition)
	}
	for _, definition := range definitions {
		spec := definition.Spec
		for _, version := range spec.Versions {
			if !version.Served {
				continue
			}
			Eventually(t, spec.Names.Kind+" is served", func() string {
				list, err := served.ServerResourcesForGroupVersion(spec.Group + "/" + version.Name)
				if err != nil {
					return err.Error()
				}
				for _, r := range list.APIResources {
					if r.Kind == spec.Names.Kind {
						return ""
					}
				}
				return fmt.Sprintf("%d kinds of the group", len(list.APIResources))
			})
		}
	}
}
