package pki

import (
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

// Store is a folder of pairs.
type Store struct {
	dir string
}

// Open returns the pairs in dir, and makes all of them when there are none.
// serviceIP is the cluster address of the Service kubernetes.default.
func Open(dir string, serviceIP net.IP, now time.Time) (*Store, error) {
	s := &Store{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for certificates: %w", err)
	}
	if err := s.openEtcd(now); err != nil {
		return nil, err
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
	kubernetes := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	makers := []struct {
		name string
		make func() (Pair, error)
	}{
		{CA, func() (Pair, error) { return ca.Pair, nil }},
		{FrontProxyCA, func() (Pair, error) { return front.Pair, nil }},
		{FrontProxy, func() (Pair, error) { return front.Client("front-proxy-client") }},
		{ServiceAccounts, SigningKey},
		{APIServer, func() (Pair, error) { return ca.Server("kube-apiserver", kubernetes, serviceIP) }},
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
