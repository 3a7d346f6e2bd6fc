package kudoinit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/settings"
)

const (
	// ValuesConfigMap is the name of the ConfigMap, in kudo's namespace, that keeps the Values of an installation.
	ValuesConfigMap = "kudo-values"
	// valuesKey is its key of the Values, and rulesKey that of the rules that init has written into each ClusterRole.
	valuesKey, rulesKey = "values.yaml", "rules.json"
)

// Values are what an administrator chooses about the manager's Deployment. Init keeps them on the cluster. What is not set is as in the
// manifests of the version.
type Values struct {
	// Image of the manager. It is kept for one version of kudo: another version has another image.
	Image string `json:"image,omitempty"`
	// ImageRegistry holds copies of the images of releases: HOST[/PREFIX].
	ImageRegistry string `json:"imageRegistry,omitempty"`
	// ImagePullPolicy is Always, Never or IfNotPresent.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are Secrets of kudo's namespace.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// PipeImage is the image that the files of Pipe tasks are read from, with its digest.
	PipeImage string `json:"pipeImage,omitempty"`
	// Replicas of the Deployment.
	Replicas *int32 `json:"replicas,omitempty"`
	// Hub makes the cluster a hub, which places Instances on other clusters and runs no plans.
	Hub bool `json:"hub,omitempty"`
	// ClustersEngine carries the Instances of a hub to clusters: karmada, which is the default, or inventory.
	ClustersEngine string `json:"clustersEngine,omitempty"`
	// Monitoring installs the ServiceMonitor, the alerts and the dashboard.
	Monitoring bool `json:"monitoring,omitempty"`
	// NetworkPolicy installs a NetworkPolicy that limits what may connect to the manager.
	NetworkPolicy bool `json:"networkPolicy,omitempty"`
	// ExploreClientSecret is the Secret, of kudo's namespace and of type kubernetes.io/tls, with the client certificate that explore
	// webhooks are shown.
	ExploreClientSecret string `json:"exploreClientSecret,omitempty"`
	// LogFormat of the manager is json or console.
	LogFormat string `json:"logFormat,omitempty"`
	// Proxy is for what the manager fetches: packages, signatures and CRD tarballs.
	Proxy *Proxy `json:"proxy,omitempty"`
	// CacheVolume holds the CRD tarballs that were fetched, in place of a directory that ends with its pod.
	CacheVolume *corev1.VolumeSource `json:"cacheVolume,omitempty"`
	// ExtraArgs are arguments besides those that init writes.
	ExtraArgs []string `json:"extraArgs,omitempty"`

	Resources         *corev1.ResourceRequirements `json:"resources,omitempty"`
	NodeSelector      map[string]string            `json:"nodeSelector,omitempty"`
	Tolerations       []corev1.Toleration          `json:"tolerations,omitempty"`
	Affinity          *corev1.Affinity             `json:"affinity,omitempty"`
	PriorityClassName string                       `json:"priorityClassName,omitempty"`
	PodLabels         map[string]string            `json:"podLabels,omitempty"`
	PodAnnotations    map[string]string            `json:"podAnnotations,omitempty"`
}

// Proxy names the HTTP proxies of the manager.
type Proxy struct {
	// HTTP and HTTPS are the URLs of the proxies for URLs that begin with http and https.
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	// NoProxy lists hosts, domains such as .example.org, addresses and CIDRs that are reached without a proxy, besides the API server and
	// the Services of the cluster.
	NoProxy []string `json:"noProxy,omitempty"`
}

// ParseValues reads Values from YAML. A field that Values do not have is an error, and so is a value that the Deployment cannot have.
func ParseValues(text []byte) (Values, error) {
	v := Values{}
	if documents.Match(bytes.TrimSpace(text)) {
		return v, errors.New("the values must be one YAML document: remove the line --- and merge what is behind it")
	}
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		return v, errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "), "while decoding JSON: json: "))
	}
	return v, v.validate()
}

// documents matches the line between two documents, of which YAML would only read the first.
var documents = regexp.MustCompile(`\n---(\s|$)`)

