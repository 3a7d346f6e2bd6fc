package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// maxClusters bounds how many clusters an Instance is placed on.
const maxClusters = 100

// HoldError says why decisions are not acted upon: what is placed stays as it is.
type HoldError struct{ Message string }

func (e *HoldError) Error() string { return e.Message }

// Decide returns the ClusterProfiles that the slices of a decision name, each once, in the order of the slices: by index, or by name if no
// slice has one. An empty list that a slice states is a decision. No slice at all, two slices with one index, an index that is missing and
// an entry without a name are a *HoldError.
func Decide(decision string, slices []PlacementDecision) ([]types.NamespacedName, error) {
	hold := func(format string, args ...any) error {
		return &HoldError{fmt.Sprintf("PlacementDecisions with %s=%s: ", DecisionKeyLabel, decision) + fmt.Sprintf(format, args...)}
	}
	if len(slices) == 0 {
		return nil, hold("there are none: a scheduler that wants no cluster states `decisions: []`")
	}
	ordered, err := inOrder(slices, hold)
	if err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	seen := map[types.NamespacedName]bool{}
	for _, slice := range ordered {
		for i, d := range slice.Decisions {
			key := types.NamespacedName{Namespace: cmp.Or(d.ClusterProfileRef.Namespace, slice.Namespace), Name: d.ClusterProfileRef.Name}
			if key.Name == "" {
				return nil, hold("%s: decisions[%d].clusterProfileRef has no name", slice.Name, i)
			}
			if !seen[key] {
				seen[key] = true
				out = append(out, key)
			}
		}
	}
	if len(out) > maxClusters {
		return nil, hold("%d clusters are more than the %d that an Instance can have: let the scheduler choose fewer", len(out), maxClusters)
	}
	return out, nil
}

// inOrder sorts slices by index, from 0 or 1 without a gap, or by name if none has an index.
func inOrder(in []PlacementDecision, hold func(string, ...any) error) ([]PlacementDecision, error) {
	out := slices.SortedFunc(slices.Values(in), func(a, b PlacementDecision) int { return cmp.Compare(a.Name, b.Name) })
	indexed := slices.ContainsFunc(out, func(s PlacementDecision) bool { return s.Labels[DecisionIndexLabel] != "" })
	if !indexed {
		return out, nil
	}
	index := map[string]int{}
	for _, s := range out {
		n, err := strconv.ParseUint(s.Labels[DecisionIndexLabel], 10, 16)
		if err != nil {
			return nil, hold("%s has the index %q, which is no number, and others have one", s.Name, s.Labels[DecisionIndexLabel])
		}
		index[s.Name] = int(n)
	}
	slices.SortStableFunc(out, func(a, b PlacementDecision) int { return cmp.Compare(index[a.Name], index[b.Name]) })
	first := index[out[0].Name]
	if first > 1 {
		return nil, hold("the slices with the indexes below %d are missing", first)
	}
	for i, s := range out[1:] {
		switch before := index[out[i].Name]; index[s.Name] {
		case before + 1:
		case before:
			return nil, hold("%s and %s both have the index %d", out[i].Name, s.Name, before)
		default:
			return nil, hold("the slice with the index %d is missing", before+1)
		}
	}
	return out, nil
}
