package diagnostics

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// managed names an object of the manager.
func managed(namespace, name string) metav1.ObjectMeta {
	m := gen.Meta(namespace, name)
	m.Labels = map[string]string{"app": "kudo-manager"}
	return m
}

// uids returns a set of uids.
func uids(all ...types.UID) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, uid := range all {
		out[uid] = true
	}
	return out
}

// TestLimits has clusters that exceed a limit: what is left out is said, and what comes after it is collected.
func TestLimits(t *testing.T) {
	configMaps := func(n int) (objects []client.Object, resources []v1beta1.ResourceStatus) {
		for k := range n {
			name := fmt.Sprintf("c%d", k)
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name), Data: map[string]string{"text": strings.Repeat("x", 1000*k)}})
			resources = append(resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name})
		}
		return objects, resources
	}
	for name, tc := range map[string]struct {
		reason string
		limits func(*Limits)
		// objects is how many ConfigMaps the Instance has, pods how many pods and children how many Instances.
		objects, pods, children int
		failed                  []string
		// files are those whose names hold one of c, p and child.
		files []string
	}{
		"Objects": {
			"of the objects the first ones", func(l *Limits) { l.Objects = 2 }, 3, 0, 0,
			[]string{"objects of instance i: there are more than 2, and the rest is left out"}, []string{"c0.yaml", "c1.yaml"},
		},
		"AllObjects": {"as many objects as allowed", func(l *Limits) { l.Objects = 3 }, 3, 0, 0, nil, []string{"c0.yaml", "c1.yaml", "c2.yaml"}},
		"ObjectBytes": {
			"an object that is too large, and not those beside it", func(l *Limits) { l.ObjectBytes = 1500 }, 3, 0, 0,
			[]string{"operator_v/instance_i/resources/configmap/c2.yaml: it has 2123 bytes, and more than 1500 are left out"},
			[]string{"c0.yaml", "c1.yaml"},
		},
		"Pods": {
			"the logs of some pods, and all pods themselves", func(l *Limits) { l.Pods = 1 }, 0, 2, 0,
			[]string{"pods of instance i: there are 2, and the logs of the 1 with most trouble were collected"},
			[]string{"main.log", "p0.yaml", "p1.yaml"},
		},
		"Children": {
			"of the children the first ones", func(l *Limits) { l.Instances = 1 }, 0, 0, 2,
			[]string{"children of instance ns/i: there are more than 1, and the rest is left out"}, []string{"child0.yaml"},
		},
		"AllChildren": {"as many children as allowed", func(l *Limits) { l.Instances = 2 }, 0, 0, 2, nil, []string{"child0.yaml", "child1.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := instanceOf("i", "")
			objects, resources := configMaps(tc.objects)
			i.Status.Resources = resources
			objects = append(objects, i, gen.Version("ns", "v"), &appsv1.Deployment{ObjectMeta: managed("kudo-system", "manager")})
			for k := range tc.pods {
				objects = append(objects, podOf(fmt.Sprintf("p%d", k), "i", running("main", int32(k))))
			}
			for k := range tc.children {
				objects = append(objects, instanceOf(fmt.Sprintf("child%d", k), "uid-of-i"))
			}
			c := newCollection(t, objects...)
			c.kubelet.logs = map[string]string{"p1/main": "a\n", "p1/main/previous": ""}
			tc.limits(&c.Limits)
			files, failed := c.collect(t)
			got := messages(failed)
			for n := range got {
				got[n] = strings.TrimPrefix(got[n], root+"/")
			}
			if diff := cmp.Diff(tc.failed, got); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", tc.reason, diff)
			}
			var names []string
			for path := range files {
				name := path[strings.LastIndex(path, "/")+1:]
				if strings.HasPrefix(name, "c") || strings.HasPrefix(name, "p") || strings.HasSuffix(name, ".log") {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.files, names); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTotal checks that a collection that is as large as it may be ends in a list of what is missing, which is never left out.
func TestTotal(t *testing.T) {
	c := newCollection(t, instanceOf("i", ""), gen.Version("ns", "v"))
	failed, err := c.Collect(t.Context(), client.ObjectKey{Namespace: "ns", Name: "i"}, NewFolder(c.dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	files := read(t, c.dir)
	if diff := cmp.Diff([]string{"errors.yaml"}, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, what := range []string{"settings.yaml", "version.yaml", "diag/operator_v/instance_i/i.yaml"} {
		if !slices.Contains(messages(failed), what+": left out: the collection is as large as it may be") || !strings.Contains(files["errors.yaml"], "what: "+what) {
			t.Errorf("errors.yaml does not name %s:\n%s", what, files["errors.yaml"])
		}
	}
}

// TestZeroLimits checks that a limit that is zero is that of DefaultLimits.
func TestZeroLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		given, want Limits
	}{
		"None": {"no limit is set", Limits{}, DefaultLimits()},
		"Some": {
			"those that are set stay", Limits{LogBytes: 1, Pods: 2, Total: 3},
			Limits{LogBytes: 1, LogLines: 10_000, ObjectBytes: 2 << 20, Pods: 2, Objects: 2000, Events: 5000, Instances: 100,
				LogTime: DefaultLimits().LogTime, Total: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := instanceOf("i", "")
			i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "c"}}
			c := newCollection(t, i, gen.Version("ns", "v"), &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "c")})
			c.Limits = tc.given
			files, failed := c.collect(t)
			if diff := cmp.Diff([]string{noManager}, messages(failed)); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, c.Limits); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if files["operator_v/instance_i/resources/configmap/c.yaml"] == "" {
				t.Errorf("%s: the object is missing", tc.reason)
			}
		})
	}
}

