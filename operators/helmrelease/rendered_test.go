package helmrelease

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chartOutput is what helm template prints of a chart, with CustomResourceDefinitions.
const chartOutput = `---
# Source: my-web/crds/pots.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pots.example.com}
spec: {group: example.com, scope: Namespaced, names: {plural: pots, kind: Pot}}
---
# Source: my-web/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata: {name: web-login}
---
# Source: my-web/templates/page.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-page
  labels: {helm.sh/chart: my-web-1.2.3_build, app.kubernetes.io/version: v4.1}
data: {page: "{{ not a template }}"}
---
# Source: my-web/templates/migrate.yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: web-migrate
  annotations: {helm.sh/hook: "pre-install, pre-upgrade", helm.sh/hook-weight: "-5"}
---
# Source: my-web/templates/tests/ping.yaml
apiVersion: v1
kind: Pod
metadata:
  name: web-ping
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: "hook-succeeded"}
`

// TestRendered checks that a package of a chart that is not installed has its objects and hooks, and that its hooks run (P31).
func TestRendered(t *testing.T) {
	r, err := Rendered("web", "lab", chartOutput)
	if err != nil {
		t.Fatal(err)
	}
	metadata := r.Chart.Metadata
	if diff := cmp.Diff([]string{"my-web", "1.2.3+build", "v4.1"}, []string{metadata.Name, metadata.Version, metadata.AppVersion}); diff != "" {
		t.Errorf("the chart: %s", diff)
	}
	want := Hooks{{Name: "web-migrate", Events: Events{"pre-install", "pre-upgrade"}, Weight: -5, DeletePolicies: Policies{"before-hook-creation"}},
		{Name: "web-ping", Events: Events{"test"}, DeletePolicies: Policies{"hook-succeeded"}}}
	var hooks Hooks
	for _, h := range r.Hooks {
		h.Manifest = ""
		hooks = append(hooks, h)
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("hooks: %s", diff)
	}
	converted, pkg := convert(t, r)
	if got := pkg.Operator.OperatorVersion; got != "1.2.3" {
		t.Errorf("the version is %s", got)
	}
	files := []string{}
	for name := range converted.Files {
		files = append(files, name)
	}
	slices.Sort(files)
	wantFiles := []string{"operator.yaml", "params.yaml", "templates/configmap-web-page.yaml", "templates/customresourcedefinition-pots.example.com.yaml",
		"templates/job-web-migrate.yaml"}
	if diff := cmp.Diff(wantFiles, files); diff != "" {
		t.Errorf("files: %s", diff)
	}
	parameters := string(converted.Files["params.yaml"])
	if !strings.Contains(parameters, "default: \"true\"") || strings.Contains(parameters, "for the release already") {
		t.Errorf("the hooks of an installation do not run:\n%s", parameters)
	}
	notes := strings.Join(converted.Notes, "\n")
	for _, note := range []string{"Secret web-login is no part of the package, which would hold its values: create it before", "hook web-ping does not run at test"} {
		if !strings.Contains(notes, note) {
			t.Errorf("no note says %q:\n%s", note, notes)
		}
	}
	if text := string(converted.Files["operator.yaml"]); !strings.Contains(text, "Made of the Helm chart my-web 1.2.3+build.") {
		t.Errorf("the description does not name the chart:\n%s", text)
	}
}

// TestChartOfRendered checks which chart the package is said to be made of: the one that was rendered, and none that it depends on.
func TestChartOfRendered(t *testing.T) {
	object := func(source, chart, app string) string {
		return "---\n" + source + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {helm.sh/chart: '" + chart + "', app.kubernetes.io/version: '" + app + "'}}\n"
	}
	for _, tc := range []struct{ reason, manifests, want string }{
		{"a chart of a dependency comes first", object("# Source: shop/charts/postgresql/templates/a.yaml\n", "postgresql-12.1.0", "15") +
			object("# Source: shop/templates/a.yaml\n", "shop-1.0.0-rc.1_b2", "2.0"), "shop 1.0.0-rc.1+b2 2.0"},
		{"the label is of no other chart", object("# Source: shop/templates/a.yaml\n", "library-1.0.0", "1"), "shop  "},
		{"without comments the first label counts", object("", "my-web-2-1.2.3", "3") + object("", "other-9.9.9", "9"), "my-web-2 1.2.3 3"},
		{"a label without a version", object("", "web", "3"), "  "},
		{"a label that begins with a dash", object("", "-1.2.3", "3"), "  "},
		{"a hostile comment", object("# Source: ../../etc/x\n", "web-1.2.3", "3"), "..  "},
	} {
		r, err := Rendered("web", "lab", tc.manifests)
		if err != nil {
			t.Fatal(err)
		}
		m := r.Chart.Metadata
		if got := m.Name + " " + m.Version + " " + m.AppVersion; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestRenderedErrors checks that manifests which are wrong are refused with the object and the remedy.
func TestRenderedErrors(t *testing.T) {
	hook := func(annotations string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {helm.sh/hook: test" + annotations + "}}\n"
	}
	for _, tc := range []struct{ reason, manifests, want string }{
		{"nothing", "", "have no object: pass what helm template prints"},
		{"comments only", "# Source: x\n---\n", "have no object"},
		{"no YAML", "a: [", "the manifests: "},
		{"no object", "- a\n", "is no object"},
		{"an object without a name", "apiVersion: v1\nkind: Pod\n", "lacks its apiVersion, kind or name"},
		{"a weight that is no number", hook(", helm.sh/hook-weight: 'heavy'"), `Pod p: annotation helm.sh/hook-weight is "heavy": set a whole number`},
		{"too many hooks", strings.Repeat("---\n"+hook(""), maxHooks+1), "more than 200 hooks"},
		{"too large", strings.Repeat(" ", MaxContent+1), "have more than"},
	} {
		if _, err := Rendered("web", "lab", tc.manifests); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// FuzzRendered checks that no manifests make the conversion panic, and that a package that is written can be read.
func FuzzRendered(f *testing.F) {
	f.Add(chartOutput)
	f.Add("kind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {helm.sh/hook: pre-delete}}}]\n")
	f.Fuzz(func(t *testing.T, manifests string) {
		r, err := Rendered("web", "lab", manifests)
		if err != nil {
			return
		}
		if _, err := Convert(r, testScope, nil); err != nil {
			return
		}
	})
}
