package native

import (
	"fmt"
	"maps"
	"slices"
)

// mergeConditions makes one condition of those of a type:
//
//	               all copies True   some True   none True
//	type (usual)   True              False       False
//	type (anyTrue) True              True        False
//
// A copy of which nothing is known counts as one without conditions. A usual type that some copies lack, and that is
// True in the others, is left out: it is not True yet, and no copy says False. The copy that decides, the first in the
// order of clusters, gives the reason, message and times; its cluster stands before the message.
func (s statusRule) mergeConditions(status map[string]any, copies []memberStatus, complete bool) error {
	byType := map[string][]memberCondition{}
	for _, c := range copies {
		conditions, err := entries(c.status, "conditions")
		if err != nil {
			return fmt.Errorf("conditions of the copy in cluster %q: %w", c.cluster, err)
		}
		for _, condition := range conditions {
			name, _ := condition["type"].(string)
			byType[name] = append(byType[name], memberCondition{c.cluster, condition})
		}
	}
	var merged []any
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		if one := s.merge(name, byType[name], complete && clusters(byType[name]) == len(copies)); one != nil && name != "" {
			merged = append(merged, one)
		}
	}
	if len(merged) == 0 {
		delete(status, "conditions")
		return nil
	}
	status["conditions"] = merged
	return nil
}

// memberCondition is a condition of the copy in a cluster.
type memberCondition struct {
	cluster   string
	condition map[string]any
}

// clusters counts the copies that conditions are from. A copy may name a type more than once.
func clusters(all []memberCondition) int {
	names := map[string]bool{}
	for _, one := range all {
		names[one.cluster] = true
	}
	return len(names)
}

func (s statusRule) merge(name string, all []memberCondition, inAll bool) map[string]any {
	isTrue := func(p memberCondition) bool { return p.condition["status"] == "True" }
	decides := func(p memberCondition) bool { return !isTrue(p) }
	if slices.Contains(s.anyTrue, name) {
		decides = isTrue
	}
	chosen := slices.IndexFunc(all, decides)
	if chosen < 0 && !inAll && !slices.Contains(s.anyTrue, name) {
		return nil // all that have it say True; the others have not yet
	}
	one := maps.Clone(all[max(chosen, 0)].condition)
	if message, _ := one["message"].(string); message != "" && chosen >= 0 && len(all) > 1 {
		one["message"] = all[chosen].cluster + ": " + message
	}
	return one
}
