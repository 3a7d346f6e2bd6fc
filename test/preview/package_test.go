package preview

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is a package from which upgrades are made: the templates of two steps, and what all of them say.
type source struct {
	version                          int
	templates                        map[string]string
	first, second                    []string // templates of the steps of plan deploy
	replicas, image, cpu, value, key string
	hasMount                         bool
}

// base is the package that is installed. Pods are played, so that all of it becomes ready.
func base() *source {
	return &source{
		version: 1, replicas: "2", image: "web:1", cpu: "10m", value: "one", key: "settings", hasMount: true,
		templates: map[string]string{
			"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-config', labels: {tier: front}}\ndata: {KEY: 'VALUE'}\n",
			"extra.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-extra'}\ndata: {a: b}\n",
			"login.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-login'}\nstringData: {password: '{{ .Params.PASSWORD }}'}\n",
			"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Name }}'}\nspec:\n  selector: {app: '{{ .Name }}'}\n" +
				"  ports: [{name: http, port: 80, targetPort: 8080}]\n",
			"web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Name }}'}\nspec:\n  replicas: REPLICAS\n" +
				"  selector: {matchLabels: {app: '{{ .Name }}'}}\n  template:\n    metadata: {labels: {app: '{{ .Name }}'}}\n    spec:\n" +
				"      containers: [{name: web, image: 'IMAGE', resources: {requests: {cpu: CPU}}}]\nMOUNT",
			"store.yaml": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}-store'}\nspec:\n  replicas: 1\n  serviceName: none\n" +
				"  selector: {matchLabels: {app: '{{ .Name }}-store'}}\n  template:\n    metadata: {labels: {app: '{{ .Name }}-store'}}\n    spec:\n" +
				"      containers: [{name: store, image: 'store:1'}]\nCLAIMS",
			"job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '{{ .Name }}-job'}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n" +
				"      containers: [{name: job, image: 'job:JOB'}]\n",
		},
		first:  []string{"config.yaml", "extra.yaml", "login.yaml", "service.yaml"},
		second: []string{"web.yaml", "store.yaml"},
	}
}

// mutations change a package as its authors do, well or badly.
var mutations = map[string]func(s *source, r *rand.Rand){
	"image":          func(s *source, _ *rand.Rand) { s.image = "web:2" },
	"replicas":       func(s *source, _ *rand.Rand) { s.replicas = "3" },
	"quantity":       func(s *source, _ *rand.Rand) { s.cpu = "20m" },
	"bad quantity":   func(s *source, _ *rand.Rand) { s.cpu = "banana" },
	"bad number":     func(s *source, _ *rand.Rand) { s.replicas = "many" },
	"value":          func(s *source, _ *rand.Rand) { s.value = "two" },
	"key":            func(s *source, _ *rand.Rand) { s.key = "options" },
	"drop template":  func(s *source, r *rand.Rand) { i := r.Intn(2); s.first = slices.Delete(s.first, i, i+1) },
	"drop workload":  func(s *source, _ *rand.Rand) { s.second = s.second[:1] },
	"rename":         replaceIn("extra.yaml", "-extra", "-other"),
	"selector":       replaceIn("web.yaml", "matchLabels: {app: '{{ .Name }}'}", "matchLabels: {app: '{{ .Name }}', more: x}"),
	"claim template": replaceIn("store.yaml", "CLAIMS", "  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n"),
	"port":           replaceIn("service.yaml", "targetPort: 8080", "targetPort: 9090"),
	"bad port":       replaceIn("service.yaml", "port: 80,", "port: 99999,"),
	"label":          replaceIn("config.yaml", "tier: front", "tier: back"),
	"unknown field":  replaceIn("service.yaml", "  ports:", "  nonsense: true\n  ports:"),
	"immutable":      func(s *source, _ *rand.Rand) { s.templates["config.yaml"] += "immutable: true\n" },
	"new object": func(s *source, _ *rand.Rand) {
		s.add("new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-new'}\ndata: {n: m}\n")
	},
	"new job": func(s *source, _ *rand.Rand) { s.second = append(s.second, "job.yaml") },
	"unserved kind": func(s *source, _ *rand.Rand) {
		s.add("odd.yaml", "apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: odd}\n")
	},
	"foreign object": func(s *source, _ *rand.Rand) {
		s.add("foreign.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foreign}\ndata: {n: m}\n")
	},
	"broken template": func(s *source, _ *rand.Rand) {
		s.add("bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ fail \"no\" }}'}\n")
	},
	"no mount":          func(s *source, _ *rand.Rand) { s.hasMount = false },
	"second step first": func(s *source, _ *rand.Rand) { s.first, s.second = s.second, s.first },
}

func replaceIn(template, old, next string) func(*source, *rand.Rand) {
	return func(s *source, _ *rand.Rand) {
		s.templates[template] = strings.Replace(s.templates[template], old, next, 1)
	}
}

func (s *source) add(template, text string) {
	s.templates[template] = text
	s.first = append(s.first, template)
}

// mutated returns the next version of a package, with some mutations, and their names.
func (s *source) mutated(r *rand.Rand) (*source, []string) {
	next := *s
	next.version, next.templates = s.version+1, maps.Clone(s.templates)
	next.first, next.second = slices.Clone(s.first), slices.Clone(s.second)
	names := slices.Sorted(maps.Keys(mutations))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+r.Intn(3)]
	for _, name := range names {
		mutations[name](&next, r)
	}
	return &next, names
}

// write writes the package into a folder.
func (s *source) write(t *testing.T) string {
	t.Helper()
	mount := ""
	if s.hasMount {
		mount = "      volumes: [{name: c, configMap: {name: '{{ .Name }}-config', optional: true}}, {name: l, secret: {secretName: '{{ .Name }}-login', optional: true}}]\n"
	}
	words := strings.NewReplacer("REPLICAS", s.replicas, "IMAGE", s.image, "CPU", s.cpu, "KEY", s.key, "VALUE", s.value, "MOUNT", mount, "CLAIMS", "", "JOB", fmt.Sprint(s.version))
	step := func(name string, templates []string) string {
		return fmt.Sprintf("- {name: %s, kind: Apply, spec: {resources: [%s]}}\n", name, strings.Join(templates, ", "))
	}
	files := map[string]string{
		"operator.yaml": fmt.Sprintf("apiVersion: kudo.dev/v1beta1\nname: honest\noperatorVersion: %d.0.0\ntasks:\n", s.version) + step("one", s.first) + step("two", s.second) +
			"plans:\n  deploy:\n    strategy: serial\n    phases:\n    - name: main\n      strategy: serial\n      steps: [{name: first, tasks: [one]}, {name: second, tasks: [two]}]\n",
		"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: PASSWORD, sensitive: true}\n",
	}
	for name, text := range s.templates {
		files["templates/"+name] = words.Replace(text)
	}
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
