package diagnostics

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

var (
	podKind      = corev1.SchemeGroupVersion.WithKind("Pod")
	secretKind   = corev1.SchemeGroupVersion.WithKind("Secret")
	eventKind    = corev1.SchemeGroupVersion.WithKind("Event")
	revisionKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"}
)

// between are kinds that stand between what plans apply and its pods, or come with these.
var between = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
}

func (c *Collector) read(raw *unstructured.Unstructured, parent string) (*instance, error) {
	i := &instance{Instance: &v1beta1.Instance{}, raw: raw}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, i.Instance); err != nil {
		return nil, err
	}
	i.operator = path.Join(parent, "operator_"+safe(cmp.Or(i.Labels[v1beta1.OperatorLabel], "unknown")))
	return i, nil
}

// versions reads the OperatorVersion of each Instance; nil where it cannot be read.
func (c *Collector) versions(ctx context.Context, all []*instance) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(all))
	for n, i := range all {
		key := i.OperatorVersionKey()
		ov, err := c.get(ctx, v1beta1.GroupVersion.WithKind("OperatorVersion"), key.Namespace, key.Name)
		if err != nil {
			c.fail("operatorversion "+key.String(), err)
			continue
		}
		out[n] = ov
	}
	return out
}

// collectSecrets finds the secret values, so that they can be looked for in everything else: sensitive parameters, and what is in
// the Secrets of the Instance's namespace.
func (c *Collector) collectSecrets(ctx context.Context, all []*instance, versions []*unstructured.Unstructured) {
	for _, ov := range versions {
		if ov != nil {
			c.redact.hideDefaults(ov)
		}
	}
	for _, i := range all {
		c.redact.hideNamedParameters(i.Spec.Parameters)
	}
	for _, i := range all {
		i.runs = c.list(ctx, revisionKind, c.Limits.Objects, client.InNamespace(i.Namespace),
			client.MatchingLabels{v1beta1.HistoryLabel: string(i.UID)})
		for n := range i.runs {
			given, _, _ := unstructured.NestedStringMap(i.runs[n].Object, "data", "parameters")
			c.redact.hideNamedParameters(given) // a run may have had other values than the Instance has now
		}
	}
	for _, secret := range c.list(ctx, secretKind, c.Limits.Objects, client.InNamespace(all[0].Namespace)) {
		c.redact.hideSecret(&secret)
	}
	c.redact.prepare() // logs are redacted at the same time
}

// operator collects what an Instance runs.
func (c *Collector) operator(ctx context.Context, i *instance, ov *unstructured.Unstructured) {
	if ov == nil {
		return
	}
	folder := path.Join(i.operator, "operatorversion_"+safe(ov.GetName()))
	c.object(path.Join(folder, safe(ov.GetName())+".yaml"), ov)
	if name, _, _ := unstructured.NestedString(ov.Object, "spec", "operator", "name"); name != "" {
		operator, err := c.get(ctx, v1beta1.GroupVersion.WithKind("Operator"), ov.GetNamespace(), name)
		switch {
		case err == nil:
			c.object(path.Join(i.operator, safe(name)+".yaml"), operator)
		case !apierrors.IsNotFound(err): // nothing needs an Operator object
			c.fail("operator "+name, err)
		}
	}
	if name, _, _ := unstructured.NestedString(ov.Object, "status", "installation"); name != "" {
		c.installation(ctx, folder, name)
	}
	c.events(ctx, folder, ov.GetNamespace(), map[types.UID]bool{ov.GetUID(): true})
}

// installation collects an Installation; what it holds are shared objects, which belong to others too.
func (c *Collector) installation(ctx context.Context, folder, name string) {
	holder, err := c.get(ctx, v1beta1.GroupVersion.WithKind("Installation"), "", name)
	if err != nil {
		c.fail("installation "+name, err)
		return
	}
	c.object(path.Join(folder, "installation.yaml"), holder)
}

// instance collects an Instance, its history, its objects, their pods with logs, and the events of all of them.
func (c *Collector) instance(ctx context.Context, i *instance) {
	c.Progress("instance " + i.Namespace + "/" + i.Name)
	folder := path.Join(i.operator, "instance_"+safe(i.Name))
	c.object(path.Join(folder, safe(i.Name)+".yaml"), i.raw)
	c.history(folder, i)
	if name := v1beta1.InstallationName(i.Namespace, i.Name, i.UID); i.Status.CRDs != nil {
		c.installation(ctx, folder, name)
	}
	known := map[types.UID]bool{i.UID: true}
	c.resources(ctx, folder, i, known)
	pods := c.pods(ctx, folder, i, known)
	c.events(ctx, folder, i.Namespace, known)
	c.logs(ctx, pods)
}

