package helmrelease

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
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
	if source := sourceLine.FindStringSubmatch(manifests); source != nil {
		out.Chart.Metadata.Name = source[1]
	}
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

// sourceLine is the comment that helm template writes before each object: the file of the chart, or of a chart in it.
var sourceLine = regexp.MustCompile(`(?m)^# Source: ([^/\s]+)/`)

// describe takes the versions of the chart from the labels of its first object. Without the comments of helm
// template, which name the chart, it takes the name from there, too.
func (c *Chart) describe(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	name, version, found := splitChart(labels[chartLabel])
	if !found || c.Metadata.Version != "" || c.Metadata.Name != "" && c.Metadata.Name != name {
		return
	}
	c.Metadata.Name, c.Metadata.Version, c.Metadata.AppVersion = name, version, labels[appVersionLabel]
}

// splitChart splits a label such as my-web-1.2.3-rc.1 at the first dash before a semantic version. A plus sign is an underscore in labels.
func splitChart(label string) (name, version string, found bool) {
	for at := range label {
		if label[at] != '-' {
			continue
		}
		version := strings.ReplaceAll(label[at+1:], "_", "+")
		if _, err := semver.StrictNewVersion(version); err == nil && at > 0 {
			return label[:at], version, true
		}
	}
	return "", "", false
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
