package crdtarball

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func TestRender(t *testing.T) {
	full := Variables{OperatorName: "spark", OperatorVersion: "1.2.0", AppVersion: "3.5.1", Name: "s", Namespace: "n"}
	bare := Variables{OperatorName: "spark", OperatorVersion: "1.2.0", Name: "s", Namespace: "n"}
	evil := Variables{OperatorName: "spark", AppVersion: "../../x"}
	for name, tc := range map[string]struct {
		reason, text string
		variables    Variables
		want, err    string
	}{
		"All":       {"all variables", "https://x/{{ .OperatorName }}/{{.OperatorVersion}}/{{ .AppVersion }}/{{ .Namespace }}-{{ .Name }}.tgz", full, "https://x/spark/1.2.0/3.5.1/n-s.tgz", ""},
		"Plain":     {"no template", "https://x/y.tgz", bare, "https://x/y.tgz", ""},
		"If":        {"conditions", `https://x/{{ if eq .AppVersion "3.5.1" }}new{{ else }}old{{ end }}`, full, "https://x/new", ""},
		"Slice":     {"parts of a version", `https://x/{{ slice .AppVersion 0 3 }}`, full, "https://x/3.5", ""},
		"Missing":   {"empty variables", "https://x/{{ .AppVersion }}", bare, "", "uses .AppVersion, which is empty"},
		"Unknown":   {"unknown variables", "https://x/{{ .AppVersoin }}", full, "", "uses .AppVersoin: there are .OperatorName"},
		"Unfit":     {"values that change the URL", "https://x/{{ .AppVersion }}", evil, "", "would change the URL"},
		"Env":       {"functions of the environment", `{{ env "HOME" }}`, full, "", "cannot be read"},
		"Printf":    {"functions that grow", `{{ printf "%1000000d" 1 }}`, full, "", "calls printf"},
		"Range":     {"loops", `{{ range 1000000000 }}x{{ end }}`, full, "", "not allowed"},
		"Variable":  {"variables", `{{ $x := .Name }}{{ $x }}`, full, "", "declares a variable"},
		"Define":    {"definitions", `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, full, "", "not allowed"},
		"Malformed": {"what is no template", "https://x/{{ .Name", full, "", "cannot be read"},
		"Empty":     {"nothing", "  ", full, "", "renders to nothing"},
		"Void":      {"no text", "", full, "", "renders to nothing"},
		"Long":      {"long templates", strings.Repeat("x", 3000), full, "", "more than 2048"},
		"Dot":       {"all values at once", "{{ . }}", full, "", "not allowed"},
		"Chain":     {"fields of what is computed", `{{ (slice .Name 0).X }}`, full, "", "not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(tc.text, tc.variables)
			var e *Error
			if tc.err != "" && (!errors.As(err, &e) || e.Reason != ReasonSpec || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s are refused: error %v does not say %q", tc.reason, err, tc.err)
			}
			if tc.err == "" && (err != nil || got != tc.want) {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestRenderTarball(t *testing.T) {
	in := v1beta1.CRDTarball{
		HTTPSource:      &v1beta1.HTTPSource{URL: "https://x/{{ .AppVersion }}"},
		OCISource:       &v1beta1.OCISource{Ref: "r/{{ .OperatorName }}@sha256:1"},
		ConfigMapSource: &v1beta1.ConfigMapSource{ConfigMaps: []v1beta1.ConfigMapPart{{Name: "a-{{ .AppVersion }}"}, {Name: "b"}}},
	}
	out, err := RenderTarball(in, Variables{OperatorName: "o", AppVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"https://x/1", "r/o@sha256:1", "a-1", "b"}
	got := []string{out.HTTPSource.URL, out.OCISource.Ref, out.ConfigMapSource.ConfigMaps[0].Name, out.ConfigMapSource.ConfigMaps[1].Name}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if in.HTTPSource.URL != "https://x/{{ .AppVersion }}" || in.ConfigMapSource.ConfigMaps[0].Name != "a-{{ .AppVersion }}" {
		t.Error("what was given is not changed")
	}
	_, err = RenderTarball(in, Variables{OperatorName: "o"})
	for _, field := range []string{"crdTarball.httpSource.url", "crdTarball.configMapSource.configMaps[0].name"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("the error %v names %s", err, field)
		}
	}
}
