package plane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

// nodeCount and zones: packages that spread their pods by node or by zone find
// enough of both.
const (
	nodeCount = 6
	zones     = 3
)

// createNodes creates the nodes, and waits until pods can be created: until there are
// nodes that take them, and the ServiceAccount that they run as.
func (p *Plane) createNodes(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the admin kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the admin client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	switch {
	case p.Settings.RealNodes:
		if err := p.prepareRealNode(ctx, client); err != nil {
			return err
		}
	case p.Settings.Profile != instance.API:
		for i := range nodeCount {
			_, err := client.CoreV1().Nodes().Create(ctx, playedNode(i), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("making node %d: %w", i, err)
			}
		}
		if err := p.pointNodes(ctx, client); err != nil {
			return err
		}
		if err := awaitNodes(ctx, client, nodeCount); err != nil {
			return err
		}
	}
	return until(ctx, "the namespace default has its ServiceAccount", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
}

// pointNodes tells the API server where it asks for the logs of pods. kwok tells it of new nodes only, and the port may have changed since.
func (p *Plane) pointNodes(ctx context.Context, client kubernetes.Interface) error {
	patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, p.Ports[podLogs])
	for i := range nodeCount {
		if _, err := client.CoreV1().Nodes().PatchStatus(ctx, nodeName(i), patch); err != nil {
			return fmt.Errorf("writing the port of node %d: %w", i, err)
		}
	}
	return nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

func playedNode(i int) *corev1.Node {
	name := nodeName(i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("2000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:           name,
				corev1.LabelOSStable:           "linux",
				corev1.LabelArchStable:         "amd64",
				corev1.LabelTopologyRegion:     "local",
				corev1.LabelTopologyZone:       fmt.Sprintf("local-%c", 'a'+i%zones),
				corev1.LabelInstanceTypeStable: "kwok",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: name},
			},
			// Some programs refuse to work with nodes of another version.
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:   version.Get().GitVersion,
				KubeProxyVersion: version.Get().GitVersion,
			},
		},
	}
}

// awaitNodes waits until a number of nodes take pods.
func awaitNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	return until(ctx, "the nodes take pods", func(ctx context.Context) (bool, error) {
		return nodesReady(ctx, client, count)
	})
}

func nodesReady(ctx context.Context, client kubernetes.Interface, count int) (bool, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 {
			return false, fmt.Errorf("node %s has the taint %s", n.Name, n.Spec.Taints[0].Key)
		}
	}
	return len(nodes.Items) >= count, nil
}

// until polls done. The error of the last try explains why it never was.
func until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last == nil {
				last = ctx.Err()
			}
			return fmt.Errorf("waiting until %s: %w", what, last)
		case <-tick.C:
		}
	}
}
