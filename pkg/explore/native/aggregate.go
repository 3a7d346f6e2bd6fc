package native

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// fields are the paths below status that a rule reflects.
func (s statusRule) fields() [][]string {
	var paths [][]string
	for _, name := range slices.Concat(s.sums, s.latest, s.earliest, s.lists, s.reflected) {
		paths = append(paths, strings.Split(name, "."))
	}
	if s.worst != nil {
		paths = append(paths, []string{"phase"})
	}
	if s.conditions {
		paths = append(paths, []string{"conditions"})
	}
	if s.observed {
		paths = append(paths, []string{"observedGeneration"})
	}
	return paths
}

// memberStatus is the status of one running copy.
type memberStatus struct {
	cluster string
	status  map[string]any
}

// aggregate rolls the statuses of copies up into the object's. It goes by the copies only, so that doing it again
// gives the same. Where nothing is known of any copy (nil), the object stays as it is.
func aggregate(kind schema.GroupKind, r explore.Request) (explore.Answer, bool, error) {
	rule, known := statusOf(kind)
	if !known {
		return explore.Answer{}, false, nil
	}
	rolled := r.Object.DeepCopy()
	if r.Items == nil {
		return explore.Answer{Object: rolled}, true, nil
	}
	copies, err := read(r.Items)
	if err != nil {
		return explore.Answer{}, false, err
	}
	status, _ := rolled.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	if err := rule.roll(status, copies, r.Object.GetGeneration(), len(copies) == len(r.Items)); err != nil {
		return explore.Answer{}, false, err
	}
	if len(status) > 0 || rolled.Object["status"] != nil {
		rolled.Object["status"] = status
	}
	return explore.Answer{Object: rolled}, true, nil
}

// read decodes the statuses, in the order of their clusters. Copies without a status are left out.
func read(items []v1alpha1.AggregatedStatusItem) ([]memberStatus, error) {
	var copies []memberStatus
	for _, item := range items {
		if item.Status == nil || len(item.Status.Raw) == 0 {
			continue
		}
		var status map[string]any
		if err := json.Unmarshal(item.Status.Raw, &status); err != nil {
			return nil, malformed(fmt.Sprintf("the status of the copy in cluster %q", item.ClusterName), err)
		}
		if status != nil {
			copies = append(copies, memberStatus{item.ClusterName, status})
		}
	}
	slices.SortStableFunc(copies, func(a, b memberStatus) int { return strings.Compare(a.cluster, b.cluster) })
	return copies, nil
}

func (s statusRule) roll(status map[string]any, copies []memberStatus, generation int64, complete bool) error {
	for _, name := range s.sums {
		if err := sum(status, copies, name); err != nil {
			return err
		}
	}
	for _, name := range s.latest {
		pickTime(status, copies, name, complete, time.Time.After)
	}
	for _, name := range s.earliest {
		pickTime(status, copies, name, true, time.Time.Before)
	}
	for _, name := range s.lists {
		if err := join(status, copies, strings.Split(name, ".")); err != nil {
			return err
		}
	}
	if s.worst != nil {
		s.pickPhase(status, copies)
	}
	if s.observed && complete && seen(copies) && generation != 0 {
		status["observedGeneration"] = generation
	}
	if s.conditions {
		return s.mergeConditions(status, copies, complete)
	}
	return nil
}

// sum writes 0 for a field that no copy has, only if the object had it: nothing is then left over from before.
func sum(status map[string]any, copies []memberStatus, name string) error {
	var total int64
	_, named := status[name]
	for _, c := range copies {
		value, found := c.status[name]
		if !found || value == nil {
			continue
		}
		n, whole := number(value)
		if !whole {
			return fmt.Errorf("%s of the copy in cluster %q is %v: want a whole number", name, c.cluster, value)
		}
		total, named = total+n, true
	}
	if named {
		status[name] = total
	}
	return nil
}

// pickTime takes one copy's time. One that is only final when all copies have it, such as that of completion, is left
// out until then.
func pickTime(status map[string]any, copies []memberStatus, name string, complete bool, better func(a, b time.Time) bool) {
	delete(status, name)
	var best time.Time
	var chosen any
	have := 0
	for _, c := range copies {
		value, _ := c.status[name].(string)
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			continue
		}
		have++
		if chosen == nil || better(at, best) {
			best, chosen = at, value
		}
	}
	if chosen == nil || name == "completionTime" && (!complete || have < len(copies)) {
		return
	}
	status[name] = chosen
}

// join puts lists one after the other, in the order of clusters, without doubles.
func join(status map[string]any, copies []memberStatus, path []string) error {
	var all []any
	for _, c := range copies {
		value, found, err := unstructured.NestedFieldCopy(c.status, path...)
		if err != nil {
			return err
		}
		if !found || value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s of the copy in cluster %q is a %T, not a list", strings.Join(path, "."), c.cluster, value)
		}
		for _, entry := range list {
			if !slices.ContainsFunc(all, func(a any) bool { return explore.Equal(a, entry) }) {
				all = append(all, entry)
			}
		}
	}
	if len(all) == 0 {
		unstructured.RemoveNestedField(status, path...)
		return nil
	}
	return setList(status, all, path...)
}

func (s statusRule) pickPhase(status map[string]any, copies []memberStatus) {
	delete(status, "phase")
	for _, phase := range s.worst {
		for _, c := range copies {
			if c.status["phase"] == phase {
				status["phase"] = phase
				return
			}
		}
	}
}

// seen reports whether every copy's controller has seen its copy's generation.
func seen(copies []memberStatus) bool {
	for _, c := range copies {
		generation, known := number(c.status["generation"])
		observed, has := number(c.status["observedGeneration"])
		if !has || known && observed < generation {
			return false
		}
	}
	return len(copies) > 0
}
