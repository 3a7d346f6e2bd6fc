package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/dryrun"
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

// TestLosses checks that the last line of a preview says which data is lost, or that none is, as far as that is known (P13, P15).
func TestLosses(t *testing.T) {
	claim, set := Object{Kind: "PersistentVolumeClaim", Effect: Delete}, Object{Kind: "StatefulSet", Effect: Modify, Lost: true}
	for want, p := range map[string]*Preview{
		"data: none lost":                             {Objects: []Object{{Kind: "Deployment", Effect: Delete}, {Kind: "PersistentVolumeClaim", Effect: Keep}}},
		"data: none known to be lost":                 {UnknownReasons: []string{"what plan backup would do"}},
		"data: 1 claim deleted":                       {Objects: []Object{claim}, UnknownReasons: []string{"what plan backup would do"}},
		"data: 2 claims deleted":                      {Objects: []Object{claim}, Children: []*Preview{{Objects: []Object{claim}}}},
		"data: claims of 1 StatefulSet deleted":       {Objects: []Object{set}},
		"data: 1 object destroyed with their content": {Objects: []Object{{Kind: "Namespace", Effect: Delete, Lost: true}}},
		"rights -1; data: none lost":                  {Rights: &Rights{Removed: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}}},
	} {
		if got := p.Summary(); !strings.HasSuffix(got, "; "+want) {
			t.Errorf("%q does not end with %q", got, want)
		}
	}
}

// TestContentLost checks which objects a plan deletes, or changes, with data besides the object (P13, P15).
func TestContentLost(t *testing.T) {
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		if fields == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": fields}}
	}
	set := func(deleted, scaled string, replicas int64) map[string]any {
		return map[string]any{"replicas": replicas, "persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": deleted, "whenScaled": scaled}}
	}
	some := map[string]any{"some": "field"}
	for _, tc := range []struct {
		reason, apiVersion, kind string
		before, after            map[string]any
		recreated, want          bool
	}{
		{"a namespace goes with all in it", "v1", "Namespace", some, nil, false, true},
		{"also if it is created again", "v1", "Namespace", some, some, true, true},
		{"a definition goes with its objects", "apiextensions.k8s.io/v1", "CustomResourceDefinition", some, nil, false, true},
		{"but not if it only changes", "apiextensions.k8s.io/v1", "CustomResourceDefinition", some, some, false, false},
		{"a new object has no content", "v1", "Namespace", nil, some, false, false},
		{"other objects have none", "apps/v1", "Deployment", some, nil, false, false},
		{"a StatefulSet may keep its claims", "apps/v1", "StatefulSet", set("Retain", "Retain", 3), nil, false, false},
		{"or delete them along", "apps/v1", "StatefulSet", set("Delete", "Retain", 3), nil, false, true},
		{"or with the replica", "apps/v1", "StatefulSet", set("Retain", "Delete", 3), set("Retain", "Delete", 2), false, true},
		{"but not with more replicas", "apps/v1", "StatefulSet", set("Retain", "Delete", 3), set("Retain", "Delete", 4), false, false},
	} {
		for _, released := range []bool{false, true} {
			change := dryrun.Change{Before: object(tc.kind, tc.before), After: object(tc.kind, tc.after), Recreated: tc.recreated}
			change.ID.GroupVersionKind = schema.FromAPIVersionAndKind(tc.apiVersion, tc.kind)
			o := Object{Kind: tc.kind, Effect: Modify}
			if tc.after == nil {
				o.Effect = Delete
			}
			if o.noteLoss(change, released); o.Lost != (tc.want && !released) || o.Lost != (o.Why != "") {
				t.Errorf("%s, with its Instance %t: lost %t, %q", tc.reason, released, o.Lost, o.Why)
			}
		}
	}
}
