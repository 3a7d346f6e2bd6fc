package runner

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// newOnceTask returns a runner on a server with some objects, and a Pipe task with once of Instance i, which makes Secret i-key and ConfigMap
// i-page.
func newOnceTask(t *testing.T, objects ...client.Object) (*Runner, *PreparedTask) {
	t.Helper()
	server := apitest.Start(t, objects...)
	writes, errWrites := dynamic.NewForConfig(server.Config())
	lists, errLists := metadata.NewForConfig(server.Config())
	served, errServed := discovery.NewDiscoveryClientForConfig(server.Config())
	if err := errors.Join(errWrites, errLists, errServed); err != nil {
		t.Fatal(err)
	}
	kinds := apply.NewKinds(server.Mapper(), served, writes)
	mirror := apply.NewMirror(t.Context(), writes, server.Mapper(), logr.Discard(), func(*unstructured.Unstructured) {})
	engine := apply.New(writes, lists, kinds, mirror, nil)
	r := &Runner{engine: engine, kinds: kinds, mirror: mirror}
	run := &Run{Subject: Subject{Kind: "Instance", Namespace: "ns", Name: "i", UID: "uid-of-i"}, UID: "this-run"}
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	pod.SetName("i.deploy.p.s.t.pipepod")
	return r, &PreparedTask{
		Name: "t", run: run, writer: &instanceWriter{kinds: kinds, engine: engine, options: r.options(run, nil), run: run},
		piping: &pipeRun{pod: pod, once: true, names: []string{"i-key", "i-page"},
			pipes: []v1beta1.PipeSpec{{File: "/out/key.pem", Kind: "Secret", Key: "key", NameSuffix: "key"},
				{EnvFile: "/out/env", Kind: "ConfigMap", Key: "page", NameSuffix: "page"}}},
	}
}

// objectMeta returns the metadata of an object that a run of Instance i has made.
func objectMeta(name, run string) metav1.ObjectMeta {
	m := gen.Meta("ns", name)
	m.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"}
	m.Annotations = map[string]string{v1beta1.PlanUIDAnnotation: run}
	return m
}

// TestFindMade is G2: the pod of a task with once runs only if none of the objects exists, or if an interrupted run has made them.
func TestFindMade(t *testing.T) {
	secret := func(run string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: objectMeta("i-key", run), Data: map[string][]byte{"key.pem": []byte("x")}}
	}
	renamed := secret("earlier")
	renamed.Data = map[string][]byte{"old.pem": []byte("x")}
	page := func(run string) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: objectMeta("i-page", run)} }
	foreign := secret("earlier")
	foreign.Labels = nil
	terminating := secret("earlier")
	terminating.Finalizers, terminating.DeletionTimestamp = []string{"example.org/held"}, &metav1.Time{Time: time.Unix(1, 0)}
	other := secret("earlier")
	other.Labels[v1beta1.InstanceLabel] = "j"
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		made    bool
		err     string
		fatal   bool
	}{
		{"nothing exists", nil, false, "", false},
		{"all exist", []client.Object{secret("earlier"), page("earlier")}, true, "", false},
		{"this run was interrupted between two writes", []client.Object{secret("this-run")}, false, "", false},
		{"this run was interrupted after the writes", []client.Object{secret("this-run"), page("this-run")}, true, "", false},
		{"one was lost", []client.Object{page("earlier")}, false, "ConfigMap ns/i-page exists, but Secret ns/i-key does not: restore it", true},
		{"one is another client's", []client.Object{foreign, page("earlier")}, false, "Secret ns/i-key", true},
		{"one is another Instance's", []client.Object{other, page("earlier")}, false, "Instance ns/j", true},
		{"one lacks the key of its file", []client.Object{renamed, page("earlier")}, false, "Secret ns/i-key exists, but has no key key.pem: add", true},
		{"one is being deleted", []client.Object{terminating, page("earlier")}, false, "Secret ns/i-key is being deleted", false},
	} {
		r, w := newOnceTask(t, tc.objects...)
		made, err := r.findMade(t.Context(), w)
		if made != tc.made || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) || isFatal(err) != tc.fatal {
			t.Errorf("%s: made %t, fatal %t: %v", tc.reason, made, isFatal(err), err)
		}
		if written := len(w.effects.Written); written != 0 && !tc.made || tc.made && written != 2 {
			t.Errorf("%s: %d objects go into the inventory", tc.reason, written)
		}
	}
}

// TestPrepareMade is G2: the pod that an interrupted run has left is deleted, and no other pod is made.
func TestPrepareMade(t *testing.T) {
	r, w := newOnceTask(t)
	if got := r.prepareMade(t.Context(), w); got.outcome == nil || got.outcome.State != plans.Done {
		t.Errorf("without a pod, the outcome is %+v", got.outcome)
	}
	r, w = newOnceTask(t, &corev1.Pod{ObjectMeta: objectMeta("i.deploy.p.s.t.pipepod", "this-run")})
	if got := r.prepareMade(t.Context(), w); got.outcome != nil || !got.deletes || len(got.objects) != 1 {
		t.Errorf("with a pod, the outcome is %+v, and %v are deleted", got.outcome, got.objects)
	}
}

