package ui

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestConnectionStates shows U10: what a page says while it has no Instances, of one that may be listed and of others.
func TestConnectionStates(t *testing.T) {
	refuse := func(verb string, err error) apitest.Hook {
		return func(r apitest.Request) (any, error) {
			if r.Kind == "Instance" && (r.Verb == verb || verb == "") {
				return nil, err
			}
			return nil, nil
		}
	}
	denied := apierrors.NewForbidden(v1beta1.Resource("instances"), "", errors.New("ann may not"))
	for _, tc := range []struct {
		reason, namespace string
		prepare           func(*apitest.Server)
		state             feedState
		want              []string
	}{
		{"no Instance yet", "", nil, current, []string{"There are no Instances yet", "kubectl kudo install PACKAGE<"}},
		{"no Instance in the namespace", "lab", nil, current, []string{"There are no Instances in namespace lab yet", "kubectl kudo install PACKAGE -n lab<"}},
		{"no right in all namespaces", "", func(s *apitest.Server) { s.Before(refuse("", denied)) }, forbidden,
			[]string{"You have no right to list and watch instances.kudo.dev in all namespaces", "kubectl kudo ui -n NAMESPACE", "ann may not"}},
		{"no right in a namespace", "lab", func(s *apitest.Server) { s.Before(refuse("", denied)) }, forbidden,
			[]string{"You have no right to list and watch instances.kudo.dev in namespace lab"}},
		{"kudo is not installed", "", func(s *apitest.Server) {
			s.RemoveKind(schema.GroupVersionKind{Group: "kudo.dev", Version: "v1beta1", Kind: "Instance"})
		}, notServed,
			[]string{"kudo is not installed on this cluster.", "kubectl kudo init"}},
		{"the cluster has an error", "", func(s *apitest.Server) { s.Before(refuse("", errors.New("etcd is full"))) }, unreachable,
			[]string{"The cluster does not answer.", "etcd is full"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := apitest.Start(t)
			if tc.prepare != nil {
				tc.prepare(api)
			}
			r := beginOn(t, api, tc.namespace)
			r.await(t, "the state is known", func() bool { return r.instances.Status().State == tc.state })
			status, body := r.get(t, "/instances")
			if status != http.StatusOK {
				t.Errorf("%d", status)
			}
			for _, want := range tc.want {
				if !strings.Contains(body, want) {
					t.Errorf("%q is not said:\n%s", want, body)
				}
			}
			known := tc.state == current
			if _, body := r.get(t, "/instances?q=x"); strings.Contains(body, "None of 0 Instances matches") != known {
				t.Errorf("what a filter finds is said:\n%s", body)
			}
			status, body = r.get(t, "/instances/lab/one")
			if missing := strings.Contains(body, "This Instance does not exist."); missing != known || missing != (status == http.StatusNotFound) {
				t.Errorf("an Instance does not exist: %t, %d", missing, status)
			}
			if unknown := strings.Contains(body, "It is not known whether this Instance exists."); unknown == known || strings.Contains(body, "Loading") || strings.Contains(body, "No objects") {
				t.Errorf("it is not known whether an Instance exists: %t\n%s", unknown, body)
			}
		})
	}
}

// TestLoading shows U10 and U12: before the objects are there, each page answers at once, and its stream fills it.
func TestLoading(t *testing.T) {
	api, wait := apitest.Start(t, instance("a", "one", nil)), make(chan struct{})
	api.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Instance" {
			<-wait
		}
		return nil, nil
	})
	r := beginOn(t, api, "")
	for _, path := range []string{"/instances", "/instances/a/one"} {
		if status, body := r.get(t, path); status != http.StatusOK || !strings.Contains(body, "Loading") {
			t.Errorf("%s says nothing of loading: %d", path, status)
		}
	}
	list, one := r.events(t, "/instances", ""), r.events(t, "/instances/a/one", "")
	_, _ = list()
	_, _ = one()
	close(wait)
	for shown := ""; !strings.Contains(shown, "a/one"); {
		parts, _ := list()
		shown = parts["rows"]
	}
	for shown := ""; !strings.Contains(shown, "ready"); {
		parts, _ := one()
		shown = parts["state"]
	}
}

// TestClusterAway shows U10: while the cluster does not answer, a page keeps what it has and says so, with its age, and is current again
// afterwards.
func TestClusterAway(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil))
	next := r.events(t, "/instances", "")
	_, _ = next()
	r.instances.note(errors.New("connection refused"))
	parts, _ := next()
	if !strings.Contains(parts["connection"], "shows what was so before") || !strings.Contains(parts["connection"], "stale") || !strings.Contains(parts["connection"], "<time") {
		t.Errorf("the page says %q", parts["connection"])
	}
	if _, body := r.get(t, "/instances"); !strings.Contains(body, "a/one") {
		t.Error("the page does not keep what it has")
	}
	since := r.instances.Status().Since
	r.instances.note(errors.New("another reason"))
	if r.instances.Status().Since != since {
		t.Error("each failed attempt counts as the beginning of the outage")
	}
	r.instances.note(nil)
	for parts["connection"] != "" {
		parts, _ = next()
	}
}