// resources collects the objects that the Instance's plans have written.
func (c *Collector) resources(ctx context.Context, folder string, i *instance, known map[types.UID]bool) {
	for n, r := range i.Status.Resources {
		what := strings.TrimSuffix(r.Kind+" "+r.Namespace+"/"+r.Name, "/")
		if n == c.Limits.Objects {
			c.fail("objects of instance "+i.Name, fmt.Errorf("there are more than %d, and the rest is left out", n))
			return
		}
		if r.Kind == "Secret" && r.Namespace != i.Namespace {
			c.fail(what, fmt.Errorf("left out: Secrets of other namespaces are not read"))
			continue
		}
		obj, err := c.get(ctx, schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), r.Namespace, r.Name)
		if err != nil {
			c.fail(what, err)
			continue
		}
		known[obj.GetUID()] = true
		if r.Kind != "Instance" || obj.GroupVersionKind().Group != v1beta1.GroupVersion.Group { // children have folders of their own
			c.object(path.Join(folder, "resources", resourceFile(obj)), obj)
		}
	}
}

// resourceFile names the file of an object.
func resourceFile(obj *unstructured.Unstructured) string {
	kind := strings.ToLower(obj.GetKind())
	if group := obj.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	return safe(kind) + "/" + safe(obj.GetName()) + ".yaml"
}

// belongsToInstance reports whether an object belongs to the Instance: by its label, or by an owner that does.
func belongsToInstance(obj *unstructured.Unstructured, i *instance, known map[types.UID]bool) bool {
	if obj.GetLabels()[v1beta1.InstanceLabel] == i.Name {
		return true
	}
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return known[o.UID] })
}

// pods collects what stands between the Instance's objects and their pods, and these, and returns them.
func (c *Collector) pods(ctx context.Context, folder string, i *instance, known map[types.UID]bool) []*pod {
	in := client.InNamespace(i.Namespace)
	for _, kind := range between {
		for _, obj := range c.list(ctx, kind, c.Limits.Objects, in) {
			if belongsToInstance(&obj, i, known) && !known[obj.GetUID()] {
				known[obj.GetUID()] = true
				c.object(path.Join(folder, "resources", resourceFile(&obj)), &obj)
			}
		}
	}
	var out []*pod
	for _, obj := range c.list(ctx, podKind, c.Limits.Objects, in) {
		if !belongsToInstance(&obj, i, known) {
			continue
		}
		known[obj.GetUID()] = true
		if p := c.pod(folder, &obj); p != nil {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *pod) int { return b.failureRank() - a.failureRank() })
	if len(out) > c.Limits.Pods {
		c.fail("pods of instance "+i.Name, fmt.Errorf("there are %d, and the logs of the %d with most trouble were collected", len(out),
			c.Limits.Pods))
		out = out[:c.Limits.Pods]
	}
	return out
}

// events collects the events of objects, oldest first.
func (c *Collector) events(ctx context.Context, folder, namespace string, of map[types.UID]bool) {
	var found []unstructured.Unstructured
	for _, e := range c.list(ctx, eventKind, c.Limits.Events, client.InNamespace(namespace)) {
		uid, _, _ := unstructured.NestedString(e.Object, "involvedObject", "uid")
		if of[types.UID(uid)] {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return
	}
	slices.SortFunc(found, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(eventTime(&a), eventTime(&b)), strings.Compare(a.GetName(), b.GetName()))
	})
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "EventList"}}
	items := make([]any, len(found))
	for n := range found {
		unstructured.RemoveNestedField(found[n].Object, "metadata", "managedFields")
		items[n] = found[n].Object
	}
	list.Object["items"] = items
	c.object(path.Join(folder, "events.yaml"), list)
}

func eventTime(e *unstructured.Unstructured) string {
	for _, field := range []string{"lastTimestamp", "eventTime"} {
		if at, _, _ := unstructured.NestedString(e.Object, field); at != "" {
			return at
		}
	}
	return ""
}

// history collects the runs of an Instance, and the OperatorVersions that they used.
func (c *Collector) history(folder string, i *instance) {
	for _, r := range i.runs {
		if err := unpack(&r); err != nil {
			c.fail("history "+r.GetName(), err)
			unstructured.RemoveNestedField(r.Object, "data")
		}
		name := safe(r.GetName())
		if n, _, _ := unstructured.NestedInt64(r.Object, "revision"); n > 0 {
			name = strconv.FormatInt(n, 10)
		}
		c.object(path.Join(folder, "history", name+".yaml"), &r)
	}
}

// maxSnapshot is how large an OperatorVersion may be: etcd takes 1.5 MiB, and it is compressed.
const maxSnapshot = 8 << 20

// unpack replaces the compressed OperatorVersion that a revision may hold by its content, so that it can be read, and
// what is secret in it found.
func unpack(revision *unstructured.Unstructured) error {
	packed, found, _ := unstructured.NestedString(revision.Object, "data", "spec")
	if !found {
		return nil
	}
	zipped, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return fmt.Errorf("its OperatorVersion: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return fmt.Errorf("its OperatorVersion: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxSnapshot))
	if err != nil {
		return fmt.Errorf("its OperatorVersion: %w", err)
	}
	spec := map[string]any{}
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("its OperatorVersion: %w", err)
	}
	return unstructured.SetNestedField(revision.Object, spec, "data", "spec")
}
