package node

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func testConfig(t *testing.T) *Config {
	hostIP, nodeIP, pods := Addresses(7)
	return &Config{Dir: t.TempDir(), Logs: t.TempDir(), Cgroup: "kudo-x-7", Interface: "kudo7", HostIP: hostIP, NodeIP: nodeIP, PodSubnet: pods, DNSIP: "10.96.0.10",
		CA: "/pki/ca.crt", ServingCert: "/pki/a \"b\".crt", ServingKey: "/pki/k.key", Kubeconfigs: map[string]string{KubeProxy: "/proxy", DNS: "/dns", KubeletClient: "/kubelet"}}
}

// TestWriteFiles: what the node's programs read can be parsed, and names the addresses of the instance.
func TestWriteFiles(t *testing.T) {
	c := testConfig(t)
	if err := c.WriteFiles(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]any{
		"kubelet.yaml": {"address": "10.201.7.2", "cgroupRoot": "/kudo-x-7", "tlsCertFile": "/pki/a \"b\".crt", "failCgroupV1": false},
		"proxy.yaml":   {"clusterCIDR": "10.202.7.0/24", "mode": "nftables"},
	} {
		data, err := os.ReadFile(c.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		if err := yaml.UnmarshalStrict(data, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %s is %v, want %v", name, key, got[key], value)
			}
		}
	}
	for name, want := range map[string]string{"Corefile": "bind 10.201.7.2", "cni/10-kudo.conflist": `"subnet": "10.202.7.0/24"`, "containerd.toml": pauseImage} {
		data, err := os.ReadFile(c.Path(name))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %q: %v\n%s", name, want, err, data)
		}
	}
	if c.HealthURL() != "http://10.201.7.2:10248/healthz" {
		t.Errorf("the kubelet is asked at %s", c.HealthURL())
	}
}

// TestCheck: what a machine lacks is named at once, with what installs it.
func TestCheck(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Check()
	if err == nil {
		t.Fatal("a machine without programs runs a node")
	}
	for _, want := range []string{"--nodes real needs containerd, ctr, runc", "apt-get install containerd runc", "iproute2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q lacks %q", err, want)
		}
	}
	if strings.Count(err.Error(), "containerd runc") != 1 || strings.Contains(err.Error(), "containerd containerd") {
		t.Errorf("a package is named twice: %s", err)
	}
}
