package kudoinit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore/karmada"
	"kudo.dev/kudo/pkg/explore/library"
)

// instanceRules returns the rules by which Karmada divides Instances over clusters, and learns what became of them there.
func instanceRules() ([]*unstructured.Unstructured, error) {
	configs, err := library.InstanceRules()
	if err != nil {
		return nil, err
	}
	customizations, warnings, err := karmada.FromConfigs(configs, nil)
	if err != nil || len(warnings) > 0 {
		return nil, fmt.Errorf("rules for Instances: %v %w", warnings, err)
	}
	var out []*unstructured.Unstructured
	for _, fields := range customizations {
		obj := &unstructured.Unstructured{Object: fields}
		obj.SetLabels(map[string]string{"app": "kudo-manager"})
		out = append(out, obj)
	}
	return out, nil
}
