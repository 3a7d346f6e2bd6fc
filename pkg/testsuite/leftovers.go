package testsuite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// servedKind is a kind whose objects can be listed and deleted.
type servedKind struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
}

// servedKinds lists the kinds of a cluster, each in the version that the API server prefers. APIs that do not answer are left out.
func servedKinds(d discovery.DiscoveryInterface) ([]servedKind, error) {
	lists, err := d.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("list the kinds of the cluster: %w", err)
	}
	var out []servedKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			out = append(out, servedKind{version.WithResource(r.Name), r.Kind, r.Namespaced})
		}
	}
	return out, nil
}

// Bounds of what is searched for leftovers, and shown of them.
const (
	leftoverTimeout = 20 * time.Second
	maxLeftovers    = 20
	// listedLeftovers is how many objects of a kind are read.
	listedLeftovers = 500
)

// search lists the objects of kinds, in a namespace or cluster-scoped without one, that a function selects. Kinds that cannot be listed
// are left out: an administrator of a namespace may not read all.
func (c *Cluster) search(ctx context.Context, namespace, labels string, wanted func(*unstructured.Unstructured) bool) []leftover {
	if c.kinds == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverTimeout)
	defer cancel()
	kinds, err := c.kinds()
	if err != nil {
		return nil
	}
	var out []leftover
	for _, k := range kinds {
		if k.namespaced != (namespace != "") {
			continue
		}
		options := metav1.ListOptions{LabelSelector: labels, Limit: listedLeftovers}
		list, err := c.client.Resource(k.resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			continue
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				out = append(out, leftover{k, &list.Items[i]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b leftover) int { return strings.Compare(a.name(), b.name()) })
	return out
}

// leftover is an object that was found.
type leftover struct {
	kind servedKind
	obj  *unstructured.Unstructured
}

// name is how kubectl takes the object in a shell.
func (l leftover) name() string {
	return text.ShellQuote(text.Plain(l.kind.resource.GroupResource().String()+"/"+l.obj.GetName(), maxShown))
}

// bounded returns the first lines, and how many more there are.
func bounded(lines []string) []string {
	if len(lines) <= maxLeftovers {
		return lines
	}
	return append(lines[:maxLeftovers:maxLeftovers], fmt.Sprintf("and %d more", len(lines)-maxLeftovers))
}

// blockers returns the objects whose finalizers keep a namespace from being deleted.
func (c *Cluster) blockers(ctx context.Context, namespace string) []leftover {
	return c.search(ctx, namespace, "", func(obj *unstructured.Unstructured) bool { return len(obj.GetFinalizers()) > 0 })
}

// reportBlockers logs the objects that block the deletion of the case's namespace, and the command that ends that, if there are any.
func (p *caseRun) reportBlockers(ctx context.Context, cluster *Cluster) {
	var lines, names []string
	for _, l := range cluster.blockers(ctx, p.namespace) {
		lines = append(lines, fmt.Sprintf("%s waits for %s", l.name(), text.Plain(strings.Join(l.obj.GetFinalizers(), ", "), maxShown)))
		names = append(names, l.name())
	}
	if len(lines) == 0 {
		return
	}
	p.log("these objects block the deletion of namespace %s:\n%s", p.namespace, indent(strings.Join(bounded(lines), "\n")))
	p.log("a finalizer is removed by the client that has set it; if that client does not run any more:\n%s",
		indent(fmt.Sprintf("kubectl patch %s -n %s%s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
			strings.Join(names[:min(len(names), maxLeftovers)], " "), p.namespace, p.kubeconfigFlag(cluster))))
}

// Leftovers lists the cluster-scoped objects that plans of Instances in the namespaces of cases have written and that still exist:
// uninstalling an Instance keeps them, since others may use them. What commands of cases have written otherwise is not known, and nothing
// is of a namespace that the suite was given: other Instances may live there.
func (r *Runner) Leftovers(ctx context.Context, results []Result) []string {
	var prefixes []string
	for _, result := range results {
		if result.Namespace != "" && len(result.Kept) == 0 {
			prefixes = append(prefixes, v1beta1.FieldManagerPrefix(result.Namespace))
		}
	}
	if r.SkipDelete || r.Namespace != "" || len(prefixes) == 0 {
		return nil
	}
	var out []string
	for _, l := range r.Cluster.search(ctx, "", v1beta1.HeritageLabel+"="+v1beta1.Heritage, func(obj *unstructured.Unstructured) bool {
		return slices.ContainsFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(entry.Manager, prefix) })
		})
	}) {
		out = append(out, l.name())
	}
	return bounded(out)
}
