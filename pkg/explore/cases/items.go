package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Items reads status items; nil is nil, and an empty list an empty one. The warnings name unknown fields.
func Items(value any) (items []v1alpha1.AggregatedStatusItem, warnings []string, err error) {
	if value == nil {
		return nil, nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, nil, fmt.Errorf("statusItems must be a list")
	}
	items = make([]v1alpha1.AggregatedStatusItem, len(list))
	for i, entry := range list {
		place := fmt.Sprintf("statusItems[%d]", i)
		fields, ok := entry.(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("%s must be a map", place)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			known, err := setItem(&items[i], name, fields[name])
			if err != nil {
				return nil, nil, fmt.Errorf("%s.%s %w", place, name, err)
			}
			if !known {
				warnings = append(warnings, fmt.Sprintf("%s.%s is unknown: use clusterName, status, applied, appliedMessage or health", place, name))
			}
		}
	}
	return items, warnings, nil
}

// setItem sets one field of an item. It returns false for a field that items do not have.
func setItem(item *v1alpha1.AggregatedStatusItem, name string, value any) (known bool, err error) {
	text, isText := value.(string)
	flag, isBool := value.(bool)
	switch {
	case !slices.Contains([]string{"clusterName", "status", "applied", "appliedMessage", "health"}, name):
		return false, nil
	case value == nil:
	case name == "status":
		raw, err := json.Marshal(value)
		item.Status = &runtime.RawExtension{Raw: raw}
		return true, err
	case name == "applied":
		if !isBool {
			return true, fmt.Errorf("must be true or false")
		}
		item.Applied = flag
	case !isText:
		return true, fmt.Errorf("must be a text")
	case name == "clusterName":
		item.ClusterName = text
	case name == "appliedMessage":
		item.AppliedMessage = text
	case name == "health":
		item.Health = v1alpha1.CopyHealth(text)
		if !slices.Contains([]v1alpha1.CopyHealth{v1alpha1.CopyHealthy, v1alpha1.CopyUnhealthy, v1alpha1.CopyUnknown}, item.Health) {
			return true, fmt.Errorf("must be Healthy, Unhealthy or Unknown")
		}
	}
	return true, nil
}
