package kudoinit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// refusal answers all requests for a kind with "forbidden".
func refusal(kind string) apitest.Hook {
	return func(r apitest.Request) (any, error) {
		if r.Kind == kind {
			return nil, apierrors.NewForbidden(corev1.Resource("x"), r.Name, errors.New("no"))
		}
		return nil, nil
	}
}

// TestReadSettings has clusters whose settings a command reads, and those that it may not read.
func TestReadSettings(t *testing.T) {
	config := func(namespace, mode string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: gen.Meta(namespace, settings.ConfigMap), Data: map[string]string{"mode": mode}}
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", managerBinding), Subjects: []rbacv1.Subject{
		{Kind: rbacv1.UserKind, Name: "jane"}, {Kind: rbacv1.ServiceAccountKind, Namespace: "elsewhere", Name: "boss"}, {Kind: rbacv1.ServiceAccountKind, Namespace: "third", Name: "x"}}}
	for name, tc := range map[string]struct {
		reason   string
		objects  []client.Object
		refused  string
		mode     settings.Mode
		known    bool
		requests int
	}{
		"Default":   {"the default namespace, by one request", []client.Object{config(DefaultNamespace, "privileged")}, "", settings.Privileged, true, 1},
		"Elsewhere": {"the namespace of the manager", []client.Object{config("elsewhere", "privileged"), binding}, "", settings.Privileged, true, 3},
		"None":      {"no settings are the default", nil, "", settings.Strict, true, 2},
		"Wrong":     {"a wrong value is the strict choice", []client.Object{config(DefaultNamespace, "loose")}, "", settings.Strict, true, 1},
		"Forbidden": {"settings that may not be read are not known", []client.Object{config(DefaultNamespace, "privileged")}, "ConfigMap", settings.Strict, false, 1},
		"NoBinding": {"a binding that may not be read leaves the default namespace", []client.Object{config("elsewhere", "privileged"), binding}, "ClusterRoleBinding", settings.Strict, true, 2},
	} {
		server := apitest.Start(t, tc.objects...)
		server.Before(refusal(tc.refused))
		now, known := ReadSettings(t.Context(), server.Client())
		if requests := server.Requests(); now.Mode != tc.mode || known != tc.known || len(requests) != tc.requests {
			t.Errorf("%s: %s: mode %s, known %v, requests %q", name, tc.reason, now.Mode, known, requests)
		}
	}
	server := apitest.Start(t, binding)
	if got := ManagerAccount(t.Context(), server.Client()); got != (types.NamespacedName{Namespace: "elsewhere", Name: "boss"}) {
		t.Errorf("the manager is the first ServiceAccount of the binding, not %s", got)
	}
}

