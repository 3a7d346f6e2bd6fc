package share

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// The fence refuses new objects of a definition, or in a namespace, that is about to be deleted, and lets updates pass. It is needed since
// a new object does not change the resourceVersion of its definition or namespace: no precondition would notice an object that is created
// between the check and the deletion. The fence of a CustomResourceDefinition is a validation rule on each version; that of a Namespace is
// a label that the policy kudo-fence matches.
const (
	fenceRule    = "oldSelf.hasValue()"
	fenceMessage = "kudo is deleting this CustomResourceDefinition, since it has no owner: create no objects of it"
	fenceLabel   = "/metadata/labels/kudo.dev~1releasing" // v1beta1.ReleasingLabel as a JSON pointer
)

// fenceTime is how long an apiserver may take to have the fence in force.
const fenceTime = 2 * time.Second

// fence puts the fence up, waits until it is in force, and returns the object as it is then.
func (s *Session) fence(ctx context.Context, resource dynamic.ResourceInterface,
	live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	operations := append([]operation{{"test", "/metadata/resourceVersion", live.GetResourceVersion()}}, fences(live)...)
	fenced, err := patch(ctx, resource, live.GetName(), operations...)
	if err != nil {
		return nil, fmt.Errorf("fence %s %s: %w", live.GetKind(), live.GetName(), err)
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

// fences returns the operations that add the fence to an object, or to the versions of a definition that lack it.
func fences(live *unstructured.Unstructured) (operations []operation) {
	if live.GroupVersionKind().GroupKind() == namespaceKind {
		if live.GetLabels() == nil {
			operations = append(operations, operation{"add", "/metadata/labels", map[string]any{}})
		}
		return append(operations, operation{"add", fenceLabel, "true"})
	}
	for i, schema := range schemas(live) {
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
	return operations
}

// unfence removes the fence from an object, if it has one.
func (s *Session) unfence(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	operations := unfences(live)
	if operations == nil {
		return nil
	}
	open, err := patch(ctx, resource, live.GetName(), operations...)
	if err != nil {
		return fmt.Errorf("remove the fence from %s %s: %w", live.GetKind(), live.GetName(), err)
	}
	s.mirror.RecordWrite(open.DeepCopy())
	return nil
}

// unfences returns the operations that remove the fence, or nil if there is none.
func unfences(live *unstructured.Unstructured) (operations []operation) {
	switch live.GroupVersionKind().GroupKind() {
	case namespaceKind:
		if live.GetLabels()[v1beta1.ReleasingLabel] == "true" {
			operations = append(operations, operation{"test", fenceLabel, "true"}, operation{Op: "remove", Path: fenceLabel})
		}
	case crdKind:
		for i, schema := range schemas(live) {
			if at := fencedAt(schema); at >= 0 {
				path := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/x-kubernetes-validations/%d", i, at)
				operations = append(operations, operation{"test", path + "/rule", fenceRule}, operation{Op: "remove", Path: path})
			}
		}
	}
	return operations
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

// withoutFence drops the fence from the content of a definition: kudo sets it for moments, and no package contains it.
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