// TestList has lists of several pages, and more objects than are collected.
func TestList(t *testing.T) {
	const rest = "list of ConfigMaps: there are more than %d, and the rest is left out"
	for name, tc := range map[string]struct {
		reason         string
		objects, limit int
		want           int
		failed         []string
	}{
		"None":     {"no object", 0, 10, 0, nil},
		"Page":     {"one page", page, 2 * page, page, nil},
		"Pages":    {"several pages", page + 1, 2 * page, page + 1, nil},
		"Exact":    {"as many as allowed", 2 * page, 2 * page, 2 * page, nil},
		"Limit":    {"more than allowed", 2*page + 1, 2 * page, 2 * page, []string{fmt.Sprintf(rest, 2*page)}},
		"Within":   {"the limit lies within the only page", 5, 3, 3, []string{fmt.Sprintf(rest, 3)}},
		"LastPage": {"the limit lies within the last page", page + 5, page + 3, page + 3, []string{fmt.Sprintf(rest, page+3)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollection(t)
			for k := range tc.objects {
				c.server.Put(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", fmt.Sprintf("c%04d", k))})
			}
			got := c.list(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), tc.limit, client.InNamespace("ns"))
			if len(got) != tc.want {
				t.Errorf("%s: %d objects, want %d", tc.reason, len(got), tc.want)
			}
			for k := range got {
				if name := fmt.Sprintf("c%04d", k); got[k].GetName() != name {
					t.Fatalf("%s: %s stands in the place of %s", tc.reason, got[k].GetName(), name)
				}
			}
			if diff := cmp.Diff(tc.failed, messages(c.failed)); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestListBreaks keeps the pages that were read before an error.
func TestListBreaks(t *testing.T) {
	c := newCollection(t)
	for k := range page + 1 {
		c.server.Put(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", fmt.Sprint("c", k))})
	}
	c.server.Before(func(r apitest.Request) (any, error) {
		if r.Query.Get("continue") != "" {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
		return nil, nil
	})
	got := c.list(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), 2*page)
	if diff := cmp.Diff([]string{"list of ConfigMaps: the continue token is too old"}, messages(c.failed)); diff != "" || len(got) != page {
		t.Errorf("%d objects are kept, failures (-want +got):\n%s", len(got), diff)
	}
}

// TestFailureRank orders pods by their trouble, and keeps the order of those with the same.
func TestFailureRank(t *testing.T) {
	waiting := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	failed := podOf("failed", "i", running("main", 0))
	failed.Status.Phase = corev1.PodFailed
	init := podOf("init", "i", running("main", 0))
	init.Status.InitContainerStatuses = []corev1.ContainerStatus{running("init", 3)}
	debug := podOf("debug", "i", running("main", 0))
	debug.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{running("debugger", 1)}
	for name, tc := range map[string]struct {
		reason string
		pod    *corev1.Pod
		want   int
	}{
		"Failed":    {"it has failed, whatever its containers say", failed, 3},
		"Restarted": {"a container was restarted", podOf("p", "i", running("main", 1)), 2},
		"Init":      {"an init container was restarted", init, 2},
		"Ephemeral": {"an ephemeral container was restarted", debug, 2},
		"Both":      {"a restart counts more than a wait", podOf("p", "i", waiting, running("side", 1)), 2},
		"Waiting":   {"a container is not ready", podOf("p", "i", running("main", 0), waiting), 1},
		"Ready":     {"all are ready", podOf("p", "i", running("main", 0)), 0},
		"Empty":     {"none was scheduled", podOf("p", "i"), 0},
	} {
		if got := (&pod{Pod: *tc.pod}).failureRank(); got != tc.want {
			t.Errorf("%s: %s: %d, want %d", name, tc.reason, got, tc.want)
		}
	}
	c := newCollection(t, podOf("a", "i", running("main", 0)), podOf("b", "i", waiting), podOf("c", "i", running("main", 1)), podOf("d", "i", waiting))
	c.folder = NewFolder(c.dir, 1<<20)
	var got []string
	for _, p := range c.pods(t.Context(), root, &instance{Instance: instanceOf("i", "")}, uids()) {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"c", "b", "d", "a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEvents orders events by their time, whichever field has it, and then by their names.
func TestEvents(t *testing.T) {
	event := func(name, last, micro string) client.Object {
		obj := &unstructured.Unstructured{Object: map[string]any{"involvedObject": map[string]any{"uid": "uid-of-i"}, "lastTimestamp": nil}}
		obj.SetGroupVersionKind(eventKind)
		obj.SetNamespace("ns")
		obj.SetName(name)
		if last != "" {
			obj.Object["lastTimestamp"] = last
		}
		if micro != "" {
			obj.Object["eventTime"] = micro
		}
		return obj
	}
	c := newCollection(t, event("a", "2026-01-01T00:00:03Z", ""), event("b", "", "2026-01-01T00:00:02.000000Z"),
		event("d", "2026-01-01T00:00:01Z", "2026-01-01T00:00:09.000000Z"), event("c", "2026-01-01T00:00:01Z", ""), event("e", "", ""))
	c.folder = NewFolder(c.dir, 1<<20)
	c.events(t.Context(), root, "ns", uids("uid-of-i"))
	var got []string
	for _, line := range strings.Split(read(t, c.dir)["events.yaml"], "\n") {
		if name, found := strings.CutPrefix(line, "    name: "); found {
			got = append(got, name)
		}
	}
	if diff := cmp.Diff([]string{"e", "c", "d", "b", "a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c = newCollection(t, event("a", "", ""))
	c.folder = NewFolder(c.dir, 1<<20)
	c.events(t.Context(), root, "ns", uids("another"))
	if c.folder.size > 0 || len(c.failed) > 0 {
		t.Errorf("a file without events is written: %d bytes, failures %v", c.folder.size, c.failed)
	}
}

// zipped is a text as a ControllerRevision holds it.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// TestUnpack has the OperatorVersions that a record of a run may hold.
func TestUnpack(t *testing.T) {
	whole := zipped(t, `{"version":"1.0.0"}`)
	for name, tc := range map[string]struct {
		reason string
		data   map[string]any
		want   any
		err    string
	}{
		"Whole":  {"its content", map[string]any{"spec": whole}, map[string]any{"version": "1.0.0"}, ""},
		"None":   {"a run without one", map[string]any{"parameters": map[string]any{}}, nil, ""},
		"Plain":  {"one that is not compressed stays", map[string]any{"spec": map[string]any{"a": "b"}}, map[string]any{"a": "b"}, ""},
		"Base64": {"no base64", map[string]any{"spec": "%"}, "%", "its OperatorVersion: illegal base64 data at input byte 0"},
		"Zip":    {"no gzip", map[string]any{"spec": "eA=="}, "eA==", "its OperatorVersion: unexpected EOF"},
		"Half": {
			"half of it", map[string]any{"spec": whole[:len(whole)/2/4*4]}, whole[:len(whole)/2/4*4],
			"its OperatorVersion: unexpected EOF",
		},
		"List": {
			"JSON that is no object", map[string]any{"spec": zipped(t, `[]`)}, zipped(t, `[]`),
			"its OperatorVersion: json: cannot unmarshal array into Go value of type map[string]interface {}",
		},
		"Bomb": {
			"more than an OperatorVersion may have", map[string]any{"spec": zipped(t, `{"a":"`+strings.Repeat("x", maxSnapshot)+`"}`)}, nil,
			"its OperatorVersion: unexpected end of JSON input",
		},
	} {
		t.Run(name, func(t *testing.T) {
			revision := &unstructured.Unstructured{Object: map[string]any{"data": tc.data}}
			if err := unpack(revision); fmt.Sprint(err) != tc.err && (err != nil || tc.err != "") {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, tc.data["spec"]); diff != "" && name != "Bomb" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHistory names the records of runs by their numbers, and leaves out the data of one that cannot be read, which may be secret.
func TestHistory(t *testing.T) {
	runs := []client.Object{
		revision("i-12", 12, `{"spec":"`+zipped(t, `{"parameters":[{"name":"API_TOKEN","default":"abc"}]}`)+`"}`),
		revision("i-13", 13, `{"spec":"%","more":"kept-back"}`),
		revision("i-zero", 0, `{}`),
	}
	foreign := revision("other-1", 1, `{}`)
	foreign.Labels[v1beta1.HistoryLabel] = "uid-of-another"
	c := newCollection(t, append(runs, instanceOf("i", ""), gen.Version("ns", "v"), foreign)...)
	files, failed := c.collect(t)
	const folder = "operator_v/instance_i/history/"
	var got []string
	for path := range files {
		if name, found := strings.CutPrefix(path, folder); found {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"12.yaml", "13.yaml", "i-zero.yaml"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := files[folder+"12.yaml"]; !strings.Contains(text, "name: API_TOKEN") || strings.Contains(text, "abc") {
		t.Errorf("the content is not shown, or with its secret:\n%s", text)
	}
	if text := files[folder+"13.yaml"]; strings.Contains(text, "kept-back") || !strings.Contains(text, "name: i-13") {
		t.Errorf("data that cannot be read are shown:\n%s", text)
	}
	if !slices.Contains(messages(failed), "history i-13: its OperatorVersion: illegal base64 data at input byte 0") {
		t.Errorf("failures %v", messages(failed))
	}
}

// TestManager checks that the manager is found in its namespace, with its lease and logs, and that no Secret there is read.
func TestManager(t *testing.T) {
	manager := podOf("m", "", running("manager", 0))
	manager.ObjectMeta = managed("operators", "m")
	c := newCollection(t, &appsv1.Deployment{ObjectMeta: managed("operators", "manager")}, manager,
		&appsv1.Deployment{ObjectMeta: gen.Meta("operators", "other")}, &corev1.Secret{ObjectMeta: managed("operators", "key")},
		&coordinationv1.Lease{ObjectMeta: gen.Meta("operators", "kudo-manager")}, &coordinationv1.Lease{ObjectMeta: gen.Meta("operators", "other")})
	c.folder, c.kubelet.logs["m/manager"] = NewFolder(c.dir, 1<<20), "started\n"
	c.manager(t.Context())
	want := []string{
		"kudo/deployment.apps/manager.yaml", "kudo/lease.coordination.k8s.io/kudo-manager.yaml", "kudo/pod_m/m.yaml", "kudo/pod_m/manager.log",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(read(t, c.dir)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, request := range c.server.Requests() {
		if strings.Contains(request, "Secret") {
			t.Errorf("the collector asks for %s", request)
		}
	}
	if got := messages(c.failed); len(got) > 0 {
		t.Errorf("failures %v", got)
	}
	c.server.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Lease" {
			return nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), r.Name, errors.New("no"))
		}
		return nil, nil
	})
	c.manager(t.Context())
	if !slices.Contains(messages(c.failed), `lease of the manager: leases.coordination.k8s.io "kudo-manager" is forbidden: no`) {
		t.Errorf("failures %v", messages(c.failed))
	}
}

// TestFolderWrites has files that are there, folders that cannot be made, and the bytes that count.
func TestFolderWrites(t *testing.T) {
	f := NewFolder(t.TempDir(), 10)
	for _, step := range []struct {
		reason, name, content string
		err                   string
		size                  int64
	}{
		{"a file", "a/b", "12345", "", 5},
		{"one that is there stays, and counts once", "a/b", "xyz", "", 5},
		{"a file where a folder must be", "a/b/c", "1", "write a/b/c: mkdir", 5},
		{"exactly what is left", "a/d", "12345", "", 10},
		{"nothing fits into a full folder but an empty file", "a/e", "", "", 10},
		{"one byte more", "a/f", "1", "left out: the collection is as large as it may be", 10},
	} {
		err := f.Write(step.name, []byte(step.content))
		if (err == nil) != (step.err == "") || err != nil && !strings.HasPrefix(err.Error(), step.err) || f.size != step.size {
			t.Errorf("%s: %v, and the folder has %d bytes", step.reason, err, f.size)
		}
	}
	if text, err := fs.ReadFile(os.DirFS(f.dir), "a/b"); err != nil || string(text) != "12345" {
		t.Errorf("the file that was there is %q, %v", text, err)
	}
}
