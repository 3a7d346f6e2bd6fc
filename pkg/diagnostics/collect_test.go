package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// kubelet serves the logs of containers by `pod/container`, or `pod/container/previous`, and the version of the server.
type kubelet struct {
	logs map[string]string

	mu sync.Mutex
	// queries are the requests for logs.
	queries []string
}

// ServeHTTP implements http.Handler.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		_, _ = fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
		return
	}
	parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/ns/pods/p/log
	name := parts[len(parts)-2] + "/" + r.URL.Query().Get("container")
	if r.URL.Query().Get("previous") == "true" {
		name += "/previous"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queries = append(k.queries, name+" since "+r.URL.Query().Get("sinceSeconds")+" limit "+r.URL.Query().Get("limitBytes"))
	text, found := k.logs[name]
	if !found {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no log of %s","reason":"NotFound","code":404}`, name)
		return
	}
	_, _ = fmt.Fprint(w, text)
}

// collection is a Collector of a server, and the folder that it writes to.
type collection struct {
	*Collector
	server  *apitest.Server
	dir     string
	kubelet kubelet
}

// newCollection returns a collector of the objects.
func newCollection(t *testing.T, objects ...client.Object) *collection {
	t.Helper()
	c := &collection{server: apitest.Start(t, objects...), dir: t.TempDir()}
	c.server.AddKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, true)
	c.kubelet.logs = map[string]string{}
	logs := httptest.NewServer(&c.kubelet)
	t.Cleanup(logs.Close)
	set, err := kubernetes.NewForConfig(&rest.Config{Host: logs.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	c.Collector = &Collector{Client: c.server.Client(), Set: set, Version: "v1.2.3", Limits: DefaultLimits(), Progress: func(string) {}}
	c.redact.prepare() // as Collect does before it reads logs, which it does in parallel
	return c
}

// collect collects Instance ns/i, and returns the texts of the files by their paths below the root.
func (c *collection) collect(t *testing.T) (files map[string]string, failed []Failure) {
	t.Helper()
	failed, err := c.Collect(t.Context(), types.NamespacedName{Namespace: "ns", Name: "i"}, NewFolder(c.dir, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, c.dir), failed
}

// read returns the texts of all files of a collection.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, root), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(filepath.Join(dir, root), path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// instanceOf builds Instance name of OperatorVersion v, which belongs to the Instance of uid owner unless that is empty.
func instanceOf(name string, owner types.UID) *v1beta1.Instance {
	i := gen.Instance(name, gen.Version("ns", "v"), nil)
	i.UID = types.UID("uid-of-" + name)
	if owner != "" {
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "any", UID: owner}}
	}
	return i
}

// podOf builds a pod of an Instance with the statuses of its containers.
func podOf(name, instance string, statuses ...corev1.ContainerStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: gen.Meta("ns", name)}
	p.UID, p.Labels = types.UID("uid-of-"+name), map[string]string{v1beta1.InstanceLabel: instance}
	p.Status.ContainerStatuses = statuses
	return p
}

