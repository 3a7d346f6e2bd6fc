package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, net.IPv4(10, 96, 0, 1), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func leaf(t *testing.T, s *Store, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(s.CertFile(name), s.KeyFile(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return pair.Leaf
}

func TestCertificatesVerify(t *testing.T) {
	s := open(t, t.TempDir())
	tests := []struct {
		reason, ca, name, host string
		usage                  x509.ExtKeyUsage
	}{
		{"people reach the API server on loopback", CA, APIServer, "127.0.0.1", x509.ExtKeyUsageServerAuth},
		{"pods would reach it by its Service name", CA, APIServer, "kubernetes.default.svc", x509.ExtKeyUsageServerAuth},
		{"and by the Service address", CA, APIServer, "10.96.0.1", x509.ExtKeyUsageServerAuth},
		{"etcd serves TLS", EtcdCA, EtcdServer, "127.0.0.1", x509.ExtKeyUsageServerAuth},
		{"etcd meets its peers with the certificate that it serves", EtcdCA, EtcdServer, "", x509.ExtKeyUsageClientAuth},
		{"the API server logs in to etcd", EtcdCA, EtcdClient, "", x509.ExtKeyUsageClientAuth},
		{"the server of logs is reached on loopback", PodLogsCA, PodLogsServer, "127.0.0.1", x509.ExtKeyUsageServerAuth},
		{"the API server logs in to it", PodLogsCA, PodLogsClient, "", x509.ExtKeyUsageClientAuth},
		{"the admin logs in", CA, Admin, "", x509.ExtKeyUsageClientAuth},
		{"aggregated servers trust the front proxy", FrontProxyCA, FrontProxy, "", x509.ExtKeyUsageClientAuth},
	}
	for _, tc := range tests {
		ca, err := os.ReadFile(s.CertFile(tc.ca))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		_, err = leaf(t, s, tc.name).Verify(x509.VerifyOptions{DNSName: tc.host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{tc.usage}})
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
	if groups := leaf(t, s, Admin).Subject.Organization; !slices.Contains(groups, "system:masters") {
		t.Errorf("the admin is in %v, not in system:masters", groups)
	}
}

func TestOpenKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	before, err := os.ReadFile(open(t, dir).CertFile(CA))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(open(t, dir).CertFile(CA))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("a second Open made new certificates: every kubeconfig that was copied would stop working")
	}
}

// TestPrivateCAs: a certificate of the cluster makes its owner no administrator of etcd, and lets it read no logs.
func TestPrivateCAs(t *testing.T) {
	s := open(t, t.TempDir())
	for own, strangers := range map[string][]string{EtcdCA: {PodLogsServer, PodLogsClient}, PodLogsCA: {EtcdServer, EtcdClient}} {
		ca, err := os.ReadFile(s.CertFile(own))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		for _, name := range append(strangers, Admin, APIServer, Serving, FrontProxy, "kwok") {
			if _, err := leaf(t, s, name).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
				t.Errorf("the certificate %s is trusted by %s", name, own)
			}
		}
	}
}

// TestOpenAddsPrivateCAs: a state of a version that signed etcd's certificates by the authority of the cluster, and served no logs, keeps all
// others.
func TestOpenAddsPrivateCAs(t *testing.T) {
	dir := t.TempDir()
	before, err := os.ReadFile(open(t, dir).CertFile(Admin))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"etcd", "pod-logs"} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for range 8 { // status may look while up makes them
		group.Go(func() { open(t, dir) })
	}
	group.Wait()
	s := open(t, dir)
	if after, err := os.ReadFile(s.CertFile(Admin)); err != nil || string(before) != string(after) {
		t.Errorf("the certificate of the admin has changed: %v", err)
	}
	for _, c := range privateCAs {
		roots := x509.NewCertPool()
		ca, err := os.ReadFile(s.CertFile(c.ca))
		if err != nil {
			t.Fatal(err)
		}
		roots.AppendCertsFromPEM(ca)
		for _, name := range []string{c.server, c.client} {
			if _, err := leaf(t, s, name).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Errorf("%s is not of the authority beside it: %v", name, err)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestPrivateKeysArePrivate(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{CA, Admin, ServiceAccounts, EtcdCA, EtcdServer, EtcdClient, PodLogsCA, PodLogsServer, PodLogsClient} {
		info, err := os.Stat(s.KeyFile(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", s.KeyFile(name), info.Mode())
		}
	}
}

func TestSigningKeyIsAPair(t *testing.T) {
	pair, err := SigningKey()
	if err != nil {
		t.Fatal(err)
	}
	private, _ := pem.Decode(pair.Key)
	key, err := x509.ParseECPrivateKey(private.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pem.Decode(pair.Cert)
	got, err := x509.ParsePKIXPublicKey(public.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(got) {
		t.Error("the public key is not of the private key: no token would verify")
	}
}

func TestKubeconfigIsSelfContained(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	if err := open(t, filepath.Join(dir, "pki")).WriteKubeconfig(path, "kudo-local", "https://127.0.0.1:1", Admin); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" || len(config.CertData) == 0 || len(config.KeyData) == 0 || len(config.CAData) == 0 {
		t.Errorf("incomplete: %v", config)
	}
}
