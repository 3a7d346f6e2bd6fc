package plane

import (
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

func (p *Plane) apiServerArgs() []string {
	s := p.store
	return append(append(p.reachArgs(),
		fmt.Sprintf("--secure-port=%d", p.Ports[components.APIServer]),
		"--etcd-servers=https://"+p.address(components.Etcd),
		"--etcd-cafile="+s.CertFile(pki.EtcdCA),
		"--etcd-certfile="+s.CertFile(pki.EtcdClient),
		"--etcd-keyfile="+s.KeyFile(pki.EtcdClient),
		"--etcd-compaction-interval=2m",
		"--client-ca-file="+s.CertFile(pki.CA),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range="+serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+s.CertFile(pki.ServiceAccounts),
		"--service-account-signing-key-file="+s.KeyFile(pki.ServiceAccounts),
		"--requestheader-client-ca-file="+s.CertFile(pki.FrontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+s.CertFile(pki.FrontProxy),
		"--proxy-client-key-file="+s.KeyFile(pki.FrontProxy),
		"--delete-collection-workers=4",
		"--shutdown-delay-duration=0s",
	), slices.Concat(p.versionArgs(), p.runtimeArgs(), p.auditArgs())...)
}

// reachArgs say how the API server is reached, and how it reaches nodes. A real node dials it by their link, so that it listens on all
// addresses of the machine then; certificates and tokens guard it.
func (p *Plane) reachArgs() []string {
	s := p.store
	if !p.Settings.RealNodes {
		return []string{
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			// Endpoints may not hold loopback addresses.
			"--endpoint-reconciler-type=none",
			"--tls-cert-file=" + s.CertFile(pki.APIServer),
			"--tls-private-key-file=" + s.KeyFile(pki.APIServer),
			// No resolver knows the names of simulated nodes.
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate=" + s.CertFile(pki.PodLogsClient),
			"--kubelet-client-key=" + s.KeyFile(pki.PodLogsClient),
			"--kubelet-certificate-authority=" + s.CertFile(pki.PodLogsCA),
		}
	}
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + p.nodeConfig().HostIP,
		"--tls-cert-file=" + s.CertFile(pki.NodeServer),
		"--tls-private-key-file=" + s.KeyFile(pki.NodeServer),
		// Webhooks go to the addresses of pods: no kube-proxy runs on this side of the link.
		"--enable-aggregator-routing=true",
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + s.CertFile(pki.KubeletClientOfServer),
		"--kubelet-client-key=" + s.KeyFile(pki.KubeletClientOfServer),
		"--kubelet-certificate-authority=" + s.CertFile(pki.CA),
	}
}

// apiControllers are what an API needs to be usable: namespaces that end,
// owners that are honored, ServiceAccounts, and the roles admin, edit and
// view, which are aggregated.
var apiControllers = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller",
}

func (p *Plane) controllerManagerArgs() []string {
	controllers := "*,-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller"
	if p.Settings.Profile == instance.API {
		controllers = strings.Join(apiControllers, ",")
	}
	s := p.store
	args := append(p.servingArgs(components.ControllerManager),
		"--controllers="+controllers,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+s.KeyFile(pki.ServiceAccounts),
		"--root-ca-file="+s.CertFile(pki.CA),
		"--cluster-signing-cert-file="+s.CertFile(pki.CA),
		"--cluster-signing-key-file="+s.KeyFile(pki.CA),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	if !p.Settings.RealNodes {
		// A busy machine must not look like six dead nodes.
		args = append(args, "--node-monitor-grace-period=2m")
	}
	for _, c := range []string{"deployment", "replicaset", "statefulset", "job", "cron-job", "service-endpoint", "endpoint"} {
		args = append(args, "--concurrent-"+c+"-syncs=20")
	}
	if p.Settings.KubernetesDir == "" { // servers of earlier versions lack the flag
		args = append(args, "--concurrent-daemonset-syncs=20")
	}
	return append(args,
		"--concurrent-gc-syncs=30",
		"--concurrent-namespace-syncs=20",
		"--concurrent-serviceaccount-token-syncs=10",
	)
}

func (p *Plane) schedulerArgs() []string {
	return append(p.servingArgs(components.Scheduler), "--kube-api-qps=500", "--kube-api-burst=1000")
}

// servingArgs are what controller-manager and scheduler have in common.
func (p *Plane) servingArgs(component string) []string {
	kubeconfig := p.Path(clientConfig(component))
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.Ports[component]),
		"--tls-cert-file=" + p.store.CertFile(pki.Serving),
		"--tls-private-key-file=" + p.store.KeyFile(pki.Serving),
		"--leader-elect=false",
	}, p.versionArgs()...)
}

// versionArgs say which version of Kubernetes a component emulates, and which of its features are on.
func (p *Plane) versionArgs() []string {
	var out []string
	if p.Settings.EmulatedVersion != "" {
		out = append(out, "--emulated-version=kube="+p.Settings.EmulatedVersion)
	}
	if p.Settings.FeatureGates != "" {
		out = append(out, "--feature-gates="+p.Settings.FeatureGates)
	}
	return out
}

// runtimeArgs say which APIs the API server serves besides its own choice.
func (p *Plane) runtimeArgs() []string {
	if p.Settings.RuntimeConfig == "" {
		return nil
	}
	return []string{"--runtime-config=" + p.Settings.RuntimeConfig}
}

func (p *Plane) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + p.Path(clientConfig(components.Kwok)),
		"--config=" + p.Path("kwok.yaml"),
		"--server-address=" + p.address(components.Kwok),
		"--manage-all-nodes=true",
		// Without leases nodes turn NotReady about once a minute.
		"--node-lease-duration-seconds=40",
		"--cidr=10.244.0.0/16",
		"--node-ip=127.0.0.1",
		fmt.Sprintf("--node-port=%d", p.Ports[podLogs]),
		"--pod-logs-address=" + p.address(podLogs),
		"--pod-logs-cert-file=" + p.store.CertFile(pki.PodLogsServer),
		"--pod-logs-key-file=" + p.store.KeyFile(pki.PodLogsServer),
		"--pod-logs-client-ca-file=" + p.store.CertFile(pki.PodLogsCA),
		"-v=WARN",
	}
}
