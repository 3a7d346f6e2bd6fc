package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The pairs of etcd have an authority of their own, since etcd takes every certificate of the authority that it trusts
// for its administrator. The authority of the cluster signs certificates of users, by CertificateSigningRequests too.
const (
	EtcdCA = "etcd/ca"
	// EtcdServer is for etcd's clients and for its peers.
	EtcdServer = "etcd/server"
	EtcdClient = "etcd/client"
)

// openEtcd makes the pairs of etcd unless they are there. The folder appears as a whole, so that a state that has none
// of it, or that was made by an earlier version, gets it in one step, also if two processes make it at the same time.
func (s *Store) openEtcd(now time.Time) error {
	folder := filepath.Join(s.dir, filepath.Dir(EtcdCA))
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	temporary, err := os.MkdirTemp(s.dir, "new-")
	if err != nil {
		return fmt.Errorf("making the folder for the certificates of etcd: %w", err)
	}
	defer os.RemoveAll(temporary)
	made := &Store{dir: temporary}
	if err := os.Mkdir(filepath.Join(temporary, filepath.Dir(EtcdCA)), 0o700); err != nil {
		return fmt.Errorf("making the folder for the certificates of etcd: %w", err)
	}
	ca, err := NewAuthority("kudo-local-etcd-ca", now)
	if err != nil {
		return err
	}
	for name, issue := range map[string]func() (Pair, error){
		EtcdCA:     func() (Pair, error) { return ca.Pair, nil },
		EtcdServer: func() (Pair, error) { return ca.Server("etcd", nil) },
		EtcdClient: func() (Pair, error) { return ca.Client("kube-apiserver-etcd-client") },
	} {
		if err := made.write(name, issue); err != nil {
			return err
		}
	}
	err = os.Rename(filepath.Join(temporary, filepath.Dir(EtcdCA)), folder)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("publishing the certificates of etcd: %w", err)
	}
	return nil
}
