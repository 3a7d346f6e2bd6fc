package kudoinit

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/text"
)

// State is what a check found.
type State string

const (
	// OK means that the checked objects are as init leaves them.
	OK State = "OK"
	// Warning means that they are not as init leaves them, which may be intended.
	Warning State = "WARNING"
	// Failed means that kudo cannot work as it should.
	Failed State = "FAILED"
)

// Finding is the result of a check.
type Finding struct {
	// Check names the check.
	Check string `json:"check"`
	State State  `json:"state"`
	// Message says what was found, and Remedy what to do about it; that is empty for OK.
	Message string `json:"message,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// again is the remedy of most findings: init restores the objects that it has installed.
const again = "kubectl kudo init --upgrade"

// inspection is what the checks share.
type inspection struct {
	client client.Client
	config *rest.Config
	clock  clock.PassiveClock
	live   *InstalledState
	// version of kudo that checks.
	version string
	// wanted are the objects that init would install.
	wanted []*unstructured.Unstructured
}

// Verify checks an installation. It changes nothing, but for a Namespace, and an Installation of nothing where there is no other, which
// it makes to try the policies on, and deletes. An error is a cluster that cannot be asked.
func Verify(ctx context.Context, c client.Client, config *rest.Config, clock clock.PassiveClock, version string) ([]Finding, error) {
	live, err := ReadState(ctx, c)
	if err != nil {
		return nil, err
	}
	if !live.Installed {
		return []Finding{{"installation", Failed, "kudo is not installed on this cluster: its CustomResourceDefinitions are missing",
			"kubectl kudo init"}}, nil
	}
	wanted, err := Objects(live.Options)
	if err != nil {
		return nil, err
	}
	if live.Release != nil {
		wanted = chartObjects(wanted)
	}
	i := &inspection{client: c, config: config, clock: clock, live: live, version: version, wanted: wanted}
	var out []Finding
	for _, check := range []func(context.Context) []Finding{i.installation, i.mode, i.objects, i.rights, i.historyKey, i.policies, i.webhooks,
		i.manager} {
		out = append(out, check(ctx)...)
	}
	if live.Release != nil {
		live.Release.adaptFindings(out)
	}
	return out, nil
}

// installation compares versions.
func (i *inspection) installation(context.Context) []Finding {
	found := Finding{Check: "version", State: OK, Message: fmt.Sprintf("kudo %s in namespace %s", orUnknown(i.live.Version), i.live.Namespace)}
	switch {
	case i.live.Predecessor != "":
		return []Finding{{"version", Failed, "KUDO's manager still runs in namespace " + i.live.Predecessor, again}}
	case i.live.Version == i.version:
	case Older(i.version, i.live.Version):
		found.State, found.Remedy = Warning, "use the kubectl plugin of that version"
		found.Message += ", which is newer than this command, " + i.version
	default:
		found.State, found.Remedy = Warning, again
		found.Message += ", and this command is " + orUnknown(i.version)
	}
	return []Finding{found}
}

// mode says with whose rights plans run.
func (i *inspection) mode(ctx context.Context) []Finding {
	found := Finding{Check: "mode", State: OK, Message: string(i.live.Settings.Mode)}
	spaces := &corev1.NamespaceList{}
	if err := i.client.List(ctx, spaces, client.MatchingLabels{v1beta1.PrivilegedLabel: "true"}); err != nil {
		return []Finding{{found.Check, Failed, "namespaces cannot be read: " + err.Error(), "use an administrator's kubeconfig"}}
	}
	var names []string
	for _, ns := range spaces.Items {
		names = append(names, ns.Name)
	}
	switch {
	case i.live.SettingsError != nil:
		return []Finding{{found.Check, Failed, i.live.SettingsError.Error(), "kubectl edit configmap " + settings.ConfigMap + " -n " +
			i.live.Namespace}}
	case i.live.Settings.Mode == settings.Privileged:
		found.State, found.Remedy = Warning, "give Instances accounts (kubectl kudo account create), then "+again+" --strict"
		found.Message += ": plans of Instances that name no ServiceAccount run with the rights of kudo, so that whoever may create Instances " +
			"is an administrator of the cluster"
	case len(names) > 0:
		found.State, found.Remedy = Warning, "give Instances there accounts (kubectl kudo account create), then take the label "+
			v1beta1.PrivilegedLabel+" off"
		found.Message += ", but for privileged namespaces: " + text.List(names, shown)
	}
	return []Finding{found}
}

func orUnknown(version string) string {
	if version == "" {
		return "of unknown version"
	}
	return version
}

// objects compares each object with what init would make of it.
func (i *inspection) objects(ctx context.Context) []Finding {
	var out []Finding
	for _, obj := range i.wanted {
		out = append(out, i.object(ctx, obj))
	}
	return out
}

func (i *inspection) object(ctx context.Context, wanted *unstructured.Unstructured) Finding {
	found := Finding{Check: lowerKind(wanted), State: OK}
	fail := func(message, remedy string) Finding {
		found.State, found.Message, found.Remedy = Failed, message, remedy
		return found
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := i.client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case absent(err):
		return fail("is missing", again)
	case err != nil:
		return fail("cannot be read: "+err.Error(), "use an administrator's kubeconfig")
	case live.GetDeletionTimestamp() != nil:
		return fail(fmt.Sprintf("is being deleted (finalizers %v)", live.GetFinalizers()), "wait until it is deleted, and run "+again)
	}
	if result := health.Check(live); result.State != health.Ready {
		return fail(result.Message, "kubectl describe "+describe(wanted))
	}
	if narrowed(live) {
		found.State, found.Message, found.Remedy = Warning, "has other rules than init gives it, which init leaves as they are",
			"kubectl delete clusterrole "+installRole+", and "+again+", give it those again"
		return found
	}
	applied, lost := wanted.DeepCopy(), 0
	if wanted.GetKind() == "ClusterRole" {
		if lost, err = keepRules(applied, live, parseRules(i.live.rules)); err != nil {
			return fail("cannot be compared with what init installs: "+err.Error(), again)
		}
	}
	if wanted.GetKind() == "ConfigMap" && wanted.GetName() == ValuesConfigMap {
		keepText(applied, live) // the Values were read from this text, which may have another form
	}
	annotate(applied, createdAnnotation, live.GetAnnotations()[createdAnnotation]) // as Apply does
	err = i.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager), client.ForceOwnership,
		client.DryRunAll)
	if err != nil {
		return fail("cannot be compared with what init installs: "+err.Error(), again)
	}
	if changed := differences(live.Object, applied.Object); len(changed) > 0 {
		fail("differs from what init installs in "+strings.Join(changed, ", "), again)
		if wanted.GetKind() == "Deployment" || wanted.GetKind() == "Namespace" {
			found.State = Warning // these are tuned
		}
	} else if lost > 0 {
		found.State, found.Message = Warning, fmt.Sprintf("lacks %d rights that init has given it, and init does not give them back", lost)
		found.Remedy = renewRole(wanted.GetName())
	}
	return found
}

func lowerKind(obj *unstructured.Unstructured) string {
	return strings.ToLower(obj.GetKind()) + " " + obj.GetName()
}

func describe(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return lowerKind(obj)
	}
	return lowerKind(obj) + " -n " + obj.GetNamespace()
}

// shown is how many fields are named.
const shown = 3

// differences names the fields in which an object and a dry run of what should be applied to it differ.
func differences(live, applied map[string]any) []string {
	var out []string
	for key := range union(live, applied) {
		switch key {
		case "status", "metadata", "apiVersion", "kind":
		default:
			out = append(out, compare(key, live[key], applied[key])...)
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		a, _, _ := unstructured.NestedMap(live, "metadata", key)
		b, _, _ := unstructured.NestedMap(applied, "metadata", key)
		out = append(out, compare("metadata."+key, any(a), any(b))...)
	}
	slices.Sort(out)
	if len(out) > shown {
		out = append(out[:shown:shown], fmt.Sprintf("%d more fields", len(out)-shown))
	}
	return out
}

func union(a, b map[string]any) map[string]bool {
	out := map[string]bool{}
	for key := range a {
		out[key] = true
	}
	for key := range b {
		out[key] = true
	}
	return out
}

func compare(path string, a, b any) []string {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	if isMap && areMaps {
		var out []string
		for key := range union(x, y) {
			out = append(out, compare(path+"."+key, x[key], y[key])...)
		}
		return out
	}
	list, isList := a.([]any)
	other, areLists := b.([]any)
	if isList && areLists && len(list) == len(other) {
		var out []string
		for n := range list {
			out = append(out, compare(fmt.Sprintf("%s[%d]", path, n), list[n], other[n])...)
		}
		return out
	}
	if reflect.DeepEqual(a, b) || empty(a) && empty(b) {
		return nil
	}
	return []string{path}
}

func empty(v any) bool {
	m, isMap := v.(map[string]any)
	return v == nil || isMap && len(m) == 0
}

// served reports whether kudo's kinds can be asked for: without them, most checks make no sense.
func (i *inspection) served(kind string) bool {
	_, err := i.client.RESTMapper().RESTMapping(groupKind(kind))
	return !meta.IsNoMatchError(err)
}

// CountFailed counts the findings that have failed.
func CountFailed(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.State == Failed {
			n++
		}
	}
	return n
}
