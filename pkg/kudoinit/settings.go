package kudoinit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
)

const (
	// installRole is the ClusterRole of that account. An administrator may narrow it.
	installRole = "kudo-install-plans"
	// RunAsRole is the ClusterRole that a namespace binds to let the manager act as its ServiceAccounts.
	RunAsRole = "kudo-run-as"
	// rulesAnnotation holds a digest of the rules that init has written.
	rulesAnnotation = "kudo.dev/rules"
)

// configMap is the ConfigMap with the settings.
func configMap(o Options) *unstructured.Unstructured {
	data := map[string]any{}
	for key, text := range o.Settings.Data() {
		data[key] = text
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	obj.SetNamespace(DefaultNamespace)
	obj.SetName(settings.ConfigMap)
	obj.SetLabels(map[string]string{"app": "kudo-manager"})
	return obj
}

// adaptPolicy writes the settings into the variables of a policy.
func adaptPolicy(obj *unstructured.Unstructured, o Options) error {
	variables, _, _ := unstructured.NestedSlice(obj.Object, "spec", "variables")
	for _, item := range variables {
		switch v := item.(map[string]any); {
		case v["name"] == "defaultAccount":
			v["expression"] = "'" + o.Settings.DefaultAccount + "'" // a DNS name, which needs no escape
		case v["name"] == "engine" && o.Values.ClustersEngine != "":
			v["expression"] = "'" + o.Values.ClustersEngine + "'"
		case v["name"] == "clusterNamespace":
			v["expression"] = "'" + o.Namespace + "'"
		case v["name"] == "privileged" && o.Settings.Mode == settings.Privileged:
			v["expression"] = "true"
		}
	}
	if variables != nil {
		if err := unstructured.SetNestedSlice(obj.Object, variables, "spec", "variables"); err != nil {
			return err
		}
	}
	selector, _, _ := unstructured.NestedSlice(obj.Object, "spec", "matchConstraints", "namespaceSelector", "matchExpressions")
	if selector == nil {
		return nil
	}
	for _, item := range selector {
		names, _ := item.(map[string]any)["values"].([]any)
		for i := range names {
			if names[i] == DefaultNamespace {
				names[i] = o.Namespace
			}
		}
	}
	return unstructured.SetNestedSlice(obj.Object, selector, "spec", "matchConstraints", "namespaceSelector", "matchExpressions")
}

// adaptRole names the default account where a role lets it be used, and marks the role that an administrator may change.
func adaptRole(obj *unstructured.Unstructured, o Options) error {
	rules, _, _ := unstructured.NestedSlice(obj.Object, "rules")
	for _, item := range rules {
		rule := item.(map[string]any)
		if verbs, _ := rule["verbs"].([]any); len(verbs) == 1 && verbs[0] == "use" && rule["resourceNames"] != nil {
			rule["resourceNames"] = []any{o.Settings.DefaultAccount}
		}
	}
	if err := unstructured.SetNestedSlice(obj.Object, rules, "rules"); err != nil {
		return err
	}
	if obj.GetName() == installRole {
		annotate(obj, rulesAnnotation, rulesDigest(obj))
	}
	return nil
}

// rulesDigest is a digest of the rules of a role.
func rulesDigest(role *unstructured.Unstructured) string {
	text, err := json.Marshal(role.Object["rules"])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// narrowed reports whether an administrator has changed the role of install plans since init has written it.
func narrowed(live *unstructured.Unstructured) bool {
	written := live.GetAnnotations()[rulesAnnotation]
	return live.GetKind() == "ClusterRole" && live.GetName() == installRole && written != "" && written != rulesDigest(live)
}

// readSettings reads the settings. A kudo that knew none runs plans with its own rights.
func (l *InstalledState) readSettings(ctx context.Context, c client.Client) error {
	l.Settings = settings.Default()
	object := &corev1.ConfigMap{}
	found, err := getIfPresent(ctx, c, object, l.Namespace, settings.ConfigMap)
	if err != nil || !found {
		return err
	}
	l.Decided = true
	l.Settings, l.SettingsError = settings.Parse(object.Data)
	return nil
}

// UndecidedError says that Instances write with the rights of kudo, and that no administrator has decided whether they may continue to do
// this.
type UndecidedError struct{ Instances, Namespaces int }

// Error implements error.
func (e *UndecidedError) Error() string {
	return fmt.Sprintf("%d Instances in %d namespaces write with the rights of kudo: --strict stops their next plans until they have "+
		"accounts (kubectl kudo account create), --privileged keeps it so",
		e.Instances, e.Namespaces)
}

// CheckDecided returns an error if kudo has run the plans of Instances that name no account with its own rights until now, and no
// administrator has chosen with whose rights they run from now on.
func (l *InstalledState) CheckDecided(ctx context.Context, c client.Client, chosen bool) error {
	if !l.Installed || l.Decided || chosen {
		return nil
	}
	list := &v1beta1.InstanceList{}
	if err := c.List(ctx, list); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("look for Instances: %w", err))
	}
	undecided, namespaces := &UndecidedError{}, map[string]bool{}
	for _, i := range list.Items {
		if i.Spec.ServiceAccountName == "" {
			undecided.Instances++
			namespaces[i.Namespace] = true
		}
	}
	if undecided.Namespaces = len(namespaces); undecided.Instances == 0 {
		return nil
	}
	return refuse(undecided)
}

// ForeignArgs returns the arguments of the manager's Deployment that init did not write and would remove.
func (l *InstalledState) ForeignArgs(ctx context.Context, c client.Client, objs []*unstructured.Unstructured) ([]string, error) {
	deployment := &appsv1.Deployment{}
	found, err := getIfPresent(ctx, c, deployment, l.Namespace, deploymentName)
	if err != nil || !found {
		return nil, err
	}
	known := map[string]bool{}
	for _, obj := range objs {
		if obj.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		for _, arg := range containers[0].(map[string]any)["args"].([]any) {
			known[flagOf(arg.(string))] = true
		}
	}
	var out []string
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name != "manager" {
			continue
		}
		out = append(out, slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool {
			return known[flagOf(arg)] ||
				ownArgs[flagOf(arg)]
		})...)
	}
	return out, nil
}

// ownArgs are flags that init writes for some options only.
var ownArgs = map[string]bool{"webhook-cert-rotation": true, "pipe-image": true, unpinnedPipeFlag: true, "metrics-secure": true,
	exploreCertFlag: true, exploreKeyFlag: true, logFormatFlag: true, "hub": true, "clusters-engine": true}

// hubArg is the argument by which the manager places Instances on clusters, and runs no plans.
const hubArg = "--hub"

// What carries the Instances of a hub to clusters: the values of clustersEngine, and of the manager's flag.
const (
	karmadaEngine   = "karmada"
	inventoryEngine = "inventory"
	engineArg       = "--clusters-engine="
)

// pipeImageArg is the manager's flag for the image of Pipe tasks.
const pipeImageArg = "--pipe-image="

// unpinnedPipeFlag is the manager's flag that lets this image have no digest.
const unpinnedPipeFlag = "allow-unpinned-pipe-image"

// insecureMetricsArg is the argument by which the manager serves its metrics to every client.
const insecureMetricsArg = "--metrics-secure=false"

func flagOf(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name
}
