package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/cli"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

const (
	previewed     = 1000   // objects that the upgrade changes
	untouched     = 200    // objects that it leaves as they are
	living        = 10_000 // custom resources of the definition that it changes
	page          = 500
	previewRounds = 3
)

var (
	things     = schema.GroupVersionResource{Group: "bench.kudo.dev", Version: "v1", Resource: "things"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// BenchmarkPreview previews an upgrade that changes 1,000 objects and a definition with 10,000 custom resources (P4). It fails if the
// preview takes 5 s or more and also more than 1.2 times what its dry runs and its pages of objects take alone in the same run. It also
// fails if the preview sends more than one dry run for a changed object, or any for an unchanged one.
func BenchmarkPreview(b *testing.B) {
	ctrllog.SetLogger(logr.Discard())
	e, c := start(b)
	ns := namespace(b, c)
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	direct, err := dynamic.NewForConfig(config)
	must(b, err)
	old, next := b.TempDir(), b.TempDir()
	writePreviewed(b, old, "1.0.0", "a", "")
	writePreviewed(b, next, "1.1.0", "b", "note: {type: string}")
	run(b, e, 0, "install", old, "--instance", "p", "-n", ns, "--wait", "--create-service-account", "--yes")
	makeThings(b, direct, ns)
	upgrade := []string{"upgrade", next, "--instance", "p", "-n", ns, "--dry-run", "-o", "json"}
	check(b, run(b, e, 0, upgrade...))
	before := requests(b, c)
	run(b, e, 0, upgrade...)
	asked := requests(b, c).Since(before)
	checkRequests(b, asked)
	var previews, bares []time.Duration
	for b.Loop() {
		for range previewRounds { // in turns, so that what else the machine does slows down both
			began := time.Now()
			run(b, e, 0, upgrade...)
			previews = append(previews, time.Since(began))
			bares = append(bares, bare(b, direct, ns))
		}
	}
	took, alone := medianOf(previews), medianOf(bares)
	ratio := took.Seconds() / alone.Seconds()
	b.ReportMetric(took.Seconds(), "s/preview")
	b.ReportMetric(alone.Seconds(), "s/bare")
	b.ReportMetric(ratio, "preview/bare")
	b.ReportMetric(float64(asked.DryRuns()), "dry-runs")
	b.ReportMetric(float64(asked.Total()), "requests")
	b.Logf("previews %v\nbare %v\n%v", previews, bares, asked)
	if took > 5*time.Second && ratio > 1.2 {
		b.Errorf("a preview took %s, which is over 5s, and %.2f times what its questions take alone, which is over 1.2", took, ratio)
	}
}

// run runs a command of kudo in this process, so that a profile shows what it does.
func run(b *testing.B, e *env.Env, code int, args ...string) string {
	b.Helper()
	var out, errs bytes.Buffer
	if got := cli.Main(append(args, "--kubeconfig", e.Kubeconfig), strings.NewReader(""), &out, &errs); got != code {
		b.Fatalf("kubectl kudo %s: exit code %d\n%s%.2000s", strings.Join(args, " "), got, errs.String(), out.String())
	}
	return out.String()
}

// writePreviewed writes a package: a plan of ConfigMaps with a value, of others without it, and an install plan with a definition.
func writePreviewed(b *testing.B, dir, version, value, property string) {
	b.Helper()
	configs := func(prefix string, n int, value string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-%s-%d'}\ndata: {value: '%s', other: stays}\n", prefix, i, value)
		}
		return out.String()
	}
	files := map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: previewed\noperatorVersion: " + version + `
installPlan: install
installPolicy: {sharedUpdates: SameOperator}
tasks:
- {name: kind, kind: Apply, spec: {resources: [kind.yaml]}}
- {name: all, kind: Apply, spec: {resources: [changed.yaml, same.yaml]}}
plans:
  install:
    strategy: serial
    phases: [{name: install, strategy: serial, steps: [{name: kind, tasks: [kind]}]}]
  deploy:
    strategy: serial
    phases: [{name: all, strategy: serial, steps: [{name: all, tasks: [all]}]}]
`,
		"params.yaml":            "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		"templates/changed.yaml": configs("changed", previewed, value),
		"templates/same.yaml":    configs("same", untouched, "always"),
		"templates/kind.yaml": fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.bench.kudo.dev}
spec:
  group: bench.kudo.dev
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              name: {type: string, maxLength: 64}
              size: {type: integer, minimum: 0}
              %s
`, property),
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must(b, os.MkdirAll(filepath.Dir(file), 0o755))
		must(b, os.WriteFile(file, []byte(text), 0o600))
	}
}

