package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// State is all that is in a testbed, by kind and name, without what differs from run to run: times, uids, versions. What
// these must agree with is checked, and the result stands in their place.
type State map[string]string

// kinds that packages of the tests use, and in which kudo keeps its own things.
var (
	namespaced = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
		{Group: "kudo.dev", Version: "v1beta1", Kind: "Instance"}, {Group: "kudo.dev", Version: "v1beta1", Kind: "OperatorVersion"},
	}
	clusterScoped = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "kudo.dev", Version: "v1beta1", Kind: "Installation"},
	}
)

// Objects lists all that is in the namespace of a testbed, in that of Fleet, and what has the name of the namespace in its own.
func Objects(t testing.TB, c client.Reader, ns string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	list := func(gvk schema.GroupVersionKind, options ...client.ListOption) {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(context.Background(), found, options...); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		for i := range found.Items {
			if o := &found.Items[i]; strings.Contains(o.GetNamespace()+o.GetName(), ns) && !isOfEachNamespace(o) {
				out = append(out, o)
			}
		}
	}
	for _, gvk := range namespaced {
		list(gvk, client.InNamespace(ns))
		list(gvk, client.InNamespace(FleetNamespace(ns)))
	}
	for _, gvk := range clusterScoped {
		list(gvk)
	}
	for _, o := range slices.Clone(out) {
		if o.GetKind() == "CustomResourceDefinition" {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			list(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, client.InNamespace(ns))
		}
	}
	return out
}

// isOfEachNamespace reports whether Kubernetes makes an object in each namespace, at some time after the namespace is made.
func isOfEachNamespace(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ConfigMap" && o.GetName() == "kube-root-ca.crt" || o.GetKind() == "ServiceAccount" && o.GetName() == "default"
}

// Read reads the state of the testbed of a namespace. Where the garbage collector may or may not take objects before they are held again,
// collected leaves out whether they were made anew or shared.
func Read(t testing.TB, c client.Reader, ns string, collected bool) State {
	t.Helper()
	objs := Objects(t, c, ns)
	live := map[types.UID]*unstructured.Unstructured{}
	for _, o := range objs {
		live[o.GetUID()] = o
	}
	guard := system(t, c)
	live[guard.GetUID()] = guard
	out := State{}
	for _, o := range objs {
		key := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		content := normal(o, live)
		if collected && o.GetKind() == "Installation" {
			drop(content, "created", "shared", "state")
		}
		text, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out[scrub(key, ns)] = scrub(string(text), ns)
	}
	return out
}

// drop drops fields wherever they are.
func drop(value any, fields ...string) {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range fields {
			delete(v, field)
		}
		for _, below := range v {
			drop(below, fields...)
		}
	case []any:
		for _, below := range v {
			drop(below, fields...)
		}
	}
}

// system is the namespace that guards objects which the garbage collector must not take.
func system(t testing.TB, c client.Reader) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(clusterScoped[0])
	if err := c.Get(context.Background(), client.ObjectKey{Name: "kube-system"}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

var (
	uids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hashes = regexp.MustCompile(`-[0-9a-f]{8,64}\b|sha256:[0-9a-f]{64}`)
	pins   = regexp.MustCompile(`"(sha256|specHash)": "[0-9a-f]{64}"`) // of a tarball, in which is the name of its testbed
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// durations are those of the steps of a run, in the annotation of its record.
	durations = regexp.MustCompile(`,\\"steps\\":\{[^}]*\}`)
)

func scrub(text, ns string) string {
	text = strings.ReplaceAll(text, ns, "NS")
	text = uids.ReplaceAllString(text, "UID")
	text = pins.ReplaceAllString(text, `"$1": "HASH"`)
	text = durations.ReplaceAllString(text, "")
	return times.ReplaceAllString(hashes.ReplaceAllString(text, "-HASH"), "TIME")
}

// normal is an object without what differs from run to run.
func normal(o *unstructured.Unstructured, live map[types.UID]*unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	owners, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	for _, item := range owners {
		owner := item.(map[string]any)
		owner["uid"] = identity(live, owner["uid"], owner["name"])
	}
	if left := slices.DeleteFunc(slices.Clone(owners), dangling); len(left) > 0 { // the garbage collector drops those beside others
		owners = left
	}
	if len(owners) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, owners, "metadata", "ownerReferences")
	}
	switch o.GetKind() {
	case "Instance", "OperatorVersion", "Installation":
		normalStatus(o, live)
	case "ControllerRevision":
		if spec, _, _ := unstructured.NestedString(o.Object, "data", "spec"); spec != "" {
			_ = unstructured.SetNestedField(o.Object, "packed", "data", "spec")
		}
		if o.GetAnnotations()[v1beta1.SealAnnotation] != "" { // it is of uids
			_ = unstructured.SetNestedField(o.Object, "set", "metadata", "annotations", v1beta1.SealAnnotation)
		}
		given, _, _ := unstructured.NestedStringMap(o.Object, "data", "parameters")
		for name, value := range given {
			if strings.HasPrefix(value, "aes-256-gcm:") {
				_ = unstructured.SetNestedField(o.Object, "sealed", "data", "parameters", name)
			}
		}
	default:
		delete(o.Object, "status")
	}
	if o.GetKind() == "PersistentVolumeClaim" {
		o.SetAnnotations(claimAnnotations(o))
	}
	unstructured.RemoveNestedField(o.Object, "spec", "volumeName")
	if o.GetKind() == "CustomResourceDefinition" {
		unstructured.RemoveNestedField(o.Object, "spec", "conversion")
	}
	return o.Object
}

