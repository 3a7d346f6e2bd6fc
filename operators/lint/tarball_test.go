package lint

import (
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

// TestTarballFindings checks fields of crdTarball at their edges, with the line of the field or of the nearest one around it.
func TestTarballFindings(t *testing.T) {
	digits := strings.Repeat("0a", 32)
	with := func(block string) files { return files{"operator.yaml": plainOperator + "crdTarball: " + block + "\n"} }
	lined := func(block string) files { return files{"operator.yaml": plainOperator + "crdTarball:\n" + block} }
	const variables = "there are .OperatorName, .OperatorVersion, .AppVersion, .Name, .Namespace"
	only(t, crdTarballFields, map[string]lintCase{
		"UpperScheme": {"a scheme is written in small letters", with("{httpSource: {url: 'HTTPS://x.org/y'}}"),
			[]string{"E operator.yaml:7: crdTarball.httpSource.url must begin with https:// or http://"}},
		"OtherScheme": {"no other scheme", with("{httpSource: {url: 'file:///etc/passwd'}}"),
			[]string{"E operator.yaml:7: crdTarball.httpSource.url must begin with https:// or http://"}},
		"Blank": {"white space is no URL", with("{httpSource: {url: '  '}}"),
			[]string{"E operator.yaml:7: crdTarball.httpSource.url is missing: name the URL of the tarball"}},
		"AtInPath": {"an at sign in the path is no user", with("{httpSource: {url: 'https://x.org/a@b.tgz'}}"), nil},
		"UserPlain": {"a user of http is reported, and not the digest", with("{httpSource: {url: 'http://a@x.org/y'}}"),
			[]string{"E operator.yaml:7: crdTarball.httpSource.url has a user or a password in it: put them into a Secret, and its name into " +
				"secretRef"}},
		"PinUpper": {"digits are in small letters",
			with("{httpSource: {url: 'https://x.org/y', sha256: '" + strings.ToUpper(digits) +
				"'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.sha256 must be 64 hexadecimal digits in lower case"}},
		"PinShort": {"all digits are needed", with("{httpSource: {url: 'https://x.org/y', sha256: '" + digits[1:] + "'}}"),
			[]string{"E operator.yaml:7: crdTarball.httpSource.sha256 must be 64 hexadecimal digits in lower case"}},
		"PinLine": {"and nothing behind them", lined("  httpSource:\n    url: https://x.org/y\n    sha256: \"" + digits + "\\n\"\n"),
			[]string{"E operator.yaml:10: crdTarball.httpSource.sha256 must be 64 hexadecimal digits in lower case"}},
		"NeverPin": {"a pin goes with other policies",
			with("{httpSource: {url: 'https://x.org/y', sha256: '" + digits + "'}, crdDownloadPolicy: Never}"), nil},
		"Missing": {"a missing field has the line of what is around it", lined("  httpSource:\n    secretRef: {name: s}\n"),
			[]string{"E operator.yaml:9: crdTarball.httpSource.url is missing: name the URL of the tarball"}},
		"Policies": {"policies are written exactly", lined("  crdDownloadPolicy: always\n  crdUpdatePolicy: fail\n"),
			[]string{`E operator.yaml:8: crdTarball.crdDownloadPolicy is "always": use Always, IfNotPresent or Never`,
				`E operator.yaml:9: crdTarball.crdUpdatePolicy is "fail": use Fail or IfSafe`}},
		"OCIEmpty": {"a reference is needed", with("{ociSource: {}}"),
			[]string{"E operator.yaml:7: crdTarball.ociSource.ref must end in @sha256: and the 64 hexadecimal digits of the manifest's digest"}},
		"OCILong": {"a digest has 64 digits", with("{ociSource: {ref: 'x.org/y@sha256:" + digits + "0'}}"),
			[]string{"E operator.yaml:7: crdTarball.ociSource.ref must end in @sha256: and the 64 hexadecimal digits of the manifest's digest"}},
		"OCIVariable": {"a reference is a template", with("{ociSource: {ref: 'x.org/{{ .Version }}@sha256:" + digits + "'}}"),
			[]string{"E operator.yaml:7: crdTarball.ociSource.ref uses .Version: " + variables}},
		"MapsSecond": {"each ConfigMap has a name",
			lined("  configMapSource:\n    sha256: " + digits +
				"\n    configMaps:\n    - name: a\n    - key: b\n"),
			[]string{"E operator.yaml:12: crdTarball.configMapSource.configMaps[1].name is missing"}},
		"MapsName": {"names are templates",
			lined("  configMapSource:\n    sha256: " + digits +
				"\n    configMaps:\n    - name: '{{ .Plan }}'\n"),
			[]string{"E operator.yaml:11: crdTarball.configMapSource.configMaps[0].name uses .Plan: " + variables}},
		"MapsPin": {"a pin of ConfigMaps is checked as well", with("{configMapSource: {configMaps: [{name: c}], sha256: x}}"),
			[]string{"E operator.yaml:7: crdTarball.configMapSource.sha256 must be 64 hexadecimal digits in lower case"}},
		"MapsNothing": {"both are reported", with("{configMapSource: {}}"),
			[]string{"E operator.yaml:7: crdTarball.configMapSource.configMaps is empty: name the ConfigMaps that hold the tarball, in order",
				"E operator.yaml:7: crdTarball.configMapSource.sha256 is required: whoever may write a ConfigMap could change the tarball; set " +
					"it to what sha256sum prints"}},
		"Comment": {"a template of a comment only", with("{ociSource: {ref: '{{/* x */}}'}}"),
			[]string{"E operator.yaml:7: crdTarball.ociSource.ref must end in @sha256: and the 64 hexadecimal digits of the manifest's digest"}},
	})
}

// TestFieldsOf checks which variables a template uses, each once and in order.
func TestFieldsOf(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "plain": nil, "{{ .A }}": {"A"}, "{{ .B }}{{ .A }}{{ .B }}": {"B", "A"}, "{{ .A.B.C }}": {"A.B.C"},
		"{{ if .A }}{{ .B }}{{ else }}{{ .C }}{{ end }}": {"A", "B", "C"},
		"{{ if eq .A \"x\" }}{{ end }}":                  {"A"}, "{{ urlquery .A | urlquery }}": {"A"}, "{{ eq (slice .A 1) .B }}": {"A", "B"},
		"{{ if .A }}{{ else if .B }}{{ .C }}{{ end }}": {"A", "B", "C"},
		"{{ 1 }}{{ \"a\" }}":                           nil,
	} {
		parsed, err := template.New("t").Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if parsed.Tree != nil {
			got = fieldsOf(parsed.Root)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
}

// TestParentPaths checks the fields whose line a finding takes, the nearest first.
func TestParentPaths(t *testing.T) {
	for path, want := range map[string][]string{
		"a": {"a"}, "a.b.c": {"a.b.c", "a.b", "a"}, "a.b[0].c": {"a.b[0].c", "a.b[0]", "a.b", "a"}, "a[1][2]": {"a[1][2]", "a[1]", "a"},
	} {
		if diff := cmp.Diff(want, withParentPaths(path)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
}