// validate names all fields that are wrong.
func (v Values) validate() error {
	var wrong []error
	add := func(name, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	v.validateImages(add)
	if !slices.Contains([]string{"", karmadaEngine, inventoryEngine}, v.ClustersEngine) {
		add("clustersEngine", "%q must be %s or %s", v.ClustersEngine, karmadaEngine, inventoryEngine)
	}
	if v.Replicas != nil && *v.Replicas < 1 {
		add("replicas", "%d must be 1 or more", *v.Replicas)
	}
	v.validateExtraArgs(add)
	v.validateOwnLabels(add)
	for _, message := range validation.NameIsDNSSubdomain(v.ExploreClientSecret, false) {
		if v.ExploreClientSecret != "" {
			add("exploreClientSecret", "%q must be the name of a Secret: %s", v.ExploreClientSecret, message)
		}
	}
	for n, secret := range v.ImagePullSecrets {
		if secret.Name == "" {
			add(fmt.Sprintf("imagePullSecrets[%d]", n), "must have the name of a Secret")
		}
	}
	v.validatePod(add)
	return errors.Join(append(wrong, v.validateMaps()...)...)
}

// validateImages adds the errors in the names and the pull policy of images.
func (v Values) validateImages(add func(name, format string, args ...any)) {
	if v.Image != "" && v.ImageRegistry != "" {
		add("imageRegistry", "excludes image")
	}
	if v.ImageRegistry != "" && !registry.MatchString(v.ImageRegistry) {
		add("imageRegistry", "%q must be a registry and may have folders, such as registry.example.org/mirror", v.ImageRegistry)
	}
	if !slices.Contains([]string{"", "Always", "Never", "IfNotPresent"}, v.ImagePullPolicy) {
		add("imagePullPolicy", "%q must be Always, Never or IfNotPresent", v.ImagePullPolicy)
	}
	if v.PipeImage != "" {
		if err := settings.CheckPipeImage(v.PipeImage); err != nil {
			add("pipeImage", "%s", err)
		}
	}
}

// validateExtraArgs adds the arguments that are no flags, or are flags that init writes itself.
func (v Values) validateExtraArgs(add func(name, format string, args ...any)) {
	for n, arg := range v.ExtraArgs {
		if name := flagOf(arg); !strings.HasPrefix(arg, "--") || name == "" || ownArgs[name] || slices.Contains(manifestArgs, name) {
			add(fmt.Sprintf("extraArgs[%d]", n), "%q must begin with -- and the name of a flag, and must not be a flag that init writes itself", arg)
		}
	}
}

// validateOwnLabels adds the labels and annotations of pods that only init may set.
func (v Values) validateOwnLabels(add func(name, format string, args ...any)) {
	for _, name := range []string{"app", "control-plane", VersionAnnotation} {
		if _, has := v.PodLabels[name]; has {
			add("podLabels", "%s is init's own", name)
		}
		if _, has := v.PodAnnotations[name]; has {
			add("podAnnotations", "%s is init's own", name)
		}
	}
}

// validateMaps returns what the API server would refuse about labels and annotations. It sorts the errors, since a map has no order.
func (v Values) validateMaps() []error {
	var wrong []error
	for _, list := range []field.ErrorList{
		metav1validation.ValidateLabels(v.PodLabels, field.NewPath("podLabels")),
		metav1validation.ValidateLabels(v.NodeSelector, field.NewPath("nodeSelector")),
		validation.ValidateAnnotations(v.PodAnnotations, field.NewPath("podAnnotations")),
	} {
		slices.SortFunc(list, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
		if err := list.ToAggregate(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// manifestArgs are the flags in the manifest of the Deployment.
var manifestArgs = []string{"namespace", "webhook-port", "webhook-cert-dir", "metrics-bind-address", "health-probe-bind-address"}

// assignment is KEY=VALUE of --set. A dot separates the parts of the key; \. is a dot within a part.
var assignment = regexp.MustCompile(`^((?:[^=\\]|\\.)+)=((?s:.*))$`)

// Set returns the Values with assignments of the form KEY=VALUE, such as replicas=3 or resources.requests.cpu=200m; a value is YAML, and
// null takes a key away. List elements cannot be set one by one.
func (v Values) Set(assignments []string) (Values, error) {
	if len(assignments) == 0 {
		return v, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v)
	if err != nil {
		return v, err
	}
	for _, text := range assignments {
		parts := assignment.FindStringSubmatch(text)
		if parts == nil {
			return v, fmt.Errorf("%q: must be KEY=VALUE, such as replicas=3", text)
		}
		var value any
		if err := yaml.Unmarshal([]byte(parts[2]), &value); err != nil {
			return v, fmt.Errorf("%q: the value is not YAML: %w", text, err)
		}
		path := strings.Split(strings.ReplaceAll(parts[1], `\.`, "\x00"), ".")
		for n := range path {
			path[n] = strings.ReplaceAll(path[n], "\x00", ".")
		}
		if value == nil {
			unstructured.RemoveNestedField(tree, path...)
		} else if err := unstructured.SetNestedField(tree, value, path...); err != nil {
			return v, fmt.Errorf("%q: %s is no object", text, strings.Join(path[:len(path)-1], "."))
		}
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return v, err
	}
	return ParseValues(text)
}

// valuesMap is the ConfigMap with the Values and the rules of the ClusterRoles.
func valuesMap(o Options, objs []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := yaml.Marshal(o.Values)
	if err != nil {
		return nil, err
	}
	rules, err := rulesOf(objs)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{
		valuesKey: string(text), rulesKey: rules,
	}}}
	obj.SetNamespace(DefaultNamespace)
	obj.SetName(ValuesConfigMap)
	obj.SetLabels(map[string]string{"app": "kudo-manager"})
	return obj, adapt(obj, o)
}

// readValues reads the Values that init has kept.
func (l *InstalledState) readValues(ctx context.Context, c client.Client) error {
	object := &corev1.ConfigMap{}
	found, err := getIfPresent(ctx, c, object, l.Namespace, ValuesConfigMap)
	if err != nil || !found {
		return err
	}
	if l.Values, err = ParseValues([]byte(object.Data[valuesKey])); err != nil {
		return fmt.Errorf("ConfigMap %s/%s, key %s: %w", l.Namespace, ValuesConfigMap, valuesKey, err)
	}
	l.rules = object.Data[rulesKey]
	return nil
}

// keepText takes the text of the Values over from another ConfigMap.
func keepText(to, from *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(from.Object, "data", valuesKey)
	data := to.Object["data"].(map[string]any)
	data[valuesKey] = text
}
