package pkginstall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// TestP30Manifests: the manifests are what an Installer creates, in an order in which they can be applied, and without fields of the server.
func TestP30Manifests(t *testing.T) {
	yes, size := true, "10Gi"
	immutable := func(p *operators.Package) {
		p.Params.Parameters = []operators.Parameter{{Parameter: v1beta1.Parameter{Name: "SIZE", Default: &size, Immutable: &yes}}}
	}
	packages := []*operators.Package{pkg("db"), pkg("web", installs, immutable)}
	given := map[string]string{"A": "b"}
	instance := NewInstance(InstanceOptions{Namespace: "ns", Name: "site", Operator: "web", OperatorVersion: "web-1.0.0",
		Parameters: map[string]string{"PORT": "080"}, ServiceAccountName: "site-kudo"})
	objects, err := Manifests(packages, "ns", given, instance)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, obj := range objects {
		files = append(files, ManifestFile(obj))
	}
	if diff := cmp.Diff([]string{"1-operator-db.yaml", "1-operator-web.yaml", "2-operatorversion-db-1.0.0.yaml", "2-operatorversion-web-1.0.0.yaml",
		"3-instance-site.yaml"}, files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	i := newInstall(t)
	if _, err := i.CreateVersions(t.Context(), packages, "ns", given); err != nil {
		t.Fatal(err)
	}
	instance.Spec.Parameters["SIZE"] = size // as the webhook would
	if err := i.CreateInstance(t.Context(), instance.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		text, err := FormatManifest(obj)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"creationTimestamp", "status:", "resourceVersion", "uid:", "planExecution", "generation:"} {
			if strings.Contains(string(text), field) {
				t.Errorf("%s has %s:\n%s", obj.GetName(), field, text)
			}
		}
		live, written := typed(t, obj.GetKind()), typed(t, obj.GetKind())
		if err := i.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, written); err != nil {
			t.Errorf("%s: %v\n%s", obj.GetName(), err, text)
		}
		if !equality.Semantic.DeepEqual(specOf(t, live), specOf(t, written)) || !equality.Semantic.DeepEqual(live.GetLabels(), written.GetLabels()) {
			t.Errorf("%s: -installed +manifest:\n%s", obj.GetName(), cmp.Diff(specOf(t, live), specOf(t, written)))
		}
	}
}

func typed(t *testing.T, kind string) client.Object {
	t.Helper()
	switch kind {
	case "Operator":
		return &v1beta1.Operator{}
	case "OperatorVersion":
		return &v1beta1.OperatorVersion{}
	case "Instance":
		return &v1beta1.Instance{}
	}
	t.Fatalf("a %s among the manifests", kind)
	return nil
}

func specOf(t *testing.T, obj client.Object) any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return fields["spec"]
}

// TestP30InstanceManifest: a source may give the value of an immutable parameter, which a default in spec would hide.
func TestP30InstanceManifest(t *testing.T) {
	yes, size := true, "10Gi"
	web := pkg("web", func(p *operators.Package) {
		p.Params.Parameters = []operators.Parameter{{Parameter: v1beta1.Parameter{Name: "SIZE", Default: &size, Immutable: &yes}}}
	})
	for _, tc := range []struct {
		reason string
		from   []v1beta1.ParametersSource
		given  map[string]string
		want   map[string]string
	}{
		{"the default", nil, nil, map[string]string{"SIZE": "10Gi"}},
		{"another value", nil, map[string]string{"SIZE": "1Gi"}, map[string]string{"SIZE": "1Gi"}},
		{"a source", []v1beta1.ParametersSource{{Kind: "Secret", Name: "x"}}, nil, nil},
	} {
		instance := NewInstance(InstanceOptions{Namespace: "ns", Name: "site", Parameters: tc.given, ParametersFrom: tc.from})
		objects, err := Manifests([]*operators.Package{web}, "ns", nil, instance)
		if err != nil {
			t.Fatal(err)
		}
		text, err := FormatManifest(objects[len(objects)-1])
		if err != nil {
			t.Fatal(err)
		}
		got := &v1beta1.Instance{}
		if err := yaml.Unmarshal(text, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got.Spec.Parameters); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
	objects, err := Manifests([]*operators.Package{web}, "ns", nil, nil)
	if err != nil || len(objects) != 2 {
		t.Errorf("without an Instance: %v, %v", objects, err)
	}
	if _, err := Manifests([]*operators.Package{pkg("")}, "ns", nil, nil); err == nil {
		t.Error("a package without a name has manifests")
	}
}