// TestPrivilegedNamespace checks that a Namespace that cannot be read counts as privileged, and one that does not exist does not.
func TestPrivilegedNamespace(t *testing.T) {
	space := func(value string) client.Object {
		ns := &corev1.Namespace{ObjectMeta: gen.Meta("", "ns")}
		ns.Labels = map[string]string{v1beta1.PrivilegedLabel: value}
		return ns
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		refused string
		want    bool
	}{
		"Label":     {"the label", []client.Object{space("true")}, "", true},
		"OtherWord": {"another value than true", []client.Object{space("yes")}, "", false},
		"Absent":    {"a Namespace that does not exist", nil, "", false},
		"Forbidden": {"one that may not be read may have the label", []client.Object{space("no")}, "Namespace", true},
	} {
		server := apitest.Start(t, tc.objects...)
		server.Before(refusal(tc.refused))
		if got := IsPrivilegedNamespace(t.Context(), server.Client(), "ns"); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
}

// TestDefaultAccount checks with whose rights Instances run that name no account (P11).
func TestDefaultAccount(t *testing.T) {
	config := func(data map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: gen.Meta(DefaultNamespace, settings.ConfigMap), Data: data}
	}
	space := &corev1.Namespace{ObjectMeta: gen.Meta("", "ns")}
	privileged := space.DeepCopy()
	privileged.Labels = map[string]string{v1beta1.PrivilegedLabel: "true"}
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		refused string
		want    string
		known   bool
	}{
		"Strict":     {"the account of the namespace", []client.Object{config(nil), space}, "", "ns/kudo", true},
		"Named":      {"or the one that the administrator names", []client.Object{config(map[string]string{"default-account": "robot"}), space}, "", "ns/robot", true},
		"Privileged": {"in a privileged namespace, kudo's own", []client.Object{config(nil), privileged}, "", "kudo-system/kudo-installer", true},
		"Mode":       {"in the privileged mode, everywhere", []client.Object{config(map[string]string{"mode": "privileged"}), space}, "", "kudo-system/kudo-installer", true},
		"NoSpace":    {"a Namespace that does not exist yet is not privileged", []client.Object{config(nil)}, "", "ns/kudo", true},
		"Settings":   {"a user who may not read the settings does not know", []client.Object{config(nil), space}, "ConfigMap", "ns/kudo", false},
		"Label":      {"nor one who may not read the Namespace", []client.Object{config(nil), privileged}, "Namespace", "ns/kudo", false},
	} {
		server := apitest.Start(t, tc.objects...)
		server.Before(refusal(tc.refused))
		now, readable := ReadSettings(t.Context(), server.Client())
		account, own, known := DefaultAccount(t.Context(), server.Client(), now, "ns")
		if account.String() != tc.want || (readable && known) != tc.known || own != (account.Name == settings.InstallerAccount) {
			t.Errorf("%s: %s: %s, of kudo %t, settings known %t, namespace known %t", name, tc.reason, account, own, readable, known)
		}
	}
}

