package library

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/lua"
)

func host() *lua.Host {
	return lua.New(func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }, lua.DefaultLimits())
}

func bundled(t testing.TB) *Layer {
	t.Helper()
	l, err := New(host())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// folders are the kinds with their cases, as `kubectl kudo explore test` reads them.
func folders(t testing.TB) []cases.Folder {
	t.Helper()
	found, err := cases.Load(os.DirFS("kinds"), host())
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("there are no cases")
	}
	return found
}

func TestCasesAsTheToolRunsThem(t *testing.T) {
	for _, result := range cases.RunAll(t.Context(), folders(t), time.Now) {
		if failures := append(result.Failures, result.Warnings...); result.State != cases.Passed || len(failures) > 0 {
			t.Errorf("%s: %s (%s) %s: %s", result.Folder, result.Name, result.Operation, result.State, strings.Join(failures, "\n  "))
		}
	}
}

// TestCasesOfTheLayer asks the compiled-in layer, in each version that the rule serves.
func TestCasesOfTheLayer(t *testing.T) {
	l := bundled(t)
	for _, folder := range folders(t) {
		for i := range folder.Cases {
			c := folder.Cases[i]
			if failures, _ := cases.Run(t.Context(), l, &c); len(failures) > 0 {
				t.Errorf("%s: %s: %s", folder.Path, c.Name, strings.Join(failures, "\n  "))
			}
		}
	}
}

func TestEveryScriptHasACase(t *testing.T) {
	asked := map[subject]bool{}
	for _, folder := range folders(t) {
		for _, c := range folder.Cases {
			kind := c.Request.Object.GroupVersionKind()
			asked[subject{kind, c.Request.Operation}] = true
			for _, version := range alsoServed(kind) {
				asked[subject{kind.GroupKind().WithVersion(version), c.Request.Operation}] = true
			}
		}
	}
	for at := range bundled(t).scripts {
		if !asked[at] {
			t.Errorf("%s of %s has no case", at.operation, at.kind)
		}
	}
}

func TestScriptsHaveNoWarnings(t *testing.T) {
	for at, script := range bundled(t).scripts {
		for _, warning := range script.Warnings() {
			t.Errorf("%s of %s: %s", at.operation, at.kind, warning)
		}
	}
}

func TestFoldersAreNamedAfterTheirKind(t *testing.T) {
	kinds := bundled(t).Kinds()
	names, err := fs.Glob(files, "kinds/*/*/*/customizations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		parts := strings.Split(path.Dir(name), "/")
		if want := (schema.GroupVersionKind{Group: parts[1], Version: parts[2], Kind: parts[3]}); !slices.Contains(kinds, want) {
			t.Errorf("%s holds no rule for %s", name, want)
		}
	}
}

func TestOtherVersionsHaveTheSameRules(t *testing.T) {
	object := exploretest.Object(t, `{"apiVersion":"source.toolkit.fluxcd.io/v1beta2","kind":"GitRepository","metadata":{"name":"a","generation":1},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`)
	answer, known, err := bundled(t).Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object})
	if !known || err != nil || !answer.Healthy || answer.Who != "GitRepository.source.toolkit.fluxcd.io" {
		t.Errorf("v1beta2: got %+v, known %v, error %v", answer, known, err)
	}
	object.SetAPIVersion("source.toolkit.fluxcd.io/v9")
	if _, known, _ := bundled(t).Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object}); known {
		t.Error("a version that the library was not written for must have no rule")
	}
}

func TestConformance(t *testing.T) {
	var rows []exploretest.Case
	seen := map[explore.Operation]int{}
	for _, folder := range folders(t) {
		for _, c := range folder.Cases {
			if seen[c.Request.Operation]++; seen[c.Request.Operation] <= 4 {
				rows = append(rows, exploretest.Case{Name: string(c.Request.Operation) + " " + c.Request.Object.GetKind() + " " + c.Name, Request: c.Request})
			}
		}
	}
	rows = append(rows, exploretest.Case{Name: "a malformed object", Unknown: true, Request: explore.Request{Operation: explore.Dependencies,
		Object: exploretest.Object(t, `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"Gateway","metadata":{"name":"a"},"spec":{"listeners":5}}`)}})
	exploretest.Run(t, bundled(t), rows...)
}

