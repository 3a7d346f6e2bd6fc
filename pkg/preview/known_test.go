package preview

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/apply"
)

// TestKnown checks that a command that knows its objects has the same preview as others: effects, fields, restarts, and nothing of a Secret.
func TestKnown(t *testing.T) {
	id := func(apiVersion, kind, name string) apply.ID {
		out := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(apiVersion, kind)}
		out.Namespace, out.Name = "ns", name
		return out
	}
	deployment := func(image string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "m"}, "spec": map[string]any{"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "m", "image": image}}}}}}
	}
	secret := func(value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"key": value}}
	}
	p, err := Of(&Preview{Verb: "upgrade", Subject: "kudo", Stays: []Stay{{"ConfigMap ns/c", "it was decided", nil}}}, []Known{
		{ID: id("apps/v1", "Deployment", "m"), Before: deployment("m:1"), After: deployment("m:2")},
		{ID: id("v1", "Secret", "s"), Before: secret("b25l"), After: secret("dHdv")},
		{ID: id("v1", "Secret", "t"), After: secret("dHdv")},
		{ID: id("v1", "Service", "same"), Before: map[string]any{"spec": "x"}, After: map[string]any{"spec": "x"}},
		{ID: id("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things"), Why: "and with it 3 Things", Lost: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"change Deployment ns/m .spec.template.spec.containers[name=m].image: m:1 -> m:2", "change Secret ns/s .data: (masked, changed)", "create Secret ns/t",
		"unchanged Service ns/same", "delete CustomResourceDefinition ns/things"}
	if diff := cmp.Diff(want, brief(p)); diff != "" {
		t.Error(diff)
	}
	if want := "1 create, 2 change (1 restart: 2 pods), 1 delete, 1 unchanged, 0 refused, 0 unknown; data: 1 object destroyed with their content"; !strings.HasSuffix(p.Summary(), want) {
		t.Error(p.Summary())
	}
	encoded, err := json.Marshal(p)
	if err != nil || strings.Contains(string(encoded), "dHdv") || strings.Contains(string(encoded), "b25l") {
		t.Errorf("%v: the data of a Secret is shown: %s", err, encoded)
	}
}
