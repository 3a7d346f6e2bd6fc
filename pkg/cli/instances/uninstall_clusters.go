package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
	"kudo.dev/kudo/pkg/text"
)

const (
	// removalInterval is the time between two looks at the copy of a deleted Instance, and lookTime how long a look takes at most.
	removalInterval, lookTime = time.Second, 10 * time.Second
)

// Outcomes of a copy whose Instance is deleted on the hub.
const (
	copyDeleted    = "gone"
	copyLeft       = "left, and runs no plan until kubectl kudo placement free is run there"
	copyUnverified = "deletion sent, not verified"
	copyGivenUp    = "given up: what is left there has to be deleted there"
)

// removal awaits that the clusters have deleted the copies of an Instance of a hub.
type removal struct {
	env      *command.Env
	hub      client.Client
	instance *v1beta1.Instance
	clusters []string

	mu sync.Mutex
	// outcomes and pending say what is known of each cluster: how it ended, or what it waits for.
	outcomes, pending map[string]string
}

func newRemoval(env *command.Env, hub client.Client, instance *v1beta1.Instance) *removal {
	return &removal{env: env, hub: hub, instance: instance, clusters: command.ClustersOf(instance), outcomes: map[string]string{},
		pending: map[string]string{}}
}

// announce says which clusters lose their copy, before it is done.
func (r *removal) announce() {
	if len(r.clusters) == 0 {
		return
	}
	where := fmt.Sprintf("instance %s/%s in clusters %s", r.instance.Namespace, r.instance.Name, strings.Join(r.clusters, ", "))
	if r.isOrphaned() {
		r.env.Printf("%s stays, since spec.placement.onDelete is %s", where, v1beta1.OrphanPlaced)
		return
	}
	r.env.Printf("to be deleted: %s", where)
}

func (r *removal) isOrphaned() bool {
	return r.instance.Spec.Placement != nil && r.instance.Spec.Placement.OnDelete == v1beta1.OrphanPlaced
}

// wait returns when no copy is left, and prints what became of each. It ends with an error that names the clusters when the context ends.
// Karmada deletes the copies after the Instance of the hub. The hub deletes those of an inventory itself, before it lets its Instance go.
func (r *removal) wait(ctx context.Context, limit time.Duration) error {
	isKarmada, err := command.HasKarmada(r.hub)
	if err != nil {
		return fmt.Errorf("instance %s/%s is deleted on the hub, and what the clusters do is not known: %w", r.instance.Namespace,
			r.instance.Name, err)
	}
	outcome := copyDeleted
	if r.isOrphaned() {
		outcome = copyLeft
	}
	var wg sync.WaitGroup
	for _, name := range r.clusters {
		if isKarmada {
			c := &copyRemoval{removal: r, cluster: name}
			wg.Go(func() { c.follow(ctx) })
		} else {
			r.settle(name, outcome)
		}
	}
	wg.Wait()
	return r.report(ctx, limit)
}

// settle records how the removal from a cluster ended.
func (r *removal) settle(cluster, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcomes[cluster] == "" {
		r.outcomes[cluster] = outcome
		delete(r.pending, cluster)
	}
}

// await records what a cluster waits for, and shows it if it is new.
func (r *removal) await(cluster, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[cluster] != what {
		r.pending[cluster] = what
		r.env.Progressf("cluster %s: %s", cluster, what)
	}
}

// until wraps a condition of the Instance. It notes the clusters that a user gives up meanwhile.
func (r *removal) until(over command.InstanceCondition) command.InstanceCondition {
	return func(i *v1beta1.Instance) (bool, error) {
		if i != nil && i.UID == r.instance.UID {
			for name := range strings.SplitSeq(i.Annotations[v1beta1.ForgetAnnotation], ",") {
				if slices.Contains(r.clusters, name) {
					r.settle(name, copyGivenUp)
				}
			}
		}
		return over(i)
	}
}

