package preview

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// files are the files of a package, by their paths.
type files map[string]string

// base is a package that the tests install. Mutations of its files are the versions that the tests upgrade it to.
type base struct {
	name  string
	files files
	// parameters are those without a default, with values.
	parameters []string
	// installParameters are the arguments that give those of the install plan.
	installParameters []string
	// shared are the words in the names of what the package has in the cluster: each case has its own there.
	shared []string
	// tarballs are the definitions of the CRD tarball of each version of the application.
	tarballs map[string]string
	// live is an object of a kind of the package that a user makes; it may be empty.
	live string
}

// catalog are the packages of the catalog, with what they need. Their pods are played, so that all become ready.
var catalog = map[string]base{
	"etcd": {
		shared: []string{"backup-store"}, installParameters: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"},
		parameters: []string{"PASSWORD=" + password, "BACKUP_USER=team", "BACKUP_PASSWORD=" + password, "BACKUP_KEY=" + password, "BACKUP_CA=c", "IMAGE_REGISTRY=localhost/catalog"},
	},
	"etcd-definition": {shared: []string{"etcd-operator", "operator.etcd.io"}},
	"guestbook":       {},
	"hello":           {},
	"imageswitch":     {shared: []string{"imageswitch"}},
	"mariadb": {
		shared: []string{"backup-store"}, installParameters: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"},
		parameters: []string{"PASSWORD=" + password, "BACKUP_USER=team", "BACKUP_PASSWORD=" + password, "BACKUP_KEY=" + password, "BACKUP_CA=c", "IMAGE_REGISTRY=localhost/catalog"},
	},
	"noticeboard": {
		shared: []string{"noticeboard"}, parameters: []string{"AUTHORS=[alice]"},
		live: "apiVersion: noticeboard.example.com/v1\nkind: Notice\nmetadata: {name: theirs}\nspec: {text: closed on Mondays}\n",
	},
	"postgres": {parameters: []string{"PASSWORD=" + password, "BACKUP_KEY=" + password, "IMAGE_REGISTRY=localhost/catalog"}},
	"rabbitmq": {
		shared: []string{"backup-store"}, installParameters: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"},
		parameters: []string{"PASSWORD=" + password, "BACKUP_USER=team", "BACKUP_PASSWORD=" + password, "BACKUP_KEY=" + password, "BACKUP_CA=c", "IMAGE_REGISTRY=localhost/catalog"},
	},
	"redis": {installParameters: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"}, parameters: []string{"PASSWORD=" + password, "BACKUP_STORE=none", "IMAGE_REGISTRY=localhost/catalog"}, shared: []string{"backup-store"}},
	"printshop": {
		shared: []string{"printshop"},
		live:   "apiVersion: printshop.example.com/v1\nkind: Print\nmetadata: {name: theirs}\nspec: {text: a poster}\n",
	},
}

// packagesOfOthers are those of the corpus.
var packagesOfOthers = []string{"confluent-schema-registry", "cowsay", "elastic", "first-operator", "mysql", "redis", "zookeeper"}

// bases returns the packages that the tests upgrade: the hand-written one, those of the catalog, and those of the corpus where the corpus exists.
func bases(t *testing.T) []base {
	t.Helper()
	out := []base{written(), parent()}
	root := filepath.Join(sourcetree.Root(), "operators", "catalog")
	for _, folder := range corpus.Folders(t, root, "operator.yaml") {
		name := filepath.Base(filepath.Dir(folder))
		b, known := catalog[name]
		if !known {
			t.Fatalf("package %s of the catalog is not in the table of bases: add what it needs", name)
		}
		b.name, b.files = name, load(t, folder)
		if name == "printshop" {
			b.tarballs = printshopTarballs(t, filepath.Join(filepath.Dir(folder), "crds"))
			b.files["operator.yaml"] = replaceOnce(t, b.files["operator.yaml"], "appVersion: 1.5.0", "appVersion: 1.4.0")
		}
		out = append(out, b)
	}
	if dir := corpus.Optional(t); dir != "" {
		for _, folder := range corpus.Folders(t, filepath.Join(dir, "packages"), "operator.yaml") {
			name := filepath.Base(filepath.Dir(folder))
			if !slices.Contains(packagesOfOthers, name) {
				t.Fatalf("package %s of the corpus is no base", name)
			}
			out = append(out, base{name: name, files: load(t, folder)})
		}
	}
	return out
}

// replaceOnce replaces the first occurrence of a text, which must exist.
func replaceOnce(t *testing.T, text, old, next string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in\n%s", old, text)
	}
	return strings.Replace(text, old, next, 1)
}

// load reads a package where it lies. Its budgets get the API that clusters still serve.
func load(t *testing.T, folder string) files {
	t.Helper()
	out := files{}
	env.Must(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path)))
		out[path] = strings.ReplaceAll(string(text), "policy/v1beta1", "policy/v1")
		return err
	}))
	return out
}