func running(name string, restarts int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Ready: true, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

// messages are the failures, each in a line.
func messages(failed []Failure) []string {
	var out []string
	for _, f := range failed {
		out = append(out, f.What+": "+f.Error)
	}
	return out
}

// noManager is what each collection of a cluster without a manager says.
const noManager = "manager: there is no Deployment labeled app=kudo-manager: if the manager runs outside of the cluster, its log is there"

// TestCollectFiles has the files of an Instance with a child, its objects, pods and events, and those of the manager.
func TestCollectFiles(t *testing.T) {
	parent := instanceOf("i", "")
	parent.Status.Resources = []v1beta1.ResourceStatus{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "settings"},
		{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Namespace: "ns", Name: "child"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:role"},
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("ns", "data")}
	claim.Labels = map[string]string{v1beta1.InstanceLabel: "i"}
	other := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("ns", "foreign")}
	event := &corev1.Event{ObjectMeta: gen.Meta("ns", "e"), InvolvedObject: corev1.ObjectReference{UID: "uid-of-p"}, Message: "Back-off"}
	foreign := &corev1.Event{ObjectMeta: gen.Meta("ns", "f"), InvolvedObject: corev1.ObjectReference{UID: "uid-of-another"}}
	c := newCollection(t, parent, instanceOf("child", "uid-of-i"), instanceOf("grandchild", "uid-of-child"), instanceOf("stranger", "uid-of-another"),
		gen.Version("ns", "v"), &v1beta1.Operator{ObjectMeta: gen.Meta("ns", "v")}, &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "settings")},
		role("system:role"), claim, other, event, foreign, podOf("p", "i", running("main", 0)), podOf("q", "stranger", running("main", 0)))
	c.kubelet.logs["p/main"] = "ready\n"
	files, failed := c.collect(t)
	want := []string{
		"errors.yaml",
		"operator_v/instance_i/events.yaml",
		"operator_v/instance_i/i.yaml",
		"operator_v/instance_i/pod_p/main.log",
		"operator_v/instance_i/pod_p/p.yaml",
		"operator_v/instance_i/resources/clusterrole.rbac.authorization.k8s.io/system%3Arole.yaml",
		"operator_v/instance_i/resources/configmap/settings.yaml",
		"operator_v/instance_i/resources/persistentvolumeclaim/data.yaml",
		"operator_v/operator_v/instance_child/child.yaml",
		"operator_v/operator_v/operator_v/instance_grandchild/grandchild.yaml",
		"operator_v/operator_v/operator_v/operatorversion_v/v.yaml",
		"operator_v/operator_v/operator_v/v.yaml",
		"operator_v/operator_v/operatorversion_v/v.yaml",
		"operator_v/operator_v/v.yaml",
		"operator_v/operatorversion_v/v.yaml",
		"operator_v/v.yaml",
		"settings.yaml",
		"version.yaml",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{noManager}, messages(failed)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	events := files["operator_v/instance_i/events.yaml"]
	if !strings.Contains(events, "Back-off") || strings.Contains(events, "uid-of-another") {
		t.Errorf("the events of the pod only are collected:\n%s", events)
	}
	if version := files["version.yaml"]; !strings.Contains(version, "kudo: v1.2.3") || !strings.Contains(version, "gitVersion: v1.37.2") {
		t.Errorf("version.yaml is\n%s", version)
	}
	for path := range files {
		if info, err := os.Stat(filepath.Join(c.dir, root, path)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v, %v", path, info, err)
		}
	}
}

// role builds a ClusterRole, whose name may hold colons.
func role(name string) client.Object { return &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", name)} }

// revision builds a record of a run of Instance i.
func revision(name string, number int64, data string) *appsv1.ControllerRevision {
	r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", name), Revision: number, Data: runtime.RawExtension{Raw: []byte(data)}}
	r.Labels = map[string]string{v1beta1.HistoryLabel: "uid-of-i"}
	return r
}

// TestCollectErrors has what ends a collection, with the remedy.
func TestCollectErrors(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "i"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Absent": {"there is no such Instance", nil, "instance ns/i does not exist: kubectl kudo get instances -A lists those that do"},
		"Forbidden": {
			"the user may not read it",
			apierrors.NewForbidden(v1beta1.Resource("instances"), "i", errors.New("no")),
			`instance ns/i: instances.kudo.dev "i" is forbidden: no`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollection(t)
			c.server.Before(func(apitest.Request) (any, error) { return nil, tc.err })
			_, err := c.Collect(t.Context(), key, NewFolder(c.dir, 1<<20))
			if fmt.Sprint(err) != tc.want {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(filepath.Join(c.dir, root)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: files are written: %v", tc.reason, err)
			}
		})
	}
	c := newCollection(t, instanceOf("i", ""), gen.Version("ns", "v"))
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(what string) {
		if what == "manager" {
			cancel()
		}
	}
	if failed, err := c.Collect(ctx, key, NewFolder(c.dir, 1<<20)); !errors.Is(err, context.Canceled) || failed != nil {
		t.Errorf("a context that ends is an error, and no list of failures: %v, %v", failed, err)
	}
}

