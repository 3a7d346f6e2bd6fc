package packages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestFromHelmUsage is P31: flags that do not go together are refused before the cluster is asked.
func TestFromHelmUsage(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"P31: complete what", []string{"shop", "--complete"}, command.ExitUsage, "need --instance"},
		{"P31: return what", []string{"shop", "--return"}, command.ExitUsage, "need --instance"},
		{"P31: complete writes nothing", []string{"shop", "--complete", "--instance", "shop", "-d", "x"}, command.ExitUsage, "write no package"},
		{"P31: complete allows nothing", []string{"shop", "--complete", "--instance", "shop", "--allow-cluster-objects"}, command.ExitUsage, "write no package"},
		{"P31: a package is of no Instance", []string{"shop", "--instance", "shop"}, command.ExitUsage, "require --complete or --return"},
		{"P31: a parameter without a place", []string{"shop", "--parameter", "A=b"}, command.ExitUsage, "must be NAME=Kind/name:path"},
		{"P31: complete reads no chart", []string{"shop", "--complete", "--instance", "shop", "--manifests", "-"}, command.ExitUsage, "leave out --destination, --manifests"},
		{"P31: manifests prove nothing", []string{"shop", "--manifests", "-", "--allow-cluster-objects"}, command.ExitUsage, "cannot be used with --manifests"},
		{"P31: both", []string{"shop", "--complete", "--return", "--instance", "shop"}, command.ExitUsage, "none of the others can be"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, errs := commandtest.Expect(t, New, tc.code, "", append([]string{"package", "from-helm"}, tc.args...)...)
			if !strings.Contains(errs, tc.want) {
				t.Errorf("the error is %q, want %q", errs, tc.want)
			}
		})
	}
}

// TestReleasePatch is P31: what is taken off an object that goes back to Helm.
func TestReleasePatch(t *testing.T) {
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "shop", UID: "i"}}
	owner := metav1.OwnerReference{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "shop", UID: "i"}
	node := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}
	for _, tc := range []struct {
		reason, heritage string
		live             metav1.ObjectMeta
		want             map[string]any
	}{
		{"P31: nothing of kudo's", "", metav1.ObjectMeta{Labels: map[string]string{"app": "a", "heritage": "Helm"}}, nil},
		{"P31: labels and annotations, but not that it is kept", "", metav1.ObjectMeta{
			Labels:      map[string]string{"app": "a", "heritage": "kudo", "kudo.dev/instance": "shop"},
			Annotations: map[string]string{"kudo.dev/plan": "deploy", "kudo.dev/keep": "true", "own": "x"},
		}, map[string]any{"labels": map[string]any{"heritage": nil, "kudo.dev/instance": nil}, "annotations": map[string]any{"kudo.dev/plan": nil}}},
		{"P31: what the package has added for Helm's policy", "", metav1.ObjectMeta{
			Annotations: map[string]string{"kudo.dev/keep": "true", "helm.sh/resource-policy": "keep"},
		}, map[string]any{"annotations": map[string]any{"kudo.dev/keep": nil}}},
		{"P31: heritage is what it was", "Helm", metav1.ObjectMeta{Labels: map[string]string{"heritage": "kudo"}},
			map[string]any{"labels": map[string]any{"heritage": "Helm"}}},
		{"P31: the only owner", "", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}}, map[string]any{"ownerReferences": nil}},
		{"P31: another owner stays", "", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner, node}}, map[string]any{
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}}}},
		{"P31: fields of others stay", "", metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kudo/lab/shop"}, {Manager: "helm"}}},
			map[string]any{"managedFields": []any{map[string]any{"manager": "helm"}}}},
	} {
		tc.live.UID, tc.live.ResourceVersion = "u", "7"
		patch := releasePatch(&metav1.PartialObjectMetadata{ObjectMeta: tc.live}, instance, tc.heritage)
		if tc.want == nil {
			if patch != nil {
				t.Errorf("%s: %s", tc.reason, patch)
			}
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(patch, &got); err != nil {
			t.Fatalf("%s: %v: %s", tc.reason, err, patch)
		}
		tc.want["uid"], tc.want["resourceVersion"] = "u", "7"
		if diff := cmp.Diff(map[string]any{"metadata": tc.want}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
