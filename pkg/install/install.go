// Package install puts kudo on a cluster: CRDs, rights, webhooks and the manager.
package install

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/manifests"
)

// Options of an installation.
type Options struct {
	// Namespace to install to; DefaultNamespace if empty.
	Namespace string
	// Image of the manager, and when to pull it.
	Image, PullPolicy string
	// CRDsOnly installs nothing but the CRDs.
	CRDsOnly bool
	// External leaves the manager out: it runs outside of the cluster, for development and tests.
	External bool
	// WebhookURL is where an external manager serves the webhooks, such as https://localhost:9443; empty for none.
	WebhookURL string
}

// manager is the field manager of what is installed.
const manager = "kudo-init"

// DefaultNamespace is where kudo is installed if nothing else is said.
const DefaultNamespace = "kudo-system"

// Objects returns what Options ask for, in the order in which it is to be applied.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	files, err := fs.Glob(manifests.Files, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	if !o.CRDsOnly {
		files = append(files, "rbac.yaml", "policy.yaml")
		if !o.External || o.WebhookURL != "" {
			files = append(files, "webhook.yaml")
		}
		if !o.External {
			files = append(files, "manager.yaml")
		}
	}
	var out []*unstructured.Unstructured
	for _, name := range files {
		objs, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		out = append(out, objs...)
	}
	for _, obj := range out {
		if err := adapt(obj, o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func read(name string) ([]*unstructured.Unstructured, error) {
	text, err := manifests.Files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split("\n"+string(text), "\n---") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}

// adapt fits a manifest to the options.
func adapt(obj *unstructured.Unstructured, o Options) error {
	if obj.GetNamespace() == DefaultNamespace {
		obj.SetNamespace(o.Namespace)
	}
	switch obj.GetKind() {
	case "Namespace":
		obj.SetName(o.Namespace)
	case "ClusterRoleBinding":
		subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
		for _, s := range subjects {
			s.(map[string]any)["namespace"] = o.Namespace
		}
		return unstructured.SetNestedSlice(obj.Object, subjects, "subjects")
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return webhook(obj, o)
	case "Deployment":
		return deployment(obj, o)
	}
	return nil
}

func webhook(obj *unstructured.Unstructured, o Options) error {
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, h := range hooks {
		config := h.(map[string]any)["clientConfig"].(map[string]any)
		service := config["service"].(map[string]any)
		service["namespace"] = o.Namespace
		if o.WebhookURL == "" {
			continue
		}
		address, err := local(o.WebhookURL)
		if err != nil {
			return err
		}
		config["url"] = address + fmt.Sprint(service["path"])
		delete(config, "service")
	}
	return unstructured.SetNestedSlice(obj.Object, hooks, "webhooks")
}

// local puts localhost for a loopback address: the certificate is made for names.
func local(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("webhook URL %q: must be like https://localhost:9443", address)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		port := u.Port()
		if u.Host = "localhost"; port != "" {
			u.Host = net.JoinHostPort("localhost", port)
		}
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

func deployment(obj *unstructured.Unstructured, o Options) error {
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	c := containers[0].(map[string]any)
	if o.Image != "" {
		c["image"] = o.Image
	}
	if o.PullPolicy != "" {
		c["imagePullPolicy"] = o.PullPolicy
	}
	args := c["args"].([]any)
	args[0] = "--namespace=" + o.Namespace
	return unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers")
}

// Progress is told of each object that was applied.
type Progress func(obj *unstructured.Unstructured, created bool)

// Apply puts the objects on the cluster. What is there already is brought up to date.
func Apply(ctx context.Context, c client.Client, objs []*unstructured.Unstructured, progress Progress) error {
	for _, obj := range objs {
		sent, live := obj.DeepCopy(), &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		absent := apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(obj), live))
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(manager), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		progress(obj, absent)
	}
	return nil
}
