package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The names under which pairs lie in a Store: NAME.crt and NAME.key.
const (
	CA              = "ca"
	FrontProxyCA    = "front-proxy-ca"
	FrontProxy      = "front-proxy-client"
	APIServer       = "kube-apiserver"
	ServiceAccounts = "service-accounts"
	Serving         = "serving"
	Admin           = "admin"
)

// Clients are the users that get a certificate: the name of their pair, who
// they are, and the groups they are in.
var clients = []struct {
	pair, user string
	groups     []string
}{
	{Admin, "kudo-local-admin", []string{"system:masters"}},
	{"kube-controller-manager", "system:kube-controller-manager", nil},
	{"kube-scheduler", "system:kube-scheduler", nil},
	{"kwok", "kudo-local:kwok", []string{"system:masters"}},
}

// kubernetesNames are the names of the API server in the cluster.
var kubernetesNames = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

// Store is a folder of pairs.
type Store struct {
	dir string
}

// At returns the pairs in dir, which are there already.
func At(dir string) *Store { return &Store{dir: dir} }

// Open returns the pairs in dir, and makes all of them when there are none.
// serviceIP is the cluster address of the Service kubernetes.default.
func Open(dir string, serviceIP net.IP, now time.Time) (*Store, error) {
	s := &Store{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for certificates: %w", err)
	}
	for _, c := range privateCAs {
		if err := s.openPrivate(c, now); err != nil {
			return nil, err
		}
	}
	// The last file that is written says that the others are complete.
	if _, err := os.Stat(s.KeyFile(Admin)); err == nil {
		return s, nil
	}
	if err := s.fill(serviceIP, now); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) fill(serviceIP net.IP, now time.Time) error {
	ca, err := NewAuthority("kudo-local-ca", now)
	if err != nil {
		return err
	}
	front, err := NewAuthority("kudo-local-front-proxy-ca", now)
	if err != nil {
		return err
	}
	makers := []struct {
		name string
		make func() (Pair, error)
	}{
		{CA, func() (Pair, error) { return ca.Pair, nil }},
		{FrontProxyCA, func() (Pair, error) { return front.Pair, nil }},
		{FrontProxy, func() (Pair, error) { return front.Client("front-proxy-client") }},
		{ServiceAccounts, SigningKey},
		{APIServer, func() (Pair, error) { return ca.Server("kube-apiserver", kubernetesNames, serviceIP) }},
		{Serving, func() (Pair, error) { return ca.Server("kudo-local", nil) }},
	}
	for _, m := range makers {
		if err := s.write(m.name, m.make); err != nil {
			return err
		}
	}
	for i := len(clients) - 1; i >= 0; i-- { // the admin comes last, see Open
		c := clients[i]
		if err := s.write(c.pair, func() (Pair, error) { return ca.Client(c.user, c.groups...) }); err != nil {
			return err
		}
	}
	return nil
}

// KubeletClientOfServer is the pair by which the API server reaches kubelets.
const KubeletClientOfServer = "kube-apiserver-kubelet-client"

// NodeServer is the pair of an API server that real nodes reach by the address of a link.
const NodeServer = "kube-apiserver-of-nodes"

// OpenNode makes the pairs of a real node, unless they are there for these addresses: those of the ends of its link, and of the Service
// kubernetes.default.
func (s *Store) OpenNode(node string, hostIP, nodeIP, serviceIP net.IP, now time.Time) error {
	if s.serves(NodeServer, hostIP) && s.serves("kubelet-serving", nodeIP) {
		return nil
	}
	ca, err := s.loadAuthority(now)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		make func() (Pair, error)
	}{
		{KubeletClientOfServer, func() (Pair, error) { return ca.Client("kube-apiserver-kubelet-client") }},
		{"kubelet", func() (Pair, error) { return ca.Client("system:node:"+node, "system:nodes") }},
		{"kube-proxy", func() (Pair, error) { return ca.Client("system:kube-proxy") }},
		{"kudo-dns", func() (Pair, error) { return ca.Client("kudo-local:dns") }},
		{"kubelet-serving", func() (Pair, error) { return ca.Server(node, []string{node}, nodeIP) }},
		{NodeServer, func() (Pair, error) { return ca.Server("kube-apiserver", kubernetesNames, serviceIP, hostIP) }},
	} {
		if err := s.write(m.name, m.make); err != nil {
			return err
		}
	}
	return nil
}

// serves reports whether a pair is there whose certificate has an address.
func (s *Store) serves(name string, ip net.IP) bool {
	data, err := os.ReadFile(s.CertFile(name))
	if err != nil {
		return false
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && cert.VerifyHostname(ip.String()) == nil
}

// loadAuthority reads the certificate authority of the cluster.
func (s *Store) loadAuthority(now time.Time) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(s.CertFile(CA), s.KeyFile(CA))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	return &Authority{cert: cert, key: pair.PrivateKey.(*ecdsa.PrivateKey), now: now}, nil
}

func (s *Store) write(name string, make func() (Pair, error)) error {
	pair, err := make()
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.CertFile(name), pair.Cert, 0o644); err != nil {
		return fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(s.KeyFile(name), pair.Key, 0o600); err != nil {
		return fmt.Errorf("writing the key of %s: %w", name, err)
	}
	return nil
}

// CertFile is the path of a certificate.
func (s *Store) CertFile(name string) string { return filepath.Join(s.dir, name+".crt") }

// KeyFile is the path of a private key.
func (s *Store) KeyFile(name string) string { return filepath.Join(s.dir, name+".key") }