// TestIsPiped is G2: a Pipe task whose manager has died after it had deleted the pod is done, and makes nothing anew.
func TestIsPiped(t *testing.T) {
	meta := func(name, run, step string) metav1.ObjectMeta {
		m := objectMeta(name, run)
		m.Annotations[v1beta1.PlanAnnotation], m.Annotations[v1beta1.PhaseAnnotation], m.Annotations[v1beta1.StepAnnotation] = "deploy", "p", step
		return m
	}
	secret := func(run, step string) client.Object { return &corev1.Secret{ObjectMeta: meta("i-key", run, step)} }
	page := func(run, step string) client.Object { return &corev1.ConfigMap{ObjectMeta: meta("i-page", run, step)} }
	// Who may write Secrets can forge the annotations, and does not make the object of another owner that of the Instance.
	other := secret("this-run", "s")
	other.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "j"})
	foreign := secret("this-run", "s")
	foreign.SetLabels(nil)
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		piped   bool
		err     string
	}{
		{"the step begins", nil, false, ""},
		{"it has written everything", []client.Object{secret("this-run", "s"), page("this-run", "s")}, true, ""},
		{"it was interrupted between two writes", []client.Object{secret("this-run", "s")}, false, ""},
		{"an earlier run has written one", []client.Object{secret("earlier", "s"), page("this-run", "s")}, false, ""},
		{"another step has written them", []client.Object{secret("this-run", "t"), page("this-run", "t")}, false, ""},
		{"its pod is there", []client.Object{secret("this-run", "s"), page("this-run", "s"), &corev1.Pod{ObjectMeta: meta("i.deploy.p.s.t.pipepod", "this-run", "s")}}, false, ""},
		{"one is another Instance's", []client.Object{other, page("this-run", "s")}, false, "Instance ns/j"},
		{"one is another client's", []client.Object{foreign, page("this-run", "s")}, false, "Secret ns/i-key"},
	} {
		r, w := newOnceTask(t, tc.objects...)
		w.piping.once = false
		w.piping.variables = render.Variables{Name: "i", PlanName: "deploy", PhaseName: "p", StepName: "s"}
		piped, err := w.isPiped(t.Context(), r.mirror)
		if piped != tc.piped || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: piped %t: %v", tc.reason, piped, err)
		}
		if written := len(w.effects.Written); written != 0 && !tc.piped || tc.piped && written != 2 {
			t.Errorf("%s: %d objects go into the inventory", tc.reason, written)
		}
	}
}

// TestMadeNeedsNoImage is G2: objects that exist, as those of a restored Instance, need neither an image of Pipe tasks nor a pod.
func TestMadeNeedsNoImage(t *testing.T) {
	made := []client.Object{
		&corev1.Secret{ObjectMeta: objectMeta("i-key", "earlier"), Data: map[string][]byte{"key.pem": []byte("x")}},
		&corev1.ConfigMap{ObjectMeta: objectMeta("i-page", "earlier")},
	}
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		state   plans.State
		message string
	}{
		{"all exist", made, plans.Done, ""},
		{"none exists", nil, plans.Fatal, `task "t": no image`},
	} {
		r, w := newOnceTask(t, tc.objects...)
		r.RefusePipes(errors.New("no image"))
		pipe := task.Pipe{Pod: "absent.yaml", Pipes: w.piping.pipes, Once: true}
		v := render.Variables{Name: "i", PlanName: "deploy", PhaseName: "p", StepName: "s"}
		got := r.preparePipe(t.Context(), w.run, w, pipe, v).outcome
		if got == nil || got.State != tc.state || got.Message != tc.message {
			t.Errorf("%s: the outcome is %+v", tc.reason, got)
		}
	}
}

// TestKeepArtifact is G2: what is made once is kept, and stays kept when another task renews it.
func TestKeepArtifact(t *testing.T) {
	kept := &corev1.Secret{ObjectMeta: objectMeta("i-key", "earlier")}
	kept.Annotations[v1beta1.KeepAnnotation] = "true"
	kept.UID = types.UID("kept")
	named, unnamed := v1beta1.PipeSpec{Kind: "Secret", NameSuffix: "key"}, v1beta1.PipeSpec{Kind: "Secret"}
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		once    bool
		pipe    v1beta1.PipeSpec
		want    bool
	}{
		{"made once", nil, true, unnamed, true},
		{"made in each run", nil, false, unnamed, false},
		{"renewed, and kept", []client.Object{kept}, false, named, true},
		{"renewed, and not kept any more", []client.Object{&corev1.Secret{ObjectMeta: objectMeta("i-key", "earlier")}}, false, named, false},
		{"made for the first time", nil, false, named, false},
	} {
		_, w := newOnceTask(t, tc.objects...)
		w.piping.once = tc.once
		obj := artifact(tc.pipe, "i-key", nil)
		if err := w.keepArtifact(t.Context(), obj, tc.pipe); err != nil || v1beta1.IsKept(obj.GetAnnotations()) != tc.want {
			t.Errorf("%s: the annotations are %v (%v)", tc.reason, obj.GetAnnotations(), err)
		}
	}
}
