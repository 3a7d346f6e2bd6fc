package enhance

import (
	"crypto/md5"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// testContext is that of Instance shop in namespace prod. Kinds of the group of RBAC and Namespaces are
// cluster-scoped.
// keyed stands for a digest with a key.
func keyed(text []byte) [16]byte { return md5.Sum(append([]byte("key"), text...)) }

func testContext() Context {
	return Context{
		Operator: "web", OperatorVersion: "1.2.0",
		Instance: types.NamespacedName{Namespace: "prod", Name: "shop"}, InstanceUID: "uid-1",
		Plan: "deploy", Phase: "main", Step: "app", PlanUID: "run-1",
		Digest: func(text []byte) ([16]byte, error) { return keyed(text), nil },
		Scope: func(kind schema.GroupKind) (bool, error) {
			return kind.Kind != "Namespace" && kind.Kind != "ClusterRole", nil
		},
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("YAML of the test: %v\n%s", err, text)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("object of the test: %v\n%s", err, text)
	}
	return object
}

const (
	labels      = `{heritage: kudo, kudo.dev/operator: web, kudo.dev/instance: shop}`
	annotations = `{kudo.dev/plan: deploy, kudo.dev/phase: main, kudo.dev/step: app, kudo.dev/last-plan-execution-uid: run-1}`
	controller  = `{apiVersion: kudo.dev/v1beta1, kind: Instance, name: shop, uid: uid-1, controller: true, blockOwnerDeletion: true}`
	metadata    = `labels: ` + labels + `, annotations: ` + annotations
	template    = `metadata: {labels: ` + labels + `, annotations: {kudo.dev/operator-version: 1.2.0}}`
)

// withAnnotation is kudo's annotations, and one more.
func withAnnotation(more string) string {
	return strings.TrimSuffix(annotations, "}") + ", " + more + "}"
}

func TestEnhance(t *testing.T) {
	owned := `namespace: prod, ` + metadata + `, ownerReferences: [` + controller + `]`
	for _, c := range []struct{ reason, in, want string }{
		{"2.5: a namespaced object is moved and owned",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: elsewhere}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ` + owned + `}}`},
		{"2.5: a cluster-scoped object gets neither namespace nor owner",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c, namespace: x}}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c, ` + metadata + `}}`},
		{"metadata is made where there is none",
			`{apiVersion: v1, kind: ConfigMap}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {` + owned + `}}`},
		{"a label without a value is empty, as the API server reads it",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {team: null}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, labels: {team: "", heritage: kudo, kudo.dev/operator: web, kudo.dev/instance: shop}, annotations: ` + annotations + `, ownerReferences: [` + controller + `]}}`},
		{"null labels and annotations count as none",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: null, annotations: null, ownerReferences: null}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ` + owned + `}}`},
		{"other labels and owners stay, ours of an earlier life is replaced",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: b, heritage: me}, ownerReferences: [{apiVersion: v1, kind: Node, name: n}, {apiVersion: kudo.dev/v1alpha1, kind: Instance, name: shop, uid: old, controller: true}]}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, labels: {a: b, heritage: kudo, kudo.dev/operator: web, kudo.dev/instance: shop}, annotations: ` + annotations + `, ownerReferences: [{apiVersion: v1, kind: Node, name: n}, ` + controller + `]}}`},
		{"P25: an object that is kept has no controller",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {kudo.dev/keep: ""}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, labels: ` + labels + `, annotations: ` + withAnnotation(`kudo.dev/keep: ""`) + `}}`},
		{"P25: also if Helm's annotation says so, and other owners stay",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {helm.sh/resource-policy: keep}, ownerReferences: [{apiVersion: v1, kind: Node, name: n}, ` + controller + `]}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, labels: ` + labels + `, annotations: ` + withAnnotation("helm.sh/resource-policy: keep") + `, ownerReferences: [{apiVersion: v1, kind: Node, name: n}]}}`},
		{"P25: false keeps nothing",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {kudo.dev/keep: "false"}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, labels: ` + labels + `, annotations: ` + withAnnotation(`kudo.dev/keep: "false"`) + `, ownerReferences: [` + controller + `]}}`},
		{"P25: an Instance cannot be kept, since its owners are counted",
			`{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: c, annotations: {kudo.dev/keep: "true"}}}`,
			`{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: c, namespace: prod, labels: ` + labels + `, annotations: ` + withAnnotation(`kudo.dev/keep: "true"`) + `, ownerReferences: [` + controller + `]}}`},
		{"2.5: pod templates", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, ` + owned + `}, spec: {template: {` + template + `}}}`},
		{"any version of a kind", `{apiVersion: apps/v1beta1, kind: DaemonSet, metadata: {name: d}, spec: {template: {}}}`,
			`{apiVersion: apps/v1beta1, kind: DaemonSet, metadata: {name: d, ` + owned + `}, spec: {template: {` + template + `}}}`},
		{"2.5: a ReplicaSet", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d}, spec: {template: {}}}`,
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d, ` + owned + `}, spec: {template: {` + template + `}}}`},
		{"2.5: a ReplicationController", `{apiVersion: v1, kind: ReplicationController, metadata: {name: d}, spec: {template: {}}}`,
			`{apiVersion: v1, kind: ReplicationController, metadata: {name: d, ` + owned + `}, spec: {template: {` + template + `}}}`},
		{"2.5: a Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {template: {}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: d, ` + owned + `}, spec: {template: {` + template + `}}}`},
		{"rule 21: a CronJob's spec.template is not made", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: d}, spec: {jobTemplate: {spec: {template: {}}}}}`,
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: d, ` + owned + `}, spec: {jobTemplate: {spec: {template: {` + template + `}}}}}`},
		{"2.5: a StatefulSet's claims", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {template: {}, volumeClaimTemplates: [{metadata: {name: v}}, {}]}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d, ` + owned + `}, spec: {template: {` + template + `}, volumeClaimTemplates: [{metadata: {name: v, labels: ` + labels + `}}, {metadata: {labels: ` + labels + `}}]}}`},
		{"group and kind decide: another group's Deployment has no pod template", `{apiVersion: example.com/v1, kind: Deployment, metadata: {name: d}, spec: {}}`,
			`{apiVersion: example.com/v1, kind: Deployment, metadata: {name: d, ` + owned + `}, spec: {}}`},
		{"2.5: a Pod's own labels only", `{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {volumes: [{configMap: {name: c}}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: d, ` + owned + `}, spec: {volumes: [{configMap: {name: c}}]}}`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got, want := parse(t, c.in), parse(t, c.want)
			for _, pass := range []string{"first", "second"} {
				if err := Enhance([]*unstructured.Unstructured{got}, testContext(), nil); err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}
				if diff := cmp.Diff(want.Object, got.Object); diff != "" {
					t.Errorf("%s: %s pass (-want +got):\n%s", c.reason, pass, diff)
				}
			}
			got.DeepCopy() // Panics if something that is no JSON value was put in.
		})
	}
}

func TestMalformed(t *testing.T) {
	deployment := func(template string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: ` + template + `}}`
	}
	for _, c := range []struct{ reason, in, want string }{
		{"metadata", `{apiVersion: v1, kind: ConfigMap, metadata: text}`, "ConfigMap without a name: metadata must be a map, not a string"},
		{"labels", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: [a]}}`, "ConfigMap c: metadata.labels must be a map, not a list"},
		{"label values, the first by name", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {z: 1, b: 2, a: x}}}`,
			"ConfigMap c: metadata.labels.b must be a string, not a number: put it in quotes"},
		{"annotations", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {a: true}}}`,
			"ConfigMap c: metadata.annotations.a must be a string, not a boolean: put it in quotes"},
		{"ownerReferences", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [x]}}`, "ConfigMap c: metadata.ownerReferences[0] must be a map, not a string"},
		{"another controller", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [{apiVersion: v1, kind: X, name: x, controller: true}]}}`,
			"ConfigMap c: metadata.ownerReferences[0] names a controller, but an object of a plan is controlled by its Instance"},
		{"no spec", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}`, "Deployment d: spec is missing"},
		{"no template", deployment("null"), "Deployment d: spec.template is missing"},
		{"template", deployment("[]"), "Deployment d: spec.template must be a map, not a list"},
		{"pod labels", deployment("{metadata: {labels: {a: 1}}}"), "Deployment d: spec.template.metadata.labels.a must be a string, not a number: put it in quotes"},
		{"pod spec", deployment("{spec: x}"), "Deployment d: spec.template.spec must be a map, not a string"},
		{"volumes", deployment("{spec: {volumes: {}}}"), "Deployment d: spec.template.spec.volumes must be a list, not a map"},
		{"volume", deployment("{spec: {volumes: [null]}}"), "Deployment d: spec.template.spec.volumes[0] must be a map, not null"},
		{"volume source", deployment("{spec: {volumes: [{secret: x}]}}"), "Deployment d: spec.template.spec.volumes[0].secret must be a map, not a string"},
		{"volume name", deployment("{spec: {volumes: [{configMap: {name: 5}}]}}"), "Deployment d: spec.template.spec.volumes[0].configMap.name must be a string, not a number"},
		{"pull secrets", deployment("{spec: {imagePullSecrets: [{name: []}]}}"), "Deployment d: spec.template.spec.imagePullSecrets[0].name must be a string, not a list"},
		{"CronJob without jobTemplate", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: d}, spec: {}}`, "CronJob d: spec.jobTemplate is missing"},
		{"claims", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {template: {}, volumeClaimTemplates: [1]}}`,
			"StatefulSet d: spec.volumeClaimTemplates[0] must be a map, not a number"},
		{"claim metadata", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {template: {}, volumeClaimTemplates: [{metadata: {labels: x}}]}}`,
			"StatefulSet d: spec.volumeClaimTemplates[0].metadata.labels must be a map, not a string"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			err := Enhance([]*unstructured.Unstructured{parse(t, c.in)}, testContext(), nil)
			var malformed *MalformedError
			if !errors.As(err, &malformed) {
				t.Fatalf("%s: not a MalformedError: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("%s: the error names object and field (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	for _, object := range []*unstructured.Unstructured{nil, {}} {
		if err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil); err == nil {
			t.Error("an empty object is an error")
		}
	}
}

func TestErrorsOfOthers(t *testing.T) {
	broken := errors.New("discovery is down")
	ctx := testContext()
	ctx.Scope = func(schema.GroupKind) (bool, error) { return false, broken }
	err := Enhance([]*unstructured.Unstructured{parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)}, ctx, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "ConfigMap c") {
		t.Errorf("rule 15: an error of discovery can be told from a malformed object, and names the object: %v", err)
	}
	lookup := func(schema.GroupVersionKind, string, string) (*unstructured.Unstructured, error) { return nil, broken }
	err = Enhance([]*unstructured.Unstructured{withVolumes(t, "{configMap: {name: c}}")}, testContext(), lookup)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "ConfigMap c, which Deployment d depends on") {
		t.Errorf("an error of lookup names both objects: %v", err)
	}
}

// withVolumes is a Deployment d with these volumes.
func withVolumes(t *testing.T, volumes ...string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {volumes: [`+
		strings.Join(volumes, ", ")+`]}}}}`)
}
