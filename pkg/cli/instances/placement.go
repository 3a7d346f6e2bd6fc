package instances

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

// placementFlags say on which clusters a hub places an Instance.
type placementFlags struct {
	flags       *pflag.FlagSet
	clusters    []string
	decision    string
	weights     []string
	divide      string
	values      []string
	waves       []string
	soak        command.Seconds
	maxFailures int32
	onDelete    string
}

// placementNames are the names of the flags.
var placementNames = []string{"clusters", "decision", "weights", "divide", "set-on", "wave", "soak", "max-failures", "on-delete"}

const (
	maxWeight      = 1000
	maxMaxFailures = 100
	// shownClusters is how many clusters a message names.
	shownClusters = 10
)

func (p *placementFlags) add(flags *pflag.FlagSet) {
	p.flags = flags
	flags.StringSliceVar(&p.clusters, "clusters", nil,
		"on a hub: clusters to run on, as NAME,NAME; one that leaves the list loses the Instance")
	flags.StringVar(&p.decision, "decision", "",
		"on a hub with the engine inventory: name of the decision of a scheduler, which names the clusters")
	flags.StringSliceVar(&p.weights, "weights", nil, "weights of clusters for --divide, as CLUSTER=1 to CLUSTER=1000 (default 1)")
	flags.StringVar(&p.divide, "divide", "", "parameter of which each cluster gets a share by its weight")
	flags.StringArrayVar(&p.values, "set-on", nil,
		"value for one cluster, as CLUSTER:NAME=VALUE, or CLUSTER:NAME- to remove it; may be repeated")
	flags.StringArrayVar(&p.waves, "wave", nil, "clusters that get a change together, as NAME,NAME; may be repeated, in order")
	flags.Var(&p.soak, "soak", "how long a wave must stay ready before the next one: seconds, or a duration such as 5m")
	flags.Int32Var(&p.maxFailures, "max-failures", 0, "how many clusters may fail before a change is stopped")
	flags.StringVar(&p.onDelete, "on-delete", "", "delete or orphan: what becomes of the clusters' Instances when that of the hub is deleted")
}

// addEdit adds the flags to a command that edits an Instance, and asks before it removes it from clusters.
func (p *placementFlags) addEdit(flags *pflag.FlagSet) {
	p.add(flags)
	flags.Lookup("yes").Usage = "give the rights, and remove the Instance from clusters, without asking"
}

// errAccountOnHub is the error of a command that would make an account where no plan runs.
var errAccountOnHub = command.UsageError("--create-service-account cannot be used for an Instance on clusters, whose plans run there: " +
	"make the account in each cluster with kubectl kudo account, and name it by --service-account")

// isSet reports whether the command line has one of the flags.
func (p *placementFlags) isSet() bool { return slices.ContainsFunc(placementNames, p.changed) }

func (p *placementFlags) changed(name string) bool { return p.flags.Changed(name) }

// apply returns the placement of an Instance, which may be nil, as the flags change it.
func (p *placementFlags) apply(present *v1beta1.Placement) (*v1beta1.Placement, error) {
	if !p.isSet() {
		return present, nil
	}
	switch at := slices.IndexFunc(placementNames, p.changed); {
	case p.changed("clusters") && p.changed("decision"):
		return nil, command.UsageError("--clusters cannot be used with --decision, which names the clusters: use one of the two")
	case present == nil && !p.changed("clusters") && !p.changed("decision"):
		return nil, command.UsageError("--%s requires --clusters or --decision: name the clusters that the Instance is to run on, or the "+
			"decision of a scheduler", placementNames[at])
	}
	out := present.DeepCopy()
	if out == nil {
		out = &v1beta1.Placement{}
	}
	for _, step := range []func(*v1beta1.Placement) error{p.setClusters, p.setDecision, p.setWeights, p.setValues, p.setWaves, p.setOnDelete} {
		if err := step(out); err != nil {
			return nil, err
		}
	}
	if p.changed("divide") {
		out.Divide = p.divide
	}
	return out, nil
}

// setClusters names the clusters. Those that stay keep their weights and values, and those that leave leave their wave, too.
func (p *placementFlags) setClusters(out *v1beta1.Placement) error {
	if !p.changed("clusters") {
		return nil
	}
	var next []v1beta1.PlacedCluster
	for _, name := range p.clusters {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return command.UsageError("--clusters has an empty name: separate names by one comma")
		case find(next, name) != nil:
			return command.UsageError("--clusters names %s twice: name each cluster once", text.Quote(name, maxQuoted))
		}
		cluster := v1beta1.PlacedCluster{Name: name}
		if before := find(out.Clusters, name); before != nil {
			cluster = *before
		}
		next = append(next, cluster)
	}
	if len(next) == 0 {
		return command.UsageError("--clusters names none: name one; kubectl kudo uninstall removes the Instance from all")
	}
	out.Clusters, out.Decision = next, nil
	if out.Waves == nil {
		return nil
	}
	var groups [][]string
	for _, group := range out.Waves.Groups {
		group = slices.DeleteFunc(group, func(name string) bool { return find(next, name) == nil })
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	out.Waves.Groups = groups
	return nil
}