// copyRemoval awaits that one cluster has deleted its copy, which Karmada's Work on the hub carries there.
type copyRemoval struct {
	*removal

	cluster string
	// member is a client of the cluster, once it can be reached, and work is the name of the Work, once it was found.
	member client.Client
	work   string
}

// follow looks at the cluster until its outcome is known, or until the context ends.
func (c *copyRemoval) follow(ctx context.Context) {
	for {
		outcome, pending := c.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case outcome != "":
			c.settle(c.cluster, outcome)
			return
		}
		c.await(c.cluster, pending)
		select {
		case <-ctx.Done():
		case <-time.After(removalInterval):
		}
	}
}

// look returns what has become of the copy, or what it waits for.
func (c *copyRemoval) look(ctx context.Context) (outcome, pending string) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, err := c.read(ctx)
	switch {
	case err != nil && !isRefused(err):
		return "", "unreachable: its Work waits"
	case found != nil && c.isOrphaned():
		return "", "Karmada still manages it"
	case found != nil && found.DeletionTimestamp == nil:
		return "", "the deletion has not arrived"
	case found != nil && found.Status.AggregatedStatus.Message == "":
		return "", "cleaning up"
	case found != nil:
		return "", "cleaning up: " + text.OneLine(found.Status.AggregatedStatus.Message)
	}
	hasWork, workErr := c.hasWork(ctx)
	switch {
	case hasWork:
		return "", "its Work is still on the hub"
	case err != nil, c.isOrphaned() && workErr != nil:
		return copyUnverified, ""
	case c.isOrphaned():
		return copyLeft, ""
	}
	return copyDeleted, ""
}

// read returns the copy of the Instance in the cluster; nil if it is not there any more.
func (c *copyRemoval) read(ctx context.Context) (*v1beta1.Instance, error) {
	if c.member == nil {
		member, err := c.env.ConnectCluster(c.hub, c.cluster)
		if err != nil {
			return nil, err
		}
		c.member = member
	}
	found := &v1beta1.Instance{}
	err := c.member.Get(ctx, client.ObjectKeyFromObject(c.instance), found)
	switch {
	case isMissing(err, "instances") || meta.IsNoMatchError(err) || err == nil && !command.IsCopy(found, c.instance):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return found, nil
}

// hasWork reports whether the hub still has the Work. The Works of the cluster, which may be many, are listed once.
func (c *copyRemoval) hasWork(ctx context.Context) (bool, error) {
	if c.work == "" {
		name, err := remote.FindWork(ctx, c.hub, c.instance, c.cluster)
		c.work = name
		return name != "", err
	}
	return remote.HasWork(ctx, c.hub, c.cluster, c.work)
}

// isMissing reports whether an error is a 404 about objects of a resource.
func isMissing(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == resource
}

// isRefused reports whether an error says that the user cannot look into a cluster, or that the cluster is not joined any more.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || isMissing(err, "clusters")
}

// report prints how the removal from each cluster ended, and returns an error that names those where it has not.
func (r *removal) report(ctx context.Context, limit time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []string
	for _, name := range r.clusters {
		if outcome := r.outcomes[name]; outcome != "" {
			r.env.Printf("cluster %s: %s", name, outcome)
			continue
		}
		what := r.pending[name]
		if what == "" {
			what = "not asked yet"
		}
		r.env.Printf("cluster %s: %s", name, what)
		left = append(left, name)
	}
	switch {
	case len(left) == 0:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return command.Interrupted(fmt.Sprintf("the instance is deleted on the hub, and the clusters go on: kubectl kudo get instance %s -n %s "+
			"--context CLUSTER", r.instance.Name, r.instance.Namespace))
	}
	slices.Sort(left)
	return command.WithCode(command.ExitTimeout, fmt.Errorf("instance %s/%s is deleted on the hub, and after %s it is still in %s",
		r.instance.Namespace, r.instance.Name, limit, text.List(left, 5)))
}
