package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/quota"
)

// upgradeCluster returns a client of a fake cluster.
func upgradeCluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

// upgradable returns an Instance with these ConfigMaps in its inventory.
func upgradable(names ...string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
	for _, name := range names {
		resource := v1beta1.ResourceStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name}
		i.Status.Resources = append(i.Status.Resources, resource)
	}
	return i
}

// upgradeTo returns a version whose plans apply a ConfigMap each, named after the parameter NAME.
func upgradeTo(planNames ...string) *v1beta1.OperatorVersion {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-2.0.0"}}
	ov.Spec.Operator.Name, ov.Spec.Version = "web", "2.0.0"
	standard := "standard"
	ov.Spec.Parameters = []v1beta1.Parameter{{Name: "NAME", Default: &standard}}
	ov.Spec.Plans = map[string]v1beta1.Plan{}
	ov.Spec.Templates = map[string]string{}
	for _, plan := range planNames {
		template := plan + ".yaml"
		ov.Spec.Templates[template] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + plan + "-{{ .Params.NAME }}}\n"
		spec := v1beta1.TaskSpec{Resources: []string{template}}
		ov.Spec.Tasks = append(ov.Spec.Tasks, v1beta1.Task{Name: plan, Kind: v1beta1.ApplyTask, Spec: spec})
		ov.Spec.Plans[plan] = v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{plan}}}}}}
	}
	return ov
}

// noLayers fails who asks, since no namespace here has quotas.
func noLayers(context.Context) (Interpreter, error) { panic("layers are asked without a quota") }

// TestPreviewPlan checks which plan an upgrade would run.
func TestPreviewPlan(t *testing.T) {
	c := upgradeCluster(t, interceptor.Funcs{})
	for _, tc := range []struct {
		plans []string
		want  string
	}{
		{[]string{"deploy", "update", "upgrade"}, "upgrade"},
		{[]string{"deploy", "update"}, "update"},
		{[]string{"backup", "deploy"}, "deploy"},
		{[]string{"backup"}, ""},
	} {
		preview, err := PreviewUpgrade(t.Context(), c, upgradable(), upgradeTo(tc.plans...), noLayers)
		switch {
		case tc.want != "" && (err != nil || preview.Plan != tc.want || len(preview.Abandoned) > 0):
			t.Errorf("%v: %+v, %v, want plan %s", tc.plans, preview, err, tc.want)
		case tc.want == "" && (err == nil || !strings.HasPrefix(err.Error(), "operator web 2.0.0 has none of the plans upgrade,")):
			t.Errorf("%v: %v", tc.plans, err)
		}
	}
	installs := upgradeTo("deploy", "upgrade")
	installs.Spec.InstallPlan = "upgrade"
	if preview, err := PreviewUpgrade(t.Context(), c, upgradable(), installs, noLayers); err != nil || preview.Plan != "deploy" {
		t.Errorf("no Instance runs the install plan: %+v, %v", preview, err)
	}
}

