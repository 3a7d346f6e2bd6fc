// Package diagnostics collects what helps to find out what is wrong with an Instance, without what is secret in it.
package diagnostics

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Limits bound a collection. A field that is zero means that of DefaultLimits.
type Limits struct {
	// LogBytes and LogLines are what is kept of the log of a container: its end.
	LogBytes, LogLines int64
	// ObjectBytes is how large an object may be.
	ObjectBytes int
	// Pods, Objects and Events are how many of them are collected for an Instance, Instances how many children in all.
	Pods, Objects, Events, Instances int
	// LogTime is how long the log of a container may take.
	LogTime time.Duration
	// Total is how many bytes all files may have.
	Total int64
}

// DefaultLimits are ample for an application of a hundred pods.
func DefaultLimits() Limits {
	return Limits{
		LogBytes: 1 << 20, LogLines: 10_000, ObjectBytes: 2 << 20, Pods: 200, Objects: 2000, Events: 5000, Instances: 100,
		LogTime: 20 * time.Second, Total: 512 << 20,
	}
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		LogBytes: cmp.Or(l.LogBytes, d.LogBytes), LogLines: cmp.Or(l.LogLines, d.LogLines), ObjectBytes: cmp.Or(l.ObjectBytes, d.ObjectBytes),
		Pods: cmp.Or(l.Pods, d.Pods), Objects: cmp.Or(l.Objects, d.Objects), Events: cmp.Or(l.Events, d.Events),
		Instances: cmp.Or(l.Instances, d.Instances), LogTime: cmp.Or(l.LogTime, d.LogTime), Total: cmp.Or(l.Total, d.Total),
	}
}

// Collector collects.
type Collector struct {
	Client client.Client
	// Set reads logs and the server's version.
	Set kubernetes.Interface
	// Version of kudo that collects.
	Version string
	// Since is how old the lines of logs may be; zero takes all.
	Since  time.Duration
	Limits Limits
	// Dependencies returns what the objects of a plan of an Instance depend on and is missing, as a value to print, beside an error
	// if there may be more. Nothing is collected without it.
	Dependencies func(ctx context.Context, instance *v1beta1.Instance, version *v1beta1.OperatorVersion, plan string) (any, error)
	// Progress is told what is being collected.
	Progress func(what string)

	redact Redactor
	folder *Folder
	mu     sync.Mutex
	failed []Failure
}

// Failure is something that could not be collected. The rest is there all the same.
type Failure struct {
	// What could not be collected.
	What string `json:"what"`
	// Error says why.
	Error string `json:"error"`
}

// instance is an Instance to collect, and where to.
type instance struct {
	*v1beta1.Instance
	raw *unstructured.Unstructured
	// runs are its history.
	runs []unstructured.Unstructured
	// operator is the folder of its operator.
	operator string
}

// Collect writes what concerns an Instance and its children to a folder, and returns what could not be collected. It is
// also in the file errors.yaml. An error is an Instance that is not there, a context that has ended, or a folder that
// cannot be written to.
func (c *Collector) Collect(ctx context.Context, key types.NamespacedName, folder *Folder) ([]Failure, error) {
	c.folder, c.failed, c.Limits = folder, nil, c.Limits.withDefaults()
	c.Progress("instance " + key.String())
	all, err := c.instances(ctx, key)
	if err != nil {
		return nil, err
	}
	versions := c.versions(ctx, all)
	c.collectSecrets(ctx, all, versions)
	c.versionFile()
	c.file("settings.yaml", map[string]any{
		"namespace": key.Namespace, "instance": key.Name, "logSince": c.Since.String(), "logBytes": c.Limits.LogBytes,
		"logLines": c.Limits.LogLines,
	})
	for n, i := range all {
		c.operator(ctx, i, versions[n])
		c.instance(ctx, i)
		c.dependencies(ctx, i, versions[n])
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	c.manager(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	slices.SortFunc(c.failed, func(a, b Failure) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Error, b.Error))
	})
	if len(c.failed) == 0 {
		return nil, nil
	}
	text, err := yaml.Marshal(c.failed)
	if err != nil {
		return nil, err
	}
	folder.limit += int64(len(text)) // what is missing is always said
	return c.failed, folder.Write(path.Join(root, "errors.yaml"), text)
}

