package preview

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

var update = flag.Bool("update", false, "write the comments of docs/examples/previews")

// plan is a package of one step, whose task applies templates.
const plan = `
tasks:
- {name: app, kind: Apply, spec: {resources: [RESOURCES]}}
plans:
  deploy:
    strategy: serial
    phases: [{name: app, strategy: serial, steps: [{name: app, tasks: [app]}]}]
`

// installed adds an install plan.
const installed = `
installPlan: install
installPolicy: {sharedUpdates: SameOperator}
tasks:
- {name: kind, kind: Apply, spec: {resources: [kind.yaml]}}
- {name: app, kind: Apply, spec: {resources: [config.yaml]}}
plans:
  install:
    strategy: serial
    phases: [{name: install, strategy: serial, steps: [{name: kind, tasks: [kind]}]}]
  deploy:
    strategy: serial
    phases: [{name: app, strategy: serial, steps: [{name: app, tasks: [app]}]}]
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Name }}'}
spec:
  replicas: 3
  selector: {matchLabels: {app: '{{ .Name }}'}}
  template:
    metadata: {labels: {app: '{{ .Name }}'}}
    spec:
      containers: [{name: shop, image: 'example.com/shop:TAG', env: [{name: MODE, value: 'MODE'}]}]
`

const login = "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-login'}\nstringData: {password: '{{ .Params.PASSWORD }}'}\n"

const database = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: '{{ .Name }}'}
spec:
  replicas: 1
  serviceName: none
  selector: {matchLabels: {app: '{{ .Name }}'}}
  template:
    metadata: {labels: {app: '{{ .Name }}'}}
    spec:
      containers: [{name: db, image: 'example.com/db:1', volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: '{{ .Params.SIZE }}'}}}
`

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: orders, singular: order, kind: Order, listKind: OrderList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {customer: {type: string, maxLength: MOST}}}
`

// secondVersion is a version of the definition that is stored.
const secondVersion = `  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {customer: {type: string, maxLength: 64}}}
`

// sample is an upgrade whose comment stands in the documents.
type sample struct {
	reason string
	// operator is all of operator.yaml but its name and version; before and after are the templates.
	operator      [2]string
	before, after map[string]string
	// install and upgrade are arguments of the commands.
	install, upgrade []string
	// prepare makes what lives in the cluster.
	prepare func(t *testing.T, ns string)
	code    int
	want    []string
}

var samples = map[string]sample{
	"restart-and-rights": {
		reason:   "a rolling restart, and a Secret that the account may not write yet",
		operator: [2]string{strings.Replace(plan, "RESOURCES", "shop.yaml", 1), strings.Replace(plan, "RESOURCES", "login.yaml, shop.yaml", 1)},
		before:   map[string]string{"shop.yaml": strings.NewReplacer("TAG", "1.0", "'MODE'", "plain").Replace(deployment)},
		after:    map[string]string{"shop.yaml": strings.NewReplacer("TAG", "1.1", "'MODE'", "<b>new</b> | @all").Replace(deployment), "login.yaml": login},
		install:  []string{"--create-service-account", "--yes"}, upgrade: []string{"-p", "PASSWORD=" + password},
		want: []string{"restarts 3 pods (rolling)", "secrets: get, patch, delete", "| create | Secret sample-restart-and-rights/site-login |", "&lt;b&gt;new&lt;/b&gt; &#124; &#64;all"},
	},
	"refused-field": {
		reason:   "a field that the API server does not let change, and the parameter that changes it",
		operator: [2]string{strings.Replace(plan, "RESOURCES", "db.yaml", 1), strings.Replace(plan, "RESOURCES", "db.yaml", 1)},
		before:   map[string]string{"db.yaml": database}, after: map[string]string{"db.yaml": database},
		upgrade: []string{"-p", "SIZE=5Gi"}, code: 3,
		want: []string{"would fail at app/app", "| refused | StatefulSet sample-refused-field/site |", "1Gi -&gt; 5Gi", "spec.volumeClaimTemplates&#91;0&#93;.spec.resources.requests.storage: template db.yaml uses SIZE"},
	},
	"definition-narrowed": {
		reason:   "a definition that would not accept all objects any more that live",
		operator: [2]string{installed, installed},
		before:   map[string]string{"kind.yaml": strings.Replace(definition, "MOST", "64", 1), "config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\n"},
		after:    map[string]string{"kind.yaml": strings.Replace(definition, "MOST", "8", 1), "config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\n"},
		prepare:  func(t *testing.T, ns string) { makeOrder(t, ns, "shop.example.com") }, code: 3,
		want: []string{"plan install of OperatorVersion", "| refused | CustomResourceDefinition orders.shop.example.com |", "maxLength"},
	},
}

// makeOrder makes a custom resource that the narrowed definition refuses.
func makeOrder(t *testing.T, ns, group string) {
	t.Helper()
	order := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Order", "metadata": map[string]any{"namespace": ns, "name": "first"},
		"spec": map[string]any{"customer": "a name that is too long for the next version"},
	}}
	env.Eventually(t, "an order", func() string {
		if err := suite.Create(t.Context(), order); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestComments checks the comments of three upgrades, which are in the documents, and that no sensitive value is in them (P7, P15).
func TestComments(t *testing.T) {
	for name, s := range env.Sorted(samples) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := "sample-" + name
			env.Must(t, suite.Create(t.Context(), &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}))
			env.Must(t, suite.Account(t.Context(), ns))
			old, next := writeSample(t, "1.0.0", s.operator[0], s.before), writeSample(t, "1.1.0", s.operator[1], s.after)
			suite.MustKudo(t, 0, append([]string{"install", old, "--instance", "site", "-n", ns, "--wait"}, s.install...)...)
			if s.prepare != nil {
				s.prepare(t, ns)
			}
			upgrade := append([]string{"upgrade", next, "--instance", "site", "-n", ns, "--dry-run", "-o", "markdown"}, s.upgrade...)
			text := suite.MustKudo(t, s.code, upgrade...)
			begin, end := strings.Index(text, "<!-- "), strings.LastIndex(text, "\nsha256:")
			if begin < 0 || end < begin {
				t.Fatalf("no comment:\n%s", text)
			}
			digest, _, _ := strings.Cut(text[end+1:], "\n")
			text = text[begin:end+1] + digest + "\n"
			if strings.Contains(text, password) || strings.Contains(text, "<b>") {
				t.Fatalf("the comment shows a sensitive value, or HTML of a package:\n%s", text)
			}
			env.Contains(t, text, s.want...)
			compareComment(t, name, s.reason, text)
		})
	}
}

// compareComment compares a comment with the one in the documents, or writes that.
func compareComment(t *testing.T, name, reason, text string) {
	t.Helper()
	file := filepath.Join(sourcetree.Root(), "docs", "examples", "previews", name+".md")
	if *update {
		env.Must(t, os.WriteFile(file, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	env.Must(t, err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s: the comment differs (go test ./test/preview -run TestComments -update writes it): -want +got\n%s", reason, diff)
	}
}

// writeSample writes a package into a folder.
func writeSample(t *testing.T, version, operator string, templates map[string]string) string {
	t.Helper()
	files := map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: shop\noperatorVersion: " + version + operator,
		"params.yaml":   "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: PASSWORD, sensitive: true, default: none}\n- {name: SIZE, default: 1Gi}\n",
	}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		env.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		env.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}
