package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/live"
	"kudo.dev/kudo/pkg/text"
)

// bundledRule names the rules that come with kudo.
const bundledRule = "bundled"

// maxProblemText is the length of the reason why it is not known what a cluster serves, in bytes.
const maxProblemText = 300

// target is a kind that a rule answers for.
type target struct {
	schema.GroupKind
	// rule names the rule, such as `Config/pots spec.explorations[0]`, or is bundledRule.
	rule string
	// versions are those that the rule is for, in order.
	versions []string
}

// targetsOf returns the kinds of Configs, one for each entry, and those of the bundled rules. An entry without a kind is left out, since it
// is an error of the Config.
func targetsOf(configs []v1alpha1.Config) ([]target, error) {
	var out []target
	add := func(rule, apiVersion, kind string) {
		if gvk := schema.FromAPIVersionAndKind(apiVersion, kind); gvk.Kind != "" && gvk.Version != "" {
			out = append(out, target{gvk.GroupKind(), rule, []string{gvk.Version}})
		}
	}
	for i := range configs {
		c := &configs[i]
		for n, r := range c.Spec.Retentions {
			add(fmt.Sprintf("Config/%s spec.retentions[%d]", c.Name, n), r.APIVersion, r.Kind)
		}
		for n := range c.Spec.Explorations {
			e := &c.Spec.Explorations[n]
			add(fmt.Sprintf("Config/%s spec.explorations[%d]", c.Name, n), e.APIVersion, e.Kind)
		}
	}
	bundled, err := library.New(live.NewHost())
	if err != nil {
		return nil, err
	}
	for _, gvk := range bundled.Kinds() { // the versions of a kind follow each other
		if last := len(out) - 1; last >= 0 && out[last].rule == bundledRule && out[last].GroupKind == gvk.GroupKind() {
			out[last].versions = append(out[last].versions, gvk.Version)
			continue
		}
		add(bundledRule, gvk.GroupVersion().String(), gvk.Kind)
	}
	return out, nil
}

// servedKinds is what a cluster serves.
type servedKinds struct {
	// versions are those of a kind.
	versions map[schema.GroupKind][]string
	// problems are why it is not known which kinds a group has in a version.
	problems map[schema.GroupVersion]error
}

// discoverKinds asks a cluster which kinds it serves. The answer of an aggregated API server that does not respond is missing, and named.
func discoverKinds(d discovery.DiscoveryInterface) (*servedKinds, error) {
	_, lists, err := d.ServerGroupsAndResources()
	problems, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("ask the cluster which kinds it serves: %w", err)
	}
	served := &servedKinds{versions: map[schema.GroupKind][]string{}, problems: problems}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // of an API server that is not Kubernetes: no rule has such a version
		}
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind).GroupKind()
			if !strings.Contains(r.Name, "/") && !slices.Contains(served.versions[kind], version.Version) { // a subresource is no kind
				served.versions[kind] = append(served.versions[kind], version.Version)
			}
		}
	}
	return served, nil
}

// compare returns the versions of a target that the cluster serves, those that it does not serve, and those whose discovery failed.
func (s *servedKinds) compare(t target) (served, unserved, unknown []string) {
	for _, version := range t.versions {
		switch {
		case slices.Contains(s.versions[t.GroupKind], version):
			served = append(served, version)
		case s.problems[schema.GroupVersion{Group: t.Group, Version: version}] != nil:
			unknown = append(unknown, version)
		default:
			unserved = append(unserved, version)
		}
	}
	return served, unserved, unknown
}

// warning says why a target matches no object of the cluster, or why that is not known; "" if it matches those of one version at least, or
// if the cluster does not have the kind of a bundled rule at all.
func (s *servedKinds) warning(t target) string {
	served, unserved, unknown := s.compare(t)
	others := s.versions[t.GroupKind]
	switch {
	case len(served) > 0:
		return ""
	case len(unknown) > 0:
		problem := s.problems[schema.GroupVersion{Group: t.Group, Version: unknown[0]}]
		return fmt.Sprintf("it is not known whether the cluster serves %s %s: %s", t.GroupKind, unknown[0],
			text.Plain(problem.Error(), maxProblemText))
	case len(others) > 0 && t.rule == bundledRule:
		return fmt.Sprintf("the cluster serves %s in %s, and the rules that come with kudo are for %s: they match nothing; write a Config for "+
			"the version that you use", t.GroupKind, strings.Join(others, ", "), strings.Join(unserved, ", "))
	case len(others) > 0:
		return fmt.Sprintf("the cluster does not serve %s in %s: the rule matches nothing; it serves %s", t.GroupKind, unserved[0],
			strings.Join(others, ", "))
	case t.rule == bundledRule:
		return ""
	}
	return fmt.Sprintf("the cluster does not serve %s: the rule matches nothing until its CustomResourceDefinition is created", t.GroupKind)
}

// covers reports whether a Config of the targets answers for a kind in a version that the cluster serves.
func (s *servedKinds) covers(targets []target, kind schema.GroupKind) bool {
	return slices.ContainsFunc(targets, func(t target) bool {
		served, _, _ := s.compare(t)
		return t.rule != bundledRule && t.GroupKind == kind && len(served) > 0
	})
}

// checkServed prints for each rule which versions of its kind the cluster serves and which it does not, and returns warnings about rules
// that match nothing.
func checkServed(env *command.Env, configs []v1alpha1.Config, served *servedKinds) ([]string, error) {
	targets, err := targetsOf(configs)
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"RULE", "KIND", "SERVED", "NOT SERVED", "NOT KNOWN"}}
	var warnings []string
	for _, t := range targets {
		row := []string{t.rule, t.GroupKind.String()}
		is, not, unknown := served.compare(t)
		for _, versions := range [][]string{is, not, unknown} {
			row = append(row, cellOf(versions))
		}
		rows = append(rows, row)
		w := served.warning(t)
		if w == "" || t.rule == bundledRule && served.covers(targets, t.GroupKind) {
			continue
		}
		warnings = append(warnings, t.rule+": "+w)
	}
	return warnings, env.PrintTable(rows)
}

// cellOf is a list in a table.
func cellOf(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}

// liveConfigs connects to the cluster, and returns what it serves, and its Configs if none are given by files.
func liveConfigs(ctx context.Context, env *command.Env, fromCluster bool) ([]v1alpha1.Config, *servedKinds, error) {
	c, config, _, err := env.Connect()
	if err != nil {
		return nil, nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	served, err := discoverKinds(d)
	if err != nil || !fromCluster {
		return nil, served, err
	}
	configs, err := live.List[v1alpha1.Config](ctx, c, "Config")
	return configs, served, err
}