// TestLoginEnds shows U10: without a login, without the right and without kudo, what a page has is shown as that of before.
func TestLoginEnds(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil))
	for _, tc := range []struct {
		err   error
		state feedState
		want  string
	}{
		{apierrors.NewUnauthorized("Unauthorized"), unauthorized, "Your login has ended."},
		{apierrors.NewForbidden(v1beta1.Resource("instances"), "", errors.New("ann may not")), forbidden, "You have no right to list and watch"},
		{apierrors.NewNotFound(v1beta1.Resource("instances"), ""), notServed, "kudo is not installed"},
	} {
		r.instances.note(tc.err)
		_, body := r.get(t, "/instances")
		expect(t, body, "notice stale", tc.want, "This page shows what was so before.", "a/one")
		if state := r.instances.Status().State; state != tc.state {
			t.Errorf("after %q the state is %d, want %d", tc.err, state, tc.state)
		}
	}
	r.instances.note(nil)
	if _, body := r.get(t, "/instances"); strings.Contains(body, "stale") {
		t.Error("the page still marks what it shows as old")
	}
	api := apitest.Start(t)
	api.Before(func(apitest.Request) (any, error) { return nil, apierrors.NewUnauthorized("Unauthorized") })
	r = beginOn(t, api, "")
	r.await(t, "the login is refused", func() bool { return r.instances.Status().State == unauthorized })
	if _, body := r.get(t, "/instances"); strings.Contains(body, "notice stale") || !strings.Contains(body, "Your login has ended.") {
		t.Errorf("without a login from the start, the page says %s", body)
	}
}

// TestNoRightForDetails shows U10: what the user may not read is named on the page, and the rest is shown.
func TestNoRightForDetails(t *testing.T) {
	i := instance("a", "one", func(i *v1beta1.Instance) {
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "config"},
			{APIVersion: "example.org/v1", Kind: "Unknown", Namespace: "a", Name: "x"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "b", Name: "elsewhere"}}
	})
	r := begin(t, "", i)
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "ConfigMap" || q.Kind == "Event" || q.Kind == "ControllerRevision" {
			return nil, apierrors.NewForbidden(v1beta1.Resource(q.Kind), "", errors.New("no"))
		}
		return nil, nil
	})
	next, shown := r.events(t, "/instances/a/one", ""), map[string]string{}
	wanted := []struct{ id, text string }{
		{"objects", "you have no right to list and watch configmaps"}, {"objects", "no matches for kind"}, {"objects", "this page does not watch it"},
		{"events", "This cannot be shown"}, {"history", "This cannot be shown"},
	}
	for met := 0; met < len(wanted); {
		parts, _ := next()
		met = 0
		for id, html := range parts {
			shown[id] = html
		}
		for _, w := range wanted {
			if strings.Contains(shown[w.id], w.text) {
				met++
			}
		}
	}
}

// fillInstances gives a Server so many Instances, of which each tenth has failed.
func (r *running) fillInstances(t testing.TB, n int) {
	t.Helper()
	for n := range n {
		change := func(*v1beta1.Instance) {}
		if n%10 == 0 {
			change = fail
		}
		if err := r.instances.informer.GetStore().Add(instance("a", fmt.Sprintf("i-%05d", n), change)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpeed shows U12: the first view of 1,000 Instances takes less than 100 ms of the server.
func TestSpeed(t *testing.T) {
	r := begin(t, "")
	r.fillInstances(t, 1000)
	best := time.Hour
	for range 5 { // other programs may delay one attempt: the best one counts
		begun := time.Now()
		if status, body := r.get(t, "/instances"); status != http.StatusOK || !strings.Contains(body, "1000 Instances") {
			t.Fatalf("%d", status)
		}
		best = min(best, time.Since(begun))
	}
	t.Logf("the first view of 1,000 Instances took %s", best)
	if best > 100*time.Millisecond {
		t.Errorf("the first view of 1,000 Instances took %s", best)
	}
}

// BenchmarkFirstView measures the first view of the list of Instances, and a search in it.
func BenchmarkFirstView(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		r := begin(b, "")
		r.fillInstances(b, n)
		for name, path := range map[string]string{"": "/instances", "/search": fmt.Sprintf("/instances?q=i-%05d", n-1)} {
			b.Run(strconv.Itoa(n)+name, func(b *testing.B) {
				for b.Loop() {
					if status, body := r.get(b, path); status != http.StatusOK || !strings.Contains(body, fmt.Sprintf("%d Instances", n)) {
						b.Fatalf("%d", status)
					}
				}
			})
		}
	}
}

// TestNew: a Server asks for nothing before it runs, so that the command can print its address at once, and pages say that they load.
func TestNew(t *testing.T) {
	api := apitest.Start(t)
	s, err := New(Options{Config: api.Config(), Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequest(http.MethodGet, "/instances", nil)
	if body := recorded(s, request); !strings.Contains(body, "Loading") {
		t.Errorf("the page says %s", body)
	}
	if requests := api.Requests(); len(requests) > 0 {
		t.Errorf("it asks for %v", requests)
	}
}
