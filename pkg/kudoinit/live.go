package kudoinit

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The names of the objects that init creates once in a cluster.
const (
	roleName       = "kudo-manager"
	deploymentName = "kudo-controller-manager"
	validating     = "kudo-manager-instance-validation-webhook-config"
	// validatePath is the path of the webhook for Instances, behind the address of the manager.
	validatePath = "/validate-kudo-dev-v1beta1-instance"
	// predecessorWebhook is KUDO's too.
	predecessorWebhook = "kudo-manager-instance-admission-webhook-config"
	leaseName          = "kudo-manager"
	instancesCRD       = "instances.kudo.dev"
	// predecessorBinding gives KUDO's manager the role cluster-admin.
	predecessorBinding = "kudo-manager-rolebinding"
)

// InstalledState is what is installed on a cluster, as far as it can be read off its objects.
type InstalledState struct {
	// Options that an installation of this kind has.
	Options
	// Installed is set if the CRDs are there.
	Installed bool
	// Bound is set if a ServiceAccount has the manager's rights, so that the namespace is known.
	Bound bool
	// Decided is set if the cluster has settings; SettingsError says which of them are wrong.
	Decided       bool
	SettingsError error
	// rules are those that init has written into each ClusterRole, as the ConfigMap of the Values keeps them.
	rules string
	// Release has installed kudo; nil if init has.
	Release *HelmRelease
	// Predecessor is the namespace of KUDO's manager, a StatefulSet; empty if there is none.
	Predecessor string
}

// ReadState reads what is installed. Without an installation, the options are the defaults.
func ReadState(ctx context.Context, c client.Client) (*InstalledState, error) {
	live := &InstalledState{Options: Options{External: true}.withDefaults()}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	found, err := getIfPresent(ctx, c, crd, "", instancesCRD)
	if err != nil {
		return nil, err
	}
	live.Installed, live.Version = found, crd.Annotations[VersionAnnotation]
	binding := &rbacv1.ClusterRoleBinding{}
	if live.Bound, err = getIfPresent(ctx, c, binding, "", roleName); err != nil {
		return nil, err
	}
	if live.Bound = live.Bound && len(binding.Subjects) > 0; live.Bound {
		live.Namespace, live.Account = binding.Subjects[0].Namespace, binding.Subjects[0].Name
		live.Release = helmReleaseOf(binding)
	}
	for _, read := range []func(context.Context, client.Client) error{live.readSettings, live.readValues, live.readDeployment,
		live.readWebhooks, live.readPredecessor} {
		if err := read(ctx, c); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// IsExternal reports whether it is known that the manager runs outside of the cluster. Without webhooks this is not known, since its
// Deployment may have been deleted.
func (l *InstalledState) IsExternal() bool { return l.Bound && l.External && l.WebhookURL != "" }

func (l *InstalledState) readDeployment(ctx context.Context, c client.Client) error {
	deployment := &appsv1.Deployment{}
	found, err := getIfPresent(ctx, c, deployment, l.Namespace, deploymentName)
	if err != nil || !found {
		return err
	}
	l.External = false
	if replicas := deployment.Spec.Replicas; replicas != nil {
		l.Replicas = *replicas
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == "manager" {
			l.Image, l.PullPolicy = container.Image, string(container.ImagePullPolicy)
			for _, arg := range container.Args {
				if image, is := strings.CutPrefix(arg, pipeImageArg); is && image != container.Image {
					l.PipeImage = image
				}
				l.InsecureMetrics = l.InsecureMetrics || arg == insecureMetricsArg
			}
		}
	}
	return nil
}

func (l *InstalledState) readWebhooks(ctx context.Context, c client.Client) error {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	found, err := getIfPresent(ctx, c, config, "", validating)
	if err != nil || !found {
		return err
	}
	l.CertManager = config.Annotations[injectAnnotation] != ""
	for _, hook := range config.Webhooks {
		if u := hook.ClientConfig.URL; u != nil {
			if address, is := strings.CutSuffix(*u, validatePath); is {
				l.WebhookURL = address
			}
		}
	}
	return nil
}

func (l *InstalledState) readPredecessor(ctx context.Context, c client.Client) error {
	sets := &appsv1.StatefulSetList{}
	if err := c.List(ctx, sets, client.MatchingLabels{"app": "kudo-manager", "control-plane": "controller-manager"}); err != nil {
		return fmt.Errorf("look for KUDO's manager: %w", err)
	}
	if len(sets.Items) > 0 {
		l.Predecessor = sets.Items[0].Namespace
	}
	return nil
}

// Account finds a ServiceAccount that is to be there already.
func Account(ctx context.Context, c client.Client, namespace, name string) error {
	found, err := getIfPresent(ctx, c, &corev1.ServiceAccount{}, namespace, name)
	if err == nil && !found {
		return refuse(fmt.Errorf("ServiceAccount %s/%s does not exist: make it with kubectl create serviceaccount %s -n %s, or leave "+
			"--service-account out", namespace, name, name, namespace))
	}
	return err
}

// getIfPresent reads an object; false if it is not there.
func getIfPresent(ctx context.Context, c client.Client, obj client.Object, namespace, name string) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s %s: %w", strings.TrimPrefix(fmt.Sprintf("%T", obj), "*"), name, err)
	}
	return true, nil
}