// root is the folder of all files.
const root = "diag"

// fail notes what could not be collected.
func (c *Collector) fail(what string, err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, Failure{what, c.redact.Text(err.Error())})
}

// instances finds an Instance and its children, and theirs.
func (c *Collector) instances(ctx context.Context, key types.NamespacedName) ([]*instance, error) {
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	if err := c.Client.Get(ctx, key, raw); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("instance %s does not exist: kubectl kudo get instances -A lists those that do", key)
		}
		return nil, fmt.Errorf("instance %s: %w", key, err)
	}
	first, err := c.read(raw, root)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("InstanceList"))
	if err := c.Client.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		c.fail("children of instance "+key.String(), err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	all, seen := []*instance{first}, map[types.UID]bool{raw.GetUID(): true}
	for n := 0; n < len(all); n++ {
		for k := range list.Items {
			child := &list.Items[k]
			if seen[child.GetUID()] || !v1beta1.HasOwner(child, all[n].UID) {
				continue
			}
			if len(all)-1 == c.Limits.Instances {
				c.fail("children of instance "+key.String(), fmt.Errorf("there are more than %d, and the rest is left out", c.Limits.Instances))
				return all, nil
			}
			seen[child.GetUID()] = true
			i, err := c.read(child, all[n].operator)
			if err != nil {
				c.fail("instance "+child.GetName(), err)
				continue
			}
			all = append(all, i)
		}
	}
	return all, nil
}

// file writes a value that holds nothing secret.
func (c *Collector) file(name string, value any) {
	text, err := yaml.Marshal(value)
	if err == nil {
		err = c.folder.Write(path.Join(root, name), text)
	}
	c.fail(name, err)
}

// object writes an object without what is secret in it.
func (c *Collector) object(name string, obj *unstructured.Unstructured) {
	obj = obj.DeepCopy()
	c.redact.Object(obj)
	text, err := yaml.Marshal(obj.Object)
	if err == nil && len(text) > c.Limits.ObjectBytes {
		err = fmt.Errorf("it has %d bytes, and more than %d are left out", len(text), c.Limits.ObjectBytes)
	}
	if err == nil {
		err = c.folder.Write(name, text)
	}
	c.fail(name, err)
}

// get reads an object.
func (c *Collector) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	return obj, err
}

// page is how many objects are asked for at a time.
const page = 500

// list reads the objects of a kind, at most limit.
func (c *Collector) list(ctx context.Context, kind schema.GroupVersionKind, limit int,
	options ...client.ListOption) []unstructured.Unstructured {
	kind.Kind += "List"
	var out []unstructured.Unstructured
	next := ""
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.Client.List(ctx, list, append(options, client.Limit(page), client.Continue(next))...); err != nil {
			c.fail("list of "+strings.TrimSuffix(kind.Kind, "List")+"s", err)
			return out
		}
		out = append(out, list.Items...)
		next = list.GetContinue()
		if len(out) > limit || len(out) == limit && next != "" {
			c.fail("list of "+strings.TrimSuffix(kind.Kind, "List")+"s", fmt.Errorf("there are more than %d, and the rest is left out", limit))
			return out[:limit]
		}
		if next == "" {
			return out
		}
	}
}

func (c *Collector) versionFile() {
	out := map[string]any{"kudo": c.Version}
	info, err := c.Set.Discovery().ServerVersion()
	if err == nil {
		out["kubernetes"] = info
	}
	c.fail("version of the server", err)
	c.file("version.yaml", out)
}
