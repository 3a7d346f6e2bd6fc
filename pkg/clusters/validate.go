package clusters

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	labels "k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/text"
)

// MaxClusters is how many clusters an Instance may be placed on (C51).
const MaxClusters = 100

// Validate returns what is wrong with the placement of an Instance, or nil. Without the OperatorVersion, which is nil then, it does not
// compare parameters with their definitions.
func Validate(instance *v1beta1.Instance, version *v1beta1.OperatorVersionSpec) error {
	v := &validation{instance: instance, placement: instance.Spec.Placement, defs: map[string]v1beta1.Parameter{}, defined: version != nil}
	if version != nil {
		for _, def := range version.Parameters {
			v.defs[def.Name] = def
		}
	}
	v.checkClusters()
	v.checkWaves()
	v.checkDivide()
	v.checkParameters()
	v.checkObjects()
	return errors.Join(v.problems...)
}

// validation collects what is wrong with a placement.
type validation struct {
	instance  *v1beta1.Instance
	placement *v1beta1.Placement
	defs      map[string]v1beta1.Parameter
	defined   bool
	problems  []error
}

func (v *validation) add(field, format string, args ...any) {
	v.problems = append(v.problems, fmt.Errorf("spec.placement%s: %s", field, fmt.Sprintf(format, args...)))
}

func (v *validation) checkClusters() {
	switch n := len(v.placement.Clusters); {
	case v.placement.Decision != nil:
		v.checkDecision()
	case n == 0 || n > MaxClusters:
		v.add(".clusters", "there are %d: name 1 to %d clusters, or the decision of a scheduler in spec.placement.decision", n, MaxClusters)
	}
	seen := map[string]bool{}
	for n, c := range v.placement.Clusters {
		field := fmt.Sprintf(".clusters[%d]", n)
		switch {
		case c.Name == "":
			v.add(field+".name", "it is empty: name a cluster")
		case seen[c.Name]:
			v.add(field+".name", "%s is there twice: name each cluster once", c.Name)
		}
		if c.Weight < 0 || c.Weight > 1000 {
			v.add(field+".weight", "%d must be 1 to 1000", c.Weight)
		}
		seen[c.Name] = true
	}
}

// checkDecision checks the decision that names the clusters (C45).
func (v *validation) checkDecision() {
	name := v.placement.Decision.Name
	if len(v.placement.Clusters) > 0 {
		v.add(".decision", "the decision %s names the clusters, and spec.placement.clusters names %d, too: remove one of the two",
			text.Truncate(name, maxName), len(v.placement.Clusters))
	}
	if problems := labels.IsValidLabelValue(name); name == "" || len(problems) > 0 {
		v.add(".decision.name", "%q cannot be the value of the label multicluster.x-k8s.io/decision-key: name the decision as its "+
			"PlacementDecisions do", text.Truncate(name, maxName))
	}
}

func (v *validation) checkWaves() {
	waves := v.placement.Waves
	if waves == nil {
		return
	}
	if waves.Soak != nil && waves.Soak.Duration < 0 {
		v.add(".waves.soak", "%s must not be negative", waves.Soak.Duration)
	}
	if waves.MaxFailures < 0 {
		v.add(".waves.maxFailures", "%d must not be negative", waves.MaxFailures)
	}
	seen := map[string]bool{}
	for n, group := range waves.Groups {
		field := fmt.Sprintf(".waves.groups[%d]", n)
		if len(group) == 0 {
			v.add(field, "it is empty: name a cluster, or remove the group")
		}
		for _, name := range group {
			switch {
			case v.placement.Decision == nil &&
				!slices.ContainsFunc(v.placement.Clusters, func(c v1beta1.PlacedCluster) bool { return c.Name == name }):
				v.add(field, "%s is not in spec.placement.clusters, which has %s: correct the name, or add the cluster", name,
					text.Truncate(v.placement.ClusterNames(), maxMessage))
			case seen[name]:
				v.add(field, "%s is in two groups: name it in one", name)
			}
			seen[name] = true
		}
	}
}

// checkDivide checks the parameter that is divided (C8, C13, C52).
func (v *validation) checkDivide() {
	name := v.placement.Divide
	if name == "" {
		return
	}
	for n, c := range v.placement.Clusters {
		if _, has := c.Parameters[name]; has {
			v.add(fmt.Sprintf(".clusters[%d].parameters", n), "%s is divided: remove it here, or from spec.placement.divide", name)
		}
	}
	def, known := v.defs[name]
	switch {
	case v.defined && !known:
		v.add(".divide", "the OperatorVersion has no parameter %s: name one that it has", name)
		return
	case known && def.IsImmutable():
		v.add(".divide", "parameter %s is immutable, and a share may change: name another one", name)
		return
	case known && def.Sensitive:
		v.add(".divide", "parameter %s is sensitive, and shares are not kept secret: name another one", name)
		return
	}
	value, err := v.divided()
	if err != nil {
		v.add(".divide", "%s", err)
		return
	}
	v.checkShares(value)
}

