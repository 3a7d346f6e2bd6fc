package apply

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownership is a digest of the fields of an object that one field manager has applied. When another client changes or
// removes one of them, the API server takes it out of the manager's set, so that the digest tells of every such change,
// and of nothing else: neither of status, nor of defaults, nor of fields that others add.
type ownership struct {
	manager string
	sum     uint64
}

// ownerships are those of all managers that have applied an object.
func ownerships(live *unstructured.Unstructured) []ownership {
	var out []ownership
	for _, entry := range entries(live) {
		if entry["operation"] == string(metav1.ManagedFieldsOperationApply) && entry["subresource"] == nil {
			manager, _ := entry["manager"].(string)
			out = append(out, ownership{manager, sumOf(entry)})
		}
	}
	return out
}

// entries are the managed fields of an object, as they were received.
func entries(live *unstructured.Unstructured) []map[string]any {
	metadata, _ := live.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if entry, ok := item.(map[string]any); ok {
			out = append(out, entry)
		}
	}
	return out
}

// digestOf is how the inventory keeps what a manager owns; empty if it is not known.
func digestOf(all []ownership, manager string) string {
	for _, o := range all {
		if o.manager == manager {
			return strconv.FormatUint(o.sum, 16)
		}
	}
	return ""
}

// sumOf adds up the hashes of the fields of an entry. Since it is a sum, what is missing in a later one is the sum of
// the fields that were lost.
func sumOf(entry map[string]any) uint64 {
	var sum uint64
	fields, _ := entry["fieldsV1"].(map[string]any)
	walk(fields, nil, offset, func(_ []string, hash uint64) { sum += hash })
	return sum
}

// walk visits the leaves of a set in the form of FieldsV1 (KEP-555), each with its path and the hash of it.
func walk(set map[string]any, path []string, hash uint64, visit func(path []string, hash uint64)) {
	for key, value := range set {
		if key == "." {
			if len(path) > 0 {
				visit(path, mixHash(hash))
			}
			continue
		}
		below, _ := value.(map[string]any)
		at, to := append(path, key), hashed(hash, key)
		if len(below) == 0 {
			visit(at, mixHash(to))
			continue
		}
		walk(below, at, to, visit)
	}
}

// The constants of FNV-1a, and of the finalizer of SplitMix64.
const (
	offset = 14695981039346656037
	prime  = 1099511628211
)

func hashed(hash uint64, key string) uint64 {
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * prime
	}
	return (hash ^ '\n') * prime
}

// mixHash makes hashes whose sums differ.
func mixHash(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// leaf is a field that a manager owns.
type leaf struct {
	path []string
	hash uint64
	by   string
}

// others lists the fields that others own and the manager does not, but for those of status.
func others(live *unstructured.Unstructured, manager string) []leaf {
	own, found := map[uint64]bool{}, map[uint64]leaf{}
	for _, entry := range entries(live) {
		by, _ := entry["manager"].(string)
		fields, _ := entry["fieldsV1"].(map[string]any)
		mine := by == manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply)
		walk(fields, nil, offset, func(path []string, hash uint64) {
			if mine {
				own[hash] = true
			} else if path[0] != "f:status" {
				found[hash] = leaf{slices.Clone(path), hash, by}
			}
		})
	}
	maps.DeleteFunc(found, func(hash uint64, _ leaf) bool { return own[hash] })
	return slices.SortedFunc(maps.Values(found), func(a, b leaf) int { return slices.Compare(a.path, b.path) })
}

// maxLeaves bounds the search for the fields that a sum stands for: 2^16 sums take a millisecond.
const maxLeaves = 16

// leavesForSum finds the leaves whose hashes add up to a sum.
func leavesForSum(leaves []leaf, sum uint64) ([]leaf, bool) {
	if len(leaves) > maxLeaves {
		return nil, false
	}
	for set := range uint32(1) << len(leaves) {
		var total uint64
		for i := range leaves {
			if set>>i&1 == 1 {
				total += leaves[i].hash
			}
		}
		if total != sum {
			continue
		}
		var out []leaf
		for i := range leaves {
			if set>>i&1 == 1 {
				out = append(out, leaves[i])
			}
		}
		return out, true
	}
	return nil, false
}