// TestFailures checks that one object that cannot be read does not keep the others from being collected, and that errors.yaml
// lists each failure in order.
func TestFailures(t *testing.T) {
	i := instanceOf("i", "")
	i.Status.Resources = []v1beta1.ResourceStatus{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "deleted"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "other", Name: "foreign"},
		{APIVersion: "example.com/v1", Kind: "Unknown", Namespace: "ns", Name: "u"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "there"},
	}
	c := newCollection(t, i, &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "there")}, &corev1.Secret{ObjectMeta: gen.Meta("other", "foreign")})
	c.server.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "PersistentVolumeClaim" {
			return nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "", errors.New("no"))
		}
		return nil, nil
	})
	files, failed := c.collect(t)
	want := []string{
		`ConfigMap ns/deleted: configmaps "deleted" not found`,
		`Secret other/foreign: left out: Secrets of other namespaces are not read`,
		`Unknown ns/u: no matches for kind "Unknown" in version "example.com/v1"`,
		`list of PersistentVolumeClaims: persistentvolumeclaims is forbidden: no`,
		noManager,
		`operatorversion ns/v: operatorversions.kudo.dev "v" not found`,
	}
	if diff := cmp.Diff(want, messages(failed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var listed []Failure
	if err := yaml.Unmarshal([]byte(files["errors.yaml"]), &listed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(failed, listed); diff != "" {
		t.Errorf("errors.yaml has other failures (-want +got):\n%s", diff)
	}
	if files["operator_v/instance_i/resources/configmap/there.yaml"] == "" {
		t.Error("an object behind those that cannot be read is missing")
	}
	if got := c.server.Requests(); slices.Contains(got, "get Secret other/foreign") {
		t.Error("a Secret of another namespace was read")
	}
}

// TestNothingSecret checks that no value of a Secret, a sensitive parameter or an older run is in any file or in any failure.
func TestNothingSecret(t *testing.T) {
	standard := "default-login"
	ov := gen.Version("ns", "v")
	ov.Spec.Parameters = []v1beta1.Parameter{{Name: "PIN", Sensitive: true, Default: &standard}, {Name: "MODE"}}
	i := instanceOf("i", "")
	i.Spec.Parameters = map[string]string{"PIN": "pin-of-today", "MODE": "visible-mode"}
	secret := &corev1.Secret{ObjectMeta: gen.Meta("ns", "s"), Data: map[string][]byte{"any": []byte("value-of-secret")}}
	run := revision("i-1", 1, `{"parameters":{"PIN":"pin-of-yesterday"}}`)
	text := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "settings"), Data: map[string]string{
		"a": "connect with value-of-secret and pin-of-today", "b": "default-login or pin-of-yesterday", "c": "visible-mode"}}
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "settings"}}
	c := newCollection(t, ov, i, secret, run, text, podOf("p", "i", running("main", 0)))
	c.kubelet.logs["p/main"] = "12:00 login with pin-of-yesterday\n12:01 value-of-secret is refused, visible-mode\n"
	c.server.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Event" {
			return nil, apierrors.NewInternalError(errors.New("cannot decode value-of-secret"))
		}
		return nil, nil
	})
	files, _ := c.collect(t)
	for path, content := range files {
		for _, value := range []string{"value-of-secret", "pin-of-today", "pin-of-yesterday", "default-login"} {
			if strings.Contains(content, value) {
				t.Errorf("%s shows %s", path, value)
			}
		}
	}
	if log := files["operator_v/instance_i/pod_p/main.log"]; log != "12:00 login with REDACTED\n12:01 REDACTED is refused, visible-mode\n" {
		t.Errorf("the log is %q", log)
	}
	if errs := files["errors.yaml"]; !strings.Contains(errs, "cannot decode REDACTED") {
		t.Errorf("errors.yaml is\n%s", errs)
	}
	if settings := files["operator_v/instance_i/resources/configmap/settings.yaml"]; !strings.Contains(settings, "c: visible-mode") {
		t.Errorf("a value that is no secret is left out:\n%s", settings)
	}
}

