package plane

import (
	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

// etcdPeer is the use of the port on which etcd waits for other members. There are none, and etcd cannot go without it.
const etcdPeer = "etcd-peer"

// etcdArgs has every port of etcd ask for a certificate of its own authority, which has signed those of etcd and of the
// API server alone: who reaches etcd reads and writes all objects, past authentication, authorization and admission.
// There is no port for metrics: etcd answers /health and /metrics on the port of its clients.
func (p *Plane) etcdArgs() []string {
	s := p.store
	client, peer := "https://"+p.address(components.Etcd), "https://"+p.address(etcdPeer)
	return []string{
		"--name=" + p.Name,
		"--data-dir=" + p.Path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--client-cert-auth",
		"--trusted-ca-file=" + s.CertFile(pki.EtcdCA),
		"--cert-file=" + s.CertFile(pki.EtcdServer),
		"--key-file=" + s.KeyFile(pki.EtcdServer),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + p.Name + "=" + peer,
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + s.CertFile(pki.EtcdCA),
		"--peer-cert-file=" + s.CertFile(pki.EtcdServer),
		"--peer-key-file=" + s.KeyFile(pki.EtcdServer),
		"--log-level=warn",
		// The data of a test may be lost when the machine crashes.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		// The log in memory is most of what etcd uses; one member needs little.
		"--snapshot-count=2000",
		"--snapshot-catchup-entries=500",
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=2m",
	}
}

// etcdHealth is the URL at which etcd says whether it has a leader and can write. It needs a certificate, too.
func (p *Plane) etcdHealth() string { return "https://" + p.address(components.Etcd) + "/health" }
