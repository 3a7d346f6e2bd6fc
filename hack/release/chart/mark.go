package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

// Marks stand for values in the objects, until the objects are text.
const (
	markNamespace      = "kudo-chart-namespace"
	markAccount        = "kudo-chart-service-account"
	markMode           = "kudo-chart-mode"
	markDefaultAccount = "kudo-chart-default-account"
	markAllowedHosts   = "kudo-chart-allowed-hosts"
	markCRDURL         = "kudo-chart-crd-url"
	markTokenRealms    = "kudo-chart-token-realms"
	// markPackagePolicy is the whole line of the ConfigMap, since its value is no text that could be marked.
	markPackagePolicy = settings.PackagePolicyKey + ": required"
	markRunAs         = "kudo-chart-run-as-everywhere"
	markService       = "kudo-chart-installed-by"
	markManagerImage  = "kudo-chart-manager-image"
	// markValue begins the number of an expression that is a whole value.
	markValue = "kudo-chart-value-"
	// markBlock begins the name of a template that is included in place of the line.
	markBlock = "kudo-chart-block-"
	// markImage and markImagePath stand in the files that are written by hand.
	markImage     = "kudo-chart-released-image"
	markImagePath = "kudo-chart-released-path"
)

const (
	// keepAnnotation lets Helm leave an object where it is when the release no longer has it.
	keepAnnotation = "helm.sh/resource-policy"
	// injectAnnotation is for cert-manager only.
	injectAnnotation = "cert-manager.io/inject-ca-from"
	// rulesAnnotation holds the digest of the rules of a ClusterRole that an administrator may narrow.
	rulesAnnotation = "kudo.dev/rules"
)

// action is what a mark becomes in a template.
type action struct {
	mark, expression string
	// condition, if there is one, keeps or drops the whole line.
	condition string
}

// actions are replaced in this order.
var actions = []action{
	{mark: markNamespace, expression: ".Release.Namespace"},
	{mark: markAccount, expression: `include "kudo.serviceAccount" .`},
	{mark: markMode, expression: ".Values.settings.mode"},
	{mark: markDefaultAccount, expression: ".Values.settings.defaultAccount"},
	{mark: markAllowedHosts, expression: `join "," .Values.settings.crdAllowedHosts`, condition: ".Values.settings.crdAllowedHosts"},
	{mark: markCRDURL, expression: ".Values.settings.defaultCRDURLTemplate", condition: ".Values.settings.defaultCRDURLTemplate"},
	{mark: markTokenRealms, expression: `join "," .Values.settings.ociTokenRealms`, condition: ".Values.settings.ociTokenRealms"},
	{mark: markPackagePolicy, expression: `"` + markPackagePolicy + `"`, condition: ".Values.settings.requirePackagePolicy"},
	{mark: markRunAs, expression: "toString .Values.settings.runAsEverywhere"},
	{mark: markService, expression: ".Release.Service"},
	{mark: markManagerImage, expression: `include "kudo.image" .`},
}

// dashboard is the ConfigMap with the dashboard.
const dashboard = "kudo-dashboard"

// condition returns the condition under which the chart has an object; empty for each that it always has.
func condition(obj *unstructured.Unstructured) string {
	switch kind, name := obj.GetKind(), obj.GetName(); {
	case kind == "ServiceAccount" && name == kudoinit.ServiceAccount:
		return `eq (include "kudo.serviceAccount" .) "` + kudoinit.ServiceAccount + `"`
	case kind == "ClusterRoleBinding" && name == kudoinit.RunAsRole:
		return ".Values.settings.runAsEverywhere"
	case kind == "ServiceMonitor", kind == "PrometheusRule", name == dashboard:
		return ".Values.monitoring"
	case kind == "NetworkPolicy":
		return ".Values.networkPolicy"
	case kind == "Issuer", kind == "Certificate":
		return ".Values.certManager"
	case kind == "Secret":
		return "not .Values.certManager" // cert-manager makes it, of a type of its own
	}
	return ""
}

// keeps reports whether an object stays when the release is uninstalled, as with init --remove: the CustomResourceDefinitions hold data,
// the policies guard it, and the ConfigMaps say what an administrator has decided.
func keeps(kind string) bool {
	return slices.Contains([]string{"CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ConfigMap"},
		kind)
}

