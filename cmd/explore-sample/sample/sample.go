// Package sample is an explore webhook for two kinds:
//
//   - Foo (foo.example.com, namespaced), into whose spec its controller writes `assigned`, and which is done when
//     status.phase is Ready;
//   - Bar (bar.example.com, of the cluster), which names Foos in spec.foos, and is done when status.ready says so.
package sample

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore/server"
)

// Paths of the two webhooks.
const (
	FooPath = "/explore-foo"
	BarPath = "/explore-bar"
)

// Groups of the two kinds. They are also the names of the webhooks.
const (
	FooGroup = "foo.example.com"
	BarGroup = "bar.example.com"
)

// Foo has only the fields that the webhook needs to know.
type Foo struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     FooSpec           `json:"spec"`
	Status   struct {
		Phase              string `json:"phase,omitempty"`
		ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	} `json:"status"`
}

// FooSpec is what both the user and the controller write.
type FooSpec struct {
	// Assigned maps roles to nodes. The controller adds what the user leaves out.
	Assigned map[string]string `json:"assigned,omitempty"`
}

// Bar has only the fields that the webhook needs to know.
type Bar struct {
	Spec struct {
		// Foos that must be there.
		Foos []struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"foos,omitempty"`
	} `json:"spec"`
	Status struct {
		Ready   bool   `json:"ready,omitempty"`
		Message string `json:"message,omitempty"`
	} `json:"status"`
}

// Handler serves both webhooks.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(FooPath, server.Operations{
		v1alpha1.ExploreRetaining: retainFoo,
		v1alpha1.ExploreHealthy:   fooHealthy,
	})
	mux.Handle(BarPath, server.Operations{
		v1alpha1.ExploreDependencies: barDependencies,
		v1alpha1.ExploreHealthy:      barHealthy,
	})
	return mux
}

// retainFoo keeps what the controller assigned and the user does not.
func retainFoo(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
	var desired, observed Foo
	if err := r.Decode(&desired); err != nil {
		return nil, err
	}
	if err := r.DecodeObserved(&observed); err != nil {
		return nil, err
	}
	kept := desired
	kept.Spec.Assigned = maps.Clone(observed.Spec.Assigned)
	if kept.Spec.Assigned == nil {
		kept.Spec.Assigned = map[string]string{}
	}
	maps.Copy(kept.Spec.Assigned, desired.Spec.Assigned)
	return r.Patch(&desired, &kept)
}

func fooHealthy(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
	var foo Foo
	if err := r.Decode(&foo); err != nil {
		return nil, err
	}
	switch {
	case foo.Status.ObservedGeneration < foo.Metadata.Generation:
		return server.Healthy(false, "its controller has not seen the last change yet"), nil
	case foo.Status.Phase != "Ready":
		return server.Healthy(false, fmt.Sprintf("its phase is %q", foo.Status.Phase)), nil
	}
	return server.Healthy(true, ""), nil
}

func barDependencies(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
	var bar Bar
	if err := r.Decode(&bar); err != nil {
		return nil, err
	}
	var needs []v1alpha1.DependentObjectReference
	for _, foo := range bar.Spec.Foos {
		needs = append(needs, v1alpha1.DependentObjectReference{APIVersion: FooGroup + "/v1alpha1", Kind: "Foo", Namespace: foo.Namespace,
			Name: foo.Name})
	}
	return server.Dependencies(needs...), nil
}

func barHealthy(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
	var bar Bar
	if err := r.Decode(&bar); err != nil {
		return nil, err
	}
	return server.Healthy(bar.Status.Ready, bar.Status.Message), nil
}

// Webhooks is the configuration that makes kudo ask the webhooks at a URL, such as https://127.0.0.1:8443. The bundle, in
// PEM format, verifies their certificate; if it is empty, the system's roots do.
func Webhooks(base string, bundle []byte) *v1alpha1.ResourceExploringWebhookConfiguration {
	hook := func(group, resource, path string, scope admissionregistrationv1.ScopeType,
		operations ...v1alpha1.OperationType) v1alpha1.ResourceExploringWebhook {
		return v1alpha1.ResourceExploringWebhook{
			Name: group,
			Rules: []v1alpha1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}, Scope: &scope,
			}}},
			ClientConfig:          admissionregistrationv1.WebhookClientConfig{URL: ptr.To(base + path), CABundle: bundle},
			FailurePolicy:         ptr.To(admissionregistrationv1.Fail),
			ExploreReviewVersions: []string{v1alpha1.GroupVersion.Version},
			TimeoutSeconds:        ptr.To[int32](3),
		}
	}
	return &v1alpha1.ResourceExploringWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ResourceExploringWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: "example"},
		Webhooks: []v1alpha1.ResourceExploringWebhook{
			hook(FooGroup, "foos", FooPath, admissionregistrationv1.NamespacedScope, v1alpha1.ExploreRetaining, v1alpha1.ExploreHealthy),
			hook(BarGroup, "bars", BarPath, admissionregistrationv1.ClusterScope, v1alpha1.ExploreDependencies, v1alpha1.ExploreHealthy),
		},
	}
}

// Configuration is Webhooks in YAML.
func Configuration(base string, bundle []byte) ([]byte, error) {
	text, err := yaml.Marshal(Webhooks(base, bundle))
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return text, nil
}
