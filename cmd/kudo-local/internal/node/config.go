// Package node runs a real node beside the API server of an instance: kubelet,
// containerd, kube-proxy and DNS, in mount, network and process namespaces of
// their own. When the first process of these namespaces ends, the kernel ends
// all others and takes their mounts, interfaces, routes and packet filter rules
// along. Only cgroups and files are left, which Clean removes.
package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Name of the node in the cluster.
const Name = "node-1"

// Servers are the programs that run on a node. Each has a log of its own.
var Servers = []string{"containerd", "kubelet", "kube-proxy", "dns"}

// The pairs of certificates and keys that a node needs.
const (
	KubeletClient = "kubelet"
	KubeletServer = "kubelet-serving"
	KubeProxy     = "kube-proxy"
	DNS           = "kudo-dns"
)

// Config is what the programs of a node have to know. All paths are absolute.
type Config struct {
	// Dir is the folder of the node.
	Dir string `json:"dir"`
	// Logs is the folder of the logs.
	Logs string `json:"logs"`
	// Cgroup is the name of the node's cgroup, below the root of each hierarchy.
	Cgroup string `json:"cgroup"`
	// Interface is the host's end of the link to the node.
	Interface string `json:"interface"`
	// HostIP and NodeIP are the addresses of the two ends of the link.
	HostIP string `json:"hostIP"`
	NodeIP string `json:"nodeIP"`
	// PodSubnet is where pods get their addresses.
	PodSubnet string `json:"podSubnet"`
	// DNSIP is the address of the Service kube-dns.
	DNSIP string `json:"dnsIP"`
	// CA is the file with the certificate authority of the cluster.
	CA string `json:"ca"`
	// ServingCert and ServingKey are the files of the kubelet's server.
	ServingCert string `json:"servingCert"`
	ServingKey  string `json:"servingKey"`
	// Kubeconfigs are the files by which the node's programs log in, by the name of the pair.
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	// VolumesKubeconfig is the file by which volumes are made, from the host's side.
	VolumesKubeconfig string `json:"volumesKubeconfig"`
	// Program, DNSProgram and PauseImage are kudo-node, kudo-dns and the archive of the image whose container holds a pod's namespaces.
	Program    string `json:"program"`
	DNSProgram string `json:"dnsProgram"`
	PauseImage string `json:"pauseImage"`
}

// Addresses are those of the node with an index, which is unique on the machine and below 256.
func Addresses(index int) (hostIP, nodeIP, podSubnet string) {
	return fmt.Sprintf("10.201.%d.1", index), fmt.Sprintf("10.201.%d.2", index), fmt.Sprintf("10.202.%d.0/24", index)
}

// Read reads a configuration.
func Read(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the node: %w", err)
	}
	c := &Config{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return c, nil
}

// Path is a file in the folder of the node.
func (c *Config) Path(elements ...string) string {
	return filepath.Join(append([]string{c.Dir}, elements...)...)
}

// Socket is where containerd listens.
func (c *Config) Socket() string { return c.Path("run", "containerd.sock") }

// HealthURL answers 200 while the kubelet works.
func (c *Config) HealthURL() string { return "http://" + c.NodeIP + ":10248/healthz" }

// pauseImage is the name of the image whose container holds the namespaces of a pod.
const pauseImage = "localhost/kudo-pause:1"

// WriteFiles writes the files that containerd, kubelet, kube-proxy, the network plugins and DNS read.
func (c *Config) WriteFiles() error {
	for path, content := range map[string]string{
		"containerd.toml":                        c.containerd(),
		"kubelet.yaml":                           c.kubelet(),
		"proxy.yaml":                             c.proxy(),
		"Corefile":                               c.corefile(),
		"resolv.conf":                            "",
		filepath.Join("cni", "10-kudo.conflist"): c.cni(),
	} {
		path = c.Path(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", path, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("configuring the node: %w", err)
		}
	}
	dirs := []string{filepath.Join(c.Logs, "node")}
	for _, dir := range []string{"run", "kubelet", "pki", "pod-logs", "volumes", "volumeplugins", "ipam"} {
		dirs = append(dirs, c.Path(dir))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the folders of the node: %w", err)
		}
	}
	return nil
}

func (c *Config) containerd() string {
	return fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd-state"
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`, c.Path("containerd"), c.Socket(), pauseImage, cniDir, c.Path("cni"))
}

func (c *Config) kubelet() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
healthzBindAddress: %[1]s
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /%[4]s
cgroupsPerQOS: true
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://%[5]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[6]q}
authorization: {mode: Webhook}
volumePluginDir: %[7]q
podLogsDir: %[8]q
clusterDNS: [%[9]s]
clusterDomain: cluster.local
resolvConf: %[10]q
# What was imported is kept: nothing can be pulled again.
evictionHard: {}
imageGCHighThresholdPercent: 100
`, c.NodeIP, c.ServingCert, c.ServingKey, c.Cgroup, c.Socket(), c.CA,
		c.Path("volumeplugins"), c.Path("pod-logs"), c.DNSIP, c.Path("resolv.conf"))
}

func (c *Config) proxy() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
clientConnection: {kubeconfig: %q}
clusterCIDR: %s
detectLocalMode: ClusterCIDR
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, Name, c.Kubeconfigs[KubeProxy], c.PodSubnet)
}

func (c *Config) corefile() string {
	return fmt.Sprintf(`.:53 {
    bind %s
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
    }
    cache 5
}
`, c.NodeIP, c.Kubeconfigs[DNS])
}

func (c *Config) cni() string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "kudo",
  "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
     "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, c.Path("ipam"), c.PodSubnet)
}
