// Package inventory tests placing Instances on the clusters of an inventory, on three control planes: a hub and two members. No manager runs
// in the members: the tests write what one would.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/manifests"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const fleet, managers, ns = "fleet", "kudo-system", "apps"

// planes are a hub and its members, with the engine of the hub.
type planes struct {
	hub     *env.Cluster
	members map[string]*env.Cluster
	network *network
	engine  *inventory.Engine

	mu   sync.Mutex
	told map[types.NamespacedName]int
}

// start starts a hub with an inventory of members.
func start(t *testing.T, members ...string) *planes {
	t.Helper()
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		t.Skip("needs control planes of its own, and KUDO_TEST_KUBECONFIG names a cluster that others may use")
	}
	definitions := corpus.Karmada(t)
	p := &planes{hub: startPlane(t), members: map[string]*env.Cluster{}, network: newNetwork(), told: map[types.NamespacedName]int{}}
	p.hub.DefineFiles(t, definitions, "multicluster/*.yaml")
	for _, name := range []string{fleet, managers, ns} {
		env.Must(t, p.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for i, name := range members {
		p.members[name] = startPlane(t)
		p.register(t, name, i%2 == 0)
	}
	decisions, err := dynamic.NewForConfig(p.hub.Config)
	env.Must(t, err)
	p.engine, err = inventory.New(inventory.Options{Hub: p.hub, Live: p.hub, Decisions: decisions, Namespace: managers, ClusterNamespace: fleet,
		Dial: p.network.dial})
	env.Must(t, err)
	p.run(t)
	return p
}

// run starts the engine, which ends with the test, and counts its events.
func (p *planes) run(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = p.engine.Start(ctx) })
	all.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case key := <-p.engine.Events():
				p.mu.Lock()
				p.told[key]++
				p.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { cancel(); all.Wait() })
}

func (p *planes) events(key types.NamespacedName) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[key]
}

func startPlane(t *testing.T) *env.Cluster {
	t.Helper()
	plane, err := env.StartBare("--profile", "api")
	env.Must(t, err)
	t.Cleanup(plane.Stop)
	c, err := plane.Connect()
	env.Must(t, err)
	c.DefineFiles(t, manifests.Files, "crds/kudo.dev_*.yaml")
	return c
}

// register creates the ClusterProfile of a member, and the Secret with its credentials: a kubeconfig, or a token.
func (p *planes) register(t *testing.T, name string, kubeconfig bool) {
	t.Helper()
	config := p.members[name].Config
	env.Must(t, rest.LoadTLSFiles(config))
	secret := gen.KubeconfigSecret(managers, name, config.Host, config)
	if !kubeconfig {
		secret.StringData = map[string]string{"server": config.Host, "token": p.account(t, p.members[name])}
	}
	env.Must(t, p.hub.Create(t.Context(), secret))
	profile, status := gen.ClusterProfile(fleet, name, config.Host, config.CAData)
	env.Must(t, p.hub.Create(t.Context(), profile))
	profile.Object["status"] = status
	env.Must(t, p.hub.Status().Update(t.Context(), profile))
}

// account makes an account with the rights that placing needs, and returns a token of it.
func (p *planes) account(t *testing.T, c *env.Cluster) string {
	t.Helper()
	meta := gen.Meta(metav1.NamespaceSystem, "hub")
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	writes := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: writes},
		{APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"instances", "operators", "operatorversions"}, Verbs: writes},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hub"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hub"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	}
	for _, obj := range []client.Object{account, role, binding} {
		env.Must(t, c.Create(t.Context(), obj))
	}
	request := &authenticationv1.TokenRequest{}
	env.Must(t, c.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// network dials members, and may be cut between the hub and a member.
type network struct {
	mu    sync.Mutex
	cut   map[string]bool
	conns map[string][]net.Conn
}

func newNetwork() *network { return &network{cut: map[string]bool{}, conns: map[string][]net.Conn{}} }

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[address] {
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: kind, Err: errors.New("the network is cut")}
	}
	n.conns[address] = append(n.conns[address], conn)
	return conn, nil
}

// set cuts the network to a member, or mends it.
func (n *network) set(c *env.Cluster, cut bool) {
	address := strings.TrimPrefix(c.Config.Host, "https://")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[address] = cut
	if cut {
		for _, conn := range n.conns[address] {
			_ = conn.Close()
		}
		n.conns[address] = nil
	}
}

// instance creates an Instance that is placed on clusters, with an operator, a version and a Secret.
func (p *planes) instance(t *testing.T, name string, placed ...v1beta1.PlacedCluster) *v1beta1.Instance {
	t.Helper()
	version := gen.Version(ns, name+"-1.0.0", gen.Param("REPLICAS", "1", ""), gen.Param("REGION", "eu-1", ""))
	version.Spec.Operator.Name = name
	operator := &v1beta1.Operator{ObjectMeta: gen.Meta(ns, name)}
	secret := &corev1.Secret{ObjectMeta: gen.Meta(ns, name+"-values"), StringData: map[string]string{"PASSWORD": "first"}}
	for _, obj := range []client.Object{operator, version, secret} {
		env.Must(t, p.hub.Create(t.Context(), obj))
	}
	i := gen.Instance(name, version, map[string]string{"REPLICAS": "6", "REGION": "eu-1"})
	i.Annotations = map[string]string{"example.com/note": "kept", v1beta1.CancelAnnotation: "not placed"}
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: secret.Name}, {Kind: "ConfigMap", Name: "absent", Optional: true}}
	i.Spec.Placement = &v1beta1.Placement{Clusters: placed, Divide: "REPLICAS"}
	env.Must(t, p.hub.Create(t.Context(), i))
	return i
}

// place places an Instance, with shares by hand; released names the clusters that may act.
func (p *planes) place(t *testing.T, i *v1beta1.Instance, shares map[string]int64, released ...string) {
	t.Helper()
	placed := clusters.Placed{Instance: i}
	for _, c := range i.Spec.Placement.Clusters {
		share := shares[c.Name]
		target := clusters.Target{Name: c.Name, Weight: c.EffectiveWeight(), Share: &share, Parameters: c.Parameters}
		if slices.Contains(released, c.Name) {
			target.Released = v1beta1.Template(i.UID, i.Generation)
		}
		placed.Clusters = append(placed.Clusters, target)
	}
	env.Must(t, p.engine.Place(t.Context(), placed))
}

// observe returns what the engine shows of an Instance.
func (p *planes) observe(t *testing.T, i *v1beta1.Instance) clusters.Observation {
	t.Helper()
	out, err := p.engine.Observe(t.Context(), i)
	env.Must(t, err)
	return out
}

// copyIn waits until the copy in a member is as it should be, and returns it.
func (p *planes) copyIn(t *testing.T, member string, i *v1beta1.Instance, what string, holds func(*v1beta1.Instance) string) *v1beta1.Instance {
	t.Helper()
	out := &v1beta1.Instance{}
	env.Eventually(t, what+" in "+member, func() string {
		out = &v1beta1.Instance{}
		if err := p.members[member].Get(t.Context(), client.ObjectKeyFromObject(i), out); err != nil {
			return err.Error() + fmt.Sprintf("; the engine shows %+v", p.observe(t, i).Members)
		}
		return holds(out)
	})
	return out
}

// has returns a condition on the parameters of a copy.
func has(want map[string]string) func(*v1beta1.Instance) string {
	return func(i *v1beta1.Instance) string {
		if maps.Equal(i.Spec.Parameters, want) {
			return ""
		}
		return fmt.Sprintf("the parameters are %v, want %v", i.Spec.Parameters, want)
	}
}
