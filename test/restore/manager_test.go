package restore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
)

// idleTime is how long a manager must have asked for nothing to count as idle.
const idleTime = 2 * time.Second

// manager is the manager of the target, which reaches the API server through a proxy that counts.
type manager struct {
	proxy   *apiproxy.Proxy
	process *exec.Cmd
	log     bytes.Buffer
	// former are the names of the namespaces, the Installations and their cluster-scoped objects that earlier specs have left, and that are
	// being deleted. Writes to them are not counted, since they continue for some time and do not belong to the current spec.
	former map[string]bool

	mu sync.Mutex
	// writes are counted by verb and resource; last is when the last request of any kind but a watch ended.
	writes map[string]int
	last   time.Time
	// killAfter kills the manager after this many writes that have changed an object; 0 never does.
	killAfter int
	// changes are the writes that have changed an object, since killAfter was set; versions are the resourceVersions of objects after
	// their last write.
	changes  int
	versions map[types.UID]string
}

// newManager returns a manager that does not run yet.
func newManager(t testing.TB) *manager {
	t.Helper()
	m := &manager{writes: map[string]int{}, versions: map[types.UID]string{}, former: listFormer(t)}
	var err error
	m.proxy, err = apiproxy.Start(target.ManagerKubeconfig(), t.TempDir(), m.pass)
	env.Must(t, err)
	t.Cleanup(func() {
		m.stop()
		m.proxy.Close()
		if t.Failed() {
			GinkgoWriter.Println(strings.Join(slices.DeleteFunc(strings.Split(m.log.String(), "\n"), func(line string) bool {
				return strings.Contains(line, `"level":"info"`)
			}), "\n"))
		}
	})
	return m
}

// listFormer lists the names of what earlier specs have left in the target.
func listFormer(t testing.TB) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	namespaces, installations := &corev1.NamespaceList{}, &v1beta1.InstallationList{}
	env.Must(t, target.List(ctx, namespaces))
	for _, ns := range namespaces.Items {
		names[ns.Name] = ns.DeletionTimestamp != nil
	}
	env.Must(t, target.List(ctx, installations))
	for _, i := range installations.Items {
		names[i.Name] = true
		for _, resource := range i.Status.Resources {
			if resource.Namespace == "" { // those of a namespace are known by it, and may have the names of objects of this spec
				names[resource.Name] = true
			}
		}
	}
	return names
}

// counts reports whether a request is a write to an object that no earlier spec has left.
func (m *manager) counts(r *http.Request) bool {
	return apiproxy.IsWrite(r) && !slices.ContainsFunc(strings.Split(r.URL.Path, "/"), func(name string) bool { return m.former[name] })
}

func (m *manager) pass(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	if apiproxy.IsWatch(r) || strings.Contains(r.URL.Path, "/leases") {
		return forward(r)
	}
	counts := m.counts(r)
	if counts {
		r.Header.Set("Accept", "application/json") // changed reads it
		m.mu.Lock()
		m.writes[nameOf(r)]++
		m.mu.Unlock()
	}
	answer, err := forward(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Now()
	if !counts || err != nil {
		return answer, err
	}
	if answer.StatusCode == http.StatusConflict { // it wrote nothing, and is tried again
		if name := nameOf(r); m.writes[name] > 1 {
			m.writes[name]--
		} else {
			delete(m.writes, name)
		}
	}
	changed, err := m.changed(answer)
	if err != nil || !changed {
		return answer, err
	}
	m.changes++
	if m.changes == m.killAfter && m.process != nil { // the API server has done the write, and the manager gets no answer
		_ = m.process.Process.Kill()
	}
	return answer, nil
}

// changed reports whether a write has changed an object. A manager that comes back applies again what the last one has applied: were
// that a write after which it is killed, it would never end.
func (m *manager) changed(answer *http.Response) (bool, error) {
	if answer.StatusCode >= http.StatusMultipleChoices {
		return false, nil
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return false, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	written := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, &written); err != nil {
		return false, err
	}
	before := m.versions[written.UID]
	m.versions[written.UID] = written.ResourceVersion
	return before == "" || before != written.ResourceVersion, nil
}

// nameOf is a request as verb and resource: PATCH configmaps, or PATCH instances/status.
func nameOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "api" {
		parts = parts[2:]
	} else {
		parts = parts[3:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return r.Method + " " + resource
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func (m *manager) start(t testing.TB) {
	t.Helper()
	m.stop()
	m.mu.Lock()
	m.last = time.Time{} // it counts as idle once it has asked for something
	m.mu.Unlock()
	process := target.Manager("--kubeconfig", m.proxy.Kubeconfig, "--leader-elect=false", "--webhook-port=0")
	process.Stdout, process.Stderr = &m.log, &m.log
	env.Must(t, process.Start())
	m.setProcess(process)
}

// setProcess sets the process that a write kills. An answer to a manager that was killed may come while there is none.
func (m *manager) setProcess(process *exec.Cmd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process = process
}

// stop kills the manager, if it runs.
func (m *manager) stop() {
	if m.process != nil {
		_ = m.process.Process.Kill()
		_ = m.process.Wait()
		m.setProcess(nil)
	}
}

// count returns the writes since the last call, and kills the manager after so many more; 0 never does.
func (m *manager) count(killAfter int) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.writes
	m.writes, m.changes, m.killAfter = map[string]int{}, 0, killAfter
	return out
}

// maxKills bounds the kills, in case that a manager never becomes idle.
const maxKills = 500

// runKilled runs the manager until it is idle and the state holds, and kills it each time after so many writes as next returns. It returns
// the number of kills. On a machine that is busy, a manager that has more to do may ask for nothing for longer than idleTime.
func (m *manager) runKilled(t testing.TB, next func() int, holds func() string) int {
	t.Helper()
	for kills := range maxKills {
		m.count(next())
		m.start(t)
		if !m.died(t, holds) {
			m.count(0)
			return kills
		}
	}
	t.Fatalf("the manager is not idle after %d kills", maxKills)
	return maxKills
}

// died waits until a write has killed the manager, and returns false if the manager becomes idle, and the state holds, before.
func (m *manager) died(t testing.TB, holds func() string) bool {
	t.Helper()
	over := make(chan struct{})
	go func() {
		_ = m.process.Wait()
		close(over)
	}()
	died := false
	env.Eventually(t, "the end of the manager, or that it is idle in the state that is awaited", func() string {
		select {
		case <-over:
			died = true
			return ""
		default:
		}
		if text := m.busy(); text != "" {
			return text
		}
		return holds()
	})
	if !died {
		_ = m.process.Process.Kill()
		<-over
	}
	m.setProcess(nil)
	return died
}

// busy returns a text if the manager has sent a request within idleTime, or none so far; empty if it is idle.
func (m *manager) busy() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since := time.Since(m.last); m.last.IsZero() || since < idleTime {
		return fmt.Sprintf("the last request was %s ago", since)
	}
	return ""
}

// settle waits until the manager asks for nothing.
func (m *manager) settle(t testing.TB) {
	t.Helper()
	env.Eventually(t, "a manager that is idle", m.busy)
}

// list is the counts as lines, sorted.
func list(counts map[string]int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	return out
}