// TestCheckVersion has installations over what is there: each refusal ends with the remedy.
func TestCheckVersion(t *testing.T) {
	there := InstalledState{Options: Options{Namespace: "kudo-system", Version: "v1.2.0"}, Installed: true, Bound: true}
	for name, tc := range map[string]struct {
		reason             string
		change             func(*InstalledState)
		options            Options
		upgrade, downgrade bool
		want               string
	}{
		"New":       {"nothing is there", func(l *InstalledState) { *l = InstalledState{} }, Options{Version: "v1.0.0"}, false, false, ""},
		"NoUpgrade": {"of nothing there is no upgrade", func(l *InstalledState) { *l = InstalledState{} }, Options{}, true, false, "kudo is not installed on this cluster, so there is nothing to upgrade: run kubectl kudo init"},
		"Same":      {"the same version again", nil, Options{Namespace: "kudo-system", Version: "v1.2.0"}, false, false, ""},
		"Newer":     {"a newer version", nil, Options{Namespace: "kudo-system", Version: "v1.4.0"}, true, false, ""},
		"TooOld":    {"a version that does not read what is there", nil, Options{Namespace: "kudo-system", Version: "v1.10.0"}, true, true, "kudo v1.2.0 is installed, and this is v1.10.0, which continues what the 2 minor versions before it have written: upgrade to v1.4 first"},
		"Older":     {"an older version", nil, Options{Namespace: "kudo-system", Version: "v1.1.9"}, true, false, "kudo v1.2.0 is installed, and this is v1.1.9: an older version may not understand what a newer one has written. Use the newer command, or --allow-downgrade"},
		"Allowed":   {"an older version that the user allows", nil, Options{Namespace: "kudo-system", Version: "v1.1.9"}, true, true, ""},
		"Unknown":   {"versions that cannot be compared", nil, Options{Namespace: "kudo-system", Version: "dev"}, true, false, ""},
		"Namespace": {"another namespace", nil, Options{Namespace: "other", Version: "v1.2.0"}, true, true, "kudo is installed in namespace kudo-system, and only one can work on a cluster: use -n kudo-system, or remove that one with kubectl kudo init --remove"},
		"CRDs":      {"the definitions have no namespace", nil, Options{Namespace: "other", Version: "v1.2.0", CRDsOnly: true}, false, false, ""},
		"Unbound":   {"no account is bound, so that no manager works there", func(l *InstalledState) { l.Bound = false }, Options{Namespace: "other", Version: "v1.2.0"}, false, false, ""},
		"KUDO":      {"KUDO is there", func(l *InstalledState) { l.Predecessor = "old" }, Options{Namespace: "kudo-system"}, false, false, "KUDO's manager runs in namespace old: kubectl kudo init --upgrade replaces it, and continues with its Instances"},
		"Replace":   {"which an upgrade replaces", func(l *InstalledState) { l.Predecessor = "old" }, Options{Namespace: "kudo-system"}, true, false, ""},
	} {
		live := there
		if tc.change != nil {
			tc.change(&live)
		}
		if err := live.CheckVersion(tc.options, tc.upgrade, tc.downgrade); fmt.Sprint(err) != tc.want && (err != nil || tc.want != "") {
			t.Errorf("%s: %s: %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}

// TestCheckDecided counts the Instances for which an administrator must decide, and no others.
func TestCheckDecided(t *testing.T) {
	instance := func(namespace, name, account string) client.Object {
		i := gen.Instance(name, gen.Version(namespace, "v"), nil)
		i.Spec.ServiceAccountName = account
		return i
	}
	server := apitest.Start(t, instance("a", "one", ""), instance("a", "two", ""), instance("b", "three", ""), instance("c", "four", "robot"))
	const want = "3 Instances in 2 namespaces write with the rights of kudo: --strict stops their next plans until they have accounts " +
		"(kubectl kudo account create), --privileged keeps it so"
	for name, tc := range map[string]struct {
		reason string
		live   InstalledState
		chosen bool
		want   string
	}{
		"Undecided": {"a cluster without settings", InstalledState{Installed: true}, false, want},
		"Chosen":    {"the user decides now", InstalledState{Installed: true}, true, ""},
		"Decided":   {"an administrator has decided", InstalledState{Installed: true, Decided: true}, false, ""},
		"New":       {"a new installation is strict", InstalledState{}, false, ""},
	} {
		if err := tc.live.CheckDecided(t.Context(), server.Client(), tc.chosen); fmt.Sprint(err) != tc.want && (err != nil || tc.want != "") {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	server.Before(refusal("Instance"))
	if err := (&InstalledState{Installed: true}).CheckDecided(t.Context(), server.Client(), false); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "look for Instances: ") {
		t.Errorf("Instances that cannot be listed are not none: %v", err)
	}
}

// TestForeignArgs names the arguments that an upgrade would remove: those that init writes, for whatever options, are not among them.
func TestForeignArgs(t *testing.T) {
	objs, err := Objects(Options{Image: "manager@sha256:1"})
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: gen.Meta("elsewhere", deploymentName)}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "sidecar", Args: []string{"--theirs"}},
		{Name: "manager", Args: []string{"--namespace=x", "--pipe-image=y", "--metrics-secure=false", "--webhook-cert-rotation=false", "--allow-unpinned-pipe-image", "--zap-log-level=debug", "-v=3"}},
	}
	server := apitest.Start(t)
	live := &InstalledState{Options: Options{Namespace: "elsewhere"}}
	if got, err := live.ForeignArgs(t.Context(), server.Client(), objs); got != nil || err != nil {
		t.Errorf("without a Deployment: %q, %v", got, err)
	}
	server.Put(deployment)
	got, err := live.ForeignArgs(t.Context(), server.Client(), objs)
	if diff := cmp.Diff([]string{"--zap-log-level=debug", "-v=3"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got := deployment.Spec.Template.Spec.Containers[1].Args; len(got) != 7 {
		t.Errorf("the arguments of the Deployment were changed: %q", got)
	}
}

// install compares objects with what is there, and applies the change.
func install(t *testing.T, c client.Client, objs []*unstructured.Unstructured, progress Progress) error {
	t.Helper()
	change, err := (&InstalledState{}).Compare(t.Context(), c, objs, Values{}, false)
	if err != nil {
		t.Fatal(err)
	}
	return change.Apply(t.Context(), c, progress)
}

// TestApply checks what init writes: a Namespace that it makes is its own, and a role that an administrator has changed stays.
func TestApply(t *testing.T) {
	installed, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	of := func(kind, name string) *unstructured.Unstructured {
		return installed[slices.IndexFunc(installed, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == kind && obj.GetName() == name })].DeepCopy()
	}
	narrow := of("ClusterRole", installRole)
	narrow.Object["rules"] = []any{}
	unmarked := narrow.DeepCopy()
	unmarked.SetAnnotations(nil)
	foreign := of("Namespace", DefaultNamespace)
	foreign.SetAnnotations(map[string]string{"owner": "team"})
	for name, tc := range map[string]struct {
		reason  string
		object  *unstructured.Unstructured
		live    client.Object
		told    []string
		created string
		rules   bool
	}{
		"Namespace": {"a Namespace that init makes", of("Namespace", DefaultNamespace), nil, []string{"Namespace true"}, manager, false},
		"Foreign":   {"one that was there is not init's to remove", of("Namespace", DefaultNamespace), foreign, []string{"Namespace false"}, "", false},
		"Role":      {"the role of install plans", of("ClusterRole", installRole), nil, []string{"ClusterRole true"}, "", true},
		"Narrowed":  {"one that an administrator has narrowed", of("ClusterRole", installRole), narrow, nil, "", false},
		"Unmarked":  {"one without a digest is of an older kudo", of("ClusterRole", installRole), unmarked, []string{"ClusterRole false"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			if tc.live != nil {
				server.Put(tc.live)
			}
			before := tc.object.DeepCopy()
			var told []string
			err := install(t, server.Client(), []*unstructured.Unstructured{tc.object}, func(obj *unstructured.Unstructured, created bool) {
				told = append(told, fmt.Sprintf("%s %v", obj.GetKind(), created))
			})
			if diff := cmp.Diff(tc.told, told); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			after := server.Get(tc.object)
			rules, _, _ := unstructured.NestedSlice(after.Object, "rules")
			if got := after.GetAnnotations()[createdAnnotation]; got != tc.created || len(rules) > 0 != tc.rules {
				t.Errorf("%s: made by %q, with %d rules", tc.reason, got, len(rules))
			}
			if diff := cmp.Diff(before, tc.object); diff != "" {
				t.Errorf("%s: the object was changed (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	server := apitest.Start(t)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "apply" {
			return nil, apierrors.NewForbidden(corev1.Resource("namespaces"), r.Name, errors.New("no"))
		}
		return nil, nil
	})
	err = install(t, server.Client(), installed[:2], func(obj *unstructured.Unstructured, _ bool) { t.Errorf("%s is said to be applied", obj.GetName()) })
	if err == nil || !strings.HasPrefix(err.Error(), installed[0].GetKind()+" "+installed[0].GetName()+": ") {
		t.Errorf("the object is named: %v", err)
	}
}

// TestDifferences names the fields in which an object differs from what init makes of it.
func TestDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		live, applied map[string]any
		want          []string
	}{
		"Same":        {"the same", map[string]any{"spec": map[string]any{"a": int64(1)}}, map[string]any{"spec": map[string]any{"a": int64(1)}}, nil},
		"Status":      {"the status does not count", map[string]any{"status": "a", "kind": "A"}, map[string]any{"status": "b", "kind": "B"}, nil},
		"Field":       {"a field at any depth", map[string]any{"spec": map[string]any{"a": map[string]any{"b": "x"}}}, map[string]any{"spec": map[string]any{"a": map[string]any{"b": "y"}}}, []string{"spec.a.b"}},
		"Removed":     {"a field that is missing, or one more", map[string]any{"spec": map[string]any{"a": "x"}}, map[string]any{"spec": map[string]any{"b": "x"}}, []string{"spec.a", "spec.b"}},
		"List":        {"an item of a list", map[string]any{"rules": []any{"a", "b"}}, map[string]any{"rules": []any{"a", "c"}}, []string{"rules[1]"}},
		"Length":      {"lists of different lengths as a whole", map[string]any{"rules": []any{"a"}}, map[string]any{"rules": []any{"a", "b"}}, []string{"rules"}},
		"Empty":       {"an empty map is none", map[string]any{"spec": map[string]any{"a": map[string]any{}}}, map[string]any{"spec": map[string]any{}}, nil},
		"Labels":      {"labels and annotations of the metadata, and nothing else of them", map[string]any{"metadata": map[string]any{"uid": "1", "labels": map[string]any{"app": "a"}}}, map[string]any{"metadata": map[string]any{"uid": "2", "labels": map[string]any{"app": "b"}, "annotations": map[string]any{"n": "x"}}}, []string{"metadata.annotations.n", "metadata.labels.app"}},
		"MoreLabels":  {"a map that one of both lacks", map[string]any{"spec": map[string]any{"a": map[string]any{"b": "x"}}}, map[string]any{"spec": "x"}, []string{"spec"}},
		"Many":        {"three fields are named", map[string]any{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1"}, map[string]any{}, []string{"a", "b", "c", "2 more fields"}},
		"Three":       {"exactly three", map[string]any{"a": "1", "b": "1", "c": "1"}, map[string]any{}, []string{"a", "b", "c"}},
		"DifferentNo": {"a number is no text", map[string]any{"a": int64(1)}, map[string]any{"a": "1"}, []string{"a"}},
	} {
		if diff := cmp.Diff(tc.want, differences(tc.live, tc.applied)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestLookWebhooks reads where the webhooks are served, and who issues their certificate.
func TestLookWebhooks(t *testing.T) {
	url, other := "https://localhost:9443/validate-kudo-dev-v1beta1-instance", "https://localhost:9443/validate-kudo-dev-v1beta1-operatorversion"
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		client      admissionregistrationv1.WebhookClientConfig
		url         string
		certManager bool
	}{
		"Service":     {"a Service of the cluster", nil, admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{}}, "", false},
		"URL":         {"a manager outside of it", nil, admissionregistrationv1.WebhookClientConfig{URL: &url}, "https://localhost:9443", false},
		"CertManager": {"cert-manager", map[string]string{injectAnnotation: "kudo-system/x"}, admissionregistrationv1.WebhookClientConfig{}, "", true},
	} {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validating, Annotations: tc.annotations}}
		config.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "a", ClientConfig: tc.client}}
		if tc.client.URL != nil {
			config.Webhooks = append(config.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "b", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &other}})
		}
		live, err := ReadState(t.Context(), apitest.Start(t, config).Client())
		if err != nil || live.WebhookURL != tc.url || live.CertManager != tc.certManager {
			t.Errorf("%s: %s: %q, %v, error %v", name, tc.reason, live.WebhookURL, live.CertManager, err)
		}
	}
}

