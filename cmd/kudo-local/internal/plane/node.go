package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/node"
	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

// Programs and files of a real node.
const (
	nodeProgram    = "kudo-node"
	dnsProgram     = "kudo-dns"
	pauseArchive   = "kudo-pause.tar"
	nodeConfigName = "node.json"
)

// dnsIP is the address of the Service kube-dns, as in clusters that kubeadm makes.
const dnsIP = "10.96.0.10"

func (p *Plane) nodeConfigFile() string { return p.Path(nodeConfigName) }

// nodeInterface is the host's end of the link to the node whose networks have a number.
func nodeInterface(number int) string { return fmt.Sprintf("kudo%d", number) }

// nodeConfig is what the programs of the real node have to know.
func (p *Plane) nodeConfig() *node.Config {
	hostIP, nodeIP, pods := node.Addresses(p.Subnet)
	store := pki.At(p.Path("pki"))
	kubeconfigs := map[string]string{}
	for _, name := range []string{node.KubeletClient, node.KubeProxy, node.DNS} {
		kubeconfigs[name] = p.Path(clientConfig(name))
	}
	return &node.Config{
		Dir: p.Path("node"), Logs: p.Path("logs"), Cgroup: fmt.Sprintf("kudo-%s-%d", p.Name, p.Subnet), Interface: nodeInterface(p.Subnet),
		HostIP: hostIP, NodeIP: nodeIP, PodSubnet: pods, DNSIP: dnsIP,
		CA: store.CertFile(pki.CA), ServingCert: store.CertFile(node.KubeletServer), ServingKey: store.KeyFile(node.KubeletServer),
		Kubeconfigs: kubeconfigs, VolumesKubeconfig: p.Path(clientConfig(components.Kwok)),
		Program: p.binary(nodeProgram), DNSProgram: p.binary(dnsProgram), PauseImage: p.binary(pauseArchive),
	}
}

// NodeServers are the programs of a real node, each with a log of its own; none if nodes are played.
func (p *Plane) NodeServers() []string {
	if !p.Settings.RealNodes {
		return nil
	}
	var names []string
	for _, name := range node.Servers {
		names = append(names, components.Node+"/"+name)
	}
	return names
}

// nodeServer returns the name of a program of the real node, if that is what is named.
func (p *Plane) nodeServer(name string) (string, bool) {
	server, found := strings.CutPrefix(name, components.Node+"/")
	return server, found && slices.Contains(p.NodeServers(), name)
}

// killNodeServer ends a program of the real node as a crash would.
func (p *Plane) killNodeServer(name string) error {
	run, err := p.Run(components.Node)
	if err != nil {
		return err
	}
	if run == nil || !run.Alive() {
		return fmt.Errorf("the node of instance %q does not run", p.Name)
	}
	return node.Kill(run.PID, name)
}

// startNodeServers starts the programs of the real node that have ended.
func (p *Plane) startNodeServers() error {
	run, err := p.Run(components.Node)
	if err != nil {
		return err
	}
	if run == nil || !run.Alive() {
		return fmt.Errorf("the node of instance %q does not run: start it by 'kudo-local start node'", p.Name)
	}
	return node.Restart(run.PID)
}

// Load loads the images of an archive into the real node, and returns their names.
func (p *Plane) Load(archive string) ([]string, error) {
	if !p.Settings.RealNodes {
		return nil, fmt.Errorf("the nodes of instance %q are played, and take any image: only 'kudo-local up --nodes real' loads images", p.Name)
	}
	cmd := exec.Command("ctr", "--address", p.nodeConfig().Socket(), "--namespace", "k8s.io", "images", "import", archive)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w: %s", archive, err, strings.TrimSpace(string(out)))
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if name, found := strings.CutPrefix(line, "unpacking "); found {
			names = append(names, strings.Fields(name)[0])
		}
	}
	return names, nil
}

// CheckNode returns an error that names all that is missing for a real node, before anything is started.
func (p *Plane) CheckNode() error {
	if !p.Settings.RealNodes {
		return nil
	}
	errs := []error{node.Check()}
	if strings.HasPrefix(p.Dir(), "/var/lib/") {
		errs = append(errs, fmt.Errorf("--nodes real hides /var/lib, and cannot have its state in %s: name another folder by --state", p.Dir()))
	}
	for _, name := range []string{nodeProgram, dnsProgram, pauseArchive} {
		if _, err := os.Stat(p.binary(name)); err != nil {
			errs = append(errs, fmt.Errorf("--nodes real needs %s, which is not there: make kudo-node", p.binary(name)))
		}
	}
	return errors.Join(errs...)
}

// prepareNode writes what the programs of a real node read.
func (p *Plane) prepareNode() error {
	if !p.Settings.RealNodes {
		return nil
	}
	c := p.nodeConfig()
	if err := p.store.OpenNode(node.Name, net.ParseIP(c.HostIP), net.ParseIP(c.NodeIP), serviceIP, time.Now()); err != nil {
		return err
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the configuration of the node: %w", err)
	}
	return instance.WriteFile(p.nodeConfigFile(), data)
}

// cleanNode removes what a real node may have left that did not end by itself.
func (p *Plane) cleanNode() error {
	if !p.Settings.RealNodes || p.Subnet == 0 {
		return nil
	}
	out, err := exec.Command(p.binary(nodeProgram), "clean", p.nodeConfigFile()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cleaning up after the node: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// subnetUsed reports whether the machine has a network of a number already.
func subnetUsed(number int) bool {
	hostIP, _, _ := node.Addresses(number)
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.Contains(net.ParseIP(hostIP)) {
			return true
		}
	}
	_, err := os.Stat(filepath.Join("/sys/class/net", nodeInterface(number)))
	return err == nil
}

// prepareRealNode creates what the programs of the node need in the cluster, and waits until the node takes pods.
func (p *Plane) prepareRealNode(ctx context.Context, client kubernetes.Interface) error {
	c := p.nodeConfig()
	bind := func(role, user string) error {
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kudo-local:" + user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		return err
	}
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kudo-local:dns"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "namespaces"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
	}}
	ports := func() []corev1.ServicePort {
		return []corev1.ServicePort{
			{Name: "dns", Port: 53, TargetPort: intstr.FromInt32(53), Protocol: corev1.ProtocolUDP},
			{Name: "dns-tcp", Port: 53, TargetPort: intstr.FromInt32(53), Protocol: corev1.ProtocolTCP},
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Namespace: metav1.NamespaceSystem},
		Spec: corev1.ServiceSpec{ClusterIP: c.DNSIP, Ports: ports()}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: service.Name, Namespace: service.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{c.NodeIP}}},
	}
	for _, port := range ports() {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol})
	}
	for what, create := range map[string]func() error{
		"the rights of the API server at the kubelet": func() error { return bind("system:kubelet-api-admin", "kube-apiserver-kubelet-client") },
		"the rights of kube-proxy":                    func() error { return bind("system:node-proxier", "system:kube-proxy") },
		"the rights of DNS":                           func() error { return bind(role.Name, "kudo-local:dns") },
		"the role of DNS": func() error {
			_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			return err
		},
		"the Service of DNS": func() error {
			_, err := client.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
			if err == nil { // the API server would find its address taken, and say that
				return nil
			}
			_, err = client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
			return err
		},
		"the endpoints of DNS": func() error {
			_, err := client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making %s: %w", what, err)
		}
	}
	return awaitNodes(ctx, client, 1)
}
