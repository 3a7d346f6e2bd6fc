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

// The pairs of the server of the logs of simulated pods have one for the same reason: the API server alone may ask it.
const (
	PodLogsCA     = "pod-logs/ca"
	PodLogsServer = "pod-logs/server"
	PodLogsClient = "pod-logs/client"
)

// privateCA is an authority that signs for one server and one client only. It has the names of their pairs, and those in the certificates.
type privateCA struct {
	ca, server, client             string
	caName, serverName, clientName string
}

var privateCAs = []privateCA{
	{EtcdCA, EtcdServer, EtcdClient, "kudo-local-etcd-ca", "etcd", "kube-apiserver-etcd-client"},
	{PodLogsCA, PodLogsServer, PodLogsClient, "kudo-local-pod-logs-ca", "pod-logs", "kube-apiserver-pod-logs-client"},
}

// openPrivate makes the pairs of a private authority unless they are there. Their folder appears as a whole, so that a state that has none
// of it, or that was made by an earlier version, gets it in one step, also if two processes make it at the same time.
func (s *Store) openPrivate(c privateCA, now time.Time) error {
	folder := filepath.Join(s.dir, filepath.Dir(c.ca))
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	temporary, err := os.MkdirTemp(s.dir, "new-")
	if err != nil {
		return fmt.Errorf("making the folder for the certificates of %s: %w", c.serverName, err)
	}
	defer os.RemoveAll(temporary)
	made := &Store{dir: temporary}
	if err := os.Mkdir(filepath.Join(temporary, filepath.Dir(c.ca)), 0o700); err != nil {
		return fmt.Errorf("making the folder for the certificates of %s: %w", c.serverName, err)
	}
	ca, err := NewAuthority(c.caName, now)
	if err != nil {
		return err
	}
	for name, issue := range map[string]func() (Pair, error){
		c.ca:     func() (Pair, error) { return ca.Pair, nil },
		c.server: func() (Pair, error) { return ca.Server(c.serverName, nil) },
		c.client: func() (Pair, error) { return ca.Client(c.clientName) },
	} {
		if err := made.write(name, issue); err != nil {
			return err
		}
	}
	err = os.Rename(filepath.Join(temporary, filepath.Dir(c.ca)), folder)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("publishing the certificates of %s: %w", c.serverName, err)
	}
	return nil
}
