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

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
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

// noLayers answers nothing.
var noLayers = explore.Chain{}

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
		want               string
		unknown            string
	}{
		{"live replicas are not needed again", "pods=1", "", []client.Object{live}, "ResourceQuota q: pods: needed 2, left 1", ""},
		{"the object was deleted", "pods=4", "", nil, "ResourceQuota q: pods: needed 5, left 4", ""},
		{"room", "pods=5", "", nil, "", ""},
		{"quotas that may not be read", "pods=1", "ResourceQuota", nil, "", "read the ResourceQuotas of namespace ns: refused"},
	} {
		c := upgradeCluster(t, failing(tc.kind), append(tc.live, limited("ns", "q", tc.hard))...)
		preview, err := PreviewUpgrade(t.Context(), c, instance, to, &declaring{})
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

// needing answers that each object needs a Secret of its own name, one that a Pipe task makes, and a ConfigMap with a label.
type needing struct{}

func (needing) Explore(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	if r.Operation != explore.Dependencies {
		return explore.Answer{}, false, nil
	}
	if r.Object.GetName() == "odd" {
		return explore.Answer{}, false, errors.New("no answer")
	}
	secret := func(name string) v1alpha1.DependentObjectReference {
		return v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: r.Object.GetNamespace(), Name: name}
	}
	labeled := v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: r.Object.GetNamespace(),
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": r.Object.GetName()}}}
	return explore.Answer{Dependencies: []v1alpha1.DependentObjectReference{secret(r.Object.GetName()), secret("i-made"), labeled}}, true, nil
}

// TestPreviewNeeds (C63) checks what a dry run says of dependencies: those are there that the cluster has or the plan makes.
func TestPreviewNeeds(t *testing.T) {
	refused := errors.New("refused")
	secret := func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	labeled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "any", Labels: map[string]string{"for": "app"}}}
	for _, tc := range []struct {
		reason, template string
		there            []client.Object
		getError         error
		want             []string
	}{
		{"all is there", workload("app", "replicas: 1"), []client.Object{secret("app"), labeled}, nil, nil},
		{"nothing is there", workload("app", "replicas: 1"), nil, nil,
			[]string{`Deployment ns/app: needs Secret ns/app, ConfigMap ns with labels "for=app": missing`}},
		{"a Secret that may not be read", workload("app", "replicas: 1"), []client.Object{labeled}, refused,
			[]string{"Deployment ns/app: needs Secret ns/app (refused): not known"}},
		{"no layer answers", workload("odd", "replicas: 1"), nil, nil, []string{"Deployment ns/odd: its dependencies are not known: no answer"}},
		{"the plan makes it", workload("app", "replicas: 1") + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: app}\n" +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {for: app}}\n", []client.Object{secret("c")}, nil,
			[]string{`ConfigMap ns/c: needs ConfigMap ns with labels "for=c": missing`}},
	} {
		to := upgradeTo("deploy")
		to.Spec.Templates["deploy.yaml"] = tc.template
		to.Spec.Tasks = append(to.Spec.Tasks, v1beta1.Task{Name: "make", Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{
			Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{{File: "/f", Kind: "Secret", Key: "k", NameSuffix: "made"}}}})
		steps := &to.Spec.Plans["deploy"].Phases[0].Steps[0]
		steps.Tasks = append(steps.Tasks, "make")
		c := upgradeCluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			options ...client.GetOption) error {
			if tc.getError != nil {
				return tc.getError
			}
			return c.Get(ctx, key, obj, options...)
		}}, tc.there...)
		preview, err := PreviewUpgrade(t.Context(), c, upgradable(), to, needing{})
		if err != nil || preview.NeedsUnknown != nil {
			t.Errorf("%s: %v, %v", tc.reason, err, preview)
			continue
		}
		if diff := cmp.Diff(tc.want, preview.Needs); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
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
