package lint

import (
	"strings"
	"testing"
)

func TestCRDTarballFields(t *testing.T) {
	with := func(block string) files { return files{"operator.yaml": plainOperator + "crdTarball: " + block + "\n"} }
	application := func(block string) files {
		return files{"operator.yaml": plainOperator + "appVersion: 1.2.3\ncrdTarball: " + block + "\n"}
	}
	digits := strings.Repeat("0a", 32)
	run(t, map[string]lintCase{
		"Absent":    {"most packages have none", files{}, nil},
		"HTTP":      {"the plain case", application("{httpSource: {url: 'https://x.org/{{ .AppVersion }}.tgz'}}"), nil},
		"If":        {"what the manager allows is right", application("{httpSource: {url: 'https://x.org/{{ if eq .OperatorName \"x\" }}{{ .AppVersion }}{{ else }}{{ .OperatorVersion }}{{ end }}.tgz'}}"), nil},
		"WholeHost": {"a URL may begin with a variable", with("{httpSource: {url: '{{ .Name }}.tgz', sha256: '" + digits + "'}}"), nil},
		"AnyScheme": {"T34: which may be http", with("{httpSource: {url: '{{ .Name }}.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.sha256 is required: what http transfers can be changed on the way; set it, or begin the URL with https://"}},
		"NoScheme":  {"a URL has a scheme", with("{httpSource: {url: 'x.org/y.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url must begin with https:// or http://"}},
		"NoURL":     {"a source has a URL", with("{httpSource: {}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url is missing: name the URL of the tarball"}},
		"User":      {"passwords are for Secrets", with("{httpSource: {url: 'https://a:b@x.org/y.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url has a user or a password in it: put them into a Secret, and its name into secretRef"}},
		"Plain":     {"T34: http proves nothing", with("{httpSource: {url: 'http://x.org/y.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.sha256 is required: what http transfers can be changed on the way; set it, or begin the URL with https://"}},
		"PlainPin":  {"unless the content is known", with("{httpSource: {url: 'http://x.org/y.tgz', sha256: '" + digits + "'}}"), nil},
		"Pin":       {"a pin is a SHA-256", with("{httpSource: {url: 'https://x.org/y.tgz', sha256: 'sha256:" + digits + "'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.sha256 must be 64 hexadecimal digits in lower case"}},
		"AlwaysPin": {"what is pinned never changes", with("{httpSource: {url: 'https://x.org/y.tgz', sha256: '" + digits + "'}, crdDownloadPolicy: Always}"), []string{"W operator.yaml:7: crdTarball.crdDownloadPolicy Always fetches the tarball again, though sha256 allows only one content: leave one of them out"}},
		"Variable":  {"these variables only", with("{httpSource: {url: 'https://x.org/{{ .Version }}.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url uses .Version: there are .OperatorName, .OperatorVersion, .AppVersion, .Name, .Namespace"}},
		"Params":    {"parameters are not among them", with("{httpSource: {url: 'https://x.org/{{ .Params.V }}.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url uses .Params.V: there are .OperatorName, .OperatorVersion, .AppVersion, .Name, .Namespace"}},
		"NoVersion": {"an empty version makes a wrong URL", with("{httpSource: {url: 'https://x.org/{{ .AppVersion }}.tgz'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url uses .AppVersion, and the package has no appVersion"}},
		"Syntax":    {"templates can be read", with("{httpSource: {url: 'https://x.org/{{ .AppVersion'}}"), []string{"E operator.yaml:7: crdTarball.httpSource.url cannot be read as a template: 1: unclosed action"}},
		"OCI":       {"a digest makes an artifact one", with("{ociSource: {ref: 'x.org/y:1@sha256:" + digits + "'}}"), nil},
		"Tag":       {"a tag does not", with("{ociSource: {ref: 'x.org/y:1'}}"), []string{"E operator.yaml:7: crdTarball.ociSource.ref must end in @sha256: and the 64 hexadecimal digits of the manifest's digest"}},
		"OCIScheme": {"a reference is no URL", with("{ociSource: {ref: 'oci://x.org/y@sha256:" + digits + "'}}"), []string{"E operator.yaml:7: crdTarball.ociSource.ref has a scheme: write <registry>/<repository>@sha256:<digest>"}},
		"Maps":      {"names are templates", application("{configMapSource: {configMaps: [{name: 'c-{{ .AppVersion }}'}], sha256: '" + digits + "'}}"), nil},
		"MapsNoPin": {"T34: anybody may write a ConfigMap", with("{configMapSource: {configMaps: [{name: c}]}}"), []string{"E operator.yaml:7: crdTarball.configMapSource.sha256 is required: whoever may write a ConfigMap could change the tarball; set it to what sha256sum prints"}},
		"NoMaps":    {"there is a ConfigMap", with("{configMapSource: {configMaps: [], sha256: '" + digits + "'}}"), []string{"E operator.yaml:7: crdTarball.configMapSource.configMaps is empty: name the ConfigMaps that hold the tarball, in order"}},
		"NoName":    {"it has a name", with("{configMapSource: {configMaps: [{key: a}], sha256: '" + digits + "'}}"), []string{"E operator.yaml:7: crdTarball.configMapSource.configMaps[0].name is missing"}},
		"Policies":  {"policies exist", with("{httpSource: {url: 'https://x.org/y.tgz'}, crdDownloadPolicy: Sometimes, crdUpdatePolicy: Force}"), []string{`E operator.yaml:7: crdTarball.crdDownloadPolicy is "Sometimes": use Always, IfNotPresent or Never`, `E operator.yaml:7: crdTarball.crdUpdatePolicy is "Force": use Fail or IfSafe`}},
	}, crdTarballFields)
}