const nothing = "of nothing that is there"

func dangling(owner any) bool { return owner.(map[string]any)["uid"] == nothing }

// identity reports whether a uid is that of a live object of a name.
func identity(live map[types.UID]*unstructured.Unstructured, uid, name any) string {
	text, _ := uid.(string)
	found := live[types.UID(text)]
	switch {
	case text == "":
		return "none"
	case found == nil:
		return nothing
	case found.GetName() != name:
		return "of another object"
	}
	return "right"
}

// normalStatus checks the inventory against what is there.
func normalStatus(o *unstructured.Unstructured, live map[types.UID]*unstructured.Unstructured) {
	resources, _, _ := unstructured.NestedSlice(o.Object, "status", "resources")
	for _, item := range resources {
		r := item.(map[string]any)
		uid, _ := r["uid"].(string)
		if found := live[types.UID(uid)]; found != nil && r["observedVersion"] != nil {
			now := fmt.Sprint(found.GetGeneration())
			if found.GetGeneration() == 0 {
				now = found.GetResourceVersion()
			}
			r["observedVersion"] = fmt.Sprintf("current: %t", r["observedVersion"] == now)
		}
		r["uid"] = identity(live, r["uid"], r["name"])
		for _, field := range []string{"hash", "contentHash", "fieldsHash"} {
			if text, _ := r[field].(string); text != "" {
				r[field] = "set"
			}
		}
	}
	if len(resources) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, resources, "status", "resources")
	}
	if content, _, _ := unstructured.NestedString(o.Object, "status", "baseline", "contentHash"); content != "" {
		_ = unstructured.SetNestedField(o.Object, "set", "status", "baseline", "contentHash")
	}
	// A manager of before did not write it, and one of today does not write it for that alone.
	unstructured.RemoveNestedField(o.Object, "status", "baseline", "generation")
	if inputs, _, _ := unstructured.NestedString(o.Object, "status", "inputsHash"); inputs != "" {
		_ = unstructured.SetNestedField(o.Object, "set", "status", "inputsHash")
	}
	parameters, _, _ := unstructured.NestedStringMap(o.Object, "status", "baseline", "parameters")
	for name := range parameters {
		_ = unstructured.SetNestedField(o.Object, "hashed", "status", "baseline", "parameters", name)
	}
}

// claimAnnotations returns the annotations of a claim but those of the controllers of volumes, which come at some time after the claim is made.
func claimAnnotations(o *unstructured.Unstructured) map[string]string {
	out := maps.Clone(o.GetAnnotations())
	maps.DeleteFunc(out, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain == "pv.kubernetes.io" || domain == "volume.kubernetes.io" || domain == "volume.beta.kubernetes.io"
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// Collectable reports whether something waits for the garbage collector, which learns of kudo's kinds only after half a minute
// of a cluster's life.
func (s State) Collectable() bool {
	for key, text := range s {
		if kind, _, _ := strings.Cut(key, " "); kind != "Instance" && kind != "Installation" && strings.Contains(text, nothing) {
			return true
		}
	}
	return false
}

// Versions are uids and versions of what plans write: not of kudo's own kinds, nor of what a run makes and deletes.
func Versions(objects []*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, o := range objects {
		switch o.GetKind() {
		case "Instance", "OperatorVersion", "Installation", "ControllerRevision", "Job", "Namespace":
			continue
		case "Deployment":
			out[o.GetKind()+" "+o.GetName()] = fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetAnnotations())
		case "PersistentVolumeClaim":
			out[o.GetKind()+" "+o.GetName()] = fmt.Sprint(o.GetUID(), o.GetGeneration(), claimAnnotations(o))
		default:
			out[o.GetKind()+" "+o.GetName()] = string(o.GetUID()) + o.GetResourceVersion()
		}
	}
	return out
}
