package preview

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestUsedClaims checks that a preview names the claims of an earlier Instance that a StatefulSet would use again (P13).
func TestUsedClaims(t *testing.T) {
	const set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}'}\nspec:\n  serviceName: none\n" +
		"  selector: {matchLabels: {app: x}}\n  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: b}]}}\n"
	const templates = "  replicas: 3\n  volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: w.l}}]\n"
	for _, tc := range []struct {
		reason, template string
		denied           bool
		want             []string
	}{
		{"claims of the name are used", set + templates, false, []string{
			"PersistentVolumeClaim ns/data-i-0 exists: StatefulSet i would use it, with the data that it holds",
			"PersistentVolumeClaim ns/w.l-i-2 exists: StatefulSet i would use it, with the data that it holds",
		}},
		{"replicas have numbers from another one on", set + templates + "  ordinals: {start: 11}\n", false, []string{
			"PersistentVolumeClaim ns/w.l-i-12 exists: StatefulSet i would use it, with the data that it holds",
		}},
		{"without claim templates none is", set, false, nil},
		{"they may not be listed", set + templates, true, nil},
	} {
		l := newLab(t)
		for _, name := range []string{"data-i-0", "w.l-i-2", "w.l-i-12", "data-i-3", "data-i-99999999999999999999", "wxl-i-1", "data-i-x", "data-ii-0", "more-data-i-0", "data-i"} {
			l.Put(&corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("ns", name)})
		}
		if tc.denied {
			l.watchWrites(func(r apitest.Request) (any, error) {
				if r.Verb == "list" && r.Kind == "PersistentVolumeClaim" {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "", fmt.Errorf("no"))
				}
				return nil, nil
			})
		}
		version := web(gen.Template("set.yaml", tc.template), gen.Apply("set", "set.yaml"), gen.Serial("deploy", "set"))
		p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version})
		slices.Sort(p.Warnings)
		if diff := cmp.Diff(tc.want, p.Warnings); diff != "" || (len(p.UnknownReasons) > 0) != tc.denied {
			t.Errorf("%s: %s, unknown: %q", tc.reason, diff, p.UnknownReasons)
		}
	}
}
