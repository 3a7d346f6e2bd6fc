package lifecycle

import (
	"crypto/md5" // the hash of KUDO
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/test/gen"
)

// Templates of a package that KUDO has run: each kind with pods, and what those read. The images are those that real nodes have, too.
var formerTemplates = map[string]string{
	"page.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}-page"}, data: {index.html: hello}}`,
	"key.yaml":  `{apiVersion: v1, kind: Secret, metadata: {name: "{{ .Name }}-key"}, stringData: {key: abc}}`,
	"web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}-web"}
spec:
  replicas: 2
  selector: {matchLabels: {app: "{{ .Name }}-web"}}
  template:
    metadata: {labels: {app: "{{ .Name }}-web"}}
    spec:
      containers: [{name: web, image: "nginx:1.27"}]
      volumes: [{name: page, configMap: {name: "{{ .Name }}-page"}}]
`,
	"store.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}-store"}
spec:
  replicas: 1
  serviceName: store
  selector: {matchLabels: {app: "{{ .Name }}-store"}}
  template:
    metadata: {labels: {app: "{{ .Name }}-store"}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: store, image: "busybox:1", args: [-c, "busybox sleep 86400"]}]
      volumes: [{name: key, secret: {secretName: "{{ .Name }}-key"}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`,
	"job.yaml": `
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}-init"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: init, image: "busybox:1", args: [-c, "exit 0"]}]
`,
	// notes is the only object that the parameter VALUE changes.
	"notes.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}-notes"}, data: {key: "{{ .Params.VALUE }}"}}`,
}

// What the two packages have of the templates.
var (
	formerSite  = []string{"page.yaml", "key.yaml", "web.yaml", "store.yaml", "job.yaml", "notes.yaml"}
	formerCache = []string{"page.yaml", "web.yaml", "notes.yaml"}
)

// FormerPods is how many pods the Instances of FormerInstances have.
const FormerPods = 6

// FormerVersions are the OperatorVersions of an operator site, and of its dependency cache.
func FormerVersions(ns string) (site, cache *v1beta1.OperatorVersion) {
	templates := func(names []string) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) {
			for _, name := range names {
				gen.Template(name, formerTemplates[name])(ov)
			}
		}
	}
	cache = gen.Version(ns, "cache-0.1.0", gen.Param("VALUE", "a", ""), templates(formerCache), gen.Apply("all", formerCache...), gen.Serial("deploy", "all"))
	cache.Spec.Operator.Name = "cache"
	site = gen.Version(ns, "site-0.1.0", gen.Param("VALUE", "a", ""), templates(formerSite), gen.Apply("all", formerSite...),
		gen.Template("cache.yaml", "VALUE: {{ .Params.VALUE }}\n"),
		gen.Task("cache", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "cache", OperatorVersion: "0.1.0", ParameterFile: "cache.yaml"}),
		gen.Serial("deploy", "all", "cache"))
	site.Spec.Operator.Name = "site"
	return site, cache
}

// FormerCacheInstance is the child that KUDO v0.19 has made for the Instance site.
func FormerCacheInstance(site *v1beta1.Instance, cache *v1beta1.OperatorVersion) *v1beta1.Instance {
	out := gen.Instance("site-cache", cache, map[string]string{"VALUE": "a"})
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: site.Name, UID: site.UID}}
	return out
}

// FormerStatus is the status that KUDO v0.19 gives an Instance after its plan deploy.
func FormerStatus() v1beta1.InstanceStatus {
	now := metav1.Now().Rfc3339Copy()
	return v1beta1.InstanceStatus{
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ResourcesReady", LastTransitionTime: now}},
		PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {
			Name: "deploy", Status: v1beta1.Complete, UID: uuid.NewUUID(), LastUpdatedTimestamp: &now,
			Phases: []v1beta1.PhaseStatus{{Name: "main", Status: v1beta1.Complete, Steps: []v1beta1.StepStatus{{Name: "step-0", Status: v1beta1.Complete}}}},
		}},
	}
}

// FormerObjects are the objects of an Instance as a plan of KUDO v0.19 leaves them, with the annotation that it compares with. Its field
// manager is "manager".
func FormerObjects(t testing.TB, instance *v1beta1.Instance) []*unstructured.Unstructured {
	t.Helper()
	operator, names := "site", formerSite
	if instance.Name != "site" {
		operator, names = "cache", formerCache
	}
	values := strings.NewReplacer("{{ .Name }}", instance.Name, "{{ .Params.VALUE }}", "a")
	var out []*unstructured.Unstructured
	for _, name := range names {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(values.Replace(formerTemplates[name])), &object.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	err := enhance.Enhance(out, enhance.Context{
		Operator: operator, OperatorVersion: "0.1.0", Instance: client.ObjectKeyFromObject(instance), InstanceUID: instance.UID,
		Plan: "deploy", Phase: "main", Step: "step-0", PlanUID: instance.Status.PlanStatus["deploy"].UID,
		Digest: func(text []byte) ([16]byte, error) { return md5.Sum(text), nil }, // as above
		Scope:  func(schema.GroupKind) (bool, error) { return true, nil },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range out {
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		annotations := object.GetAnnotations()
		annotations[v1beta1.LastAppliedAnnotation] = string(text)
		object.SetAnnotations(annotations)
	}
	return out
}
