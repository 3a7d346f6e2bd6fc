package instances

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestDependents checks which objects uninstall --wait waits for (P24).
func TestDependents(t *testing.T) {
	parent := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "parent")}
	child := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "child")}
	parent.UID, child.UID = "p", "c"
	parent.Status.Resources = []v1beta1.ResourceStatus{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}, {APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "web"},
		{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Namespace: "ns", Name: "child"}, {APIVersion: "v1", Kind: "Namespace", Name: "made"}, {APIVersion: "v1", Kind: "Secret", Namespace: "other", Name: "elsewhere"},
	}
	child.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "db"}}
	d := newDependents(&command.Env{}, nil, []*v1beta1.Instance{parent, child}, &act.Effects{})
	want := []schema.GroupVersionKind{v1beta1.GroupVersion.WithKind("Instance"), {Version: "v1", Kind: "Service"}, {Group: "apps", Version: "v1", Kind: "Deployment"}}
	if diff := cmp.Diff(want, d.sortedKinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	for name, matches := range map[string]bool{"parent": true, "child": true, "another": false} {
		if got := d.selector().Matches(labels.Set{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: name}); got != matches {
			t.Errorf("an object of Instance %s is selected: %t", name, got)
		}
	}
	owned := func(uids ...types.UID) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{}
		for _, uid := range uids {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{UID: uid})
		}
		return o
	}
	for reason, tc := range map[string]struct {
		object *metav1.PartialObjectMetadata
		want   bool
	}{
		"the Instance owns it":         {owned("p"), true},
		"a child owns it":              {owned("c"), true},
		"both own it":                  {owned("p", "c"), true},
		"another object owns it, too":  {owned("p", "x"), false},
		"another object owns it":       {owned("x"), false},
		"no object owns it: it stays":  {owned(), false},
		"an earlier Instance owned it": {owned("old"), false},
	} {
		if got := d.has(tc.object); got != tc.want {
			t.Errorf("%s: awaited %t, want %t", reason, got, tc.want)
		}
	}
	later := parent.DeepCopy()
	later.Status.Resources = append(later.Status.Resources, v1beta1.ResourceStatus{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "cleanup"})
	over := d.until(func(*v1beta1.Instance) (bool, error) { return true, nil })
	if done, err := over(later); !done || err != nil || len(d.sortedKinds()) != 4 {
		t.Errorf("what the cleanup plan makes is awaited, too: %t, %v, %v", done, err, d.sortedKinds())
	}
	if done, _ := over(nil); !done {
		t.Error("the wrapped condition is not called for an Instance that does not exist")
	}
}

// TestWaitWithoutCollector checks that the command deletes what the garbage collector does not, as far as the user may, and nothing else: not
// the objects of a child that still exists.
func TestWaitWithoutCollector(t *testing.T) {
	instance := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "i")}
	instance.UID = "gone"
	instance.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}}
	object := func(name string, labels map[string]string, owners ...types.UID) *corev1.ConfigMap {
		o := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name)}
		o.Labels = labels
		for _, uid := range owners {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "i", UID: uid})
		}
		return o
	}
	ours := map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"}
	child := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "child")} // its cleanup plan runs
	child.UID = "child"
	for _, denied := range []bool{false, true} {
		server := apitest.Start(t, child, object("a", ours, "gone"), object("shared", ours, "gone", "other"), object("kept", ours),
			object("foreign", nil, "gone"), object("of-child", ours, "child"), object("of-both", ours, "gone", "child"))
		if denied {
			server.Before(func(r apitest.Request) (any, error) {
				if r.Verb == "delete" {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, r.Name, errors.New("no"))
				}
				return nil, nil
			})
		}
		c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: apitest.Scheme(), Mapper: server.Mapper()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), slowDeletion+time.Second)
		_, err = newDependents(&command.Env{Err: io.Discard}, c, []*v1beta1.Instance{instance, child}, &act.Effects{}).wait(ctx, instance, 3*time.Second)
		cancel()
		if err == nil || denied != strings.Contains(err.Error(), "ConfigMap ns/a (the garbage collector has not deleted it yet)") ||
			!strings.Contains(err.Error(), "ConfigMap ns/of-both") || !strings.Contains(err.Error(), "ConfigMap ns/of-child") {
			t.Errorf("denied %t: %v", denied, err)
		}
		for name, stays := range map[string]bool{"a": denied, "shared": true, "kept": true, "foreign": true, "of-child": true, "of-both": true} {
			if got := server.Get(object(name, nil)) != nil; got != stays {
				t.Errorf("denied %t: %s exists: %t", denied, name, got)
			}
		}
	}
}

