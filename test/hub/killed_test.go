package hub

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// killer makes a fault in one of the writes of a hub's manager that concern a namespace, on the hub or in a cluster: it kills the manager, or
// cuts off what the write is for.
type killer struct {
	manager *env.HubManager

	mu        sync.Mutex
	namespace string
	// writes are those so far. The fault is in the one of number at, counted from 1.
	writes []string
	at     int
	fault  killFault
	// hit is closed when that write has come, and dead when the manager does not run any more.
	hit, dead chan struct{}
	// away is the server that is cut off, and fronts are the clusters, by their address.
	away   string
	fronts map[string]*httptest.Server
}

// killFault is what happens in a write.
type killFault string

const (
	killedBefore killFault = "killed before it is done"
	killedAfter  killFault = "killed before its answer"
	cutOff       killFault = "cut off"
)

// cutTime is how long a server is cut off: longer than what an engine does before it takes a cluster for lost once.
const cutTime = 3 * time.Second

// aim has the killer count the writes of a namespace anew.
func (k *killer) aim(namespace string, at int, fault killFault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.namespace, k.writes, k.at, k.fault, k.hit, k.dead = namespace, nil, at, fault, make(chan struct{}), make(chan struct{})
}

// pass is what a proxy does with a request of the manager.
func (k *killer) pass(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	k.mu.Lock()
	isAway := k.away != "" && k.away == r.URL.Host
	k.mu.Unlock()
	switch {
	case isAway:
		return nil, apiproxy.ErrCut
	case !apiproxy.IsWrite(r):
		return forward(r)
	}
	k.mu.Lock()
	counts := k.namespace != "" && strings.Contains(r.URL.Path, "/namespaces/"+k.namespace+"/")
	if counts {
		k.writes = append(k.writes, r.Method+" "+r.URL.Path)
	}
	isLast, fault, hit, dead := counts && len(k.writes) == k.at, k.fault, k.hit, k.dead
	k.mu.Unlock()
	switch {
	case !isLast:
		return forward(r)
	case fault == cutOff:
		k.cut(r.URL.Host)
		return nil, apiproxy.ErrCut
	case fault == killedAfter:
		if answer, err := forward(r); err == nil {
			_ = answer.Body.Close()
		}
	}
	close(hit)
	select {
	case <-dead:
	case <-r.Context().Done():
	}
	return nil, apiproxy.ErrCut
}

// cut cuts a server off for a time, watches of it among that.
func (k *killer) cut(server string) {
	set := func(away string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.away = away
	}
	set(server)
	if front := k.fronts[server]; front != nil {
		go front.CloseClientConnections() // it waits for the request that is being cut
	}
	time.AfterFunc(cutTime, func() { set("") })
}

// follow kills the manager when its write has come, and starts the next one. It returns a function that waits for that, or for the end of
// the case without such a write, and returns the write.
func (k *killer) follow(t *testing.T) (finish func() string) {
	hit, dead, over, restarted := k.hit, k.dead, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(restarted)
		select {
		case <-over:
			return
		case <-hit:
		}
		k.manager.Kill()
		close(dead)
		k.manager.Start(t)
	}()
	return func() string {
		k.mu.Lock()
		found := ""
		if k.at > 0 && len(k.writes) >= k.at {
			found = k.writes[k.at-1]
		}
		if found == "" || k.fault == cutOff {
			close(over)
		}
		k.at = 0 // a write that comes late has no fault
		k.mu.Unlock()
		<-restarted
		return found
	}
}

// front serves a cluster by TLS with the rights of its administrator, and gives the killer each request.
func (k *killer) front(t *testing.T, member plane) (address string, ca []byte) {
	t.Helper()
	transport, err := rest.TransportFor(member.Config)
	env.Must(t, err)
	target, err := url.Parse(member.Config.Host)
	env.Must(t, err)
	server := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization") // the transport has the credentials
		},
		FlushInterval: -1, Transport: passing{k, transport},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	k.fronts[target.Host] = server
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// passing is a transport that gives the killer each request.
type passing struct {
	killer *killer
	to     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.killer.pass(r, p.to.RoundTrip)
}

// newKiller has the manager of the hub reach its API server through the killer, until the test ends.
func newKiller(t *testing.T, p *planes) *killer {
	t.Helper()
	k := &killer{manager: p.manager, fronts: map[string]*httptest.Server{}}
	proxy, err := apiproxy.Start(p.manager.Kubeconfig, t.TempDir(), k.pass)
	env.Must(t, err)
	before := p.manager.Args
	p.manager.Kill()
	p.manager.Args = append([]string{"--kubeconfig", proxy.Kubeconfig}, before...)
	p.manager.Start(t)
	t.Cleanup(func() {
		p.manager.Kill()
		proxy.Close()
		p.manager.Args = before
		p.manager.Start(t)
	})
	return k
}