// makeThings makes the custom resources.
func makeThings(b *testing.B, direct dynamic.Interface, ns string) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(apply.Writers)
	for i := range living {
		group.Go(func() error {
			thing := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "bench.kudo.dev/v1", "kind": "Thing", "metadata": map[string]any{"name": fmt.Sprintf("thing-%d", i)},
				"spec": map[string]any{"name": fmt.Sprintf("thing %d", i), "size": int64(i)},
			}}
			_, err := direct.Resource(things).Namespace(ns).Create(context.Background(), thing, metav1.CreateOptions{})
			return err
		})
	}
	must(b, group.Wait())
}

// bare asks what the preview asks, and nothing else: a dry run of each changed object, as many at a time as kudo writes, and the pages of the
// custom resources.
func bare(b *testing.B, direct dynamic.Interface, ns string) time.Duration {
	b.Helper()
	list, err := direct.Resource(configMaps).Namespace(ns).List(context.Background(), metav1.ListOptions{LabelSelector: v1beta1.InstanceLabel + "=p"})
	must(b, err)
	var bodies []*unstructured.Unstructured
	for i := range list.Items {
		body := &list.Items[i]
		if !strings.HasPrefix(body.GetName(), "p-changed-") {
			continue
		}
		body.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMap"))
		body.SetManagedFields(nil)
		body.SetCreationTimestamp(metav1.Time{})
		must(b, unstructured.SetNestedField(body.Object, "b", "data", "value"))
		bodies = append(bodies, body)
	}
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(apply.Writers)
	for _, body := range bodies {
		group.Go(func() error {
			_, err := direct.Resource(configMaps).Namespace(ns).Apply(context.Background(), body.GetName(), body,
				metav1.ApplyOptions{FieldManager: "bench", Force: true, DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	must(b, group.Wait())
	for token := ""; ; {
		list, err := direct.Resource(things).List(context.Background(), metav1.ListOptions{Limit: page, Continue: token})
		must(b, err)
		if token = list.GetContinue(); token == "" {
			return time.Since(began)
		}
	}
}

// check refuses a preview that is not the one that is to be measured.
func check(b *testing.B, text string) {
	b.Helper()
	p := &preview.Preview{}
	must(b, json.Unmarshal([]byte(text), p))
	if p.Fails() || len(p.Runs) != 2 || p.Count(preview.Modify) < previewed+1 || p.Count(preview.Unknown) > 0 {
		b.Fatalf("this is not what is to be measured: %s", p.Summary())
	}
	if d := p.Definitions; len(d) != 1 || d[0].Objects == nil || d[0].Objects.Checked != living {
		b.Fatalf("not each custom resource was checked: %+v", d)
	}
	b.Log(p.Summary())
}

func checkRequests(b *testing.B, asked env.Requests) {
	b.Helper()
	for key, most := range map[string]int{env.DryRun + " configmaps": previewed, env.DryRun + " customresourcedefinitions": 1, "LIST things": living / page} {
		if asked[key] > most {
			b.Errorf("%d times %s: more than %d", asked[key], key, most)
		}
	}
	if n := asked.Writes(); n > 0 {
		b.Errorf("a preview has written %d times: %v", n, asked)
	}
}

func medianOf(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
