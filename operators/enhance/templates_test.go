package enhance

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTemplatePath checks which kinds have a pod template, and that the group decides.
func TestTemplatePath(t *testing.T) {
	plain := []string{"spec", "template"}
	for kind, want := range map[string][]string{
		"Deployment.apps": plain, "ReplicaSet.apps": plain, "DaemonSet.apps": plain, "StatefulSet.apps": plain, "ReplicationController": plain,
		"Job.batch":     plain,
		"CronJob.batch": {"spec", "jobTemplate", "spec", "template"},
		"Deployment":    nil, "Deployment.extensions": nil, "Job": nil, "CronJob.apps": nil, "Pod": nil, "PodTemplate": nil, "ConfigMap": nil,
		"deployment.apps":            nil,
		"ReplicationController.apps": nil, "StatefulSet.apps.example.org": nil, "": nil,
	} {
		if diff := cmp.Diff(want, templatePath(schema.ParseGroupKind(kind))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
}

// TestEnhanceTwoTemplates checks that objects of one task are enhanced independently, in their order.
func TestEnhanceTwoTemplates(t *testing.T) {
	one := parse(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {app: a}, annotations: {own: x}}}}}`)
	two := parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {template: {}}}`)
	if err := Enhance([]*unstructured.Unstructured{one, two}, testContext(), nil); err != nil {
		t.Fatal(err)
	}
	for object, want := range map[*unstructured.Unstructured]string{
		one: `{metadata: {labels: {app: a, heritage: kudo, kudo.dev/operator: web, kudo.dev/instance: shop}, annotations: {own: x,
			kudo.dev/operator-version: 1.2.0}}}`,
		two: `{` + template + `}`,
	} {
		got, _, err := unstructured.NestedMap(object.Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parse(t, `{apiVersion: v1, kind: X, t: `+want+`}`).Object["t"], any(got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", object.GetName(), diff)
		}
	}
}