// printshopTarballs are the definitions of two versions of the printshop, and of one that takes shorter texts only.
func printshopTarballs(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, version := range []string{"1.4.0", "1.5.0"} {
		for _, text := range env.Sorted(load(t, filepath.Join(folder, version))) {
			out[version] += "---\n" + text
		}
	}
	out["1.6.0"] = replaceOnce(t, out["1.5.0"], "description: What is printed.\n", "description: What is printed.\n                  maxLength: 5\n")
	return out
}

// rename gives what a package has in the cluster names of a namespace.
func (b base) rename(text, ns string) string {
	for _, word := range b.shared {
		text = strings.ReplaceAll(text, word, word+"-"+ns)
	}
	return text
}

// write writes a version of the package into a folder, for a namespace.
func (b base) write(t *testing.T, version files, ns string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range version {
		if strings.HasPrefix(path, "templates/") {
			text = b.rename(text, ns)
		}
		if _, definitions, found := b.tarballOf(version); found && path == "operator.yaml" {
			sum := sha256.Sum256(gen.Tarball(b.rename(definitions, ns)))
			text = digestOfTarball.ReplaceAllString(text, fmt.Sprintf("sha256: %x", sum))
		}
		file := filepath.Join(dir, filepath.FromSlash(path))
		env.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		env.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// tarballOf finds the definitions of the tarball of a version.
func (b base) tarballOf(version files) (app, definitions string, found bool) {
	for app, definitions := range b.tarballs {
		if strings.Contains(version["operator.yaml"], "appVersion: "+app) {
			return app, definitions, true
		}
	}
	return "", "", false
}

// publish makes the ConfigMaps of the tarballs.
func (b base) publish(t *testing.T, ns string) {
	t.Helper()
	for app, definitions := range b.tarballs {
		env.Must(t, suite.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: gen.Meta(ns, b.name+"-crds-"+app), BinaryData: map[string][]byte{"crds.tar.gz": gen.Tarball(b.rename(definitions, ns))},
		}))
	}
}

// read reads operator.yaml.
func (f files) read(t *testing.T) operators.OperatorFile {
	t.Helper()
	tree := fstest.MapFS{}
	for path, text := range f {
		tree[path] = &fstest.MapFile{Data: []byte(text)}
	}
	p, err := operators.Read(tree)
	env.Must(t, err)
	return p.Operator
}

// templates are the names of the templates that hold objects, in order.
func (f files) templates() []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if name, is := strings.CutPrefix(path, "templates/"); is && strings.Contains(f[path], "kind: ") {
			out = append(out, name)
		}
	}
	return out
}

// written returns the hand-written package. Its plan has two steps, and most mutations apply to it.
func written() base {
	return base{name: "written", parameters: []string{"PASSWORD=" + password}, files: files{
		"operator.yaml": `apiVersion: kudo.dev/v1beta1
name: written
operatorVersion: 1.0.0
tasks:
- {name: one, kind: Apply, spec: {resources: [config.yaml, extra.yaml, login.yaml, service.yaml]}}
- {name: two, kind: Apply, spec: {resources: [web.yaml, store.yaml]}}
plans:
  deploy:
    strategy: serial
    phases:
    - name: main
      strategy: serial
      steps: [{name: first, tasks: [one]}, {name: second, tasks: [two]}]
`,
		"params.yaml":            "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: PASSWORD, sensitive: true}\n- {name: MODE, default: plain}\n",
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-config\n  labels:\n    tier: front\ndata:\n  KEY: one\n  mode: {{ .Params.MODE }}\n",
		"templates/extra.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-extra\ndata:\n  a: b\n",
		"templates/login.yaml":   "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}-login\nstringData:\n  password: '{{ .Params.PASSWORD }}'\n",
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Name }}\nspec:\n  selector:\n    app: {{ .Name }}\n  ports:\n    - name: http\n      port: 80\n      targetPort: 8080\n",
		"templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: {{ .Name }}
  template:
    metadata:
      labels:
        app: {{ .Name }}
    spec:
      containers:
        - name: web
          image: web:1
          resources:
            requests:
              cpu: 10m
      volumes: [{name: c, configMap: {name: '{{ .Name }}-config', optional: true}}, {name: l, secret: {secretName: '{{ .Name }}-login', optional: true}}]
`,
		"templates/store.yaml": `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .Name }}-store
spec:
  replicas: 1
  serviceName: none
  selector:
    matchLabels:
      app: {{ .Name }}-store
  template:
    metadata:
      labels:
        app: {{ .Name }}-store
    spec:
      containers:
        - name: store
          image: store:1
`,
	}}
}
