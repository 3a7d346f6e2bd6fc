package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// state is all that is in a testbed, by kind and name, without what differs from run to run: times, uids, versions. What
// these must agree with is checked, and the result stands in their place.
type state map[string]string

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

// objects lists all that is in the testbed.
func (w *testbed) objects() []*unstructured.Unstructured {
	w.Helper()
	var out []*unstructured.Unstructured
	list := func(gvk schema.GroupVersionKind, options ...client.ListOption) {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := suite.List(ctx, found, options...); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			w.Fatal(err)
		}
		for i := range found.Items {
			if o := &found.Items[i]; strings.Contains(o.GetNamespace()+o.GetName(), w.ns) {
				out = append(out, o)
			}
		}
	}
	for _, gvk := range namespaced {
		list(gvk, client.InNamespace(w.ns))
		list(gvk, client.InNamespace(fleetNamespace(w.ns)))
	}
	for _, gvk := range clusterScoped {
		list(gvk)
	}
	for _, o := range slices.Clone(out) {
		if o.GetKind() == "CustomResourceDefinition" {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			list(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, client.InNamespace(w.ns))
		}
	}
	return out
}

// state reads the testbed.
func (w *testbed) state() state {
	w.Helper()
	objs := w.objects()
	live := map[types.UID]*unstructured.Unstructured{}
	for _, o := range objs {
		live[o.GetUID()] = o
	}
	if system := w.system(); system != nil {
		live[system.GetUID()] = system
	}
	out := state{}
	for _, o := range objs {
		key := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		content := normal(o, live)
		if w.collected && o.GetKind() == "Installation" {
			drop(content, "created", "shared", "state")
		}
		text, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			w.Fatal(err)
		}
		out[scrub(key, w.ns)] = scrub(string(text), w.ns)
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
func (w *testbed) system() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(clusterScoped[0])
	if err := suite.Get(ctx, client.ObjectKey{Name: "kube-system"}, o); err != nil {
		w.Fatal(err)
	}
	return o
}

var (
	uids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hashes = regexp.MustCompile(`-[0-9a-f]{8,64}\b|sha256:[0-9a-f]{64}`)
	pins   = regexp.MustCompile(`"(sha256|specHash)": "[0-9a-f]{64}"`) // of a tarball, in which is the name of its testbed
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

func scrub(text, ns string) string {
	text = strings.ReplaceAll(text, ns, "NS")
	text = uids.ReplaceAllString(text, "UID")
	text = pins.ReplaceAllString(text, `"$1": "HASH"`)
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
	unstructured.RemoveNestedField(o.Object, "spec", "volumeName")
	if o.GetKind() == "CustomResourceDefinition" {
		unstructured.RemoveNestedField(o.Object, "spec", "conversion")
	}
	return o.Object
}

const nothing = "of nothing that is there"

func dangling(owner any) bool { return owner.(map[string]any)["uid"] == nothing }

// identity says whether a uid is that of a living object of a name.
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
	if inputs, _, _ := unstructured.NestedString(o.Object, "status", "inputsHash"); inputs != "" {
		_ = unstructured.SetNestedField(o.Object, "set", "status", "inputsHash")
	}
	parameters, _, _ := unstructured.NestedStringMap(o.Object, "status", "baseline", "parameters")
	for name := range parameters {
		_ = unstructured.SetNestedField(o.Object, "hashed", "status", "baseline", "parameters", name)
	}
}

// calm bounds how long a testbed may take from the end of a plan to its rest, and collection how long where the cluster's
// garbage collector has something to do in it: that waits for half a minute each time a definition goes, or the apiserver.
// going is how long a namespace or a definition may take to go, which takes Kubernetes minutes where hundreds have gone.
const calm, collection, going = 30 * time.Second, 3 * time.Minute, 5 * time.Minute

// settle waits until the testbed is in a state.
func (w *testbed) settle(want state) {
	w.Helper()
	began := time.Now()
	for {
		now, limit := w.state(), calm
		diff := cmp.Diff(want, now)
		if diff == "" {
			return
		}
		if now.collectable() {
			limit = collection
		}
		if time.Since(began) > limit {
			w.Errorf("the end is not that of an undisturbed run (-undisturbed +with the fault):\n%s\nthe manager said:\n%s", diff, line.tail())
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// collectable reports whether something waits for the garbage collector, which learns of kudo's kinds only after half a minute
// of a cluster's life.
func (s state) collectable() bool {
	for key, text := range s {
		if kind, _, _ := strings.Cut(key, " "); kind != "Instance" && kind != "Installation" && strings.Contains(text, nothing) {
			return true
		}
	}
	return false
}

// rest waits until the testbed does not change any more, and returns its state.
func (w *testbed) rest() state {
	w.Helper()
	last, since := w.state(), time.Now()
	for began := time.Now(); time.Since(since) < time.Second; {
		time.Sleep(100 * time.Millisecond)
		if now := w.state(); !cmp.Equal(last, now) || now.collectable() {
			last, since = now, time.Now()
		}
		if time.Since(began) > limit {
			w.Fatalf("the world does not come to rest: %s", cmp.Diff(last, w.state()))
		}
	}
	return last
}
