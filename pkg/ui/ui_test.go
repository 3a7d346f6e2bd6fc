package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// running is a Server over an API server in memory.
type running struct {
	*Server
	api *apitest.Server
	url string
}

// begin runs a Server until the test ends, and waits until it has all objects.
func begin(t testing.TB, namespace string, objects ...client.Object) *running {
	t.Helper()
	r := beginOn(t, apitest.Start(t, objects...), namespace)
	r.await(t, "all feeds have their objects", func() bool {
		return r.instances.Status().State == current && r.versions.Status().State == current && r.installations.Status().State == current &&
			!slices.ContainsFunc(clusterKinds, func(k clusterKind) bool {
				_, known := r.clusters.feedOf(k.GroupVersionKind)
				return !known
			})
	})
	return r
}

func beginOn(t testing.TB, api *apitest.Server, namespace string) *running {
	t.Helper()
	s, err := New(Options{Config: api.Config(), Namespace: namespace, Context: "staging", Version: "v1", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		cancel()
		server.CloseClientConnections()
		server.Close()
		<-done
	})
	r := &running{s, api, server.URL}
	r.await(t, "the Server runs", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.running != nil
	})
	return r
}

// await waits until a condition is met after a change, or for a moment: not all changes are told.
func (r *running) await(t testing.TB, what string, met func() bool) {
	t.Helper()
	changed, stop := r.changes.listen()
	defer stop()
	late := time.After(20 * time.Second)
	for !met() {
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatalf("after 20 s it is not so that %s", what)
		}
	}
}

// get returns the status and the body of a page.
func (r *running) get(t testing.TB, path string) (int, string) {
	t.Helper()
	response, err := http.Get(r.url + path)
	return readPage(t, response, err)
}

// readPage returns the status and the body of an answer.
func readPage(t testing.TB, response *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// events opens the stream of a page. next returns the fragments of the next message by id, and the id of the message.
func (r *running) events(t testing.TB, path, seen string) (next func() (map[string]string, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/live"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", seen)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the stream of %s is %s", path, kind)
	}
	lines := bufio.NewReader(response.Body)
	return func() (map[string]string, string) {
		t.Helper()
		id := ""
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream of %s: %v", path, err)
			}
			if of, is := strings.CutPrefix(line, "id: "); is {
				id = strings.TrimSpace(of)
			}
			data, is := strings.CutPrefix(line, "data: ")
			if !is {
				continue
			}
			var message struct{ Fragments []struct{ ID, HTML string } }
			if err := json.Unmarshal([]byte(data), &message); err != nil {
				t.Fatal(err)
			}
			out := map[string]string{}
			for _, f := range message.Fragments {
				out[f.ID] = f.HTML
			}
			return out, id
		}
	}
}

// instance returns an Instance that is ready, but for what change changes.
func instance(namespace, name string, change func(*v1beta1.Instance)) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{v1beta1.OperatorLabel: "web"}}}
	i.Spec.OperatorVersion.Name = "web-1.0.0"
	i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: "True", Reason: v1beta1.ReasonResourcesReady,
		LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete, Revision: 1}}
	i.Status.AggregatedStatus.Status = v1beta1.Complete
	if change != nil {
		change(i)
	}
	return i
}

// fail gives an Instance a run that has failed, with a culprit.
func fail(i *v1beta1.Instance) {
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1beta1.StalledCondition, Status: "True"})
	i.Status.Conditions[0].Status = "False"
	code := int32(7)
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"report": {Name: "report", Status: v1beta1.FatalError, Revision: 2, Message: "task job failed",
		Phases: []v1beta1.PhaseStatus{{Name: "main", Status: v1beta1.FatalError, Steps: []v1beta1.StepStatus{
			{Name: "prepare", Status: v1beta1.Complete},
			{Name: "job", Status: v1beta1.FatalError, Tasks: []v1beta1.TaskStatus{{Name: "run", Status: v1beta1.FatalError, Total: 1,
				Culprit: &v1beta1.Culprit{Kind: "Job", Name: "report", Pod: "report-x", Container: "main", ExitCode: &code}}}},
		}}}}}
}

// version returns an OperatorVersion with a plain and a sensitive parameter.
func version(namespace, name string, change func(*v1beta1.OperatorVersion)) *v1beta1.OperatorVersion {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	ov.Spec.Operator.Name, ov.Spec.Version = "web", "1.0.0"
	ov.Spec.Parameters = []v1beta1.Parameter{{Name: "REPLICAS", Default: new("1")}, {Name: "PASSWORD", Sensitive: true, Default: new("default-secret")}}
	ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Name: "main", Steps: []v1beta1.Step{{Name: "one"}}}}}, "backup": {}}
	if change != nil {
		change(ov)
	}
	return ov
}

// recorded returns the body that a handler answers a request with.
func recorded(h http.Handler, r *http.Request) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}
