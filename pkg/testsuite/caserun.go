package testsuite

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/pkg/text"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// caseRun is a case that runs: its namespace, and what it has made.
type caseRun struct {
	*Runner
	*shell
	// clusters are those that its steps have worked on, by the kubeconfig that they name.
	clusters map[string]*Cluster
	// created is what is deleted when the case ends, in the order in which it was made, unless keep is set.
	created []owned
	keep    bool
}

// owned is an object of a case.
type owned struct {
	cluster *Cluster
	obj     *unstructured.Unstructured
}

// begin makes the namespace of a case.
func (r *Runner) begin(ctx context.Context, c *Case, log func(string, ...any)) (*caseRun, error) {
	name := r.Namespace
	if name == "" {
		random := make([]byte, 5)
		if _, err := rand.Read(random); err != nil {
			return nil, err
		}
		name = "kudo-test-" + hex.EncodeToString(random)
	}
	p := &caseRun{Runner: r, clusters: map[string]*Cluster{"": r.Cluster},
		shell: &shell{dir: c.Dir, namespace: name, kubeconfig: r.Cluster.Kubeconfig, path: r.Path, timeFactor: r.TimeFactor, log: log}}
	if r.Namespace != "" {
		return p, nil // see Open
	}
	r.disturbLock.RLock()
	defer r.disturbLock.RUnlock()
	if err := p.ensureNamespace(ctx, r.Cluster); err != nil {
		return nil, err
	}
	return p, nil
}

// Open makes the namespace that all cases share, if one is named that is not there. What it returns deletes it again.
func (r *Runner) Open(ctx context.Context) (leave func(), err error) {
	if r.Namespace == "" {
		return func() {}, nil
	}
	log := func(format string, args ...any) { r.Log("suite", format, args...) }
	p := &caseRun{Runner: r, clusters: map[string]*Cluster{"": r.Cluster}, shell: &shell{namespace: r.Namespace, log: log}}
	return func() {
		if p.keep = r.hasKept.Load(); p.keep && len(p.created) > 0 {
			log("its namespace is kept with what failed cases have made. To delete it: kubectl delete namespace %s", text.ShellQuote(r.Namespace))
		}
		p.deleteNamespaces(context.WithoutCancel(ctx))
	}, p.ensureNamespace(ctx, r.Cluster)
}

// cluster is the one that a step works on; the namespace is made there too.
func (p *caseRun) cluster(ctx context.Context, kubeconfig string) (*Cluster, error) {
	if c := p.clusters[kubeconfig]; c != nil {
		return c, nil
	}
	c, err := Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	p.clusters[kubeconfig] = c
	return c, p.ensureNamespace(ctx, c)
}

// ensureNamespace makes the namespace on a cluster. One that is there already is used, and stays.
func (p *caseRun) ensureNamespace(ctx context.Context, cluster *Cluster) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	obj.SetName(p.namespace)
	created, err := create(ctx, cluster.client.Resource(namespaces), obj)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", p.namespace, err)
	}
	p.log("namespace %s", p.namespace)
	p.created = append(p.created, owned{cluster, created})
	return nil
}

const (
	// dropTimeout is how long an object may take to go.
	dropTimeout = 3 * time.Minute
	// blockersDelay is after how long the objects that block the deletion of a namespace are reported. Kubernetes waits 5 s before it
	// empties a namespace.
	blockersDelay = 8 * time.Second
)

// end ends the commands in the background, and deletes what the case has applied, the last first. What lies in a
// namespace of its own goes with it, which leave deletes.
func (p *caseRun) end(ctx context.Context) {
	p.shell.end()
	if p.keep {
		return
	}
	p.remove(ctx, func(o owned) bool {
		return !p.isOwn(o) && (o.obj.GetNamespace() != p.namespace || !p.hasOwnNamespace(o.cluster))
	})
}

// deleteNamespaces deletes the namespaces that were made for the case.
func (p *caseRun) deleteNamespaces(ctx context.Context) {
	if !p.keep {
		p.remove(ctx, p.isOwn)
	}
}

func (p *caseRun) isOwn(o owned) bool {
	return o.obj.GetKind() == "Namespace" && o.obj.GetName() == p.namespace
}

func (p *caseRun) remove(ctx context.Context, which func(owned) bool) {
	if p.SkipDelete {
		return
	}
	for _, o := range slices.Backward(p.created) {
		if !which(o) {
			continue
		}
		err := p.drop(ctx, o)
		if err == nil {
			continue
		}
		p.log("%s %s: %s", o.obj.GetKind(), o.obj.GetName(), err)
		if p.isOwn(o) {
			p.reportBlockers(ctx, o.cluster)
		}
	}
}

// drop deletes an object and waits until it no longer exists.
func (p *caseRun) drop(ctx context.Context, o owned) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	resource, err := o.cluster.resource(o.obj, p.namespace)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	background := metav1.DeletePropagationBackground
	uid := o.obj.GetUID()
	err = retryTransient(ctx, passing, func() error {
		return resource.Delete(ctx, o.obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &background,
			Preconditions: &metav1.Preconditions{UID: &uid}})
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err): // another object has its name, or it is a namespace that is terminating already
	case err != nil:
		return fmt.Errorf("delete: %w", err)
	}
	if err := p.awaitDeletion(ctx, resource, o, blockersDelay); err != nil {
		return fmt.Errorf("still exists after %s: %w", dropTimeout, err)
	}
	return nil
}

// awaitDeletion waits until an object no longer exists. What blocks the deletion of the case's namespace is reported after a delay, while
// the run can still be saved.
func (p *caseRun) awaitDeletion(ctx context.Context, resource dynamic.ResourceInterface, o owned, delay time.Duration) error {
	if p.isOwn(o) {
		soon, cancel := context.WithTimeout(ctx, delay)
		err := waitUntilDeleted(soon, resource, o.obj)
		cancel()
		if err == nil {
			return nil
		}
		p.reportBlockers(ctx, o.cluster)
	}
	return waitUntilDeleted(ctx, resource, o.obj)
}

// passing reports whether an error is not an answer to the request, but says that the server cannot answer now.
func passing(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
