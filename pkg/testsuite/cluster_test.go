package testsuite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// newCluster returns a connection to a server in memory.
func newCluster(t *testing.T, objects ...client.Object) (*Cluster, *apitest.Server) {
	t.Helper()
	server := apitest.Start(t, objects...)
	d, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{Kubeconfig: "/kubeconfig", client: d, mapper: server.Mapper()}, server
}

// writes are the requests that change something.
func writes(server *apitest.Server) []string {
	return slices.DeleteFunc(server.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "get") || strings.HasPrefix(r, "list") || strings.HasPrefix(r, "watch")
	})
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name), Data: data}
}

// TestApply has objects that exist, that do not, and that another client creates at the same time.
func TestApply(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "app", errors.New("no"))
	account := apierrors.NewForbidden(corev1.Resource("pods"), "app", errors.New("error looking up service account ns/default: serviceaccount \"default\" not found"))
	const sent = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: \"2\"}\n"
	for name, tc := range map[string]struct {
		reason, sent string
		live         []client.Object
		// answers are those to the creations, in order; nil lets the server answer.
		answers  []error
		requests []string
		data     map[string]string
		created  bool
		err      string
	}{
		"Create": {"an object that does not exist", sent, nil, nil, []string{"patch ConfigMap ns/app", "create ConfigMap ns/"}, map[string]string{"a": "2"}, true, ""},
		"Patch": {
			"of one that exists the fields that are not sent stay", sent, []client.Object{configMap("app", map[string]string{"a": "1", "b": "1"})}, nil,
			[]string{"patch ConfigMap ns/app"}, map[string]string{"a": "2", "b": "1"}, false, "",
		},
		"Race": {
			"another client creates it at the same time: it is not the case's to delete", sent, nil,
			[]error{apierrors.NewAlreadyExists(corev1.Resource("configmaps"), "app")},
			[]string{"patch ConfigMap ns/app", "create ConfigMap ns/", "patch ConfigMap ns/app"}, map[string]string{"a": "2", "b": "theirs"}, false, "",
		},
		"Account": {
			"the ServiceAccount of the namespace is being made", sent, nil, []error{account, nil},
			[]string{"patch ConfigMap ns/app", "create ConfigMap ns/", "create ConfigMap ns/"}, map[string]string{"a": "2"}, true, "",
		},
		"Forbidden": {
			"a creation that is refused", sent, nil, []error{forbidden}, []string{"patch ConfigMap ns/app", "create ConfigMap ns/"}, nil, false,
			`apply ConfigMap app: configmaps "app" is forbidden: no`,
		},
		"Generated": {
			"an object whose name the server gives is never patched", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: app-}\n", nil, nil,
			[]string{"create ConfigMap ns/"}, nil, true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, server := newCluster(t, tc.live...)
			creations := 0
			server.Before(func(r apitest.Request) (any, error) {
				if r.Verb != "create" || creations >= len(tc.answers) {
					return nil, nil
				}
				if creations++; apierrors.IsAlreadyExists(tc.answers[creations-1]) {
					server.Put(configMap("app", map[string]string{"b": "theirs"}))
				}
				return nil, tc.answers[creations-1]
			})
			created, err := cluster.apply(t.Context(), parsed(t, tc.sent)[0], "ns")
			if text := fmt.Sprint(err); text != tc.err && (err != nil || tc.err != "") || (created != nil) != tc.created {
				t.Errorf("%s: created %v, error %v, want %q", tc.reason, created != nil, err, tc.err)
			}
			if diff := cmp.Diff(tc.requests, writes(server)); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
			if tc.data == nil {
				return
			}
			live := configMap("app", nil)
			server.Read(live)
			if diff := cmp.Diff(tc.data, live.Data); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCreateInterrupted checks that nothing is created after the end of a run, and that the request of one that ends is finished:
// the case could not delete what it does not know.
func TestCreateInterrupted(t *testing.T) {
	cluster, server := newCluster(t)
	obj := parsed(t, object)[0]
	resource, err := cluster.resource(obj, "ns")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server.Before(func(r apitest.Request) (any, error) {
		cancel()
		return nil, nil
	})
	if created, err := create(ctx, resource, obj); err != nil || created.GetUID() == "" {
		t.Errorf("the context ends during the request: %v, %v", created, err)
	}
	server.Requests()
	if _, err := create(ctx, resource, obj); !errors.Is(err, context.Canceled) || len(server.Requests()) > 0 {
		t.Errorf("the context has ended before: %v", err)
	}
}

// TestRemove has the objects that a step deletes.
func TestRemove(t *testing.T) {
	labeled := func(name, namespace, value string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: gen.Meta(namespace, name)}
		cm.Labels = map[string]string{"app": value}
		return cm
	}
	held := labeled("held", "ns", "held")
	held.Finalizers = []string{"example.com/hold"}
	live := []client.Object{labeled("a", "ns", "x"), labeled("b", "ns", "x"), labeled("c", "ns", "y"), labeled("a", "other", "x"), held}
	for name, tc := range map[string]struct {
		reason string
		target Target
		left   []string
		err    string
	}{
		"Name":      {"one by its name", Target{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}, []string{"ns/b", "ns/c", "ns/held", "other/a"}, ""},
		"Labels":    {"all with the labels, of the namespace", Target{APIVersion: "v1", Kind: "ConfigMap", Labels: map[string]string{"app": "x"}}, []string{"ns/c", "ns/held", "other/a"}, ""},
		"All":       {"all of a namespace", Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other"}, []string{"ns/a", "ns/b", "ns/c", "ns/held"}, ""},
		"Namespace": {"one of another namespace", Target{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Namespace: "other"}, []string{"ns/a", "ns/b", "ns/c", "ns/held"}, ""},
		"Absent":    {"one that does not exist", Target{APIVersion: "v1", Kind: "ConfigMap", Name: "z"}, []string{"ns/a", "ns/b", "ns/c", "ns/held", "other/a"}, ""},
		"Held": {
			"one with a finalizer", Target{APIVersion: "v1", Kind: "ConfigMap", Name: "held"}, []string{"ns/a", "ns/b", "ns/c", "ns/held", "other/a"},
			"delete ConfigMap held: still exists after 50ms: finalizers [example.com/hold]",
		},
		"Kind": {
			"a kind that is not served", Target{APIVersion: "x.io/v1", Kind: "Thing", Labels: map[string]string{"a": "b"}},
			[]string{"ns/a", "ns/b", "ns/c", "ns/held", "other/a"}, `delete Thing with labels map[a:b]: no matches for kind "Thing" in version "x.io/v1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, server := newCluster(t, live...)
			err := cluster.remove(t.Context(), tc.target, "ns", 50*time.Millisecond)
			if text := fmt.Sprint(err); text != tc.err && (err != nil || tc.err != "") {
				t.Errorf("%s: %q, want %q", tc.reason, text, tc.err)
			}
			var left []string
			for _, obj := range live {
				if server.Get(obj) != nil {
					left = append(left, obj.GetNamespace()+"/"+obj.GetName())
				}
			}
			slices.Sort(left)
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("%s: left are (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGone checks that the end of an object is observed by a watch, and that a new object of its name does not count.
func TestGone(t *testing.T) {
	cluster, server := newCluster(t, configMap("app", nil))
	obj := server.Get(configMap("app", nil))
	resource, err := cluster.resource(obj, "ns")
	if err != nil {
		t.Fatal(err)
	}
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "watch" {
			server.Before(nil)
			server.Remove(configMap("app", nil))
		}
		return nil, nil
	})
	if err := waitUntilDeleted(t.Context(), resource, obj); err != nil {
		t.Errorf("it is deleted after it was listed: %v", err)
	}
	server.Put(configMap("app", nil))
	if err := waitUntilDeleted(t.Context(), resource, obj); err != nil {
		t.Errorf("another object has its name: %v", err)
	}
	failures := 0
	server.Before(func(r apitest.Request) (any, error) {
		if failures++; failures == 1 {
			return nil, apierrors.NewInternalError(errors.New("etcd"))
		}
		return nil, nil
	})
	if err := waitUntilDeleted(t.Context(), resource, obj); err != nil || failures != 2 {
		t.Errorf("an API server that fails is asked again: %v after %d requests", err, failures)
	}
}

// TestSetup applies the files of a folder in order, or the CustomResourceDefinitions only, whose kinds are awaited.
func TestSetup(t *testing.T) {
	crd := func(kind string) string {
		return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + kind + "}\n" +
			"spec: {group: example.com, names: {kind: " + kind + "}}\n"
	}
	dir := folder(t, map[string]string{"a/1.yaml": object + crd("Thing"), "b.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n"})
	for name, tc := range map[string]struct {
		reason string
		setup  func(c *Cluster) error
		want   []string
	}{
		"All":  {"all objects", func(c *Cluster) error { return c.Setup(t.Context(), dir, "ns") }, []string{"ConfigMap ns/", "CustomResourceDefinition", "Namespace"}},
		"CRDs": {"CustomResourceDefinitions only", func(c *Cluster) error { return c.SetupCRDs(t.Context(), dir) }, []string{"CustomResourceDefinition"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, server := newCluster(t)
			server.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, true)
			cluster.mapper = server.Mapper()
			if err := tc.setup(cluster); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, request := range writes(server) {
				if kind, found := strings.CutPrefix(request, "create "); found {
					got = append(got, kind)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	cluster, _ := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(dir, "b.yaml")
	if err := cluster.Setup(ctx, path, "ns"); err == nil || !strings.HasPrefix(err.Error(), path+": apply Namespace space: ") {
		t.Errorf("the file and the object are named: %v", err)
	}
}

// TestErrorsThatPass tells answers of a server that cannot answer now from those to the request.
func TestErrorsThatPass(t *testing.T) {
	resource := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		reason              string
		err                 error
		passing, unfinished bool
	}{
		"Network":     {"no answer at all", errors.New("connection refused"), true, false},
		"Unavailable": {"the server is being started", apierrors.NewServiceUnavailable("x"), true, false},
		"Internal":    {"a webhook does not answer", apierrors.NewInternalError(errors.New("x")), true, false},
		"Timeout":     {"etcd is slow", apierrors.NewTimeoutError("x", 1), true, false},
		"TryAgain":    {"the server says so", apierrors.NewServerTimeout(resource, "get", 1), true, false},
		"TooMany":     {"too many requests", apierrors.NewTooManyRequests("x", 1), true, false},
		"NotFound":    {"the namespace is being made", apierrors.NewNotFound(resource, "x"), false, true},
		"Forbidden":   {"the user may not", apierrors.NewForbidden(resource, "x", errors.New("no")), false, false},
		"Account":     {"the ServiceAccount is being made", apierrors.NewForbidden(resource, "x", errors.New(`serviceaccount "default" not found`)), false, true},
		"Conflict":    {"another object has the name", apierrors.NewConflict(resource, "x", errors.New("uid")), false, false},
		"Invalid":     {"the object is wrong", apierrors.NewBadRequest("x"), false, false},
	} {
		if got := passing(tc.err); got != tc.passing {
			t.Errorf("%s: %s: passing is %v", name, tc.reason, got)
		}
		if got := unfinished(tc.err); got != tc.unfinished {
			t.Errorf("%s: %s: unfinished is %v", name, tc.reason, got)
		}
	}
}