// TestHealthOfBareObjects: a rule for health must answer, without error, for an object that was just made.
func TestHealthOfBareObjects(t *testing.T) {
	l := bundled(t)
	for at := range l.scripts {
		if at.operation != explore.Healthy {
			continue
		}
		object := exploretest.Object(t, `{"apiVersion":"`+at.kind.GroupVersion().String()+`","kind":"`+at.kind.Kind+`","metadata":{"name":"a","generation":1},"spec":{"parentRefs":[{"name":"x"}]}}`)
		answer, known, err := l.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object})
		if !known || err != nil || answer.Healthy || answer.Message == "" {
			t.Errorf("%s without a status: got %+v, known %v, error %v: want unhealthy, with what is waited for", at.kind, answer, known, err)
		}
	}
}

// TestUnknownPhases checks C69: a phase that a later version of a project may bring is in progress, and neither healthy nor failed. Most
// definitions list the phases, so that no case can hold one.
func TestUnknownPhases(t *testing.T) {
	for _, row := range []struct{ kind, status string }{
		{"argoproj.io/v1alpha1/Rollout", `{"observedGeneration":"1","phase":"Dreaming","abort":true}`},
		{"argoproj.io/v1alpha1/Workflow", `{"phase":"Dreaming"}`},
		{"batch.volcano.sh/v1alpha1/Job", `{"state":{"phase":"Dreaming"}}`},
		{"cluster.x-k8s.io/v1beta1/Cluster", `{"observedGeneration":1,"phase":"Dreaming","failureReason":"CreateError"}`},
		{"cluster.x-k8s.io/v1beta1/Machine", `{"observedGeneration":1,"phase":"Dreaming","conditions":[{"type":"Ready","status":"True"}]}`},
		{"cluster.x-k8s.io/v1beta2/Cluster", `{"observedGeneration":1,"phase":"Dreaming","conditions":[{"type":"Available","status":"True"}]}`},
		{"cluster.x-k8s.io/v1beta2/Machine", `{"observedGeneration":1,"phase":"Dreaming"}`},
	} {
		apiVersion, kind := path.Split(row.kind)
		object := exploretest.Object(t, `{"apiVersion":"`+strings.TrimSuffix(apiVersion, "/")+`","kind":"`+kind+
			`","metadata":{"name":"a","generation":1},"status":`+row.status+`}`)
		answer, known, err := bundled(t).Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object})
		if want := "phase Dreaming is not known to its rule"; err != nil || !known || answer.Healthy || answer.Failed || answer.Message != want {
			t.Errorf("%s: got %+v, known %v, error %v: want it in progress, with %q", row.kind, answer, known, err, want)
		}
	}
}

func BenchmarkHealth(b *testing.B) {
	l := bundled(b)
	object := exploretest.Object(b, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"a","generation":1},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, known, err := l.Explore(b.Context(), explore.Request{Operation: explore.Healthy, Object: object}); !known || err != nil {
			b.Fatal(known, err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		bundled(b)
	}
}

// TestParse has files that are no rules.
func TestParse(t *testing.T) {
	const head = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: rule}\n"
	for _, tc := range []struct{ reason, text, want string }{
		{"it has no target", head + "spec: {}", "spec.target must have apiVersion and kind"},
		{"it has an operation that is unknown", head + "spec: {target: {apiVersion: v1, kind: K}, customizations: {fly: {luaScript: x}}}", "spec.customizations.fly is left out"},
		{"a key is there twice", head + "kind: Other\nspec: {}", `key "kind" already set in map`},
		{"it is no YAML", "a: [", "yaml"},
	} {
		if c, err := parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v", tc.reason, c, err)
		}
	}
}
