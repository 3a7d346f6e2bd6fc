// Package inventory places Instances on the clusters of a cluster inventory (SIG Multicluster's ClusterProfile and PlacementDecision), by
// server-side apply from the hub. It is an engine of package clusters that needs no other program.
package inventory

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kinds of the inventory (KEP-4322, KEP-5313) in the version that is read.
var (
	ProfileKind  = schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"}
	DecisionKind = schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "PlacementDecision"}
)

// Labels of PlacementDecisions.
const (
	// DecisionKeyLabel joins the slices of one decision.
	DecisionKeyLabel = "multicluster.x-k8s.io/decision-key"
	// DecisionIndexLabel is the place of a slice.
	DecisionIndexLabel = "multicluster.x-k8s.io/decision-index"
)

const (
	// execExtension holds what a profile tells the provider about the cluster.
	execExtension = "client.authentication.k8s.io/exec"
	// maxProviders, maxExtensions and maxExtension bound what is read of a profile; the last one is in bytes.
	maxProviders, maxExtensions, maxExtension = 32, 32, 16 << 10
)

// ClusterProfile is what the engine reads of a ClusterProfile.
type ClusterProfile struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		DisplayName    string `json:"displayName"`
		ClusterManager struct {
			Name string `json:"name"`
		} `json:"clusterManager"`
	} `json:"spec"`
	Status struct {
		// AccessProviders are preferred to CredentialProviders, which are deprecated.
		AccessProviders     []AccessProvider `json:"accessProviders"`
		CredentialProviders []AccessProvider `json:"credentialProviders"`
	} `json:"status"`
}

// AccessProvider is one way to a cluster: who gives the credentials, and where the cluster is.
type AccessProvider struct {
	Name    string  `json:"name"`
	Cluster Cluster `json:"cluster"`
}

// Cluster is a cluster as a kubeconfig has it.
type Cluster struct {
	Server                   string           `json:"server"`
	TLSServerName            string           `json:"tls-server-name"`
	InsecureSkipTLSVerify    bool             `json:"insecure-skip-tls-verify"`
	CertificateAuthority     string           `json:"certificate-authority"`
	CertificateAuthorityData []byte           `json:"certificate-authority-data"`
	ProxyURL                 string           `json:"proxy-url"`
	DisableCompression       bool             `json:"disable-compression"`
	Extensions               []NamedExtension `json:"extensions"`
}

// NamedExtension is further data on a cluster.
type NamedExtension struct {
	Name      string          `json:"name"`
	Extension json.RawMessage `json:"extension"`
}

// extension returns the data of an extension, or nil if there is none.
func (c Cluster) extension(name string) json.RawMessage {
	for _, e := range c.Extensions {
		if e.Name == name {
			return e.Extension
		}
	}
	return nil
}

// key names the profile.
func (p *ClusterProfile) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// ParseProfile reads a ClusterProfile. An error is one whose fields have other types, or which is too large.
func ParseProfile(obj *unstructured.Unstructured) (*ClusterProfile, error) {
	out := &ClusterProfile{}
	object := "ClusterProfile " + obj.GetNamespace() + "/" + obj.GetName()
	if err := convert(obj, out); err != nil {
		return nil, &AccessError{Object: object, Problem: err.Error(), Remedy: "the cluster manager that writes the profile has to correct it"}
	}
	for field, list := range map[string][]AccessProvider{
		"status.accessProviders": out.Status.AccessProviders, "status.credentialProviders": out.Status.CredentialProviders,
	} {
		if problem := tooMany(list); problem != "" {
			return nil, &AccessError{Object: object, Field: field, Problem: problem, Remedy: "let the cluster manager publish less"}
		}
	}
	return out, nil
}

func tooMany(list []AccessProvider) string {
	if len(list) > maxProviders {
		return fmt.Sprintf("%d entries are more than the %d that are read", len(list), maxProviders)
	}
	for _, p := range list {
		if len(p.Cluster.Extensions) > maxExtensions {
			return fmt.Sprintf("%d extensions are more than the %d that are read", len(p.Cluster.Extensions), maxExtensions)
		}
		for _, e := range p.Cluster.Extensions {
			if len(e.Extension) > maxExtension {
				return fmt.Sprintf("an extension of %d bytes is longer than the %d that are read", len(e.Extension), maxExtension)
			}
		}
	}
	return ""
}

// PlacementDecision is a slice of the clusters that a scheduler has chosen.
type PlacementDecision struct {
	metav1.ObjectMeta `json:"metadata"`
	Decisions         []struct {
		ClusterProfileRef struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"clusterProfileRef"`
		Reason string `json:"reason"`
	} `json:"decisions"`
	SchedulerName string `json:"schedulerName"`
}

// ParseDecision reads a PlacementDecision. An error is one whose fields have other types.
func ParseDecision(obj *unstructured.Unstructured) (*PlacementDecision, error) {
	out := &PlacementDecision{}
	if err := convert(obj, out); err != nil {
		return nil, fmt.Errorf("PlacementDecision %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	return out, nil
}

func convert(obj *unstructured.Unstructured, into any) error {
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// ProfileKey returns the ClusterProfile that a name in spec.placement means: `namespace/name`, or a name in the namespace for clusters. An
// error is a name without a namespace where there is no such namespace.
func ProfileKey(name, namespace string) (types.NamespacedName, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if before, after, found := strings.Cut(name, "/"); found {
		key = types.NamespacedName{Namespace: before, Name: after}
	}
	if key.Namespace == "" || key.Name == "" || strings.Contains(key.Name, "/") {
		return types.NamespacedName{}, fmt.Errorf("the cluster %q is not <namespace>/<name> of a ClusterProfile, and a name alone needs "+
			"--cluster-namespace at the manager", name)
	}
	return key, nil
}