// setDecision names the decision, in place of clusters with their weights and values.
func (p *placementFlags) setDecision(out *v1beta1.Placement) error {
	if p.changed("decision") {
		name := strings.TrimSpace(p.decision)
		if name == "" {
			return command.UsageError("--decision is empty: name a decision, or the clusters with --clusters")
		}
		out.Clusters, out.Decision = nil, &v1beta1.DecisionReference{Name: name}
	}
	for _, name := range []string{"weights", "set-on"} {
		if out.Decision != nil && p.changed(name) {
			return command.UsageError("--%s is for clusters of --clusters, and the decision %s names those of this Instance", name,
				text.Quote(out.Decision.Name, maxQuoted))
		}
	}
	return nil
}

// maxQuoted bounds, in bytes, what messages quote of a command line.
const maxQuoted = 64

// find returns a cluster of a list, or nil.
func find(all []v1beta1.PlacedCluster, name string) *v1beta1.PlacedCluster {
	for n := range all {
		if all[n].Name == name {
			return &all[n]
		}
	}
	return nil
}

// known returns the cluster that a flag names, or a usage error.
func known(out *v1beta1.Placement, flag, name string) (*v1beta1.PlacedCluster, error) {
	if cluster := find(out.Clusters, name); cluster != nil {
		return cluster, nil
	}
	names := strings.Split(out.ClusterNames(), ", ")
	return nil, command.UsageError("--%s: the Instance is not placed on cluster %s: correct the name, or add it to --clusters, which has %s",
		flag, text.Quote(name, maxQuoted), text.List(names, shownClusters))
}

func (p *placementFlags) setWeights(out *v1beta1.Placement) error {
	for _, entry := range p.weights {
		name, value, found := strings.Cut(strings.TrimSpace(entry), "=")
		weight, err := strconv.ParseInt(value, 10, 32)
		if !found || err != nil || weight < 1 || weight > maxWeight {
			return command.UsageError("--weights %s: write CLUSTER=N, with N from 1 to %d", text.Quote(entry, maxQuoted), maxWeight)
		}
		cluster, err := known(out, "weights", name)
		if err != nil {
			return err
		}
		cluster.Weight = int32(weight)
	}
	return nil
}

func (p *placementFlags) setValues(out *v1beta1.Placement) error {
	for _, entry := range p.values {
		on, assignment, found := strings.Cut(entry, ":")
		name, value, assigned := strings.Cut(assignment, "=")
		removed := !assigned && strings.HasSuffix(assignment, "-")
		name = strings.TrimSpace(name)
		if removed {
			name = strings.TrimSuffix(name, "-")
		}
		if !found || name == "" || !assigned && !removed {
			return command.UsageError("--set-on %s: write CLUSTER:NAME=VALUE, or CLUSTER:NAME- to remove the value", text.Quote(on, maxQuoted))
		}
		cluster, err := known(out, "set-on", on)
		if err != nil {
			return err
		}
		if removed {
			delete(cluster.Parameters, name)
			continue
		}
		if cluster.Parameters == nil {
			cluster.Parameters = map[string]string{}
		}
		cluster.Parameters[name] = value
	}
	return nil
}

func (p *placementFlags) setWaves(out *v1beta1.Placement) error {
	waves := v1beta1.Waves{}
	if out.Waves != nil {
		waves = *out.Waves
	}
	if p.changed("wave") {
		groups, err := p.groups(out)
		if err != nil {
			return err
		}
		waves.Groups = groups
	}
	if p.changed("soak") {
		waves.Soak = &metav1.Duration{Duration: time.Duration(p.soak)}
	}
	if p.changed("max-failures") {
		if p.maxFailures < 0 || p.maxFailures > maxMaxFailures {
			return command.UsageError("--max-failures %d: must be 0 to %d", p.maxFailures, maxMaxFailures)
		}
		waves.MaxFailures = p.maxFailures
	}
	if len(waves.Groups) == 0 && waves.Soak == nil && waves.MaxFailures == 0 && !waves.Paused {
		out.Waves = nil
		return nil
	}
	out.Waves = &waves
	return nil
}