// marker puts marks into an object where no option of kudoinit does, and replaces all marks in its text.
type marker struct {
	// values are the expressions that the marks of values become.
	values []string
}

// value returns a mark that becomes an expression.
func (m *marker) value(expression string) string {
	m.values = append(m.values, expression)
	return fmt.Sprintf("%s%d-", markValue, len(m.values)-1)
}

func (m *marker) mark(obj *unstructured.Unstructured) error {
	if keeps(obj.GetKind()) && obj.GetName() != dashboard {
		annotate(obj, keepAnnotation, "keep")
	}
	switch kind, name := obj.GetKind(), obj.GetName(); {
	case kind == "ClusterRoleBinding" && name == kudoinit.ServiceAccount:
		labels := obj.GetLabels()
		labels[kudoinit.ManagedByLabel] = markService
		obj.SetLabels(labels)
	case kind == "ConfigMap" && name == kudoinit.ValuesConfigMap:
		text := m.value("|\n    {{- include \"kudo.values\" . | nindent 4 }}")
		return unstructured.SetNestedField(obj.Object, text, "data", "values.yaml")
	case kind == "ConfigMap" && name == settings.ConfigMap:
		return unstructured.SetNestedField(obj.Object, markRunAs, "data", "run-as-everywhere")
	case kind == "ValidatingAdmissionPolicy":
		return m.markPolicy(obj)
	case kind == "Deployment":
		return m.markDeployment(obj)
	case kind == "ClusterRole" && obj.GetAnnotations()[rulesAnnotation] != "":
		return m.markRules(obj)
	}
	return nil
}

// markRules lets the default account decide about the digest of the rules.
func (m *marker) markRules(obj *unstructured.Unstructured) error {
	rules, err := json.Marshal(obj.Object["rules"])
	if err != nil {
		return err
	}
	annotations := obj.GetAnnotations()
	annotations[rulesAnnotation] = m.value(fmt.Sprintf("{{ `%s` | replace \"%s\" .Values.settings.defaultAccount | sha256sum }}",
		strings.ReplaceAll(string(rules), markDefaultAccount, defaultAccount), defaultAccount))
	obj.SetAnnotations(annotations)
	return nil
}

// defaultAccount stands for the default account in the text that the digest of rules is made of.
const defaultAccount = "DEFAULT_ACCOUNT"

// markPolicy lets the mode decide about the variable privileged.
func (m *marker) markPolicy(obj *unstructured.Unstructured) error {
	variables, _, err := unstructured.NestedSlice(obj.Object, "spec", "variables")
	if err != nil || variables == nil {
		return err
	}
	for _, item := range variables {
		v := item.(map[string]any)
		if v["name"] != "privileged" {
			continue
		}
		strict, err := json.Marshal(v["expression"])
		if err != nil {
			return err
		}
		v["expression"] = m.value(fmt.Sprintf(`{{ if eq .Values.settings.mode "privileged" }}"true"{{ else }}%s{{ end }}`, strict))
	}
	return unstructured.SetNestedSlice(obj.Object, variables, "spec", "variables")
}

