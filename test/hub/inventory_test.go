package hub

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// checkInventory checks C3 and C43: on a hub that writes to the clusters of an inventory itself, the same holds as with Karmada.
func checkInventory(t *testing.T, karmada *planes) {
	e, err := env.StartBare("--profile", "api")
	env.Must(t, err)
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	env.Must(t, err)
	p := &planes{hub: plane{e, c}, members: karmada.members, grant: func(t *testing.T, namespace string) {
		env.Must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: gen.Meta(namespace, "kudo-hub-sources"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-hub-sources"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kudo-system", Name: "kudo-manager"}},
		}))
	}}
	c.DefineFiles(t, corpus.Karmada(t), "multicluster/*.yaml")
	p.manager = p.hub.NewHubManager(t, "--set", "clustersEngine=inventory")
	p.manager.Args = []string{"--clusters-engine=inventory"}
	lines := &lines{all: map[string]*line{}}
	p.faults = lines
	for name, member := range p.members {
		lines.all[name] = newLine(t, member)
		register(t, p.hub, name, member, lines.all[name].address)
	}
	p.manager.Start(t)
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, p *planes)
	}{
		{"Place", checkPlace}, {"Waves", checkWaves}, {"Stop", checkStop}, {"Remove", checkRemove}, {"Delete", checkDelete}, {"Cleanup", checkCleanup},
		{"Forget", checkForget}, {"Decision", checkDecision}, {"DecideRight", checkDecideRight}, {"Honest", checkHonest},
		{"Killed", checkKilledInventory},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, p) })
	}
}

// register creates the ClusterProfile of a member, which is reached at an address, and the Secret with its credentials.
func register(t *testing.T, hub plane, name string, member plane, address string) {
	t.Helper()
	config := rest.CopyConfig(member.Config)
	env.Must(t, rest.LoadTLSFiles(config))
	env.Must(t, hub.Create(t.Context(), gen.KubeconfigSecret("kudo-system", name, address, config)))
	profile, status := gen.ClusterProfile("kudo-system", name, address, config.CAData)
	env.Must(t, hub.Create(t.Context(), profile))
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
