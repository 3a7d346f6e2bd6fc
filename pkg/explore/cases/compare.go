package cases

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/pods"
	"kudo.dev/kudo/pkg/text"
)

// maxDifferences bounds what one case reports.
const maxDifferences = 8

// Compare returns how an answer differs from what the case expects; nothing if it does not. Empty maps and lists equal
// absent ones, quantities go by their value, and dependencies by their set.
func (c *Case) Compare(a explore.Answer) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(c.Output)) {
		want, got := c.Output[name], c.actual(name, a)
		switch name {
		case "requires":
			want, got = withoutEmpty(canonical(want)), withoutEmpty(canonical(got))
		case "components":
			want, got = byName(want), byName(got)
		case "dependencies":
			want, got = matched(want, got)
		case "aggregatedStatus":
			// An output that is no whole object is the status.
			if fields, ok := want.(map[string]any); ok && fields["kind"] == nil && fields["apiVersion"] == nil {
				object, _ := got.(map[string]any)
				got = object["status"]
			}
		}
		found = append(found, differences(name, want, got)...)
	}
	if len(found) > maxDifferences {
		found = append(found[:maxDifferences], fmt.Sprintf("and %d more", len(found)-maxDifferences))
	}
	return found
}

// actual is the part of an answer that has a name in outputs.
func (c *Case) actual(name string, a explore.Answer) any {
	switch name {
	case "healthy":
		return a.Healthy
	case "message":
		return a.Message
	case "outcome":
		return string(a.Outcome())
	case "replica":
		return int64(a.Replicas)
	case "requires":
		if a.Requirements == nil {
			return nil
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Requirements)
		if err != nil {
			return err.Error()
		}
		return fields
	case "dependencies":
		list := make([]any, len(a.Dependencies))
		for i := range a.Dependencies {
			list[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&a.Dependencies[i])
		}
		return list
	case "components":
		list := make([]any, len(a.Components))
		for i := range a.Components {
			list[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&a.Components[i])
		}
		return list
	case "status":
		return a.Status
	}
	if a.Object == nil {
		return nil
	}
	return a.Object.Object
}

// byName returns a map of components by their names, with canonical quantities. A component without replicas counts as 0 replicas. It
// returns a list as it is if the names are not unique or are not texts.
func byName(value any) any {
	list, _ := value.([]any)
	named := map[string]any{}
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		name, isText := fields["name"].(string)
		if _, twice := named[name]; twice || !isText {
			return value
		}
		fields = maps.Clone(fields)
		fields["replicaRequirements"] = withoutEmpty(canonical(fields["replicaRequirements"]))
		if fields["replicas"] == nil {
			fields["replicas"] = int64(0)
		}
		named[name] = fields
	}
	if len(named) == 0 {
		return value
	}
	return named
}

// withoutEmpty returns a map without its empty fields, at any depth, or nil if no field is left.
func withoutEmpty(value any) any {
	fields, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	left := map[string]any{}
	for name, child := range fields {
		if child = withoutEmpty(child); !explore.Equal(child, nil) {
			left[name] = child
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left
}

// canonical writes the quantities of requirements as decimal numbers: those of one value have one text.
func canonical(value any) any {
	fields, _ := value.(map[string]any)
	requests, ok := fields["resourceRequest"].(map[string]any)
	if !ok {
		return value
	}
	decimals := map[string]any{}
	for name, quantity := range requests {
		decimals[name] = decimal(quantity)
	}
	fields = maps.Clone(fields)
	fields["resourceRequest"] = decimals
	return fields
}

// decimal is a quantity as a decimal number. What is no quantity, such as Excluded, stays as it is.
func decimal(value any) any {
	if pods.CheckQuantity(fmt.Sprint(value)) != nil {
		return value
	}
	quantity, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return value
	}
	text := quantity.AsDec().String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// matched sorts two lists as sets, so that matching entries have the same index. Equal entries of a list are one. A value that is excluded
// from the comparison matches any value.
func matched(want, got any) (any, any) {
	wanted, isList := want.([]any)
	found, bothLists := got.([]any)
	if !isList || !bothLists {
		return want, got
	}
	wanted, found = unique(wanted), unique(found)
	ordered := make([]any, 0, len(found))
	var unmatched []any
	for _, w := range wanted {
		at := slices.IndexFunc(found, func(g any) bool { return len(differences("", w, g)) == 0 })
		if at < 0 {
			unmatched = append(unmatched, w)
			continue
		}
		ordered = append(ordered, found[at])
		found = slices.Delete(found, at, at+1)
	}
	if unmatched == nil && len(found) == 0 {
		return ordered, ordered
	}
	return unmatched, found
}

// unique returns a list without duplicates, sorted by the text of the entries. Entries with values that are excluded from the comparison
// come last.
func unique(list []any) []any {
	texts := func(v any) string { text, _ := json.Marshal(v); return string(text) }
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b any) int {
		return cmp.Or(strings.Count(texts(a), Excluded)-strings.Count(texts(b), Excluded), strings.Compare(texts(a), texts(b)))
	})
	return slices.CompactFunc(sorted, explore.Equal)
}

// differences lists the paths in which two values differ.
func differences(path string, want, got any) []string {
	if want == Excluded || explore.Equal(want, got) {
		return nil
	}
	wantMap, isMap := want.(map[string]any)
	gotMap, bothMaps := got.(map[string]any)
	if isMap && (bothMaps || got == nil) {
		var found []string
		for _, key := range keysOf(wantMap, gotMap) {
			found = append(found, differences(path+"."+key, wantMap[key], gotMap[key])...)
		}
		return found
	}
	wantList, isList := want.([]any)
	gotList, bothLists := got.([]any)
	if isList && bothLists && len(wantList) == len(gotList) {
		var found []string
		for i := range wantList {
			found = append(found, differences(fmt.Sprintf("%s[%d]", path, i), wantList[i], gotList[i])...)
		}
		return found
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", path, brief(want), brief(got))}
}

func keysOf(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	for key := range b {
		all[key] = nil
	}
	return slices.Sorted(maps.Keys(all))
}

func brief(value any) string {
	if value == nil {
		return "nothing"
	}
	return text.JSON(value, 160)
}