// groups returns the waves of the flags; one empty flag takes all waves away.
func (p *placementFlags) groups(out *v1beta1.Placement) ([][]string, error) {
	if len(p.waves) == 1 && strings.TrimSpace(p.waves[0]) == "" {
		return nil, nil
	}
	seen := map[string]bool{}
	var groups [][]string
	for _, entry := range p.waves {
		var group []string
		for name := range strings.SplitSeq(entry, ",") {
			name = strings.TrimSpace(name)
			_, err := known(out, "wave", name)
			if err != nil && (out.Decision == nil || name == "") { // what a decision names is known on the hub only
				return nil, err
			}
			if seen[name] {
				return nil, command.UsageError("--wave: cluster %s is in two waves, or twice in one: name it once", text.Quote(name, maxQuoted))
			}
			seen[name] = true
			group = append(group, name)
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func (p *placementFlags) setOnDelete(out *v1beta1.Placement) error {
	if !p.changed("on-delete") {
		return nil
	}
	policies := map[string]v1beta1.DeletionPolicy{"delete": v1beta1.DeletePlaced, "orphan": v1beta1.OrphanPlaced}
	policy, known := policies[strings.ToLower(p.onDelete)]
	if !known {
		return command.UsageError("--on-delete %s: use delete or orphan", text.Quote(p.onDelete, maxQuoted))
	}
	out.OnDelete = policy
	return nil
}

// edit returns the placement of an Instance of the cluster as the flags change it.
func (p *placementFlags) edit(i *v1beta1.Instance) (*v1beta1.Placement, error) {
	if p.isSet() && i.PlacedTemplate() != "" {
		return nil, fmt.Errorf("instance %s/%s is the copy that a hub has placed on this cluster: run the command on the hub",
			i.Namespace, i.Name)
	}
	return p.apply(i.Spec.Placement)
}

// checkPlacement refuses what the hub would refuse of the placement of an Instance, before anything is written.
func checkPlacement(i *v1beta1.Instance, version *v1beta1.OperatorVersionSpec) error {
	if i.Spec.Placement == nil || i.PlacedTemplate() != "" {
		return nil
	}
	complete := i.DeepCopy()
	if complete.Spec.Parameters == nil {
		complete.Spec.Parameters = map[string]string{}
	}
	replaced := clusters.ReplacedParameters(complete.Spec.Placement)
	for _, def := range version.Parameters { // the hub writes these defaults
		if _, set := complete.Spec.Parameters[def.Name]; !set && def.HasDefault() && slices.Contains(replaced, def.Name) {
			complete.Spec.Parameters[def.Name] = *def.Default
		}
	}
	return clusters.Validate(complete, version)
}

// includeVersions adds the OperatorVersions of dependencies, and their Operators, to what clusters need.
func includeVersions(placement *v1beta1.Placement, versions []*v1beta1.OperatorVersion) {
	if placement == nil {
		return
	}
	for _, version := range versions {
		for _, object := range []v1beta1.IncludedObject{{Kind: "Operator", Name: version.Spec.Operator.Name}, {Kind: "OperatorVersion",
			Name: version.Name}} {
			if !slices.Contains(placement.Include, object) {
				placement.Include = append(placement.Include, object)
			}
		}
	}
}

// removedClusters returns the clusters that lose an Instance by an edit, sorted: those that a new list does not have, or that another
// decision may not name.
func removedClusters(i *v1beta1.Instance, after *v1beta1.Placement) []string {
	before := i.Spec.Placement
	if before == nil || after == nil || before.Decision != nil && after.Decision != nil && *before.Decision == *after.Decision {
		return nil
	}
	left := map[string]bool{}
	for _, c := range i.PlacedClusters() {
		left[c.Name] = true
	}
	for _, c := range after.Clusters {
		delete(left, c.Name)
	}
	return slices.Sorted(maps.Keys(left))
}

// askRemoval asks whether an Instance may be removed from clusters, if the edit does that.
func askRemoval(env *command.Env, i *v1beta1.Instance, after *v1beta1.Placement, yes bool) error {
	removed := removedClusters(i, after)
	if len(removed) == 0 {
		return nil
	}
	names := text.List(removed, shownClusters)
	question := fmt.Sprintf("Instance %s/%s is deleted in %s, after its cleanup plan. Continue?", i.Namespace, i.Name, names)
	switch {
	case after.Decision != nil && after.OnDelete == v1beta1.OrphanPlaced:
		question = fmt.Sprintf("Instance %s/%s leaves those of %s that the decision %s does not name, where it stays as it is (onDelete: "+
			"Orphan). Continue?", i.Namespace, i.Name, names, after.Decision.Name)
	case after.Decision != nil:
		question = fmt.Sprintf("Instance %s/%s is deleted in those of %s that the decision %s does not name, after its cleanup plan. Continue?",
			i.Namespace, i.Name, names, after.Decision.Name)
	case after.OnDelete == v1beta1.OrphanPlaced:
		question = fmt.Sprintf("Instance %s/%s leaves %s, where it stays as it is (onDelete: Orphan). Continue?", i.Namespace, i.Name, names)
	}
	return env.Ask(command.Question{Text: question, Yes: yes,
		NoTerminal: fmt.Sprintf("instance %s/%s would be removed from %s, which is done only after a question, and stdin is no terminal: "+
			"add --yes, or name these clusters in --clusters, too", i.Namespace, i.Name, names),
		Declined: "the Instance stays in its clusters: nothing was changed"})
}
