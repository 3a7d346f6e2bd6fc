package controllers

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/settings"
)

// reader is a client in memory whose reads fail while fail is set.
type reader struct {
	client.Client
	fail error
}

func newReader(objects ...client.Object) *reader {
	r := &reader{}
	r.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if r.fail != nil {
				return r.fail
			}
			return inner.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if r.fail != nil {
				return r.fail
			}
			return inner.List(ctx, list, opts...)
		},
	}).Build()
	return r
}

func settingsMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kudo-system", Name: settings.ConfigMap}, Data: data}
}

func settingsOf(r client.Reader) *currentSettings {
	return &currentSettings{reader: r, key: types.NamespacedName{Namespace: "kudo-system", Name: settings.ConfigMap}, parsed: settings.Default()}
}

// TestCurrentSettings checks that the settings follow the ConfigMap, and that what is missing, wrong or unread is the strict choice.
func TestCurrentSettings(t *testing.T) {
	privileged := settings.Settings{Mode: settings.Privileged, DefaultAccount: "runner"}
	object := settingsMap(map[string]string{settings.ModeKey: "privileged", settings.DefaultAccountKey: "runner"})
	r := newReader()
	current := settingsOf(r)
	for _, step := range []struct {
		reason string
		do     func(context.Context) error
		want   settings.Settings
	}{
		{"there is no ConfigMap", nil, settings.Default()},
		{"it is created", func(ctx context.Context) error { return r.Create(ctx, object) }, privileged},
		{"it has not changed", nil, privileged},
		{"it cannot be read: what it said before does not count", func(context.Context) error { r.fail = errors.New("down"); return nil }, settings.Strictest()},
		{"it can be read again, and has not changed", func(context.Context) error { r.fail = nil; return nil }, privileged},
		{"one value is wrong: the others count", func(ctx context.Context) error {
			object.Data[settings.ModeKey] = "lenient"
			return r.Update(ctx, object)
		}, settings.Settings{Mode: settings.Strict, DefaultAccount: "runner"}},
		{"the value is still wrong", nil, settings.Settings{Mode: settings.Strict, DefaultAccount: "runner"}},
		{"the value is corrected", func(ctx context.Context) error {
			object.Data[settings.ModeKey] = "privileged"
			return r.Update(ctx, object)
		}, privileged},
		{"a policy is required", func(ctx context.Context) error {
			object.Data[settings.PackagePolicyKey] = "required"
			return r.Update(ctx, object)
		}, settings.Settings{Mode: settings.Privileged, DefaultAccount: "runner", RequirePackagePolicy: true}},
		{"it is deleted", func(ctx context.Context) error { return r.Delete(ctx, object) }, settings.Default()},
		{"one of another name or namespace is none", func(ctx context.Context) error {
			other, elsewhere := settingsMap(object.Data), settingsMap(object.Data)
			other.Name, elsewhere.Namespace = "other", "default"
			return errors.Join(r.Create(ctx, other), r.Create(ctx, elsewhere))
		}, settings.Default()},
	} {
		if step.do != nil {
			if err := step.do(t.Context()); err != nil {
				t.Fatalf("%s: %v", step.reason, err)
			}
		}
		if diff := cmp.Diff(step.want, current.get(t.Context()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got: %s", step.reason, diff)
		}
	}
}

// TestTarballPolicy checks which sources of CRD tarballs the settings allow.
func TestTarballPolicy(t *testing.T) {
	for _, tc := range []struct {
		reason string
		data   map[string]string
		fail   error
		want   fetch.Policy
	}{
		{reason: "nothing is decided: no host is allowed, and there is no default"},
		{reason: "hosts and realms", data: map[string]string{settings.AllowedHostsKey: "a.example, b.example", settings.TokenRealmsKey: "auth.example"},
			want: fetch.Policy{Hosts: []string{"a.example", "b.example"}, TokenRealms: []string{"auth.example"}}},
		{reason: "a default", data: map[string]string{settings.DefaultCRDURLKey: "https://crds.example/{{ .Operator }}.tgz"},
			want: fetch.Policy{Default: &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://crds.example/{{ .Operator }}.tgz"}}}},
		{reason: "a default that can be changed on the way is none", data: map[string]string{settings.DefaultCRDURLKey: "http://crds.example/a.tgz"}},
		{reason: "settings that cannot be read allow nothing", data: map[string]string{settings.AllowedHostsKey: "a.example"}, fail: errors.New("down")},
	} {
		r := newReader(settingsMap(tc.data))
		r.fail = tc.fail
		if diff := cmp.Diff(tc.want, settingsOf(r).tarballPolicy(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestAcceptedHosts: each form of a host that the settings accept allows the host that it names, and no other one.
func TestAcceptedHosts(t *testing.T) {
	for entry, tc := range map[string]struct{ allowed, refused string }{
		"a.example":      {"https://a.example:8443/x", "https://b.a.example/x"},
		"A.example":      {"https://a.example/x", "https://b.example/x"},
		"a.example:8443": {"https://a.example:8443/x", "https://a.example/x"},
		"*.a.example":    {"https://b.a.example/x", "https://a.example/x"},
		"10.0.0.1":       {"https://10.0.0.1/x", "https://10.0.0.11/x"},
		"10.0.0.1:80":    {"http://10.0.0.1/x", "https://10.0.0.1/x"},
		"::1":            {"https://[::1]:8443/x", "https://[::2]/x"},
		"[::1]:80":       {"http://[::1]/x", "https://[::1]/x"},
		"my_host":        {"https://my_host/x", "https://my-host/x"},
	} {
		policy := settingsOf(newReader(settingsMap(map[string]string{settings.AllowedHostsKey: entry}))).tarballPolicy()
		hosts := crdtarball.Hosts{Names: policy.Hosts}
		for text, want := range map[string]bool{tc.allowed: true, tc.refused: false} {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := hosts.Allows(u); got != want {
				t.Errorf("%s allows %s: %t, want %t", entry, text, got, want)
			}
		}
		if _, err := settings.Parse(map[string]string{settings.AllowedHostsKey: entry}); err != nil {
			t.Error(err)
		}
	}
}

// TestPrivilegeStart checks that a manager whose plans run with its own rights reports so on its Namespace, and no other manager does.
func TestPrivilegeStart(t *testing.T) {
	const warning = "Warning " + v1beta1.EventPrivilegedMode + " Plans of Instances that name no ServiceAccount run with the rights of kudo in all namespaces: " +
		"whoever may create Instances is an administrator of the cluster"
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kudo-system"}}
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		fail    error
		want    []string
	}{
		{reason: "privileged", objects: []client.Object{home, settingsMap(map[string]string{settings.ModeKey: "privileged"})}, want: []string{warning}},
		{reason: "strict", objects: []client.Object{home, settingsMap(map[string]string{settings.ModeKey: "strict"})}},
		{reason: "nothing is decided", objects: []client.Object{home}},
		{reason: "the Namespace does not exist: the manager starts all the same", objects: []client.Object{settingsMap(map[string]string{settings.ModeKey: "privileged"})}},
		{reason: "the settings cannot be read: they are strict", objects: []client.Object{home, settingsMap(map[string]string{settings.ModeKey: "privileged"})}, fail: errors.New("down")},
	} {
		r, events := newReader(tc.objects...), record.NewFakeRecorder(5)
		r.fail = tc.fail
		p := &privilege{reader: r, settings: settingsOf(r), events: events, namespace: "kudo-system"}
		if err := p.Start(t.Context()); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		var got []string
		for len(events.Events) > 0 {
			got = append(got, <-events.Events)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestPrivilegeCount checks the number of namespaces whose Instances have the rights of kudo.
func TestPrivilegeCount(t *testing.T) {
	namespace := func(name, label string) client.Object {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if label != "" {
			ns.Labels = map[string]string{v1beta1.PrivilegedLabel: label}
		}
		return ns
	}
	objects := []client.Object{namespace("a", "true"), namespace("b", "false"), namespace("c", "True"), namespace("d", ""), namespace("e", "true")}
	for _, tc := range []struct {
		reason string
		mode   string
		fail   error
		want   float64
	}{
		{"by their labels, of which only true counts", "strict", nil, 2},
		{"all of them", "privileged", nil, 5},
		{"a number that is not known is not 0", "privileged", errors.New("down"), -1},
	} {
		r := newReader(append(objects, settingsMap(map[string]string{settings.ModeKey: tc.mode}))...)
		r.fail = tc.fail
		if got := (&privilege{reader: r, settings: settingsOf(r)}).count(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
}

// TestPrivilegeMetric checks that the number of privileged namespaces is read when the metrics are.
func TestPrivilegeMetric(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	r := newReader()
	if err := metrics.Register(registry, &privilege{reader: r, settings: settingsOf(r)}); err != nil {
		t.Fatal(err)
	}
	for want := range 2 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(families) != 1 || families[0].GetName() != metrics.PrivilegedNamespaces || families[0].GetMetric()[0].GetGauge().GetValue() != float64(want) {
			t.Errorf("metrics %v, want %s %d", families, metrics.PrivilegedNamespaces, want)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{v1beta1.PrivilegedLabel: "true"}}}
		if want == 0 {
			if err := r.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCacheScope checks that the cache of the manager holds one Secret and one ConfigMap: its rights allow no others.
func TestCacheScope(t *testing.T) {
	for name, scope := range map[string]cache.ByObject{WebhookSecret: onlySecret("kudo-system"), settings.ConfigMap: onlySettings("kudo-system")} {
		config, found := scope.Namespaces["kudo-system"]
		if !found || len(scope.Namespaces) != 1 {
			t.Fatalf("namespaces %v, want kudo-system", scope.Namespaces)
		}
		if got := config.FieldSelector.String(); got != "metadata.name="+name {
			t.Errorf("selected by %s, want the name %s", got, name)
		}
	}
}
