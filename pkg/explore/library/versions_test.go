package library

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/test/corpus"
)

// TestServedVersionsHaveRules checks C69: the library has rules for each version in which a project serves a kind, and the objects of
// its cases are of such a version.
func TestServedVersionsHaveRules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Require(t), "kinds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known, served := bundled(t).Kinds(), map[schema.GroupVersionKind]bool{}
	for _, file := range files {
		definition := readDefinition(t, file)
		kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
		for _, version := range definition.Spec.Versions {
			served[kind.WithVersion(version.Name)] = version.Served
			if version.Served && !slices.Contains(known, kind.WithVersion(version.Name)) {
				t.Errorf("%s: %s is served in %s, for which the library has no rule", filepath.Base(file), kind, version.Name)
			}
		}
	}
	for _, folder := range folders(t) {
		for _, c := range folder.Cases {
			if kind := c.Request.Object.GroupVersionKind(); !served[kind] {
				t.Errorf("%s: %s: no definition of the corpus serves %s", folder.Path, c.Name, kind)
			}
		}
	}
}

func readDefinition(t *testing.T, file string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &definition); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return definition
}

// TestOtherVersionsOfOpenKruise checks C69: a rule reads the fields where each version has them.
func TestOtherVersionsOfOpenKruise(t *testing.T) {
	for _, row := range []struct {
		reason, version, kind, body string
		healthy                     bool
	}{
		{"the partition of a CloneSet holds all back", "v1alpha1", "CloneSet", `"spec":{"replicas":3,"updateStrategy":{"partition":"100%"}},"status":{"observedGeneration":2,"availableReplicas":3}`, true},
		{"so does that of the newer version, below rollingUpdate", "v1beta1", "CloneSet", `"spec":{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":"100%"}}},"status":{"observedGeneration":2,"availableReplicas":3}`, true},
		{"without a partition all pods are awaited", "v1beta1", "CloneSet", `"spec":{"replicas":3,"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}},"status":{"observedGeneration":2,"availableReplicas":3}`, false},
		{"a DaemonSet that leaves one pod as it is", "v1beta1", "DaemonSet", `"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}},"status":{"observedGeneration":2,"desiredNumberScheduled":2,"updatedNumberScheduled":1,"numberAvailable":2}`, true},
		{"a DaemonSet with a pod of the older version", "v1beta1", "DaemonSet", `"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":2,"updatedNumberScheduled":1,"numberAvailable":2}`, false},
		{"a StatefulSet whose pods are available", "v1alpha1", "StatefulSet", `"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":2}`, true},
		{"a StatefulSet whose controller has not seen the generation", "v1alpha1", "StatefulSet", `"spec":{"replicas":2},"status":{"observedGeneration":1,"updatedReplicas":2,"availableReplicas":2}`, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			object := exploretest.Object(t, `{"apiVersion":"apps.kruise.io/`+row.version+`","kind":"`+row.kind+`","metadata":{"name":"a","generation":2},`+row.body+`}`)
			answer, known, err := bundled(t).Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object})
			if err != nil || !known || answer.Healthy != row.healthy {
				t.Errorf("got healthy %v, %q, known %v, error %v: want healthy %v", answer.Healthy, answer.Message, known, err, row.healthy)
			}
		})
	}
}

// TestReplicasOfOlderKafkaConnect checks C69: v1 requires the number of replicas, and the version before it has a default.
func TestReplicasOfOlderKafkaConnect(t *testing.T) {
	object := exploretest.Object(t, `{"apiVersion":"kafka.strimzi.io/v1beta2","kind":"KafkaConnect","metadata":{"name":"a"},"spec":{"bootstrapServers":"a:9092"}}`)
	answer, known, err := bundled(t).Explore(t.Context(), explore.Request{Operation: explore.Replica, Object: object})
	if err != nil || !known || answer.Replicas != 3 {
		t.Errorf("got %d replicas, known %v, error %v: want 3", answer.Replicas, known, err)
	}
}