// markDeployment puts marks in the place of what the values change.
func (m *marker) markDeployment(obj *unstructured.Unstructured) error {
	pod := []string{"spec", "template", "spec"}
	containers, _, err := unstructured.NestedSlice(obj.Object, append(pod, "containers")...)
	if err != nil || len(containers) == 0 {
		return errors.Join(errNoArguments, err)
	}
	c := containers[0].(map[string]any)
	args, _ := c["args"].([]any)
	end := slices.IndexFunc(args, func(arg any) bool { return strings.HasPrefix(fmt.Sprint(arg), "--pipe-image=") })
	if end < 0 {
		return errNoArguments
	}
	resources, err := json.Marshal(c["resources"])
	if err != nil {
		return err
	}
	priority, _, err := unstructured.NestedString(obj.Object, append(pod, "priorityClassName")...)
	if err != nil {
		return err
	}
	c["args"] = append(args[:end:end], markBlock+"arguments")
	mounts, _ := c["volumeMounts"].([]any)
	c["volumeMounts"] = append(mounts, markBlock+"mounts")
	volumes, _, err := unstructured.NestedSlice(obj.Object, append(pod, "volumes")...)
	if err != nil {
		return err
	}
	if err := m.markCache(volumes); err != nil {
		return err
	}
	env, _ := c["env"].([]any)
	c["env"] = append(env, markBlock+"proxy")
	c["image"] = markManagerImage
	c["imagePullPolicy"] = m.value(fmt.Sprintf(`{{ .Values.imagePullPolicy | default "%s" }}`, c["imagePullPolicy"]))
	c["resources"] = m.value(fmt.Sprintf(`{{ if kindIs "invalid" .Values.resources }}%s{{ else }}{{ toJson .Values.resources }}{{ end }}`,
		resources))
	for _, set := range []struct {
		value any
		path  []string
	}{
		{containers, append(pod, "containers")},
		{append(volumes, markBlock+"volumes"), append(pod, "volumes")},
		{m.value(`{{ include "kudo.replicas" . }}`), []string{"spec", "replicas"}},
		{m.value(fmt.Sprintf(`{{ .Values.priorityClassName | default %q | quote }}`, priority)), append(pod, "priorityClassName")},
		{"", []string{"spec", "template", "metadata", "labels", markBlock + "podLabels"}},
		{"", []string{"spec", "template", "metadata", "annotations", markBlock + "podAnnotations"}},
		{"", append(pod, markBlock+"podFields")},
	} {
		if err := unstructured.SetNestedField(obj.Object, set.value, set.path...); err != nil {
			return err
		}
	}
	return nil
}

// markCache lets a value replace the volume of the cache.
func (m *marker) markCache(volumes []any) error {
	for n, item := range volumes {
		volume := item.(map[string]any)
		if volume["name"] != "cache" {
			continue
		}
		source := maps.Clone(volume)
		delete(source, "name")
		text, err := json.Marshal(source)
		if err != nil {
			return err
		}
		volumes[n] = m.value(fmt.Sprintf("{{ merge (dict \"name\" \"cache\") (.Values.cacheVolume | default (fromJson `%s`)) | toJson }}", text))
	}
	return nil
}

// blockLine is a list element or a key that a block takes the place of.
var blockLine = regexp.MustCompile(`^( *)(?:- )?` + markBlock + `(\w+)(?:: "")?$`)

// template returns the template of an object's text: what looks like an action is text, and marks are actions.
func (m *marker) template(text, condition string) ([]byte, error) {
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "{{", `{{ "{{" }}`)) {
		out.WriteString(convert(strings.TrimSuffix(line, "\n")) + "\n")
	}
	converted := out.String()
	for n, value := range m.values {
		converted = strings.ReplaceAll(converted, fmt.Sprintf("%s%d-", markValue, n), value)
	}
	if _, rest, found := strings.Cut(converted, "kudo-chart-"); found {
		return nil, fmt.Errorf("the mark kudo-chart-%.20s is left", rest)
	}
	if condition != "" {
		converted = fmt.Sprintf("{{- if %s }}\n%s{{- end }}\n", condition, converted)
	}
	return []byte(converted), nil
}

// convert returns a line of a template.
func convert(line string) string {
	if parts := blockLine.FindStringSubmatch(line); parts != nil {
		return fmt.Sprintf(`{{- with include "kudo.%s" . }}{{ . | nindent %d }}{{ end }}`, parts[2], len(parts[1]))
	}
	for _, a := range actions {
		if !strings.Contains(line, a.mark) {
			continue
		}
		whole := regexp.MustCompile(`(^|[:-] )["']?(?:` + a.mark + `)["']?$`)
		line = whole.ReplaceAllString(line, "${1}{{ "+a.expression+" | quote }}")
		line = strings.ReplaceAll(line, a.mark, "{{ "+a.expression+" }}")
		if a.condition != "" {
			line = "{{- if " + a.condition + " }}\n" + line + "\n{{- end }}"
		}
	}
	if strings.HasPrefix(strings.TrimSpace(line), injectAnnotation+":") {
		line = "{{- if .Values.certManager }}\n" + line + "\n{{- end }}"
	}
	return line
}
