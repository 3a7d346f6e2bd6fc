package preview

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/test/gen"
)

// TestCapacity checks what a preview says of pods and what they request, and when it warns (P12).
func TestCapacity(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: i-d, namespace: ns}\nspec: {replicas: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}}\n"
	for _, tc := range []struct {
		reason, replicas, want string
		warns                  bool
	}{
		{"more pods", "3", "its objects declare: pods 2 -> 3, requests.cpu 200m -> 300m", false},
		{"the same", "2", "", false},
		{"fewer", "1", "its objects declare: pods 2 -> 1, requests.cpu 200m -> 100m", false},
		{"so many that it is likely an error", "1000000", "its objects declare: pods 2 -> 1M, requests.cpu 200m -> 100k", true},
	} {
		l := newLab(t)
		version := web(gen.Template("a.yaml", strings.NewReplacer("i-d", "{{ .Name }}-d", ", namespace: ns", "", "replicas: 2", "replicas: {{ .Params.VALUE }}").Replace(deployment)))
		before := l.running(version)
		live := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(deployment), &live.Object); err != nil {
			t.Fatal(err)
		}
		live.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"})
		uid := l.Put(live).GetUID()
		before.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "i-d", UID: uid}}
		o := l.options()
		o.All = explore.Chain{native.New(nil, nil)}
		p, err := Compute(t.Context(), o, Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", tc.replicas)), Version: version})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		shown := strings.Contains(text.String(), "its objects declare")
		if shown != (tc.want != "") || !strings.Contains(text.String(), tc.want) || strings.Contains(text.String(), "more than 20 times") != tc.warns {
			t.Errorf("%s: %s", tc.reason, text.String())
		}
	}
}
