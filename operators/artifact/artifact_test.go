package artifact

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/operators/content"
)

const operatorFile = `apiVersion: kudo.dev/v1beta1
name: web
appVersion: 1.27.4
operatorVersion: 1.0.0
description: "A <web> server"
url: https://example.org
kubernetesVersion: 1.30.0
maintainers: [{name: Ann, email: ann@example.org}]
tasks:
- {name: db, kind: KudoOperator, spec: {package: postgres, operatorVersion: ^1.0}}
plans: {deploy: {phases: [{name: a, steps: [{name: b, tasks: [db]}]}]}}
`

// packed returns the archive of a package.
func packed(t testing.TB, operator string) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := archive.Write(&out, fstest.MapFS{"operator.yaml": {Data: []byte(operator)},
		"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: []\n")}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func newArtifact(t testing.TB) *Artifact {
	t.Helper()
	a, err := New(packed(t, operatorFile), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// contentOf returns the content digest of the package of an artifact.
func contentOf(t testing.TB, a *Artifact) string {
	t.Helper()
	_, version, err := operators.Convert(a.Package, "default")
	if err != nil {
		t.Fatal(err)
	}
	out, err := content.Digest(version)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNew checks S1 to S4: types, one layer that is the archive, what config and annotations say, and that the bytes are the same each time.
func TestNew(t *testing.T) {
	a := newArtifact(t)
	if b := newArtifact(t); !bytes.Equal(a.Manifest, b.Manifest) || !bytes.Equal(a.Config, b.Config) {
		t.Error("the same archive gives another artifact")
	}
	config := `{"name":"web","appVersion":"1.27.4","operatorVersion":"1.0.0","description":"A <web> server","maintainers":[{"name":"Ann","email":"ann@example.org"}],` +
		`"url":"https://example.org","kubernetesVersion":"1.30.0","installPlan":false,"dependencies":[{"task":"db","package":"postgres","operatorVersion":"^1.0"}],"content":"` + contentOf(t, a) + `"}`
	if diff := cmp.Diff(config, string(a.Config)); diff != "" {
		t.Errorf("config: %s", diff)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(a.Manifest, &m); err != nil {
		t.Fatal(err)
	}
	if m.MediaType != ocispec.MediaTypeImageManifest || m.ArtifactType != Type || m.Config.MediaType != ConfigType || len(m.Layers) != 1 ||
		m.Layers[0].MediaType != LayerType || m.Layers[0].Digest != digest.FromBytes(a.Archive) || a.Tag() != "1.27.4_1.0.0" {
		t.Errorf("manifest %s with tag %s", a.Manifest, a.Tag())
	}
	want := map[string]string{"org.opencontainers.image.title": "web", "org.opencontainers.image.version": "1.27.4_1.0.0",
		"org.opencontainers.image.description": "A <web> server", "org.opencontainers.image.url": "https://example.org"}
	if diff := cmp.Diff(want, m.Annotations); diff != "" {
		t.Errorf("annotations: %s", diff)
	}
	dated, err := New(a.Archive, time.Unix(1e9, 0))
	if err != nil || !strings.Contains(string(dated.Manifest), `"org.opencontainers.image.created":"2001-09-09T01:46:40Z"`) {
		t.Errorf("the time is that of SOURCE_DATE_EPOCH: %s, %v", dated.Manifest, err)
	}
}

// TestEmptyLists checks that a package with empty lists, which a config leaves out, is what its config says.
func TestEmptyLists(t *testing.T) {
	a, err := New(packed(t, strings.Replace(operatorFile, "{name: Ann, email: ann@example.org}", "", 1)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseManifest(a.Manifest, ocispec.MediaTypeImageManifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Assemble(a.Config, a.Archive); err != nil {
		t.Error(err)
	}
}

// TestNewRefuses checks which archives make no artifact.
func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct{ reason, operator, want string }{
		{"versions that are too long for a tag (S4)", strings.Replace(operatorFile, "1.27.4", "1."+strings.Repeat("a", 124), 1), "more than 127 characters"},
		{"a name that is no name", strings.Replace(operatorFile, "web", "We b", 1), "cannot name an object"},
		{"a version that leaves the tag", strings.Replace(operatorFile, "operatorVersion: 1.0.0", "operatorVersion: 1.0.0+a", 1), "use lower case letters"},
		{"a version whose tag would be none of a version", strings.Replace(operatorFile, "operatorVersion: 1.0.0", "operatorVersion: '1.0'", 1), `operatorVersion "1.0" cannot be the tag of a version: write all three parts`},
		{"a long description (S5)", strings.Replace(operatorFile, "A <web>", strings.Repeat("a", MaxConfig), 1), "more than the 65536 allowed"},
	} {
		if _, err := New(packed(t, tc.operator), time.Time{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	for reason, data := range map[string][]byte{"no archive": []byte("x"), "an archive that is too large": make([]byte, 16<<20+1)} {
		if _, err := New(data, time.Time{}); err == nil {
			t.Errorf("%s makes an artifact", reason)
		}
	}
}

// edit changes a manifest.
func edit(t testing.TB, a *Artifact, change func(m *ocispec.Manifest)) []byte {
	t.Helper()
	var m ocispec.Manifest
	if err := json.Unmarshal(a.Manifest, &m); err != nil {
		t.Fatal(err)
	}
	m.Annotations = maps.Clone(m.Annotations)
	change(&m)
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestParseManifest checks S1 and S5: what is not exactly one package is refused by its manifest alone.
func TestParseManifest(t *testing.T) {
	a := newArtifact(t)
	for _, tc := range []struct {
		reason string
		change func(m *ocispec.Manifest)
		want   string
	}{
		{"a package", func(*ocispec.Manifest) {}, ""},
		{"an index by its own type", func(m *ocispec.Manifest) { m.MediaType = ocispec.MediaTypeImageIndex }, "is no package: its type is application/vnd.oci.image.index.v1+json"},
		{"another type", func(m *ocispec.Manifest) { m.ArtifactType = "application/vnd.cncf.helm.chart" }, "its type is application/vnd.cncf.helm.chart"},
		{"no type, as images have", func(m *ocispec.Manifest) { m.ArtifactType = ""; m.Config.MediaType = ocispec.MediaTypeImageConfig }, "its type is application/vnd.oci.image.config.v1+json"},
		{"another config", func(m *ocispec.Manifest) { m.Config.MediaType = ocispec.MediaTypeImageConfig }, "config: is no package: its type is"},
		{"another layer", func(m *ocispec.Manifest) { m.Layers[0].MediaType = ocispec.MediaTypeImageLayerGzip }, "layer: is no package: its type is"},
		{"no layer", func(m *ocispec.Manifest) { m.Layers = nil }, "the manifest has 0 layers"},
		{"a second layer", func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }, "the manifest has 2 layers"},
		{"a subject", func(m *ocispec.Manifest) { m.Subject = &m.Layers[0] }, "refers to another one"},
		{"a foreign URL of the layer", func(m *ocispec.Manifest) { m.Layers[0].URLs = []string{"https://evil.example.org"} }, "layer: the content is at other URLs"},
		{"a foreign URL of the config", func(m *ocispec.Manifest) { m.Config.URLs = []string{"https://evil.example.org"} }, "config: the content is at other URLs"},
		{"embedded data that differs", func(m *ocispec.Manifest) { m.Config.Data = []byte("{}") }, "the embedded data is not"},
		{"embedded data that is the content", func(m *ocispec.Manifest) { m.Config.Data = a.Config }, ""},
		{"another algorithm", func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.SHA512.FromString("x") }, "is no sha256 digest"},
		{"a digest with a path", func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../etc/passwd" }, "is no sha256 digest"},
		{"a huge layer", func(m *ocispec.Manifest) { m.Layers[0].Size = 16<<20 + 1 }, "is not between 1 and 16777216"},
		{"a negative size", func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }, "is not between 1 and"},
		{"a huge config", func(m *ocispec.Manifest) { m.Config.Size = MaxConfig + 1 }, "is not between 1 and 65536"},
		{"a huge manifest", func(m *ocispec.Manifest) { m.Annotations["x"] = strings.Repeat("a", MaxManifest) }, "more than the 262144 allowed"},
	} {
		_, err := ParseManifest(edit(t, a, tc.change), ocispec.MediaTypeImageManifest)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	if _, err := ParseManifest([]byte("{"), ocispec.MediaTypeImageManifest); err == nil {
		t.Error("half a document is a manifest")
	}
	if _, err := ParseManifest(a.Manifest, ocispec.MediaTypeImageIndex); err == nil || !strings.Contains(err.Error(), "image.index") {
		t.Errorf("an index by the type that the registry says: %v", err)
	}
}

// TestAssemble checks S3: a difference between the package and what is displayed of it is an error.
func TestAssemble(t *testing.T) {
	a := newArtifact(t)
	change := func(from, to string) func(*ocispec.Manifest) []byte {
		return func(m *ocispec.Manifest) []byte {
			config := bytes.Replace(a.Config, []byte(from), []byte(to), 1)
			m.Config.Digest, m.Config.Size = digest.FromBytes(config), int64(len(config))
			return config
		}
	}
	annotate := func(key, value string) func(*ocispec.Manifest) []byte {
		return func(m *ocispec.Manifest) []byte { m.Annotations[key] = value; return a.Config }
	}
	for _, tc := range []struct {
		reason string
		change func(m *ocispec.Manifest) []byte
		want   string
	}{
		{"what was pushed", func(*ocispec.Manifest) []byte { return a.Config }, ""},
		{"no annotations", func(m *ocispec.Manifest) []byte { m.Annotations = nil; return a.Config }, ""},
		{"annotations of others", annotate("org.example", "x"), ""},
		{"a field of a later version", change(`{"name"`, `{"later":"x","name"`), ""},
		{"no content, as of before there were signatures", change(`,"content":"`+contentOf(t, a)+`"`, ``), ""},
		{"another content", change(contentOf(t, a), "sha256:"+strings.Repeat("0", 64)), "the config says content sha256:000"},
		{"another name", change(`"name":"web"`, `"name":"bank"`), `the config says name "bank", and the package "web"`},
		{"another name, with a control character", change(`"name":"web"`, `"name":"b\u009b2J"`), `the config says name "b2J", and the package "web"`},
		{"another version", change(`"operatorVersion":"1.0.0"`, `"operatorVersion":"2.0.0"`), "the config says operatorVersion"},
		{"another appVersion", change(`"1.27.4"`, `"1.27.5"`), "the config says appVersion"},
		{"another maintainer", change("Ann", "Eve"), "the config says maintainers"},
		{"another dependency", change(`"postgres"`, `"mysql"`), "the config says dependencies"},
		{"a hidden install plan", change("false", "true"), "the config says installPlan true, and the package false"},
		{"another title", annotate(ocispec.AnnotationTitle, "bank"), `title says "bank", and the package "web"`},
		{"another version in the annotation", annotate(ocispec.AnnotationVersion, "2.0.0"), `version says "2.0.0"`},
		{"another description", annotate(ocispec.AnnotationDescription, "safe"), `description says "safe"`},
		{"no config", func(m *ocispec.Manifest) []byte {
			m.Config.Digest, m.Config.Size = digest.FromString("["), 1
			return []byte("[")
		}, "the config cannot be read"},
		{"a config that the digest is not of", func(*ocispec.Manifest) []byte { return []byte("{}") }, "config: the content is not what the digest"},
	} {
		var config []byte
		text := edit(t, a, func(m *ocispec.Manifest) { config = tc.change(m) })
		m, err := ParseManifest(text, ocispec.MediaTypeImageManifest)
		if err != nil {
			t.Fatal(tc.reason, err)
		}
		got, err := m.Assemble(config, a.Archive)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if err == nil && (got.Descriptor().Digest != digest.FromBytes(text) || got.Package.Operator.Name != "web") {
			t.Errorf("%s: the artifact is another one", tc.reason)
		}
	}
	m, err := ParseManifest(a.Manifest, ocispec.MediaTypeImageManifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Assemble(a.Config, append(bytes.Clone(a.Archive), 0)); err == nil {
		t.Error("a layer with a further byte is taken")
	}
}

// TestTags checks S4: which tags are versions, and that the way back is unambiguous.
func TestTags(t *testing.T) {
	for _, tc := range []struct {
		tag, app, operator string
		is                 bool
	}{
		{"1.0.0", "", "1.0.0", true}, {"17.4.0_1.0.0", "17.4.0", "1.0.0", true}, {"release-7_0.1.0-rc.1", "release-7", "0.1.0-rc.1", true},
		{"1", "", "", false}, {"0.1", "", "", false}, {"v1", "", "", false}, {"v1.0.0", "", "", false}, {"17.4.0_1", "", "", false}, {"01.0.0", "", "", false},
		{"latest", "", "", false}, {"1.0.0_latest", "", "", false}, {"_1.0.0", "", "", false}, {"1_2_3", "", "", false}, {"", "", "", false},
		{"sha256-" + strings.Repeat("a", 64), "", "", false}, {"1.0.0/../2", "", "", false},
	} {
		app, operator, is := ParseTag(tc.tag)
		if app != tc.app || operator != tc.operator || is != tc.is {
			t.Errorf("%q is %q, %q, %t", tc.tag, app, operator, is)
		}
		if is && Tag(app, operator) != tc.tag {
			t.Errorf("%q comes back as %q", tc.tag, Tag(app, operator))
		}
	}
	pkg := newArtifact(t).Package
	for tag, want := range map[string]bool{"1.27.4_1.0.0": true, "latest": true, "1": true, "1.27.4_1.0": true, "1.27.4_2.0.0": false, "1.0.0": false} {
		if err := CheckTag(tag, pkg); (err == nil) != want {
			t.Errorf("tag %s: %v (S31)", tag, err)
		}
	}
}

// FuzzAssemble checks that no manifest and config make the parser panic, and that what it takes is the package that it describes.
func FuzzAssemble(f *testing.F) {
	a := newArtifact(f)
	f.Add(a.Manifest, a.Config)
	f.Add([]byte(`{"layers":[{"size":1}]}`), []byte(`{"dependencies":[{}]}`))
	f.Fuzz(func(t *testing.T, manifest, config []byte) {
		m, err := ParseManifest(manifest, ocispec.MediaTypeImageManifest)
		if err != nil {
			return
		}
		if m.Layer.Size <= 0 || m.Config.Size <= 0 || m.Config.Size > MaxConfig {
			t.Errorf("sizes %d and %d", m.Layer.Size, m.Config.Size)
		}
		if got, err := m.Assemble(config, a.Archive); err == nil && !bytes.Contains(config, []byte(got.Package.Operator.Name)) {
			t.Errorf("config %q describes another package", config)
		}
		// A config is compared even if its digest is not the one of the manifest.
		_ = compareConfig(config, a.Package)
	})
}