// checkKilled checks that the manager of a hub may die, or lose its API server, in each of its writes while Karmada places: the end is that of
// an undisturbed run.
func checkKilled(t *testing.T, p *planes) { newKiller(t, p).check(t, p, "m1", "m2") }

// checkKilledInventory checks the same of a hub that writes to the clusters itself, also in these writes. The clusters get other names, under
// which they are reached through the killer. The former ones are deleted first: each of two names of a cluster would delete what the other has
// placed.
func checkKilledInventory(t *testing.T, p *planes) {
	former := &unstructured.Unstructured{}
	former.SetGroupVersionKind(inventory.ProfileKind)
	env.Must(t, p.hub.DeleteAllOf(t.Context(), former, client.InNamespace("kudo-system")))
	k := newKiller(t, p)
	for name, member := range map[string]plane{"k1": p.members["m1"], "k2": p.members["m2"]} {
		address, ca := k.front(t, member)
		env.Must(t, p.hub.Create(t.Context(), &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", name), StringData: map[string]string{
			"server": address, "token": "any"}}))
		profile, status := gen.ClusterProfile("kudo-system", name, address, ca)
		env.Must(t, p.hub.Create(t.Context(), profile))
		profile.Object["status"] = status
		env.Must(t, p.hub.Status().Update(t.Context(), profile))
	}
	k.check(t, p, "k1", "k2")
}

// faultyWrites are how many writes have a fault; with KUDO_FAULTS=all, all have each.
const faultyWrites = 6

func (k *killer) check(t *testing.T, p *planes, first, second string) {
	k.life(t, p, 0, "", first, second)
	writes := k.writes
	t.Logf("undisturbed: %d writes\n  %s", len(writes), strings.Join(writes, "\n  "))
	every, turn := max(1, len(writes)/faultyWrites), 0
	for n := 1; n <= len(writes); n++ {
		kinds := []killFault{killedBefore, killedAfter, cutOff}
		if os.Getenv("KUDO_FAULTS") != "all" {
			if n%every != 0 {
				continue
			}
			kinds = kinds[turn%len(kinds):][:1]
			turn++
		}
		for _, fault := range kinds {
			t.Run(fmt.Sprintf("%d %s", n, fault), func(t *testing.T) { k.life(t, p, n, fault, first, second) })
		}
	}
}

// life places an Instance on two clusters in waves, changes it, takes it from the second cluster, and deletes it, with a fault in one of the
// writes.
func (k *killer) life(t *testing.T, p *planes, at int, fault killFault, first, second string) {
	ns := p.newNamespace(t)
	k.aim(ns, at, fault)
	finish := sync.OnceValue(k.follow(t))
	defer finish()
	ov := version(ns)
	env.Must(t, p.hub.Create(t.Context(), ov))
	i := gen.Instance("book", ov, nil)
	i.Spec.Placement = &v1beta1.Placement{
		Divide: "REPLICAS", Waves: &v1beta1.Waves{Groups: [][]string{{first}}},
		Clusters: []v1beta1.PlacedCluster{{Name: first, Weight: 2}, {Name: second, Parameters: map[string]string{"REGION": "eu-2"}}},
	}
	env.Must(t, p.hub.Create(t.Context(), i))
	has := func(what string, one, two map[string]string) {
		t.Helper()
		await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
		for member, want := range map[string]map[string]string{"m1": one, "m2": two} {
			if got := data(t, p.members[member], i); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s has %v, want %v", what, member, got, want)
			}
		}
	}
	has("placed", map[string]string{"replicas": "4", "region": "none"}, map[string]string{"replicas": "2", "region": "eu-2"})
	i = change(t, p, i, func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"REPLICAS": "9", "REGION": "eu-1"} })
	has("changed", map[string]string{"replicas": "6", "region": "eu-1"}, map[string]string{"replicas": "3", "region": "eu-2"})
	i = change(t, p, i, func(i *v1beta1.Instance) {
		i.Spec.Placement.Clusters, i.Spec.Placement.Waves = i.Spec.Placement.Clusters[:1], nil
	})
	wait(t, second+" has lost its copy", func() error { return absent(p.members["m2"], i) })
	got := await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	if one := data(t, p.members["m1"], i); one["replicas"] != "9" || len(got.Status.Members) != 1 {
		t.Errorf("on one cluster: %v, members %+v", one, got.Status.Members)
	}
	env.Must(t, p.hub.Delete(t.Context(), i))
	wait(t, "nothing is left", func() error {
		for _, c := range []plane{p.hub, p.members["m1"]} {
			if err := absent(c, i); err != nil {
				return err
			}
		}
		return nil
	})
	if write := finish(); at > 0 {
		t.Logf("the fault was in %q", write)
	}
}

// absent returns an error if a cluster still has the Instance.
func absent(c plane, i *v1beta1.Instance) error {
	_, err := get(c, &v1beta1.Instance{}, i.Namespace, i.Name)
	if err == nil {
		return errors.New("it is still there")
	}
	return client.IgnoreNotFound(err)
}