// TestWaitForChild checks that the objects of a child are deleted once the child is, and that kinds that cannot be listed are named.
func TestWaitForChild(t *testing.T) {
	parent, child := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "parent")}, &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "child")}
	parent.UID, child.UID = "p", "c"
	child.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "s"}}
	object := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "a")}
	object.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "child"}
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "child", UID: "c"}}
	server := apitest.Start(t, child, object)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "list" && r.Kind == "Secret" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
		}
		return nil, nil
	})
	c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: apitest.Scheme(), Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	var warnings bytes.Buffer
	d := newDependents(&command.Env{Err: &warnings}, c, []*v1beta1.Instance{parent, child}, &act.Effects{})
	d.interval = 50 * time.Millisecond
	early := make(chan bool, 1)
	time.AfterFunc(slowDeletion+500*time.Millisecond, func() {
		early <- server.Get(object) == nil
		_ = c.Delete(context.WithoutCancel(t.Context()), child.DeepCopy())
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	complete, err := d.wait(ctx, parent, time.Minute)
	if err != nil || complete || <-early || server.Get(object) != nil {
		t.Errorf("complete %t, %v, the object exists: %t", complete, err, server.Get(object) != nil)
	}
	if !strings.Contains(warnings.String(), "whether the Secret objects of the instance are deleted is not known") {
		t.Errorf("warnings: %s", warnings.String())
	}
}

// TestDescribeAll checks how objects are named that still exist.
func TestDescribeAll(t *testing.T) {
	now := metav1.Now()
	all := map[types.UID]*metav1.PartialObjectMetadata{
		"1": {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "held", Finalizers: []string{"a/b", "c/d"}, DeletionTimestamp: &now}},
		"2": {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "late"}},
		"3": {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "going", DeletionTimestamp: ptr.To(now)}},
	}
	want := []string{"Pod ns/going", "Pod ns/held (finalizer a/b, c/d)", "Pod ns/late (the garbage collector has not deleted it yet)"}
	if diff := cmp.Diff(want, describeAll(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, all)); diff != "" {
		t.Error(diff)
	}
}

// TestRemainder checks that what stays is listed with the command that deletes it.
func TestRemainder(t *testing.T) {
	out := &bytes.Buffer{}
	env := &command.Env{Out: out}
	clusterRole := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	printRemedy(env, "ns", nil)
	stays := []act.KeptObject{{Kind: schema.GroupKind{Kind: "PersistentVolumeClaim"}, Name: "data", Why: "it holds data", IsHeld: false}, {Kind: clusterRole, Name: "held", Why: "Instance b/c holds it, too", IsHeld: true},
		{Kind: clusterRole, Name: "reader", Why: "others may use it", IsHeld: false}, {Kind: clusterRole, Name: "x; reboot #", Why: "the status was written by a tenant", IsHeld: false}}
	printStays(env, stays)
	printRemedy(env, "ns", stays)
	want := "persistentvolumeclaim data stays, since it holds data\nclusterrole held stays, since Instance b/c holds it, too\nclusterrole reader stays, since others may use it\n" +
		"clusterrole x; reboot # stays, since the status was written by a tenant\n" +
		"delete what is not needed any more: kubectl delete -n ns persistentvolumeclaim/data clusterrole.rbac.authorization.k8s.io/reader " +
		"'clusterrole.rbac.authorization.k8s.io/x; reboot #'\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestTimeoutWithoutDependents checks that a wait whose time is over is no error if nothing is left at the last look.
func TestTimeoutWithoutDependents(t *testing.T) {
	instance := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "site")}
	instance.UID = "uid"
	instance.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}}
	object := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "a")}
	object.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "site"}
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "site", UID: "uid"}}
	server := apitest.Start(t, object)
	c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: apitest.Scheme(), Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	d := newDependents(&command.Env{Err: io.Discard}, c, []*v1beta1.Instance{instance}, &act.Effects{})
	if err := d.timeout(t.Context(), instance, time.Second); err == nil || !strings.Contains(err.Error(), "ConfigMap ns/a") {
		t.Errorf("an object is left, and the error is %v", err)
	}
	server.Remove(object)
	if err := d.timeout(t.Context(), instance, time.Second); err != nil {
		t.Errorf("nothing is left, and the error is %v", err)
	}
}
