package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore"
)

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

// TestFindNeeds (C63) checks what is said of dependencies: those are there that the cluster has or the plan makes.
func TestFindNeeds(t *testing.T) {
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
		c := fakeCluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			options ...client.GetOption) error {
			if tc.getError != nil {
				return tc.getError
			}
			return c.Get(ctx, key, obj, options...)
		}}, tc.there...)
		all, err := FindNeeds(t.Context(), c, upgradable(), to, "deploy", needing{})
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		var got []string
		for _, needs := range all {
			got = append(got, needs.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestFindNeedsEach (C63) checks the parts of what an object needs, by which programs go.
func TestFindNeedsEach(t *testing.T) {
	to := upgradeTo("deploy")
	to.Spec.Templates["deploy.yaml"] = strings.Replace(workload("app", "replicas: 1"), "{name: app}", "{name: app, annotations: {"+v1beta1.DependenciesAnnotation+": await}}", 1)
	c := fakeCluster(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("refused")
	}})
	got, err := FindNeeds(t.Context(), c, upgradable(), to, "deploy", needing{})
	if err != nil {
		t.Fatal(err)
	}
	want := []ObjectNeeds{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "app", Mode: v1beta1.AwaitDependencies,
		Message: `needs Secret ns/app, Secret ns/i-made: missing; needs ConfigMap ns with labels "for=app" (refused): not known`,
		Dependencies: []DependencyFinding{
			{v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "app"}, DependencyMissing, ""},
			{v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "i-made"}, DependencyMissing, ""},
			{v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": "app"}}}, DependencyUnknown, "refused"},
		}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestFindNeedsMasks (C63, engine: sensitive values) checks that nothing of the answer holds a value of a sensitive parameter, whether it
// is in spec or from a Secret.
func TestFindNeedsMasks(t *testing.T) {
	to := upgradeTo("deploy")
	to.Spec.Parameters = []v1beta1.Parameter{{Name: "TOKEN", Sensitive: true}, {Name: "SOURCED"}}
	app := strings.ReplaceAll(workload("{{ .Params.TOKEN }}", "replicas: 1"), "{name: ", "{name: a-{{ .Params.SOURCED }}-")
	to.Spec.Templates["deploy.yaml"] = app
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"SOURCED": []byte("swordfish")}}
	c := fakeCluster(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no hunter2 for you" + strings.Repeat(".", maxDependencyText-40) + " swordfish") // a cut would leave a part of the second
	}}, source)
	i := upgradable()
	i.Spec.Parameters = map[string]string{"TOKEN": "hunter2"}
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "s"}}
	got, err := FindNeeds(t.Context(), c, i, to, "deploy", needing{})
	if err != nil || len(got) != 1 || len(got[0].Dependencies) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	text, err := json.Marshal([]any{got[0].Dependencies, got[0].Message})
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "sword") {
		t.Errorf("a sensitive value is shown: %s, %v", text, err)
	}
	if name := got[0].Dependencies[0].Name; name != "a-(sensitive)-(sensitive)" {
		t.Errorf("the first dependency is %q", name)
	}
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
