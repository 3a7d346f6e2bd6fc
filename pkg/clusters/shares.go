package clusters

import (
	"cmp"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Shares divides a value, which is not negative, over clusters by their weights. What whole numbers leave over goes to the clusters with
// the largest remainders, and of equal ones to those that come first by name (C46).
func Shares(value int64, clusters []v1beta1.PlacedCluster) map[string]int64 {
	if len(clusters) == 0 {
		return nil
	}
	var total int64
	for _, c := range clusters {
		total += c.EffectiveWeight()
	}
	shares := make(map[string]int64, len(clusters))
	left := value
	for _, c := range clusters {
		share := value * c.EffectiveWeight() / total
		shares[c.Name] = share
		left -= share
	}
	order := slices.Clone(clusters)
	slices.SortFunc(order, func(a, b v1beta1.PlacedCluster) int {
		return cmp.Or(cmp.Compare(value*b.EffectiveWeight()%total, value*a.EffectiveWeight()%total), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range order[:left] {
		shares[c.Name]++
	}
	return shares
}
