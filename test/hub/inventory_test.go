package hub

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// checkInventory checks C3 and C43: on a hub that writes to the clusters of an inventory itself, the same holds as with Karmada.
func checkInventory(t *testing.T, karmada *planes) {
	e, err := env.StartBare("--profile", "api")
	env.Must(t, err)
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	env.Must(t, err)
	p := &planes{hub: plane{e, c}, members: karmada.members, grant: func(t *testing.T, namespace string) {
		bindSources(t, c, namespace, "kudo-hub-sources", "kudo-manager")
		for _, member := range karmada.members {
			bindSources(t, member, namespace, "kudo-hub-member-sources", "kudo-hub")
		}
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
		{"Forget", checkForget}, {"Decision", checkDecision}, {"DecideRight", checkDecideRight}, {"InstallRight", checkInstallRight}, {"Honest", checkHonest},
		{"Killed", checkKilledInventory},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, p) })
	}
}

// bindSources gives an account of kudo the right to the sources of values of a namespace.
func bindSources(t *testing.T, c client.Client, namespace, role, account string) {
	t.Helper()
	env.Must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: gen.Meta(namespace, role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kudo-system", Name: account}},
	}))
}

// createExample creates the objects of a file of docs/examples/hub-member in a member.
func createExample(t *testing.T, member plane, name string, edit func(obj *unstructured.Unstructured)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sourcetree.Root(), "docs", "examples", "hub-member", name))
	env.Must(t, err)
	decoded, err := render.Decode(name, string(text))
	env.Must(t, err)
	for _, obj := range decoded.Objects {
		edit(obj)
		env.Must(t, member.Create(t.Context(), obj))
		t.Cleanup(func() { _ = member.Delete(context.Background(), obj) })
	}
}

// register makes the account of the hub in a member, with the rights that the page names, and creates the ClusterProfile of the member, which is
// reached at an address, and the Secret with its credentials.
func register(t *testing.T, hub plane, name string, member plane, address string) {
	t.Helper()
	config := rest.CopyConfig(member.Config)
	env.Must(t, rest.LoadTLSFiles(config))
	createExample(t, member, "role.yaml", func(*unstructured.Unstructured) {})
	account, token := &corev1.ServiceAccount{ObjectMeta: gen.Meta("kudo-system", "kudo-hub")}, &authenticationv1.TokenRequest{}
	env.Must(t, member.SubResource("token").Create(t.Context(), account, token))
	env.Must(t, hub.Create(t.Context(), &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", name), StringData: map[string]string{
		"server": address, "token": token.Status.Token}}))
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

// checkInstallRight checks C40: an OperatorVersion with an install plan reaches a member only if the hub's account there has the verb install for
// its name.
func checkInstallRight(t *testing.T, p *planes) {
	ns := p.newNamespace(t)
	ov := version(ns)
	gen.Serial("install", "app")(ov)
	gen.InstallPlan("install")(ov)
	ov.Name = "installs-" + ns
	env.Must(t, p.hub.Create(t.Context(), ov))
	i := gen.Instance("book", ov, nil)
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	env.Must(t, p.hub.Create(t.Context(), i))
	wait(t, "the member refuses the OperatorVersion", func() error {
		got := env.Read(t, p.hub, &v1beta1.Instance{}, ns, "book")
		if m := got.Status.Members; len(m) == 1 && m[0].State == v1beta1.MemberNotApplied && strings.Contains(m[0].Message, `it needs the verb "install"`) {
			return nil
		}
		return fmt.Errorf("%+v", got.Status.Members)
	})
	createExample(t, p.members["m1"], "install.yaml", func(obj *unstructured.Unstructured) {
		if rules, found, _ := unstructured.NestedSlice(obj.Object, "rules"); found {
			rules[0].(map[string]any)["resourceNames"] = []any{ov.Name}
			env.Must(t, unstructured.SetNestedSlice(obj.Object, rules, "rules"))
		}
	})
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
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