// TestPreviewAbandoned checks that objects are abandoned that no plan names with the parameters that the Instance is to have.
func TestPreviewAbandoned(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"NAME": []byte("secret")}}
	c := upgradeCluster(t, interceptor.Funcs{}, secret)
	from := []v1beta1.ParametersSource{{Kind: "Secret", Name: "s"}}
	all := []string{"upgrade-standard", "upgrade-given", "upgrade-secret", "deploy-standard", "deploy-given", "deploy-secret"}
	for name, tc := range map[string]struct {
		reason string
		given  map[string]string
		from   []v1beta1.ParametersSource
		want   []string
	}{
		"Default": {"defaults are those of the new version, and all plans count", nil, nil,
			[]string{"deploy-given", "deploy-secret", "upgrade-given", "upgrade-secret"}},
		"Given": {"values of the Instance", map[string]string{"NAME": "given"}, nil,
			[]string{"deploy-secret", "deploy-standard", "upgrade-secret", "upgrade-standard"}},
		"Source": {"values of a Secret", nil, from,
			[]string{"deploy-given", "deploy-standard", "upgrade-given", "upgrade-standard"}},
		"Both": {"values of the Instance come first", map[string]string{"NAME": "given"}, from,
			[]string{"deploy-secret", "deploy-standard", "upgrade-secret", "upgrade-standard"}},
	} {
		instance := upgradable(all...)
		instance.Spec.Parameters, instance.Spec.ParametersFrom = tc.given, tc.from
		preview, err := PreviewUpgrade(t.Context(), c, instance, upgradeTo("deploy", "upgrade"), noLayers)
		if err != nil {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
			continue
		}
		var got []string
		for _, id := range preview.Abandoned {
			got = append(got, id.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
		if len(instance.Spec.Parameters) != len(tc.given) {
			t.Errorf("%s: the Instance has changed: %v", name, instance.Spec.Parameters)
		}
	}
}

// TestPreviewQuotas (C64) checks what a dry run says of quotas, and that it says so if it cannot.
func TestPreviewQuotas(t *testing.T) {
	to := upgradeTo("deploy")
	to.Spec.Templates["deploy.yaml"] = workload("app", "replicas: {{ .Params.NAME }}")
	instance := upgradable()
	instance.Spec.Parameters = map[string]string{"NAME": "5"}
	instance.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "app", UID: "mine"}}
	three := int32(3)
	live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app", UID: "mine"}, Spec: appsv1.DeploymentSpec{Replicas: &three}}
	refused := errors.New("refused")
	failing := func(kind string) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind == "" {
				return c.List(ctx, list, options...)
			}
			return refused
		}}
	}
	for _, tc := range []struct {
		reason, hard, kind string
		live               []client.Object
		layers             error
		want               string
		unknown            string
	}{
		{"live replicas are not needed again", "pods=1", "", []client.Object{live}, nil, "ResourceQuota q: pods: needed 2, left 1", ""},
		{"the object was deleted", "pods=4", "", nil, nil, "ResourceQuota q: pods: needed 5, left 4", ""},
		{"room", "pods=5", "", nil, nil, "", ""},
		{"quotas that may not be read", "pods=1", "ResourceQuota", nil, nil, "", "read the ResourceQuotas of namespace ns: refused"},
		{"layers that cannot be asked", "pods=1", "", nil, refused, "", "refused"},
	} {
		c := upgradeCluster(t, failing(tc.kind), append(tc.live, limited("ns", "q", tc.hard))...)
		preview, err := PreviewUpgrade(t.Context(), c, instance, to, func(context.Context) (Interpreter, error) { return &declaring{}, tc.layers })
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		unknown := ""
		if preview.QuotasUnknown != nil {
			unknown = preview.QuotasUnknown.Error()
		}
		if got := quota.Describe(preview.Exceeded); got != tc.want || unknown != tc.unknown {
			t.Errorf("%s: %q, not known: %q; want %q and %q", tc.reason, got, unknown, tc.want, tc.unknown)
		}
	}
}

// TestPreviewFails checks that nothing is abandoned where the names of objects are not known.
func TestPreviewFails(t *testing.T) {
	broken := upgradeTo("deploy")
	broken.Spec.Templates["deploy.yaml"] = "{{ fail `no` }}"
	malformed := upgradeTo("deploy")
	malformed.Spec.Templates["deploy.yaml"] = "{{ if }}"
	sourced := upgradable("x")
	sourced.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "none"}}
	for name, tc := range map[string]struct {
		reason   string
		instance *v1beta1.Instance
		version  *v1beta1.OperatorVersion
		want     string
	}{
		"Template":  {"a template fails", upgradable("x"), broken, "task deploy of plan deploy: "},
		"Malformed": {"a template is none", upgradable("x"), malformed, "deploy.yaml"},
		"Source":    {"a Secret is missing", sourced, upgradeTo("deploy"), "may hang on parameters that spec.parametersFrom gives: "},
	} {
		preview, err := PreviewUpgrade(t.Context(), upgradeCluster(t, interceptor.Funcs{}), tc.instance, tc.version, noLayers)
		if preview != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: %+v, %v, want %q", name, tc.reason, preview, err, tc.want)
		}
	}
}

func TestLiveKeepReason(t *testing.T) {
	meta := func(name string, annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: annotations}
	}
	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("plain", nil)},
		&corev1.ConfigMap{ObjectMeta: meta("kept", map[string]string{v1beta1.KeepAnnotation: ""})},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("data", nil)},
	}
	id := func(kind, namespace, name string) apply.ID {
		return apply.ID{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind},
			NamespacedName:   types.NamespacedName{Namespace: namespace, Name: name},
		}
	}
	c := upgradeCluster(t, interceptor.Funcs{}, objects...)
	for _, tc := range []struct {
		reason string
		id     apply.ID
		want   string
	}{
		{"an object without annotations is deleted", id("ConfigMap", "ns", "plain"), ""},
		{"an annotated one is not", id("ConfigMap", "ns", "kept"), "it is annotated " + v1beta1.KeepAnnotation},
		{"nor one that holds data", id("PersistentVolumeClaim", "ns", "data"), "objects of its kind hold data"},
		{"nor one that is cluster-scoped", id("Node", "", "n"), "it is cluster-scoped, so others may use it"},
		{"one that does not exist has no annotations", id("ConfigMap", "ns", "none"), ""},
	} {
		if got, err := LiveKeepReason(t.Context(), c, tc.id); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}

	failing := upgradeCluster(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("refused")
		},
	})
	if _, err := LiveKeepReason(t.Context(), failing, id("ConfigMap", "ns", "x")); err == nil || err.Error() != "ConfigMap ns/x: refused" {
		t.Errorf("an object that cannot be read is not deleted: %v", err)
	}
}
