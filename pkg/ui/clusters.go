package ui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterKind is a kind whose objects register clusters.
type clusterKind struct {
	schema.GroupVersionKind
	namespaced bool
	// condition is the type of the condition that says whether the control plane of the cluster is well.
	condition string
	// version and manager are the fields with the version of Kubernetes and the name of the program that has registered the cluster. Without
	// a manager, that program is Karmada.
	version, manager []string
}

// clusterKinds are the kinds of Kubernetes' multicluster group and of Karmada.
var clusterKinds = []clusterKind{
	{GroupVersionKind: schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"}, namespaced: true,
		condition: "ControlPlaneHealthy", version: []string{"status", "version", "kubernetes"},
		manager: []string{"spec", "clusterManager", "name"}},
	{GroupVersionKind: schema.GroupVersionKind{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
		condition: "Ready", version: []string{"status", "kubernetesVersion"}},
}

// clusterRetry is the time between two attempts to find a kind.
const clusterRetry = 10 * time.Second

// clusterRegistry has the clusters that are registered, of the kinds that the API server serves.
type clusterRegistry struct {
	server *Server
	// retry is the time between two attempts to find a kind, while the API server does not answer.
	retry time.Duration

	mu sync.Mutex
	// feeds has the kinds that were looked for: nil for one that the API server does not serve.
	feeds map[schema.GroupVersionKind]*feed
}

// run finds once which kinds are served, and watches these until the context ends. A kind that is not served is not looked for again: most
// clusters serve none.
func (c *clusterRegistry) run(ctx context.Context) {
	var group sync.WaitGroup
	for _, kind := range clusterKinds {
		group.Go(func() {
			f, found := c.find(ctx, kind)
			if !found {
				return
			}
			c.mu.Lock()
			c.feeds[kind.GroupVersionKind] = f
			c.mu.Unlock()
			c.server.changes.notify()
			if f != nil {
				f.run(ctx)
			}
		})
	}
	group.Wait()
}

// find returns the feed of a kind; nil if the API server does not serve the kind. It returns false if the context ends before.
func (c *clusterRegistry) find(ctx context.Context, kind clusterKind) (*feed, bool) {
	missed := false
	for {
		mapping, err := c.server.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
			f, err := c.newFeed(mapping, kind)
			return f, err == nil
		case meta.IsNoMatchError(err) && missed:
			return nil, true
		case meta.IsNoMatchError(err):
			// The first look may take a group whose server is down for one that is not there: Karmada's has a server of its own.
			missed = true
			continue
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-time.After(c.retry):
		}
	}
}

func (c *clusterRegistry) newFeed(mapping *meta.RESTMapping, kind clusterKind) (*feed, error) {
	resource := c.server.dynamic.Resource(mapping.Resource)
	objects := resource.Namespace("")
	if kind.namespaced {
		objects = resource.Namespace(c.server.Namespace)
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(mapping.GroupVersionKind)
	return newFeed(mapping.Resource.Resource, example, sourceOf(objects.List, objects.Watch, func(*metav1.ListOptions) {}), kind.reduce,
		c.server.Clock, c.server.changes.notify)
}

// feedOf returns the feed of a kind; nil if the API server does not serve the kind. It returns false while that is not known.
func (c *clusterRegistry) feedOf(kind schema.GroupVersionKind) (*feed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, known := c.feeds[kind]
	return f, known
}

// served reports whether the API server serves a kind that registers clusters. If so, the navigation has an entry for clusters.
func (c *clusterRegistry) served() bool {
	return slices.ContainsFunc(clusterKinds, func(k clusterKind) bool {
		f, _ := c.feedOf(k.GroupVersionKind)
		return f != nil
	})
}

// reduce keeps what the page shows. A registration also holds addresses and credentials.
func (k clusterKind) reduce(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	kept.SetGroupVersionKind(u.GroupVersionKind())
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetUID(u.GetUID())
	kept.SetResourceVersion(u.GetResourceVersion())
	for _, field := range [][]string{{"spec", "displayName"}, k.version, k.manager} {
		if value := textOf(u, field); value != "" {
			_ = unstructured.SetNestedField(kept.Object, value, field...)
		}
	}
	if conditions, found, err := unstructured.NestedSlice(u.Object, "status", "conditions"); found && err == nil {
		_ = unstructured.SetNestedSlice(kept.Object, conditions, "status", "conditions")
	}
	u.Object = kept.Object
}

// textOf returns the text in a field; empty if there is none.
func textOf(u *unstructured.Unstructured, field []string) string {
	if len(field) == 0 {
		return ""
	}
	value, _, _ := unstructured.NestedString(u.Object, field...)
	return value
}

// clusterList is what the page of clusters shows.
type clusterList struct {
	// Searching is set while it is not known which kinds are served.
	Searching bool
	// Feeds has the state of each kind that is served.
	Feeds []feedStatus
	Rows  []clusterRow
	// Complete is set if all kinds that are served are listed.
	Complete bool
	// In is the namespace whose ClusterProfiles are shown; empty for all, and if there are none.
	In string
}

// clusterRow is a cluster that is registered.
type clusterRow struct {
	Name, DisplayName, Kubernetes, Kind, Manager string
	State                                        state
	Message                                      string
	Since                                        metav1.Time
}

// The states of clusters.
var (
	clusterUnhealthy = state{"not healthy", "✗", "bad", 0}
	clusterUnknown   = state{"not known", "?", "warn", 1}
	clusterHealthy   = state{"healthy", "✓", "good", 2}
)

func (c *clusterRegistry) page(*http.Request) screen {
	return still(func() view {
		return view{Title: "Clusters", Nav: "clusters", Fragments: []fragment{{ID: "clusters", Template: "clusters", Data: c.list()}}}
	})
}

// list returns the clusters that are registered, those first that need a user.
func (c *clusterRegistry) list() clusterList {
	list := clusterList{Complete: true}
	for _, kind := range clusterKinds {
		f, known := c.feedOf(kind.GroupVersionKind)
		list.Searching = list.Searching || !known
		if f == nil {
			continue
		}
		if kind.namespaced {
			list.In = c.server.Namespace
		}
		status, why := f.Status(), f.unknown()
		list.Feeds = append(list.Feeds, status)
		list.Complete = list.Complete && status.State == current
		for _, u := range objectsOf[*unstructured.Unstructured](f) {
			row := kind.rowOf(u)
			if why != "" { // what was so before is not shown as what is
				row.State, row.Message = clusterUnknown, why
			}
			list.Rows = append(list.Rows, row)
		}
	}
	slices.SortFunc(list.Rows, func(a, b clusterRow) int {
		return cmp.Or(cmp.Compare(a.State.rank, b.State.rank), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

func (k clusterKind) rowOf(u *unstructured.Unstructured) clusterRow {
	row := clusterRow{Name: strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"),
		DisplayName: long(textOf(u, []string{"spec", "displayName"})), Kubernetes: long(textOf(u, k.version)),
		Kind: k.Kind, Manager: "Karmada", State: clusterUnknown}
	if k.manager != nil {
		row.Manager = long(textOf(u, k.manager))
	}
	var content struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &content); err != nil {
		row.Message = long("its conditions are malformed: " + err.Error())
		return row
	}
	found := meta.FindStatusCondition(content.Status.Conditions, k.condition)
	if found == nil {
		return row
	}
	row.Since = found.LastTransitionTime
	switch found.Status {
	case metav1.ConditionTrue:
		row.State = clusterHealthy
		return row
	case metav1.ConditionFalse:
		row.State = clusterUnhealthy
	}
	row.Message = long(cmp.Or(found.Message, found.Reason))
	return row
}
