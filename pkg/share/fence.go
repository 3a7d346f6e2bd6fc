package share

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// The fence is a validation rule on each version of a CustomResourceDefinition that is about to be deleted: it refuses
// new objects, and lets updates pass. A new custom resource does not move the resourceVersion of its definition, so that
// no precondition would notice one that is created between the look and the deletion.
const (
	fenceRule    = "oldSelf.hasValue()"
	fenceMessage = "kudo is about to delete this CustomResourceDefinition: nobody holds it any more"
)

// fenceTime is how long an apiserver may take to have the fence in force.
const fenceTime = 2 * time.Second

// fence puts the fence up, waits until it is in force, and returns the definition as it is then.
func (s *Session) fence(ctx context.Context, resource dynamic.ResourceInterface, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	operations := []operation{{"test", "/metadata/resourceVersion", crd.GetResourceVersion()}}
	for i, schema := range schemas(crd) {
		if fencedAt(schema) >= 0 {
			continue
		}
		at := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/x-kubernetes-validations", i)
		rule := map[string]any{"rule": fenceRule, "message": fenceMessage, "optionalOldSelf": true}
		if rules, _ := schema["x-kubernetes-validations"].([]any); len(rules) > 0 {
			operations = append(operations, operation{"add", at + "/-", rule})
		} else {
			operations = append(operations, operation{"add", at, []any{rule}})
		}
	}
	fenced, err := patch(ctx, resource, crd.GetName(), operations...)
	if err != nil {
		return nil, fmt.Errorf("fence CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	timer := s.clock.NewTimer(fenceTime)
	defer timer.Stop()
	select {
	case <-timer.C():
		return fenced, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), s.unfence(context.WithoutCancel(ctx), resource, fenced))
	}
}

// unfence takes the fence off, if it is there.
func (s *Session) unfence(ctx context.Context, resource dynamic.ResourceInterface, crd *unstructured.Unstructured) error {
	if crd.GroupVersionKind().GroupKind() != definition {
		return nil
	}
	var operations []operation
	for i, schema := range schemas(crd) {
		if at := fencedAt(schema); at >= 0 {
			path := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/x-kubernetes-validations/%d", i, at)
			operations = append(operations, operation{"test", path + "/rule", fenceRule}, operation{Op: "remove", Path: path})
		}
	}
	if operations == nil {
		return nil
	}
	open, err := patch(ctx, resource, crd.GetName(), operations...)
	if err != nil {
		return fmt.Errorf("take the fence off CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	s.mirror.Wrote(open.DeepCopy())
	return nil
}

// schemas of a definition, by version.
func schemas(crd *unstructured.Unstructured) []map[string]any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	out := make([]map[string]any, len(versions))
	for i, item := range versions {
		version, _ := item.(map[string]any)
		out[i], _, _ = unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	}
	return out
}

// fencedAt is the place of the fence among the rules of a schema; -1 if it is not there.
func fencedAt(schema map[string]any) int {
	rules, _ := schema["x-kubernetes-validations"].([]any)
	for i, item := range rules {
		if rule, _ := item.(map[string]any); rule["rule"] == fenceRule && rule["message"] == fenceMessage {
			return i
		}
	}
	return -1
}

// withoutFence drops the fence from the content of a definition: it is up for moments, and nobody wants it.
func withoutFence(content map[string]any) {
	versions, _, _ := unstructured.NestedFieldNoCopy(content, "spec", "versions")
	list, _ := versions.([]any)
	for _, item := range list {
		version, _ := item.(map[string]any)
		outer, _ := version["schema"].(map[string]any)
		schema, _ := outer["openAPIV3Schema"].(map[string]any)
		at := fencedAt(schema)
		if at < 0 {
			continue
		}
		rules := slices.Delete(schema["x-kubernetes-validations"].([]any), at, at+1)
		if len(rules) == 0 {
			delete(schema, "x-kubernetes-validations")
			continue
		}
		schema["x-kubernetes-validations"] = rules
	}
}
