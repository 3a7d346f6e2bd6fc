package helmrelease

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/yamldoc"
)

// Annotations by which a template says when Helm creates an object.
const (
	// hookKey lists the events at which Helm creates the object.
	hookKey = "helm.sh/hook"
	// hookWeightKey orders the hooks of an event.
	hookWeightKey = "helm.sh/hook-weight"
	// hookPoliciesKey lists when Helm deletes the object.
	hookPoliciesKey = "helm.sh/hook-delete-policy"
)

// Labels of the objects of most charts.
const (
	// chartLabel is name and version of the chart, joined by a dash.
	chartLabel = "helm.sh/chart"
	// appVersionLabel is the version of the application.
	appVersionLabel = "app.kubernetes.io/version"
)

// Rendered returns the release that Helm would make of the objects of a chart, as helm template prints them. Its revision is 0, since it
// was not installed.
func Rendered(name, namespace, manifests string) (*Release, error) {
	if len(manifests) > MaxContent {
		return nil, fmt.Errorf("the manifests have more than %d bytes", MaxContent)
	}
	var b budget
	objs, err := b.parseObjects("the manifests", manifests)
	if err != nil {
		return nil, err
	}
	out := &Release{Name: name, Namespace: namespace}
	var all strings.Builder
	for _, obj := range objs {
		out.Chart.describe(obj)
		content, err := yamldoc.Marshal(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", describe(obj), err)
		}
		if obj.GetAnnotations()[hookKey] == "" {
			all.WriteString("---\n" + content)
			continue
		}
		h, err := hookOf(obj, content)
		if err != nil {
			return nil, err
		}
		if out.Hooks = append(out.Hooks, h); len(out.Hooks) > maxHooks {
			return nil, fmt.Errorf("more than %d hooks", maxHooks)
		}
	}
	if out.Manifest = all.String(); out.Manifest == "" && len(out.Hooks) == 0 {
		return nil, fmt.Errorf("the manifests have no object: pass what helm template prints")
	}
	return out, nil
}

// describe takes name and versions of the chart from the labels of an object, if no object before has said them.
func (c *Chart) describe(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	if at := strings.LastIndex(labels[chartLabel], "-"); at > 0 && c.Metadata.Name == "" {
		c.Metadata.Name, c.Metadata.Version = labels[chartLabel][:at], strings.ReplaceAll(labels[chartLabel][at+1:], "_", "+")
	}
	if c.Metadata.AppVersion == "" {
		c.Metadata.AppVersion = labels[appVersionLabel]
	}
}

// hookOf reads the annotations of a hook. Helm deletes a hook before it creates it anew, unless the hook has a policy.
func hookOf(obj *unstructured.Unstructured, content string) (Hook, error) {
	annotations := obj.GetAnnotations()
	h := Hook{Name: obj.GetName(), Manifest: content, Events: fieldsOf(annotations[hookKey]),
		DeletePolicies: fieldsOf(annotations[hookPoliciesKey])}
	if len(h.DeletePolicies) == 0 {
		h.DeletePolicies = Policies{beforeCreation}
	}
	weight := annotations[hookWeightKey]
	if weight == "" {
		return h, nil
	}
	var err error
	if h.Weight, err = strconv.Atoi(weight); err != nil {
		return Hook{}, fmt.Errorf("%s: annotation %s is %q: set a whole number", describe(obj), hookWeightKey, plain(weight))
	}
	return h, nil
}

// fieldsOf splits a list of an annotation.
func fieldsOf(list string) (out []string) {
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}
