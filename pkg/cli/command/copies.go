package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
)

// InstanceFunc works on an Instance.
type InstanceFunc func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error

// Copy is an Instance in a cluster on which a hub has placed it.
type Copy struct {
	Cluster string
	// Client of the cluster, and the Instance there; nil if Err is set.
	Client   client.WithWatch
	Instance *v1beta1.Instance
	// Err says why the copy cannot be read.
	Err error
}

// AddClusterFlag adds the flag that names a cluster, for InCluster.
func AddClusterFlag(cmd *cobra.Command, cluster *string) {
	cmd.Flags().StringVar(cluster, "cluster", "", "on a hub: a cluster of the Instance, to work on the copy there")
}

// InCluster returns a function that works on the copy of an Instance in a cluster, or on the Instance itself if no cluster is named.
func (env *Env) InCluster(cluster *string, run InstanceFunc) InstanceFunc {
	return func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		if *cluster == "" {
			return run(ctx, c, i)
		}
		if !slices.Contains(ClustersOf(i), *cluster) {
			return fmt.Errorf("instance %s/%s has no copy in cluster %s: %s", i.Namespace, i.Name, *cluster, describeClusters(i))
		}
		found := env.findCopy(ctx, c, i, *cluster)
		if found.Err != nil {
			return fmt.Errorf("cluster %s: %w", *cluster, found.Err)
		}
		return run(ctx, found.Client, found.Instance)
	}
}

// ClustersOf returns the clusters that an Instance of a hub is placed on, and those that it leaves, in the order of names.
func ClustersOf(i *v1beta1.Instance) []string {
	if !i.IsTemplate() {
		return nil
	}
	var names []string
	for _, c := range i.PlacedClusters() {
		names = append(names, c.Name)
	}
	for _, m := range i.Status.Members {
		names = append(names, m.Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// describeClusters says which clusters have a copy of an Instance.
func describeClusters(i *v1beta1.Instance) string {
	if names := ClustersOf(i); len(names) > 0 {
		return "it is placed on " + strings.Join(names, ", ")
	}
	return "it is not placed from here, so leave --cluster out"
}

const (
	// copyTime is how long one cluster may take to answer, when all clusters are asked.
	copyTime = 10 * time.Second
	// copiesAtOnce is how many clusters are asked at the same time.
	copiesAtOnce = 16
)

// FindCopies returns the copies of an Instance of a hub in all clusters, in the order of names. The copy of a cluster that does not answer
// has an error.
func (env *Env) FindCopies(ctx context.Context, c client.Client, i *v1beta1.Instance) []Copy {
	names := ClustersOf(i)
	out, slots := make([]Copy, len(names)), make(chan struct{}, copiesAtOnce)
	var wg sync.WaitGroup
	for n, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, copyTime)
			defer cancel()
			out[n] = env.findCopy(ctx, c, i, name)
		})
	}
	wg.Wait()
	return out
}

// findCopy reads the copy of an Instance in a cluster.
func (env *Env) findCopy(ctx context.Context, c client.Client, i *v1beta1.Instance, cluster string) Copy {
	out := Copy{Cluster: cluster}
	member, err := env.ConnectCluster(c, cluster)
	if err != nil {
		out.Err = err
		return out
	}
	found, err := act.FindInstance(ctx, member, i.Namespace, i.Name)
	switch {
	case err != nil:
		out.Err = err
	case !IsCopy(found, i):
		out.Err = fmt.Errorf("instance %s/%s there is not the copy of the one on the hub: is this cluster another one of the same name?",
			i.Namespace, i.Name)
	default:
		out.Client, out.Instance = member, found
	}
	return out
}

// IsCopy reports whether an Instance in a cluster is the copy of an Instance of a hub.
func IsCopy(found, template *v1beta1.Instance) bool {
	uid, _, _ := strings.Cut(found.PlacedTemplate(), "/")
	return uid != "" && uid == string(template.UID)
}

// ConnectCluster returns a client of a cluster on which a hub places Instances, with rights of the user: by the proxy of Karmada if the hub
// serves Karmada's kinds, and else by the context of the kubeconfig that has the name of the cluster.
func (env *Env) ConnectCluster(hub client.Client, cluster string) (client.WithWatch, error) {
	config, err := env.clusterConfig(hub, cluster)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return env.newClient(config)
}

// errNoContext says that the kubeconfig does not say how to reach a cluster.
var errNoContext = errors.New("the kubeconfig has no context of this name: add one, which kubectl kudo uses to reach the cluster")

// HasKarmada reports whether a hub has Karmada's Clusters, which are reached by its proxy.
func HasKarmada(hub client.Client) (bool, error) {
	_, err := hub.RESTMapper().RESTMapping(remote.ClusterKind.GroupKind(), remote.ClusterKind.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("find out whether the hub has Karmada: %w", err)
	}
	return err == nil, nil
}

func (env *Env) clusterConfig(hub client.Client, cluster string) (*rest.Config, error) {
	isKarmada, err := HasKarmada(hub)
	if err != nil {
		return nil, err
	}
	if isKarmada {
		config, err := env.Flags.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		return remote.Access(config, cluster)
	}
	loader := env.Flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	if raw.Contexts[cluster] == nil {
		return nil, errNoContext
	}
	// Flags that name the server or the credentials of the hub do not count here: another cluster must not get them.
	overrides := &clientcmd.ConfigOverrides{Timeout: *env.Flags.Timeout}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateUID = *env.Flags.Impersonate, *env.Flags.ImpersonateUID
	overrides.AuthInfo.ImpersonateGroups = *env.Flags.ImpersonateGroup
	return clientcmd.NewNonInteractiveClientConfig(raw, cluster, overrides, loader.ConfigAccess()).ClientConfig()
}
