package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// written are the labels of what Instance one has written.
var written = map[string]string{v1beta1.InstanceLabel: "one", v1beta1.HeritageLabel: v1beta1.Heritage}

func asIs(message string) string { return message }

// watched returns the detail of an Instance, which watches its objects until the test ends.
func (r *running) watched(t *testing.T, i *v1beta1.Instance) *detail {
	t.Helper()
	d := r.openDetail(client.ObjectKeyFromObject(i))
	t.Cleanup(d.close)
	d.observe(i.Status.Resources)
	return d
}

// rowOfObject returns the row of an object, such as `Pod web-x`.
func (d *detail) rowOfObject(i *v1beta1.Instance, name string) objectRow {
	rows := d.objects(i, asIs)
	n := slices.IndexFunc(rows, func(row objectRow) bool { return strings.TrimSpace(row.Kind+" "+row.Name) == name })
	if n < 0 {
		return objectRow{}
	}
	return rows[n]
}

// TestDiscovery shows U10: no page waits for the answer to what a kind is called in addresses; an error of the cluster is no statement on
// the kind, and is not the last answer.
func TestDiscovery(t *testing.T) {
	i := instance("a", "one", func(i *v1beta1.Instance) {
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "example.org/v1", Kind: "Widget", Namespace: "a", Name: "w"}}
	})
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}}
	widget.SetNamespace("a")
	widget.SetName("w")
	widget.SetLabels(written)
	api := apitest.Start(t, i)
	api.AddKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, true)
	api.Put(widget)
	answer, answers := make(chan struct{}), atomic.Bool{}
	api.Before(func(q apitest.Request) (any, error) {
		if q.Verb != "" || answers.Load() {
			return nil, nil
		}
		select {
		case <-answer:
		case <-time.After(5 * time.Second): // a page that waits for it shows something else then
		}
		return nil, apierrors.NewServiceUnavailable("etcd is full")
	})
	r := beginOn(t, api, "")
	r.await(t, "the Instance is there", func() bool { return r.instances.Status().State == current })
	if _, body := r.get(t, "/instances/a/one"); !strings.Contains(body, "<td class=\"wide\">loading</td>") {
		t.Errorf("the page waits for what the kind is called: %s", body)
	}
	close(answer)
	d := r.watched(t, i)
	r.await(t, "the error of the cluster is shown", func() bool {
		return strings.Contains(d.rowOfObject(i, "Widget w").Message, "the server is currently unable")
	})
	if state := d.kinds[widget.GroupVersionKind()].Status().State; state != unreachable {
		t.Errorf("an error of the cluster is state %d of the kind", state)
	}
	answers.Store(true)
	r.await(t, "the object is shown once the cluster answers", func() bool { return d.rowOfObject(i, "Widget w").State == objectReady })
}

// TestPodsAreNotKnown shows U10: what was so before is not shown as what is, and a right that is missing from the start is named.
func TestPodsAreNotKnown(t *testing.T) {
	i := instance("a", "one", nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-x", Labels: written},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}}}}
	r := begin(t, "", i, pod)
	d := r.watched(t, i)
	r.await(t, "the pod is ready", func() bool { return d.rowOfObject(i, "Pod web-x").State == objectReady })
	for _, tc := range []struct {
		err  error
		want string
	}{
		{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")), "you have no right to list and watch pods"},
		{apierrors.NewUnauthorized("expired"), "your login has ended"},
		{errors.New("connection refused"), "connection refused"},
	} {
		d.kinds[podKind].note(tc.err)
		if row := d.rowOfObject(i, "Pod web-x"); row.State != objectUnknown || row.Message != tc.want {
			t.Errorf("after %q the pod is %s: %q", tc.err, row.State.Word, row.Message)
		}
	}
	d.kinds[podKind].note(nil)
	if row := d.rowOfObject(i, "Pod web-x"); row.State != objectReady {
		t.Errorf("with a watch again the pod is %s: %q", row.State.Word, row.Message)
	}
	none := apitest.Start(t, i, pod)
	none.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "Pod" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		return nil, nil
	})
	r = beginOn(t, none, "")
	d = r.watched(t, i)
	r.await(t, "the missing right is named", func() bool {
		row := d.rowOfObject(i, "Pods")
		return row.State == objectUnknown && row.Message == "you have no right to list and watch pods"
	})
}

// TestSuspended: health is judged by an annotation of kudo, which is kept; others are not.
func TestSuspended(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(0)},
		"status": map[string]any{"replicas": int64(0), "terminatingReplicas": int64(1)}}}
	for annotation, want := range map[string]state{v1beta1.SuspendedAnnotation: objectReady, "example.org/other": objectMoving} {
		u := deployment.DeepCopy()
		u.SetAnnotations(map[string]string{annotation: "true", "example.org/secret": "x"})
		reduceObject(u)
		if got, message := healthOf(u, asIs); got != want {
			t.Errorf("with %s, it is %s (%s), want %s", annotation, got.Word, message, want.Word)
		}
		if kept := u.GetAnnotations(); len(kept) > 1 || kept["example.org/secret"] != "" {
			t.Errorf("annotations are kept: %v", kept)
		}
	}
}

// TestObjectWords: an object that is not watched, or not found, is said to be so for its own reason.
func TestObjectWords(t *testing.T) {
	i := instance("a", "one", func(i *v1beta1.Instance) {
		add := func(api, kind, namespace, name string) {
			i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: api, Kind: kind, Namespace: namespace, Name: name})
		}
		add("v1", "ConfigMap", "a", "unlabeled")
		add("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader")
		add("v1", "ConfigMap", "b", "elsewhere")
		for n := range maxKinds {
			add("example.org/v1", fmt.Sprintf("Kind%02d", n), "a", "x")
		}
	})
	r := begin(t, "", i, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "unlabeled"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}})
	d := r.watched(t, i)
	outside := "it is not in the namespace of the Instance: this page does not watch it"
	for name, want := range map[string]string{
		"ConfigMap unlabeled": "it does not exist, or its labels were removed", "ClusterRole reader": outside, "ConfigMap b/elsewhere": outside,
		"Kind00 x": `no matches for kind "Kind00" in version "example.org/v1"`, "Kind31 x": "the Instance has more kinds of objects than the 32 that this page watches",
	} {
		r.await(t, name+": "+want, func() bool { return d.rowOfObject(i, name).Message == want })
	}
}
