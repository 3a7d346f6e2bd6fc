package pkginstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// install is an Installer on a fake cluster, and what it reports and requests.
type install struct {
	Installer
	reports, requests []string
	// fail returns the error of a request, such as "create Operator db".
	fail func(request string) error
}

func newInstall(t *testing.T, objects ...client.Object) *install {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	i := &install{fail: func(string) error { return nil }}
	note := func(verb string, object client.Object) error {
		gvk, err := i.Client.GroupVersionKindFor(object)
		if err != nil {
			return err
		}
		request := fmt.Sprintf("%s %s %s", verb, gvk.Kind, object.GetName())
		i.requests = append(i.requests, request)
		return i.fail(request)
	}
	i.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			o := client.CreateOptions{}
			o.ApplyOptions(options)
			verb := "create"
			if len(o.DryRun) > 0 {
				verb = "try"
			}
			if err := note(verb, object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := note("patch", object); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}).Build()
	i.Progressf = func(format string, args ...any) { i.reports = append(i.reports, fmt.Sprintf(format, args...)) }
	i.Warnf = func(format string, args ...any) {
		i.reports = append(i.reports, "Warning: "+fmt.Sprintf(format, args...))
	}
	return i
}

// expect compares what was requested and reported since the last call.
func (i *install) expect(t *testing.T, requests, reports []string) {
	t.Helper()
	if diff := cmp.Diff(requests, i.requests); diff != "" {
		t.Errorf("requests: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(reports, i.reports); diff != "" {
		t.Errorf("reports: -want +got:\n%s", diff)
	}
	i.requests, i.reports = nil, nil
}

// pkg returns a package of one task.
func pkg(name string, edits ...func(*operators.Package)) *operators.Package {
	p := &operators.Package{
		Operator:  operators.OperatorFile{Name: name, OperatorVersion: "1.0.0"},
		Templates: map[string]string{},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func installs(p *operators.Package) { p.Operator.InstallPlan = "install" }

// TestCreateVersions checks the order, and that what exists is kept.
func TestCreateVersions(t *testing.T) {
	i := newInstall(t)
	packages := []*operators.Package{pkg("db"), pkg("web", installs)}
	versions, err := i.CreateVersions(t.Context(), packages, "ns", map[string]string{"A": "b"})
	if err != nil {
		t.Fatal(err)
	}
	i.expect(t, []string{
		"create Operator db", "create OperatorVersion db-1.0.0",
		"try OperatorVersion web-1.0.0", "create Operator web", "create OperatorVersion web-1.0.0",
	}, []string{
		"operator ns/db created", "operatorversion ns/db-1.0.0 created",
		"operator ns/web created", "operatorversion ns/web-1.0.0 created",
	})
	if len(versions) != 2 || versions[0].ResourceVersion == "" || len(versions[0].Spec.InstallParameters) > 0 {
		t.Errorf("the parameters are for the last package: %+v", versions)
	}
	if diff := cmp.Diff(map[string]string{"A": "b"}, versions[1].Spec.InstallParameters); diff != "" {
		t.Error(diff)
	}

	again, err := i.CreateVersions(t.Context(), packages, "ns", map[string]string{"A": "b"})
	if err != nil || again[0].ResourceVersion != versions[0].ResourceVersion {
		t.Fatalf("the versions are those that exist: %v, %v", again, err)
	}
	i.expect(t, []string{
		"create Operator db", "create OperatorVersion db-1.0.0",
		"try OperatorVersion web-1.0.0", "create Operator web", "create OperatorVersion web-1.0.0",
	}, []string{"operatorversion ns/db-1.0.0 already installed", "operatorversion ns/web-1.0.0 already installed"})
}

// TestVersions checks that the OperatorVersions that would be created are known before: in their order, and with the same content.
func TestVersions(t *testing.T) {
	packages := []*operators.Package{pkg("db"), pkg("web", installs)}
	versions, err := Versions(packages, "ns", map[string]string{"A": "b"})
	if err != nil {
		t.Fatal(err)
	}
	created, err := newInstall(t).CreateVersions(t.Context(), packages, "ns", map[string]string{"A": "b"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range versions {
		if versions[n].Name != created[n].Name {
			t.Errorf("version %d is %s, not %s", n, versions[n].Name, created[n].Name)
		}
		if diff := cmp.Diff(created[n].Spec, versions[n].Spec); diff != "" {
			t.Errorf("%s: -created +known:\n%s", versions[n].Name, diff)
		}
	}
}

// TestInstallParametersChange checks that only install parameters of an OperatorVersion that exists are changed.
func TestInstallParametersChange(t *testing.T) {
	i := newInstall(t)
	web := []*operators.Package{pkg("web", installs)}
	create := []string{"try OperatorVersion web-1.0.0", "create Operator web", "create OperatorVersion web-1.0.0"}
	if _, err := i.CreateVersions(t.Context(), web, "ns", map[string]string{"A": "b"}); err != nil {
		t.Fatal(err)
	}
	i.requests, i.reports = nil, nil
	for _, tc := range []struct {
		reason string
		given  map[string]string
		want   map[string]string
		patch  bool
	}{
		{"no parameters keep those that are there", nil, map[string]string{"A": "b"}, false},
		{"equal ones are not written", map[string]string{"A": "b"}, map[string]string{"A": "b"}, false},
		{"others replace them", map[string]string{"B": "c"}, map[string]string{"B": "c"}, true},
	} {
		versions, err := i.CreateVersions(t.Context(), web, "ns", tc.given)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, versions[0].Spec.InstallParameters); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		requests, reports := slices.Clone(create), []string{"operatorversion ns/web-1.0.0 already installed"}
		if tc.patch {
			requests = append(requests, "patch OperatorVersion web-1.0.0")
			reports = append(reports, "operatorversion ns/web-1.0.0 install parameters changed")
		}
		i.expect(t, requests, reports)
	}
}

// TestOtherContent checks the warning for an OperatorVersion that is not that of the package.
func TestOtherContent(t *testing.T) {
	i := newInstall(t)
	if _, err := i.CreateVersions(t.Context(), []*operators.Package{pkg("web")}, "ns", nil); err != nil {
		t.Fatal(err)
	}
	i.requests, i.reports = nil, nil
	changed := pkg("web", func(p *operators.Package) { p.Templates["new.yaml"] = "x" })
	versions, err := i.CreateVersions(t.Context(), []*operators.Package{changed}, "ns", nil)
	if err != nil || len(versions[0].Spec.Templates) > 0 {
		t.Errorf("it is used as it is: %v, %v", versions, err)
	}
	i.expect(t, []string{"create Operator web", "create OperatorVersion web-1.0.0"}, []string{
		"operatorversion ns/web-1.0.0 already installed",
		"Warning: operatorversion ns/web-1.0.0 has other content than the package: it is used as it is. " +
			"Give the package a new operatorVersion, or delete the OperatorVersion first",
	})
}

// TestCreateVersionsFails checks that each request that fails ends the installation, with the object in the error.
func TestCreateVersionsFails(t *testing.T) {
	tarball := func(p *operators.Package) { p.Operator.CRDTarball = &v1beta1.CRDTarball{} }
	for name, tc := range map[string]struct {
		reason   string
		packages []*operators.Package
		fails    string
		want     string
		done     int
	}{
		"Try": {
			"a user who may not install leaves nothing behind",
			[]*operators.Package{pkg("web", installs)}, "try OperatorVersion web-1.0.0", "operatorversion ns/web-1.0.0: refused", 1,
		},
		"Tarball": {
			"nor one who may not install CustomResourceDefinitions",
			[]*operators.Package{pkg("web", tarball)}, "try OperatorVersion web-1.0.0", "operatorversion ns/web-1.0.0: refused", 1,
		},
		"Operator": {"the Operator comes first", []*operators.Package{pkg("web")}, "create Operator web", "operator ns/web: refused", 1},
		"Version": {
			"then the OperatorVersion",
			[]*operators.Package{pkg("web")}, "create OperatorVersion web-1.0.0", "operatorversion ns/web-1.0.0: refused", 2,
		},
		"Later": {"a dependency stays", []*operators.Package{pkg("db"), pkg("web")}, "create Operator web", "operator ns/web: refused", 3},
		"Name":  {"a package without a name", []*operators.Package{pkg("")}, "", "package :\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstall(t)
			i.fail = func(request string) error {
				if request == tc.fails {
					return errors.New("refused")
				}
				return nil
			}
			versions, err := i.CreateVersions(t.Context(), tc.packages, "ns", nil)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || versions != nil {
				t.Errorf("%s: %v, %v", tc.reason, versions, err)
			}
			if len(i.requests) != tc.done {
				t.Errorf("%s: %d requests, want %d: %v", tc.reason, len(i.requests), tc.done, i.requests)
			}
		})
	}

	i := newInstall(t)
	i.fail = func(request string) error {
		if strings.HasPrefix(request, "create OperatorVersion") {
			return apierrors.NewAlreadyExists(v1beta1.Resource("operatorversions"), "web-1.0.0")
		}
		return nil
	}
	if _, err := i.CreateVersions(t.Context(), []*operators.Package{pkg("web")}, "ns", nil); !apierrors.IsNotFound(err) {
		t.Errorf("an OperatorVersion that was deleted meanwhile cannot be read: %v", err)
	}
}

func TestNewInstance(t *testing.T) {
	from := []v1beta1.ParametersSource{{Kind: "Secret", Name: "s"}}
	schedules := []v1beta1.Schedule{{Name: "nightly", Plan: "backup", Cron: "0 3 * * *"}}
	got := NewInstance(InstanceOptions{
		Namespace: "ns", Name: "site", Operator: "web", OperatorVersion: "web-1.0.0", Parameters: map[string]string{"A": "b"},
		ParametersFrom: from, ServiceAccountName: "account", Adopt: true, Schedules: schedules,
	})
	want := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "site", Labels: map[string]string{v1beta1.OperatorLabel: "web"},
		Annotations: map[string]string{v1beta1.AdoptAnnotation: "true"},
	}, Spec: v1beta1.InstanceSpec{
		OperatorVersion: corev1.ObjectReference{Kind: "OperatorVersion", Name: "web-1.0.0"},
		Parameters:      map[string]string{"A": "b"}, ParametersFrom: from, ServiceAccountName: "account", Schedules: schedules,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if annotations := NewInstance(InstanceOptions{}).Annotations; annotations != nil {
		t.Errorf("nothing is adopted unless asked: %v", annotations)
	}
}

func TestCreateInstance(t *testing.T) {
	i := newInstall(t)
	instance := NewInstance(InstanceOptions{Namespace: "ns", Name: "site"})
	if err := CheckAbsent(t.Context(), i.Client, instance); err != nil {
		t.Fatal(err)
	}
	if err := i.CreateInstance(t.Context(), instance); err != nil || instance.ResourceVersion == "" {
		t.Fatalf("the Instance is as it is in the cluster: %v, %v", instance, err)
	}
	i.expect(t, []string{"create Instance site"}, []string{"instance ns/site created"})
	if err := CheckAbsent(t.Context(), i.Client, instance); err == nil || !strings.Contains(err.Error(), "instance ns/site exists already: use") {
		t.Errorf("an Instance that exists: %v", err)
	}
	err := i.CreateInstance(t.Context(), NewInstance(InstanceOptions{Namespace: "ns", Name: "site"}))
	if !apierrors.IsAlreadyExists(err) || !strings.HasPrefix(err.Error(), "instance ns/site: ") || len(i.reports) > 0 {
		t.Errorf("it is not created twice: %v, %v", err, i.reports)
	}
}

// serverVersion answers as an API server of a version does.
type serverVersion string

// ServerVersion implements discovery.ServerVersionInterface.
func (v serverVersion) ServerVersion() (*version.Info, error) {
	if v == "" {
		return nil, errors.New("no answer")
	}
	return &version.Info{GitVersion: string(v)}, nil
}

func TestCheckKubernetes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, server, wanted, text string
	}{
		"Equal":    {"the version that is needed", "v1.30.0", "1.30.0", ""},
		"Higher":   {"a higher one", "v1.31.2+k3s1", "1.30.9", ""},
		"Patch":    {"patches do not count", "v1.30.0", "1.30.9", ""},
		"Major":    {"a higher major version has a lower minor one", "v2.0.0", "1.30.0", ""},
		"Lower":    {"a lower one", "v1.29.9", "1.30.0", "operator web needs Kubernetes 1.30.0 or later, and this cluster is v1.29.9"},
		"LowMajor": {"a lower major version", "v1.40.0", "2.1.0", "operator web needs Kubernetes 2.1.0 or later"},
		"None":     {"a package that says nothing", "v1.20.0", "", ""},
		"Unusual":  {"a version of the server that is none", "development", "1.30.0", ""},
		"NoAnswer": {"a server that does not answer", "", "1.30.0", "no answer"},
	} {
		needs := pkg("web", func(p *operators.Package) { p.Operator.KubernetesVersion = tc.wanted })
		err := CheckKubernetes(serverVersion(tc.server), []*operators.Package{pkg("db"), needs})
		if (err != nil) != (tc.text != "") || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %s: %v, want %q", name, tc.reason, err, tc.text)
		}
	}
}