// TestLogs has which logs of a pod are read, and what of them is kept.
func TestLogs(t *testing.T) {
	ended := corev1.ContainerStatus{Name: "ended", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	waiting := corev1.ContainerStatus{Name: "waiting", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	crashing := corev1.ContainerStatus{Name: "crashing", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	for name, tc := range map[string]struct {
		reason  string
		status  corev1.ContainerStatus
		logs    map[string]string
		limit   int64
		queries []string
		want    map[string]string
		failed  []string
	}{
		"Running": {
			"a container that runs", running("main", 0), map[string]string{"p/main": "a\n"}, 100,
			[]string{"p/main"}, map[string]string{"main.log": "a\n"}, nil,
		},
		"Waiting": {"a container that was never started has no log", waiting, nil, 100, nil, map[string]string{}, nil},
		"Crashing": {
			"a container that is restarted has one of its run before, too",
			crashing, map[string]string{"p/crashing": "now\n", "p/crashing/previous": "before\n"}, 100,
			[]string{"p/crashing", "p/crashing/previous"}, map[string]string{"crashing.log": "now\n", "crashing.previous.log": "before\n"}, nil,
		},
		"Ended": {
			"a container that waits after its first end", ended, map[string]string{"p/ended/previous": "before\n"}, 100,
			[]string{"p/ended/previous"}, map[string]string{"ended.previous.log": "before\n"}, nil,
		},
		"Absent": {
			"a log that cannot be read", running("main", 0), nil, 100,
			[]string{"p/main"}, map[string]string{}, []string{"main.log: no log of p/main"},
		},
		"Empty": {
			"a log without lines makes no file", running("main", 0), map[string]string{"p/main": ""}, 100,
			[]string{"p/main"}, map[string]string{}, nil,
		},
		"Long": {
			"the end of a long log, from the beginning of a line", running("main", 0),
			map[string]string{"p/main": "first\nsecond\nthird\n"}, 10,
			[]string{"p/main"}, map[string]string{"main.log": "third\n"},
			[]string{"main.log: it is longer than 10 bytes, and the end was collected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollection(t)
			c.kubelet.logs, c.Limits.LogBytes, c.folder = tc.logs, tc.limit, NewFolder(c.dir, 1<<20)
			c.Collector.logs(t.Context(), []*pod{{Pod: *podOf("p", "i", tc.status), folder: root}})
			var queries []string
			for _, query := range c.kubelet.queries {
				if !strings.HasSuffix(query, fmt.Sprintf(" since  limit %d", 16*tc.limit)) {
					t.Errorf("%s: asked for %s", tc.reason, query)
				}
				queries = append(queries, strings.Fields(query)[0])
			}
			slices.Sort(queries)
			if diff := cmp.Diff(tc.queries, queries); diff != "" {
				t.Errorf("%s: asked for (-want +got):\n%s", tc.reason, diff)
			}
			got := map[string]string{}
			if len(tc.want) > 0 {
				got = read(t, c.dir)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for n, f := range c.failed {
				c.failed[n].What = strings.TrimPrefix(f.What, root+"/")
			}
			if diff := cmp.Diff(tc.failed, messages(c.failed)); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLogSince checks how old the lines of a log may be: the API server knows whole seconds, of which zero would be all lines.
func TestLogSince(t *testing.T) {
	for since, want := range map[time.Duration]string{0: "", time.Millisecond: "1", 90 * time.Second: "90", 1900 * time.Millisecond: "1"} {
		c := newCollection(t)
		c.kubelet.logs["p/main"], c.Since, c.folder = "a\n", since, NewFolder(c.dir, 1<<20)
		c.Collector.logs(t.Context(), []*pod{{Pod: *podOf("p", "i", running("main", 0)), folder: root}})
		if got := strings.Fields(c.kubelet.queries[0] + " ")[2]; got != want && (want != "" || got != "limit") {
			t.Errorf("lines of %s: asked for %s, want %s", since, c.kubelet.queries[0], want)
		}
	}
}