// TestEnhanceStopsAtTheFirstError checks which object an error names, and that objects behind it are left alone.
func TestEnhanceStopsAtTheFirstError(t *testing.T) {
	good := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}`)
	bad := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: bad}}`)
	worse := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: worse}}`)
	err := Enhance([]*unstructured.Unstructured{good, bad, worse}, testContext(), nil)
	if message(err) != "Deployment bad: spec is missing" || worse.GetLabels() != nil || good.GetLabels() == nil {
		t.Errorf("error %v", err)
	}
	if err := Enhance(nil, testContext(), nil); err != nil {
		t.Errorf("a task without objects: %v", err)
	}
}

// TestMalformedTemplates checks errors below the metadata of templates, with their whole path.
func TestMalformedTemplates(t *testing.T) {
	for name, tc := range map[string]struct{ reason, in, want string }{
		"SpecText": {"spec is a map", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: x}`,
			"Deployment d: spec must be a map, not a string"},
		"Metadata": {"the metadata of pods is a map",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {metadata: []}}}`,
			"Deployment d: spec.template.metadata must be a map, not a list"},
		"Annotations": {"annotations of pods are text",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {metadata: {annotations: {a: 1}}}}}`,
			"Deployment d: spec.template.metadata.annotations.a must be a string, not a number: put it in quotes"},
		"CronTemplate": {"a CronJob has its template deeper",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: d}, spec: {jobTemplate: {spec: {}}}}`,
			"CronJob d: spec.jobTemplate.spec.template is missing"},
		"CronText": {"and each map on the way is checked",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: d}, spec: {jobTemplate: {spec: 1}}}`,
			"CronJob d: spec.jobTemplate.spec must be a map, not a number"},
		"ClaimsMap": {"claims are a list",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {template: {}, volumeClaimTemplates: {}}}`,
			"StatefulSet d: spec.volumeClaimTemplates must be a list, not a map"},
		"ClaimText": {"the metadata of a claim is a map",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {template: {}, volumeClaimTemplates: [{}, {metadata: x}]}}`,
			"StatefulSet d: spec.volumeClaimTemplates[1].metadata must be a map, not a string"},
		"PullSecrets": {"pull secrets are a list",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {imagePullSecrets: x}}}}`,
			"Deployment d: spec.template.spec.imagePullSecrets must be a list, not a string"},
		"NoKind": {"an object without a kind is enhanced as far as it goes", `{apiVersion: v1, kind: "", metadata: x}`,
			"object without a kind without a name: metadata must be a map, not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: parse(t, `{apiVersion: v1, kind: X, o: `+tc.in+`}`).Object["o"].(map[string]any)}
			err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil)
			var malformed *MalformedError
			if !errors.As(err, &malformed) || err.Error() != tc.want {
				t.Errorf("%s: error %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestDependencies checks the list of what pods read, which callers look up before a task runs.
func TestDependencies(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in string
		want       []Dependency
		err        string
	}{
		"NoTemplate": {"a kind without pods depends on nothing", `{apiVersion: v1, kind: ConfigMap}`, nil, ""},
		"NoSpec":     {"pods without a spec depend on nothing", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {}}}`, nil, ""},
		"Sorted": {"sorted by kind and name, each as often as it stands", `{apiVersion: apps/v1, kind: Deployment,
			spec: {template: {spec: {imagePullSecrets: [{name: z}, {name: p}],
			volumes: [{secret: {secretName: b}}, {configMap: {name: x}}, {emptyDir: {}}, {configMap: {name: a}}, {configMap: {name: a}}]}}}}`,
			[]Dependency{{"ConfigMap", "a"}, {"ConfigMap", "a"}, {"ConfigMap", "x"}, {"Secret", "b"}, {"Secret", "p"}, {"Secret", "z"}}, ""},
		"Both": {"a volume with two sources has both",
			`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {volumes: [{configMap: {name: c}, secret: {secretName: s}}]}}}}`,
			[]Dependency{{"ConfigMap", "c"}, {"Secret", "s"}}, ""},
		"WrongKey": {"the name of a Secret stands in secretName",
			`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {volumes: [{secret: {name: s}}, {configMap: {secretName: c}}]}}}}`, nil,
			""},
		"CronJob": {"a CronJob has its template deeper",
			`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {volumes: [{configMap: {name: c}}]}}}}}}`,
			[]Dependency{{"ConfigMap", "c"}}, ""},
		"Missing": {"a template is needed", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {}}`, nil,
			"Deployment d: spec.template is missing"},
		"Wrong": {"volumes are maps",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {volumes: [x]}}}}`, nil,
			"Deployment d: spec.template.spec.volumes[0] must be a map, not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.in)
			before := object.DeepCopy()
			got, err := Dependencies(object)
			if message(err) != tc.err {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Object, object.Object); diff != "" {
				t.Errorf("%s: the object is changed: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLookupCalls checks that only what is not in the task is looked up, by kind, namespace of the Instance and name.
func TestLookupCalls(t *testing.T) {
	var calls []string
	lookup := func(kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
		calls = append(calls, kind.Version+" "+kind.Kind+" "+namespace+"/"+name)
		return nil, nil
	}
	pod := withVolumes(t, "{configMap: {name: own}}", "{secret: {secretName: s}}", "{configMap: {name: c}}", "{secret: {secretName: own}}")
	own := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: elsewhere}}`)
	if err := Enhance([]*unstructured.Unstructured{pod, own}, testContext(), lookup); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1 ConfigMap prod/c", "v1 Secret prod/own", "v1 Secret prod/s"}, calls); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHashErrors checks that an error of a dependency names both objects, and keeps its cause.
func TestHashErrors(t *testing.T) {
	broken := errors.New("the key is not readable")
	ctx := testContext()
	ctx.Digest = func([]byte) ([16]byte, error) { return [16]byte{}, broken }
	secret := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}}`)
	err := Enhance([]*unstructured.Unstructured{withVolumes(t, "{secret: {secretName: s}}"), secret}, ctx, nil)
	if !errors.Is(err, broken) || err.Error() != "hashing Secret s, which Deployment d depends on: the key is not readable" {
		t.Errorf("an error of the digest: %v", err)
	}
	ctx.Digest = nil
	err = Enhance([]*unstructured.Unstructured{withVolumes(t, "{secret: {secretName: s}}"), secret}, ctx, nil)
	if message(err) != "hashing Secret s, which Deployment d depends on: there is no key for the digests of Secrets" {
		t.Errorf("no digest: %v", err)
	}
	odd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "c", "namespace": "prod"}, "data": uint8(1)}}
	err = Enhance([]*unstructured.Unstructured{withVolumes(t, "{configMap: {name: c}}")}, testContext(), cluster(odd))
	if message(err) != "hashing ConfigMap c, which Deployment d depends on: ConfigMap c: data is no JSON value, but uint8" {
		t.Errorf("a live object that is no JSON: %v", err)
	}
}

// TestAnnotationOfAnotherObject checks which texts in KUDO's annotation count as an object.
func TestAnnotationOfAnotherObject(t *testing.T) {
	pod := withVolumes(t, "{configMap: {name: c}}")
	live := enhanced(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`))
	want := hashOf(t, cluster(live), pod)
	for _, text := range []string{"", "null", "[]", `"text"`, "{", "1",
		`{"metadata":{"annotations":{"kudo.dev/last-plan-execution-uid":"another"}}}`} {
		annotated := live.DeepCopy()
		all := annotated.GetAnnotations()
		all["kudo.dev/last-applied-configuration"] = text
		annotated.SetAnnotations(all)
		if got := hashOf(t, cluster(annotated), pod); got != want {
			t.Errorf("%q counts as an object", text)
		}
	}
}
