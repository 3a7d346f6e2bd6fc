package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/clusters"
)

// placement judges what an edit does to spec.placement. On a hub, it returns what is wrong with it; in a cluster, where a hub has judged
// it, it only keeps spec.placement from coming and going. Only some hubs read decisions.
func placement(old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, hub, decisions bool) (warnings []string, err error) {
	has, had := instance.Spec.Placement != nil, old != nil && old.Spec.Placement != nil
	switch {
	case has && old != nil && !had && len(old.Status.PlanStatus) > 0:
		return nil, fmt.Errorf("spec.placement: Instance %s/%s has run plans here, and a hub would not take over what they made: create an "+
			"Instance of another name on the hub", instance.Namespace, instance.Name)
	case had && !has && hub:
		return nil, fmt.Errorf("spec.placement: Instance %s/%s runs in clusters %s, and would lose them: delete it, or set "+
			"spec.placement.onDelete to Orphan, delete it, and run kubectl kudo placement free in each cluster", instance.Namespace, instance.Name,
			old.Spec.Placement.ClusterNames())
	case had && !has && old.PlacedTemplate() != "":
		return nil, fmt.Errorf("spec.placement: a hub manages Instance %s/%s: remove the cluster from spec.placement.clusters on the hub, or "+
			"set spec.placement.onDelete to Orphan there, delete the Instance there, and run kubectl kudo placement free here", instance.Namespace,
			instance.Name)
	case !has && hub:
		return []string{"spec.placement is missing, and a hub runs no plans: the Instance runs nowhere"}, nil
	case !has || !hub || had && isPlacementJudged(old, instance):
		return nil, nil
	}
	if instance.Spec.Placement.Decision != nil && !decisions {
		return nil, clusters.ErrNoDecisions
	}
	var version *v1beta1.OperatorVersionSpec
	if ov != nil {
		version = &ov.Spec
	}
	return nil, clusters.Validate(instance, version)
}

// isPlacementJudged reports whether an edit changes nothing that a placement depends on.
func isPlacementJudged(old, instance *v1beta1.Instance) bool {
	return equality.Semantic.DeepEqual(old.Spec.Placement, instance.Spec.Placement) &&
		old.OperatorVersionKey() == instance.OperatorVersionKey() && maps.Equal(old.Spec.Parameters, instance.Spec.Parameters)
}

// replacedDefaults returns the defaults of the parameters whose values differ between clusters, and that spec does not set: a patch can
// only replace a value that is there (C8).
func replacedDefaults(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) map[string]string {
	defaults := map[string]string{}
	for _, def := range ov.Spec.Parameters {
		if _, set := instance.Spec.Parameters[def.Name]; !set && def.HasDefault() && slices.Contains(
			clusters.ReplacedParameters(instance.Spec.Placement), def.Name) {
			defaults[def.Name] = *def.Default
		}
	}
	return defaults
}

// newDefaults returns the defaults that are written into an Instance: of immutable parameters when it is created, and on a hub also of
// those whose values differ between clusters.
func newDefaults(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, created, hub bool) map[string]string {
	defaults := map[string]string{}
	if created || hub && instance.Spec.Placement != nil {
		maps.Copy(defaults, params.ImmutableDefaults(ov.Spec.Parameters, instance.Spec.Parameters))
	}
	if hub && instance.Spec.Placement != nil {
		maps.Copy(defaults, replacedDefaults(instance, ov))
	}
	return defaults
}

// fixDefaults puts into the baseline of an edit on a hub the defaults of immutable parameters that the spec before it leaves out. No plan
// fixes them there: the hub writes them into spec when it knows the OperatorVersion, which may come after the Instance.
func fixDefaults(base *v1beta1.Baseline, old *v1beta1.Instance, ov *v1beta1.OperatorVersion, before *v1beta1.OperatorVersionSpec) {
	if old.Status.Baseline != nil || len(old.Spec.ParametersFrom) > 0 {
		return
	}
	defs := ov.Spec.Parameters
	if before != nil {
		defs = before.Parameters
	}
	base.ImmutableDefaults = params.ImmutableDefaults(defs, old.Spec.Parameters)
}

// noteDefaults writes into the JSON of a copy that a hub has placed which parameters the webhook has set, so that the engine keeps
// them (C9).
func noteDefaults(instance *v1beta1.Instance, raw map[string]any, defaults map[string]string) {
	metadata, _ := raw["metadata"].(map[string]any)
	if instance.Spec.Placement == nil || instance.PlacedTemplate() == "" || metadata == nil {
		return
	}
	annotations, _ := metadata["annotations"].(map[string]any) // a copy has some
	annotations[v1beta1.DefaultedAnnotation] = strings.Join(slices.Sorted(maps.Keys(defaults)), ",")
}
