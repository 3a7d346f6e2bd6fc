package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Drift is what others have changed of an object since a field manager has written it.
type Drift struct {
	ID ID
	// Fields that others own now, such as .spec.replicas; empty if it cannot be determined which they are: they were removed, or
	// there are too many.
	Fields []string
	// By names who owns these fields now, or who wrote the object last.
	By []string
}

// String says for people what was changed, and by whom.
func (d *Drift) String() string {
	what := "fields of it were"
	switch len(d.Fields) {
	case 0:
	case 1:
		what = d.Fields[0] + " was"
	default:
		what = strings.Join(d.Fields, ", ") + " were"
	}
	by := "another client"
	if len(d.By) > 0 {
		by = strings.Join(d.By, ", ")
	}
	return fmt.Sprintf("%s: %s changed by %s", d.ID, what, by)
}

// Digest is that of the fields that a manager owns of an object now: where it is not that of the inventory, another
// client has changed some. It is empty if the manager owns none, and known is false if the mirror does not show the
// kind yet.
func (m *Mirror) Digest(id ID, manager string) (digest string, known bool) {
	m.mu.Lock()
	w := m.kinds[id.GroupVersionKind]
	m.mu.Unlock()
	if w == nil {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if latest := w.latest(id.Namespace + "/" + id.Name); latest != nil {
		return digestOf(latest.owners, manager), true
	}
	return "", w.informer.HasSynced()
}

// Drift looks at an object whose fields a manager does not own any more as it did when the digest was taken: one GET. It
// is nil if nothing was changed, or nothing but what the retainer leaves to others.
func (e *Engine) Drift(ctx context.Context, id ID, manager, digest string) (*Drift, error) {
	resource, err := e.Resource(id.Object())
	if err != nil {
		return nil, err
	}
	live, err := GetOrNil(ctx, resource, id.Name)
	if err != nil || live == nil {
		return nil, err
	}
	before, err := strconv.ParseUint(digest, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("digest %q of %s: %w", digest, id, err)
	}
	now, _ := strconv.ParseUint(digestOf(ownerships(live), manager), 16, 64) // nothing at all is owned any more: 0
	if now == before {
		return nil, nil
	}
	taken := others(live, manager)
	retained, err := e.retained(ctx, live, taken)
	if err != nil {
		return nil, err
	}
	return newDrift(id, live, manager, taken, retained, before-now), nil
}

// newDrift says which of the fields that others have were lost, leaving out those that are retained.
func newDrift(id ID, live *unstructured.Unstructured, manager string, taken []leaf, retained map[uint64]bool, lost uint64) *Drift {
	drift := &Drift{ID: id}
	leaves, found := leavesForSum(taken, lost)
	for _, l := range leaves {
		if retained[l.hash] {
			continue
		}
		drift.Fields = append(drift.Fields, display(l.path))
		if !slices.Contains(drift.By, l.by) {
			drift.By = append(drift.By, l.by)
		}
	}
	if found && len(drift.Fields) == 0 {
		return nil
	}
	if !found {
		if by := Writer(live, manager); by != "" {
			drift.By = []string{by}
		}
	}
	slices.Sort(drift.Fields)
	slices.Sort(drift.By)
	return drift
}

// Writer is the field manager other than one that has written an object last; empty if it cannot be determined. Writers of
// subresources do not count.
func Writer(live *unstructured.Unstructured, but string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != but && entry.Subresource == "" && entry.Time != nil && (last.Time == nil || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last.Manager
}

// display is a path as kubectl shows it in conflicts.
func display(path []string) string {
	var out fieldpath.Path
	for _, key := range path {
		element, err := fieldpath.DeserializePathElement(key)
		if err != nil {
			return strings.Join(path, "/")
		}
		out = append(out, element)
	}
	return out.String()
}

// retained finds out which fields the retainer leaves to others: it is asked what it would keep if they had other values.
func (e *Engine) retained(ctx context.Context, live *unstructured.Unstructured, taken []leaf) (map[uint64]bool, error) {
	if e.retain == nil || len(taken) == 0 {
		return nil, nil
	}
	other := live.DeepCopy()
	for _, l := range taken {
		withOtherValue(other.Object, l.path)
	}
	kept, err := e.retain.Retain(ctx, other, live)
	if err != nil {
		return nil, err
	}
	out := map[uint64]bool{}
	for _, l := range taken {
		is, want := at(kept.Object, l.path), at(live.Object, l.path)
		if text(is) == text(want) && text(at(other.Object, l.path)) != text(want) {
			out[l.hash] = true
		}
	}
	return out, nil
}

func text(value any) string {
	out, _ := json.Marshal(value)
	return string(out)
}

// withOtherValue gives a field another value, if it is one of a map: a number grows, so that it is still there, and anything else
// goes.
func withOtherValue(object map[string]any, path []string) {
	last := len(path) - 1
	fields, ok := at(object, path[:last]).(map[string]any)
	name, isField := strings.CutPrefix(path[last], "f:")
	if !ok || !isField {
		return
	}
	switch value := fields[name].(type) {
	case int64:
		fields[name] = value + 1
	default:
		delete(fields, name)
	}
}

// at is the value at a path of FieldsV1, or nil if there is none.
func at(value any, path []string) any {
	for _, key := range path {
		kind, rest, _ := strings.Cut(key, ":")
		switch v := value.(type) {
		case map[string]any:
			value = v[rest]
		case []any:
			value = item(v, kind, rest)
		default:
			return nil
		}
	}
	return value
}

// item is that of a list which has the keys (`k`), or is the value (`v`).
func item(list []any, kind, rest string) any {
	var want any
	if json.Unmarshal([]byte(rest), &want) != nil {
		return nil
	}
	keys, _ := want.(map[string]any)
	for _, candidate := range list {
		fields, _ := candidate.(map[string]any)
		switch {
		case kind == "v" && text(candidate) == text(want):
			return candidate
		case kind != "k" || fields == nil:
			continue
		}
		matches := true
		for key, value := range keys {
			matches = matches && text(fields[key]) == text(value)
		}
		if matches {
			return candidate
		}
	}
	return nil
}
