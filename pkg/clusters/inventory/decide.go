package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

// maxShown bounds, in bytes, what messages show of a name that cannot be one.
const maxShown = 64

// choice is what the slices of a decision come to: ClusterProfiles, each once, in the order of the slices. fromZero is set if the slices
// are numbered from 0.
type choice struct {
	profiles []types.NamespacedName
	fromZero bool
}

// decide returns what the slices of a decision come to. Their order is that of the indexes, or of the names if no slice has an index. They
// may be numbered from 1, unless they were numbered from 0 before. An empty list that a slice states is a decision. No slice at all,
// two slices with one index, an index that is missing, an entry that can name no ClusterProfile and more than 100 of them are a
// *clusters.HoldError.
func decide(decision string, slices []PlacementDecision, fromZero bool) (choice, error) {
	hold := func(format string, args ...any) error {
		return &clusters.HoldError{Message: fmt.Sprintf("PlacementDecisions with %s=%s: ", DecisionKeyLabel, decision) +
			fmt.Sprintf(format, args...)}
	}
	if len(slices) == 0 {
		return choice{}, hold("there are none: a scheduler that wants no cluster states `decisions: []`")
	}
	ordered, first, err := inOrder(slices, hold)
	switch {
	case err != nil:
		return choice{}, err
	case fromZero && first == 1:
		return choice{}, hold("the slice with the index 0, which was there before, is missing")
	}
	out := choice{fromZero: first == 0}
	seen := map[types.NamespacedName]bool{}
	for _, slice := range ordered {
		for i, d := range slice.Decisions {
			key := types.NamespacedName{Namespace: cmp.Or(d.ClusterProfileRef.Namespace, slice.Namespace), Name: d.ClusterProfileRef.Name}
			if problem := profileProblem(key); problem != "" {
				return choice{}, hold("%s: decisions[%d].clusterProfileRef %s", slice.Name, i, problem)
			}
			if !seen[key] {
				seen[key] = true
				out.profiles = append(out.profiles, key)
			}
		}
	}
	if n := len(out.profiles); n > clusters.MaxClusters {
		return choice{}, hold("%d clusters are more than the %d that an Instance can have: let the scheduler choose fewer", n,
			clusters.MaxClusters)
	}
	return out, nil
}

// profileProblem says why no ClusterProfile can have a name, or returns "". A name with a slash would mean one of another namespace.
func profileProblem(key types.NamespacedName) string {
	switch {
	case key.Name == "":
		return "has no name"
	case len(validation.IsDNS1123Subdomain(key.Name)) > 0:
		return fmt.Sprintf("has the name %q, which no ClusterProfile can have", text.Truncate(key.Name, maxShown))
	case len(validation.IsDNS1123Label(key.Namespace)) > 0:
		return fmt.Sprintf("has the namespace %q, which cannot be one", text.Truncate(key.Namespace, maxShown))
	}
	return ""
}

// inOrder sorts slices by index, from 0 or 1 without a gap, or by name if none has an index. It returns the first index, or -1 if there is
// none.
func inOrder(in []PlacementDecision, hold func(string, ...any) error) (out []PlacementDecision, first int, err error) {
	out = slices.SortedFunc(slices.Values(in), func(a, b PlacementDecision) int { return cmp.Compare(a.Name, b.Name) })
	indexed := slices.ContainsFunc(out, func(s PlacementDecision) bool { return s.Labels[DecisionIndexLabel] != "" })
	if !indexed {
		return out, -1, nil
	}
	index := map[string]int{}
	for _, s := range out {
		n, err := strconv.ParseUint(s.Labels[DecisionIndexLabel], 10, 16)
		if err != nil {
			return nil, 0, hold("%s has the index %q, which is no number, and others have one", s.Name,
				text.Truncate(s.Labels[DecisionIndexLabel], maxShown))
		}
		index[s.Name] = int(n)
	}
	slices.SortStableFunc(out, func(a, b PlacementDecision) int { return cmp.Compare(index[a.Name], index[b.Name]) })
	first = index[out[0].Name]
	if first > 1 {
		return nil, 0, hold("the slices with the indexes below %d are missing", first)
	}
	for i, s := range out[1:] {
		switch before := index[out[i].Name]; index[s.Name] {
		case before + 1:
		case before:
			return nil, 0, hold("%s and %s both have the index %d", out[i].Name, s.Name, before)
		default:
			return nil, 0, hold("the slice with the index %d is missing", before+1)
		}
	}
	return out, first, nil
}
