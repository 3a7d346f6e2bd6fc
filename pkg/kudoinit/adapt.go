package kudoinit

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/settings"
)

// VersionAnnotation stands on what init installs, and holds the version of kudo that did.
const VersionAnnotation = "kudo.dev/version"

const (
	// webhookSecret holds the webhooks' serving certificate.
	webhookSecret = "kudo-webhook-server-secret"
	// certificate is cert-manager's, where that issues it; KUDO has the same name.
	certificate = "kudo-webhook-server-certificate"
	// injectAnnotation has cert-manager write the CA of a Certificate into a webhook configuration.
	injectAnnotation = "cert-manager.io/inject-ca-from"
)

// unwanted reports whether the options leave out an object of a manifest whose other objects are installed.
func unwanted(obj *unstructured.Unstructured, o Options) bool {
	switch obj.GetKind() {
	case "ServiceAccount":
		return o.Account != ServiceAccount && obj.GetName() == ServiceAccount
	case "ClusterRoleBinding":
		return obj.GetName() == RunAsRole && !o.Settings.RunAsEverywhere
	case "Secret":
		return o.CertManager // it makes the Secret, of a type of its own
	}
	return false
}

// isForPlans reports whether an object gives a manager the rights that it needs to run plans. A hub runs none, and has other roles.
func isForPlans(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return slices.Contains([]string{roleName, installRole, RunAsRole, keyring.SecretName}, obj.GetName())
	case "ServiceAccount":
		return obj.GetName() != ServiceAccount
	}
	return false
}

// adapt fits a manifest to the options.
func adapt(obj *unstructured.Unstructured, o Options) error {
	if obj.GetNamespace() == DefaultNamespace {
		obj.SetNamespace(o.Namespace)
	}
	annotate(obj, VersionAnnotation, o.Version)
	switch obj.GetKind() {
	case "Namespace":
		obj.SetName(o.Namespace)
	case "ClusterRoleBinding", "RoleBinding":
		subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
		for _, item := range subjects {
			subject := item.(map[string]any)
			if subject["namespace"] = o.Namespace; subject["name"] == ServiceAccount {
				subject["name"] = o.Account
			}
		}
		return unstructured.SetNestedSlice(obj.Object, subjects, "subjects")
	case "ClusterRole":
		return adaptRole(obj, o)
	case "ValidatingAdmissionPolicy":
		return adaptPolicy(obj, o)
	case "Certificate":
		return certify(obj, o)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		if o.CertManager {
			annotate(obj, injectAnnotation, o.Namespace+"/"+certificate)
		}
		return webhook(obj, o)
	case "Deployment":
		return deployment(obj, o)
	}
	return nil
}

// annotate sets an annotation, unless its value is empty.
func annotate(obj *unstructured.Unstructured, key, value string) {
	if value == "" {
		return
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// certify puts the namespace into the names that the certificate is for.
func certify(obj *unstructured.Unstructured, o Options) error {
	names, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "dnsNames")
	if err != nil {
		return err
	}
	there := func(name string) string {
		return strings.Replace(name, "."+DefaultNamespace+".", "."+o.Namespace+".", 1)
	}
	for i := range names {
		names[i] = there(names[i])
	}
	common, _, _ := unstructured.NestedString(obj.Object, "spec", "commonName")
	if err := unstructured.SetNestedField(obj.Object, there(common), "spec", "commonName"); err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(obj.Object, names, "spec", "dnsNames")
}

func webhook(obj *unstructured.Unstructured, o Options) error {
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, h := range hooks {
		config := h.(map[string]any)["clientConfig"].(map[string]any)
		service := config["service"].(map[string]any)
		service["namespace"] = o.Namespace
		if o.WebhookURL == "" {
			continue
		}
		address, err := local(o.WebhookURL)
		if err != nil {
			return err
		}
		config["url"] = address + fmt.Sprint(service["path"])
		delete(config, "service")
	}
	return unstructured.SetNestedSlice(obj.Object, hooks, "webhooks")
}

// local replaces a loopback address by localhost, since the certificate is made for names.
func local(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("webhook URL %q: must be like https://localhost:9443", address)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		port := u.Port()
		if u.Host = "localhost"; port != "" {
			u.Host = net.JoinHostPort("localhost", port)
		}
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

func deployment(obj *unstructured.Unstructured, o Options) error {
	pod := func(path ...string) []string { return append([]string{"spec", "template"}, path...) }
	containers, _, _ := unstructured.NestedSlice(obj.Object, pod("spec", "containers")...)
	c := containers[0].(map[string]any)
	if o.Image != "" {
		c["image"] = o.Image
	}
	if o.PullPolicy != "" {
		c["imagePullPolicy"] = o.PullPolicy
	}
	args := c["args"].([]any)
	args[0] = "--namespace=" + o.Namespace
	if o.CertManager {
		args = append(args, "--webhook-cert-rotation=false")
	}
	for _, arg := range pipeArgs(o.PipeImage, c["image"].(string)) {
		args = append(args, arg)
	}
	if o.InsecureMetrics {
		args = append(args, insecureMetricsArg)
	}
	if o.Values.Hub {
		args = append(args, hubArg)
		if o.Values.ClustersEngine != "" {
			args = append(args, engineArg+o.Values.ClustersEngine)
		}
	}
	c["args"] = args
	if err := o.Values.adaptContainer(c); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(obj.Object, o.Account, pod("spec", "serviceAccountName")...); err != nil {
		return err
	}
	if o.Replicas > 0 {
		if err := unstructured.SetNestedField(obj.Object, int64(o.Replicas), "spec", "replicas"); err != nil {
			return err
		}
	}
	if o.Version != "" { // another version is another manager, even if its image has the same name
		if err := unstructured.SetNestedField(obj.Object, o.Version, pod("metadata", "annotations", VersionAnnotation)...); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedSlice(obj.Object, containers, pod("spec", "containers")...); err != nil {
		return err
	}
	template, _, err := unstructured.NestedMap(obj.Object, "spec", "template")
	if err != nil {
		return err
	}
	if err := o.Values.adaptPod(template); err != nil {
		return err
	}
	return unstructured.SetNestedMap(obj.Object, template, "spec", "template")
}

// pipeArgs are the manager's arguments for the image of Pipe tasks: its own, unless another one is named. Its own image needs no digest: a
// user who can move its tag controls the manager anyway.
func pipeArgs(given, own string) []string {
	if given != "" && given != own {
		return []string{pipeImageArg + given}
	}
	if settings.CheckPipeImage(own) == nil {
		return []string{pipeImageArg + own}
	}
	return []string{pipeImageArg + own, "--" + unpinnedPipeFlag}
}