// TestNewInstanceOfNothing: what is not asked for is not set, so that the API server's defaults hold.
func TestNewInstanceOfNothing(t *testing.T) {
	got := NewInstance(InstanceOptions{Namespace: "ns", Name: "site", Operator: "web", OperatorVersion: "web-1.0.0"})
	if got.Annotations != nil || got.Spec.Parameters != nil || got.Spec.ParametersFrom != nil || got.Spec.Schedules != nil {
		t.Errorf("the Instance has %v and %+v", got.Annotations, got.Spec)
	}
}

// TestProvenance checks S17: where a package comes from, and its signatures, are kept in the OperatorVersion, and are no other content.
func TestProvenance(t *testing.T) {
	i := newInstall(t)
	signed := pkg("web", func(p *operators.Package) {
		p.Provenance = &v1beta1.Provenance{Source: "oci://example.org/web:1.0.0", Signatures: []string{"{}"}}
	})
	versions, err := i.CreateVersions(t.Context(), []*operators.Package{signed}, "ns", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(signed.Provenance, versions[0].Spec.Provenance); diff != "" {
		t.Errorf("provenance: %s", diff)
	}
	i.requests, i.reports = nil, nil
	if _, err := i.CreateVersions(t.Context(), []*operators.Package{pkg("web")}, "ns", nil); err != nil {
		t.Fatal(err)
	}
	i.expect(t, []string{"create Operator web", "create OperatorVersion web-1.0.0"}, []string{"operatorversion ns/web-1.0.0 already installed"})
	broken := pkg("web", func(p *operators.Package) { p.Templates["a.yaml"] = "\xff" })
	if _, err := i.CreateVersions(t.Context(), []*operators.Package{broken}, "ns", nil); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
		t.Errorf("text that has no digest (S7): %v", err)
	}
}

// TestSpecs finds the spec of an OperatorVersion by its name, and nothing by another one.
func TestSpecs(t *testing.T) {
	packages := []*operators.Package{pkg("db"), pkg("web")}
	versions, err := Versions(packages, "ns", nil)
	if err != nil {
		t.Fatal(err)
	}
	specs := SpecsOf(versions)
	for _, version := range versions {
		if got := specs.Find(version.Name); got != &version.Spec {
			t.Errorf("%s: the spec is another one: %+v", version.Name, got)
		}
	}
	for _, name := range []string{"", "db", "none-1.0.0"} {
		if got := specs.Find(name); got != nil {
			t.Errorf("%q: there is a spec of %s", name, got.Operator.Name)
		}
	}
	if got := SpecsOf(nil).Find("web"); got != nil || len(specs) != len(packages) {
		t.Errorf("there are %d specs, and of none %v", len(specs), got)
	}
}
