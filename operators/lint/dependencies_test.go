package lint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOwnDependencies (C63): an object that awaits what a controller makes from another object of its own task is a task that never ends.
func TestOwnDependencies(t *testing.T) {
	const (
		maker   = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\nspec: {secretName: web-tls}\n"
		waiting = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, annotations: {kudo.dev/dependencies: await}}\nspec: {template: {spec: {volumes: [{secret: {secretName: web-tls}}]}}}\n"
		warning = "Deployment web awaits its dependencies and names Secret web-tls, which Certificate web of the same task makes: task a would wait, and write neither; apply the Certificate in a task of an earlier step"
		two     = "tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml, b.yaml]}}]"
		apart   = "tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}, {name: b, kind: Apply, spec: {resources: [b.yaml]}}]"
	)
	tasks := func(text string) string {
		return strings.Replace(plainOperator, "tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]", text, 1)
	}
	for name, tc := range map[string]struct {
		reason string
		files  files
		want   []string
	}{
		"OneTemplate": {"both in one template", files{"templates/a.yaml": maker + "---\n" + waiting}, []string{"W templates/a.yaml: " + warning}},
		"OneTask":     {"both in one task", files{"operator.yaml": tasks(two), "templates/a.yaml": maker, "templates/b.yaml": waiting}, []string{"W templates/b.yaml: " + warning}},
		"Apart":       {"in tasks of their own", files{"operator.yaml": strings.Replace(tasks(apart), "tasks: [a]", "tasks: [a, b]", 1), "templates/a.yaml": maker, "templates/b.yaml": waiting}, nil},
		"Refuse":      {"an object that does not wait", files{"templates/a.yaml": maker + "---\n" + strings.Replace(waiting, "await", "refuse", 1)}, nil},
		"Plain":       {"nor without the annotation", files{"templates/a.yaml": maker + "---\n" + strings.Replace(waiting, "annotations", "labels", 1)}, nil},
		"Another":     {"another Secret", files{"templates/a.yaml": maker + "---\n" + strings.Replace(waiting, "secretName: web-tls", "secretName: other", 1)}, nil},
		"OwnName": {"a kind that makes the Secret of its name", files{"templates/a.yaml": "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {name: web-tls}\nspec: {}\n---\n" + waiting},
			[]string{"W templates/a.yaml: " + strings.ReplaceAll(strings.Replace(warning, "Certificate web ", "KafkaUser web-tls ", 1), "the Certificate", "the KafkaUser")}},
		"Itself":   {"the maker itself does not need what it makes", files{"templates/a.yaml": strings.Replace(maker, "{name: web}", "{name: web, annotations: {kudo.dev/dependencies: await}}", 1)}, nil},
		"Metadata": {"a label is no reference", files{"templates/a.yaml": maker + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: web-tls}, annotations: {kudo.dev/dependencies: await}}\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lines(Lint(tc.files.read(t)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
