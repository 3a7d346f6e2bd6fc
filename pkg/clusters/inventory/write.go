package inventory

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// problemError says why a member's object is left as it is.
type problemError struct{ message string }

func (e *problemError) Error() string { return e.message }

// job is what the worker does for an Instance.
type job struct {
	key    types.NamespacedName
	want   *wanted
	orphan bool
	token  int64
}

// outcome is what a job has come to.
type outcome struct {
	seen *seenCopy
	gone bool
}

// next does the next job, and reports whether there may be more.
func (m *member) next(ctx context.Context) bool {
	key, shutdown := m.queue.Get()
	if shutdown || ctx.Err() != nil {
		return false
	}
	defer m.queue.Done(key)
	j, conn := m.job(key)
	if j == nil {
		return true
	}
	out, err := j.do(conn)
	if isLost(err) {
		conn.fail(err) // all is written anew when the cluster answers
		return true
	}
	m.finish(j, out, err)
	return true
}

// job returns what is to be done for an Instance, or nil if that is nothing, or if there is no connection to do it by.
func (m *member) job(key types.NamespacedName) (*job, *connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[key]
	if m.conn == nil || c == nil || c.gone {
		return nil, nil
	}
	if c.want != nil && c.done == c.token && c.problem == "" && !m.drifted(key, c) {
		return nil, nil
	}
	return &job{key: key, want: c.want, orphan: c.orphan, token: c.token}, m.conn
}

// finish records what a job has come to, unless something else is wanted meanwhile.
func (m *member) finish(j *job, out outcome, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[j.key]
	if c == nil || c.token != j.token {
		return
	}
	c.problem = ""
	if err != nil {
		c.problem = message(err.Error())
		m.queue.AddRateLimited(j.key)
		m.engine.events.add(j.key)
		return
	}
	m.queue.Forget(j.key)
	c.done, c.gone = j.token, out.gone
	if out.seen != nil {
		c.written = out.seen.written
		if before := m.seen[j.key]; before == nil || !out.seen.isOlder(before) {
			m.seen[j.key] = out.seen
		}
	}
	switch {
	case out.gone:
		delete(m.seen, j.key)
		signal(m.changed)
	case j.want == nil:
		m.queue.AddAfter(j.key, deletionPoll)
	}
	m.engine.events.add(j.key)
}

func (j *job) do(conn *connection) (outcome, error) {
	if j.want == nil {
		gone, err := j.remove(conn)
		return outcome{gone: gone}, err
	}
	if err := conn.namespace(j.key.Namespace); err != nil {
		return outcome{}, err
	}
	for _, d := range j.want.needs {
		if err := conn.need(d); err != nil {
			return outcome{}, err
		}
	}
	obj, err := copyOf(j.want.instance, j.want.target, conn.hub)
	if err != nil {
		return outcome{}, &problemError{err.Error()}
	}
	got, err := conn.apply(obj)
	if err != nil {
		return outcome{}, err
	}
	return outcome{seen: see(got)}, nil
}

// request bounds a request.
func (c *connection) request() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, requestTimeout)
}

// namespace creates a namespace if it is missing. One that is there stays as it is.
func (c *connection) namespace(name string) error {
	ctx, cancel := c.request()
	defer cancel()
	known := "Namespace/" + name
	if c.needs[known] != "" {
		return nil
	}
	namespaces := c.dynamic.Resource(namespaceResource)
	_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(name)
		_, err = namespaces.Create(ctx, ns, metav1.CreateOptions{FieldManager: clusters.FieldManager})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	c.needs[known] = name
	return nil
}

// need writes an object that Instances need, unless this connection has done so.
func (c *connection) need(d dependency) error {
	known := d.kind + "/" + d.object.GetNamespace() + "/" + d.object.GetName()
	version := string(d.object.GetUID()) + "/" + d.object.GetResourceVersion()
	if c.needs[known] == version {
		return nil
	}
	obj, err := dependencyOf(d.object, d.kind, c.hub)
	if err != nil {
		return &problemError{err.Error()}
	}
	if _, err := c.apply(obj); err != nil {
		return err
	}
	c.needs[known] = version
	return nil
}

// apply writes an object, unless the cluster has one of another owner by that name. An object that is not there is created without force,
// so that one which another client creates meanwhile is found by the next attempt.
func (c *connection) apply(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := c.request()
	defer cancel()
	what := fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
	client := c.dynamic.Resource(resources[obj.GetKind()]).Namespace(obj.GetNamespace())
	live, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		delete(c.needs, "Namespace/"+obj.GetNamespace()) // it is created anew if it is the reason of an error
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", what, err)
	case live.GetLabels()[PlacedLabel] != string(c.hub):
		return nil, &problemError{fmt.Sprintf("%s exists in the cluster, and this hub has not placed it: delete it there, or set its label "+
			"%s to %s", what, PlacedLabel, c.hub)}
	case live.GetDeletionTimestamp() != nil:
		return nil, &problemError{what + " is being deleted in the cluster, and is placed again after that"}
	default:
		obj.SetUID(live.GetUID())
	}
	options := metav1.ApplyOptions{FieldManager: clusters.FieldManager, Force: obj.GetUID() != ""}
	out, err := client.Apply(ctx, obj.GetName(), obj, options)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", what, err)
	}
	return out, nil
}

// remove deletes a copy, or takes the marks of the hub from it, and reports whether the cluster has none any more.
func (j *job) remove(conn *connection) (bool, error) {
	ctx, cancel := conn.request()
	defer cancel()
	what := "Instance " + j.key.String()
	client := conn.dynamic.Resource(resources["Instance"]).Namespace(j.key.Namespace)
	live, err := client.Get(ctx, j.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", what, err)
	case live.GetLabels()[PlacedLabel] != string(conn.hub):
		return true, nil
	case j.orphan:
		err = j.release(ctx, conn, live)
		return err == nil, err
	case live.GetDeletionTimestamp() != nil:
		return false, nil
	}
	background, uid := metav1.DeletePropagationBackground, live.GetUID()
	err = client.Delete(ctx, j.key.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("delete %s: %w", what, err)
	}
	return false, nil
}

// release takes the marks of the hub from a copy, which stays.
func (j *job) release(ctx context.Context, conn *connection, live *unstructured.Unstructured) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "labels": map[string]any{PlacedLabel: nil},
		"annotations": map[string]any{v1beta1.TemplateAnnotation: nil, v1beta1.ReleasedAnnotation: nil},
	}})
	if err != nil {
		return err
	}
	_, err = conn.dynamic.Resource(resources["Instance"]).Namespace(j.key.Namespace).Patch(ctx, j.key.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: clusters.FieldManager})
	if err != nil {
		return fmt.Errorf("release Instance %s: %w", j.key, err)
	}
	return nil
}
