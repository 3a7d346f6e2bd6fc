package hub

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// checkInventory checks C3 and C43: on a hub that writes to the clusters of an inventory itself, the same holds as with Karmada.
func checkInventory(t *testing.T, karmada *planes) {
	e, err := env.StartBare("--profile", "api")
	env.Must(t, err)
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	env.Must(t, err)
	p := &planes{hub: plane{e, c}, members: karmada.members}
	files, err := filepath.Glob(filepath.Join(corpus.Require(t), "karmada-crds", "multicluster", "*.yaml"))
	env.Must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		env.Must(t, err)
		obj := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal(text, &obj.Object))
		env.Must(t, c.Create(t.Context(), obj))
	}
	p.manager = newHubManager(t, p.hub, "--set", "clustersEngine=inventory")
	p.manager.args = []string{"--clusters-engine=inventory"}
	lines := &lines{all: map[string]*line{}}
	p.faults = lines
	for name, member := range p.members {
		lines.all[name] = newLine(t, member)
		register(t, p.hub, name, member, lines.all[name].address)
	}
	p.manager.start(t)
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, p *planes)
	}{
		{"Place", checkPlace}, {"Waves", checkWaves}, {"Stop", checkStop}, {"Remove", checkRemove}, {"Delete", checkDelete},
		{"Forget", checkForget}, {"Honest", checkHonest},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, p) })
	}
}

// register creates the ClusterProfile of a member, which is reached at an address, and the Secret with its credentials.
func register(t *testing.T, hub plane, name string, member plane, address string) {
	t.Helper()
	config := rest.CopyConfig(member.Config)
	env.Must(t, rest.LoadTLSFiles(config))
	encode := base64.StdEncoding.EncodeToString
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '%s'}}]\nusers: [{name: u, user: "+
		"{client-certificate-data: %s, client-key-data: %s}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n", address,
		encode(config.CertData), encode(config.KeyData))
	secret := &corev1.Secret{StringData: map[string]string{"kubeconfig": kubeconfig}}
	secret.Namespace, secret.Name = "kudo-system", name
	env.Must(t, hub.Create(t.Context(), secret))
	profile := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"spec": map[string]any{"clusterManager": map[string]any{"name": "test"}}}}
	profile.SetNamespace("kudo-system")
	profile.SetName(name)
	wait(t, "the hub serves ClusterProfiles", func() error { return hub.Create(context.Background(), profile) })
	text, err := yaml.Marshal(map[string]any{"accessProviders": []any{map[string]any{"name": "kudo-secret", "cluster": map[string]any{
		"server": address, "certificate-authority-data": config.CAData, "extensions": []any{map[string]any{
			"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"secretName": name}}}}}}})
	env.Must(t, err)
	status := map[string]any{}
	env.Must(t, yaml.Unmarshal(text, &status))
	profile.Object["status"] = status
	env.Must(t, hub.Status().Update(t.Context(), profile))
}

// checkForget checks C47: a cluster that cannot be reached keeps its copy when it leaves the list, until it is given up.
func checkForget(t *testing.T, p *planes) {
	i := create(t, p, func(*v1beta1.Instance) {})
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	p.faults.cut("m2")
	defer p.faults.repair()
	i = change(t, p, i, func(i *v1beta1.Instance) { i.Spec.Placement.Clusters = i.Spec.Placement.Clusters[:1] })
	wait(t, "m2 is leaving", func() error {
		got := env.Read(t, p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
		if len(got.Status.Members) != 2 || got.Status.Members[1].State != v1beta1.MemberLeaving {
			return fmt.Errorf("%+v", got.Status.Members)
		}
		return nil
	})
	p.hub.MustKudo(t, 0, "placement", "forget", "--instance", i.Name, "-n", i.Namespace, "--cluster", "m2")
	if got := await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady); len(got.Status.Members) != 1 {
		t.Errorf("members %+v", got.Status.Members)
	}
}

// line is a connection to a member, which can be cut.
type line struct {
	address, to string
	mu          sync.Mutex
	cut         bool
	conns       map[net.Conn]bool
}

// newLine listens on a free port, and forwards to the API server of a member.
func newLine(t *testing.T, member plane) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	env.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	l := &line{address: "https://" + listener.Addr().String(), to: strings.TrimPrefix(member.Config.Host, "https://"), conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(conn)
		}
	}()
	return l
}

func (l *line) forward(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	out, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	l.mu.Lock()
	isCut := l.cut
	l.conns[conn] = true
	l.mu.Unlock()
	if isCut {
		return
	}
	go func() { _, _ = io.Copy(out, conn) }()
	_, _ = io.Copy(conn, out)
}

// set cuts the line, or joins it.
func (l *line) set(cut func(before bool) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut = cut(l.cut); l.cut {
		for conn := range l.conns {
			_ = conn.Close()
		}
		l.conns = map[net.Conn]bool{}
	}
}

// lines are those to all members.
type lines struct{ all map[string]*line }

// cut implements faulter.
func (ls *lines) cut(member string) { ls.all[member].set(func(before bool) bool { return !before }) }

// disturb implements faulter: it breaks all connections once.
func (ls *lines) disturb() {
	for _, l := range ls.all {
		var before bool
		l.set(func(cut bool) bool { before = cut; return true })
		l.set(func(bool) bool { return before })
	}
}

// repair implements faulter.
func (ls *lines) repair() {
	for _, l := range ls.all {
		l.set(func(bool) bool { return false })
	}
}
