package pkginstall

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// withNamespace gives a package a template of its namespace, and a parameter TEAM.
func withNamespace(template string) func(*operators.Package) {
	return func(p *operators.Package) {
		p.Operator.NamespaceManifest = "namespace.yaml"
		p.Templates["namespace.yaml"] = template
		standard := "ops"
		p.Params.Parameters = []operators.Parameter{{Parameter: v1beta1.Parameter{Name: "TEAM", Default: &standard}}}
	}
}

func TestCreateNamespace(t *testing.T) {
	const labeled = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other\n  labels: {team: '{{ .Params.TEAM }}', of: '{{ .Name }}'}\n"
	created := map[string]string{"created-by": "kudo-cli"}
	for name, tc := range map[string]struct {
		reason      string
		pkg         *operators.Package
		given       map[string]string
		labels      map[string]string
		annotations map[string]string
	}{
		"Plain": {"a package without a template", pkg("web"), nil, nil, created},
		"Default": {
			"a template gets defaults",
			pkg("web", withNamespace(labeled)), nil, map[string]string{"team": "ops", "of": "site"}, created,
		},
		"Given": {
			"and what was given",
			pkg("web", withNamespace(labeled)), map[string]string{"TEAM": "dev"}, map[string]string{"team": "dev", "of": "site"}, created,
		},
		"Annotate": {
			"annotations of the template stay",
			pkg("web", withNamespace("apiVersion: v1\nkind: Namespace\nmetadata: {annotations: {a: b}}\n")), nil, nil, map[string]string{"created-by": "kudo-cli", "a": "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstall(t)
			if err := i.CreateNamespace(t.Context(), tc.pkg, "lab", "site", tc.given); err != nil {
				t.Fatal(err)
			}
			i.expect(t, []string{"create Namespace lab"}, []string{"namespace lab created"})
			got := &corev1.Namespace{}
			if err := i.Client.Get(t.Context(), client.ObjectKey{Name: "lab"}, got); err != nil {
				t.Fatalf("the name is the one that was given, whatever the template says: %v", err)
			}
			if diff := cmp.Diff(tc.labels, got.Labels); diff != "" {
				t.Errorf("%s: labels: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.annotations, got.Annotations); diff != "" {
				t.Errorf("%s: annotations: %s", tc.reason, diff)
			}
		})
	}
}

// TestCreateNamespaceFails checks that no namespace is created if the template is wrong.
func TestCreateNamespaceFails(t *testing.T) {
	const one = "apiVersion: v1\nkind: Namespace\n"
	array := func(p *operators.Package) {
		p.Params.Parameters = []operators.Parameter{{Parameter: v1beta1.Parameter{Name: "TEAM", Type: v1beta1.ArrayType}}}
	}
	for name, tc := range map[string]struct {
		reason string
		pkg    *operators.Package
		want   string
	}{
		"Two": {
			"a template makes one namespace",
			pkg("web", withNamespace(one+"---\n"+one+"metadata: {name: b}\n")), "must hold one object of kind Namespace, and nothing else",
		},
		"Kind": {
			"and nothing else",
			pkg("web", withNamespace("apiVersion: v1\nkind: ConfigMap\n")), "must hold one object of kind Namespace, and nothing else",
		},
		"Empty":    {"nor nothing", pkg("web", withNamespace("# nothing\n")), "must hold one object of kind Namespace"},
		"Template": {"a template can fail", pkg("web", withNamespace("{{ fail `no` }}")), "no"},
		"Value":    {"a value has its type", pkg("web", withNamespace(one), array), "TEAM"},
	} {
		i := newInstall(t)
		err := i.CreateNamespace(t.Context(), tc.pkg, "lab", "site", map[string]string{"TEAM": "[a"})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: %v, want %q", name, tc.reason, err, tc.want)
		}
		i.expect(t, nil, nil)
	}

	i := newInstall(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})
	if err := i.CreateNamespace(t.Context(), pkg("web"), "lab", "site", nil); err == nil || !strings.HasPrefix(err.Error(), "namespace lab: ") {
		t.Errorf("a namespace that exists is not created: %v", err)
	}
	i.expect(t, []string{"create Namespace lab"}, nil)
}

func TestExplainMissingNamespace(t *testing.T) {
	i := newInstall(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})
	failed := errors.New("failed")
	if err := ExplainMissingNamespace(t.Context(), i.Client, "lab", failed); !errors.Is(err, failed) {
		t.Errorf("the namespace exists, so that the error is another one: %v", err)
	}
	err := ExplainMissingNamespace(t.Context(), i.Client, "none", failed)
	if errors.Is(err, failed) || !strings.Contains(err.Error(), "namespace none does not exist: create it") {
		t.Errorf("the namespace is missing: %v", err)
	}
}
