package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/test/env"
)

// TestKindsWithoutCluster: what package rights knows of the kinds of Kubernetes without a cluster is what a cluster serves.
func TestKindsWithoutCluster(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(suite.Config)
	env.Must(t, err)
	_, lists, err := d.ServerGroupsAndResources()
	env.Must(t, err)
	looked := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		env.Must(t, err)
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "delete") || strings.HasSuffix(gv.Group, "example.com") || gv.Group == "operator.etcd.io" {
				continue
			}
			looked++
			version := &v1beta1.OperatorVersionSpec{
				Templates: map[string]string{"a": fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x}\n", list.GroupVersion, r.Kind)},
				Tasks:     []v1beta1.Task{{Name: "t", Kind: v1beta1.DeleteTask, Spec: v1beta1.TaskSpec{Resources: []string{"a"}}}},
				Plans:     map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"t"}}}}}}},
			}
			got, err := rights.Of(rights.Subject{Namespace: "ns", Name: "i", Version: version}, rights.Known{})
			env.Must(t, err)
			rules := got.ClusterRules
			if r.Namespaced {
				rules = got.Rules
			}
			if len(rules) != 1 || rules[0].APIGroups[0] != gv.Group || rules[0].Resources[0] != r.Name {
				t.Errorf("%s %s is %s, namespaced %t: the rules are %v and %v", list.GroupVersion, r.Kind, r.Name, r.Namespaced, got.Rules, got.ClusterRules)
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d kinds were looked at", looked)
	}
}