// TestInUse checks that the error names the objects that prevent the removal, and the effect of each choice.
func TestInUse(t *testing.T) {
	const head, stay = "kudo is in use: there are ", ". Uninstall them first (kubectl kudo uninstall, uninstall-version), or give --instances=uninstall, which does that for all of them, or --instances=keep: "
	for name, tc := range map[string]struct {
		reason string
		used   InUse
		want   string
	}{
		"Instances": {"Instances", InUse{Instances: []string{"a/b"}}, head + "Instances a/b" + stay + "they and all that they hold stay, and wait for the next kubectl kudo init"},
		"Both":      {"and Installations", InUse{Instances: []string{"a/b"}, Installations: []string{"OperatorVersion a/v"}}, head + "Instances a/b, and Installations of OperatorVersion a/v" + stay + "they and all that they hold stay, and wait for the next kubectl kudo init"},
		"CRDs":      {"the definitions go, too", InUse{Installations: []string{"Instance a/b"}, CRDs: true}, head + "Installations of Instance a/b" + stay + "all that they hold stays, and is no longer kudo's; they themselves go"},
	} {
		if got := tc.used.Error(); got != tc.want {
			t.Errorf("%s: %s:\n%s\nwant\n%s", name, tc.reason, got, tc.want)
		}
	}
	server := apitest.Start(t, usedBy("1")...)
	var used *InUse
	err := (&Remover{Client: server.Client(), Scanner: newScanner(t, server)}).Remove(t.Context())
	if !errors.As(err, &used) || !cmp.Equal(used.Instances, []string{"ns/web"}) {
		t.Errorf("what is in use is not removed: %v", err)
	}
	for _, request := range server.Requests() {
		if !strings.HasPrefix(request, "get") && !strings.HasPrefix(request, "list") {
			t.Errorf("a refused removal asks for %s", request)
		}
	}
}