// checkShares refuses shares of none: the engine would delete the Instance in such a cluster (C13). The shares of what a decision names are
// judged by ValidateDecided.
func (v *validation) checkShares(value int64) {
	var total int64
	for _, c := range v.placement.Clusters {
		total += c.EffectiveWeight()
	}
	if value == 0 {
		return
	}
	for n, c := range v.placement.Clusters {
		if value*c.EffectiveWeight()/total < 1 {
			v.add(fmt.Sprintf(".clusters[%d].weight", n), "the share of %s of %s=%d is less than 1: raise its weight or the value, or remove the "+
				"cluster", c.Name, v.placement.Divide, value)
		}
	}
}

// ErrNoDecisions says that the engine of a hub reads no decisions.
var ErrNoDecisions = errors.New("spec.placement.decision: Karmada carries the Instances of this hub, and reads no PlacementDecisions: " +
	"name the clusters in spec.placement.clusters, or use a hub with the engine inventory (kubectl kudo init --hub --set " +
	"clustersEngine=inventory)")

// ValidateDecided returns what is wrong with the clusters that a decision names for an Instance, or nil. The placement must be valid (C13,
// C45).
func ValidateDecided(instance *v1beta1.Instance, names []string) error {
	value := DividedValue(instance)
	if value == nil || *value == 0 || *value >= int64(len(names)) {
		return nil
	}
	return fmt.Errorf("spec.placement.decision: the decision %s names %d clusters, and %s=%d gives some of them a share of less than 1: "+
		"raise the value, or let the scheduler choose fewer", instance.Spec.Placement.Decision.Name, len(names),
		instance.Spec.Placement.Divide, *value)
}

// divided returns the value that is divided.
func (v *validation) divided() (int64, error) {
	name := v.placement.Divide
	value, has := v.instance.Spec.Parameters[name]
	if !has {
		return 0, fmt.Errorf("spec.parameters has no value for %s: set it to a whole number", name)
	}
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil || number < 0 || strconv.FormatInt(number, 10) != value {
		return 0, fmt.Errorf("spec.parameters.%s is %q, which must be a whole number from 0 to %d", name, text.Truncate(value, maxName),
			math.MaxInt32)
	}
	return number, nil
}

// maxName bounds, in bytes, what messages show of a value.
const maxName = 64

// checkParameters checks the values of single clusters.
func (v *validation) checkParameters() {
	for n, c := range v.placement.Clusters {
		for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
			field := fmt.Sprintf(".clusters[%d].parameters", n)
			def, known := v.defs[name]
			if v.defined && !known {
				v.add(field, "the OperatorVersion has no parameter %s: correct or remove it", name)
				continue
			}
			if known {
				if problem := params.Check(def, c.Parameters[name]); problem != nil {
					v.add(field, "%s", problem)
				}
			}
			if _, has := v.instance.Spec.Parameters[name]; !has {
				v.add(field, "spec.parameters has no value for %s, which the value for %s is to replace: set one", name, c.Name)
			}
		}
	}
}

// checkObjects checks the objects that follow the Instance (C7, C52).
func (v *validation) checkObjects() {
	if key := v.instance.OperatorVersionKey(); key.Namespace != v.instance.Namespace {
		v.add("", "spec.operatorVersion names %s, and objects of other namespaces do not follow an Instance: install the package in namespace %s",
			key, v.instance.Namespace)
	}
	kinds := []string{"Operator", "OperatorVersion"} // no Secrets: who may write Instances need not be allowed to read them
	for n, object := range v.placement.Include {
		if !slices.Contains(kinds, object.Kind) {
			v.add(fmt.Sprintf(".include[%d].kind", n), "%q must be one of %s", text.Truncate(object.Kind, maxName), strings.Join(kinds, ", "))
		}
		if object.Name == "" {
			v.add(fmt.Sprintf(".include[%d].name", n), "it is empty: name the object")
		}
	}
}

// DividedValue returns the value that is divided, or nil if none is. The placement must be valid.
func DividedValue(instance *v1beta1.Instance) *int64 {
	if instance.Spec.Placement.Divide == "" {
		return nil
	}
	value, err := strconv.ParseInt(instance.Spec.Parameters[instance.Spec.Placement.Divide], 10, 32)
	if err != nil {
		return nil
	}
	return &value
}

// ReplacedParameters returns the names of the parameters whose values differ between clusters, sorted. Each needs a value in
// spec.parameters that the engine can replace (C8).
func ReplacedParameters(placement *v1beta1.Placement) []string {
	names := map[string]bool{}
	if placement.Divide != "" {
		names[placement.Divide] = true
	}
	for _, c := range placement.Clusters {
		for name := range c.Parameters {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
