package karmada

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// template returns an Instance of a hub that is placed on clusters of these names.
func template(names ...string) *v1beta1.Instance {
	out := &v1beta1.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "book", UID: "u-1", Generation: 3},
		Spec:       v1beta1.InstanceSpec{Parameters: map[string]string{"REPLICAS": "6"}, Placement: &v1beta1.Placement{}},
	}
	for _, name := range names {
		out.Spec.Placement.Clusters = append(out.Spec.Placement.Clusters, v1beta1.PlacedCluster{Name: name})
	}
	return out
}

// placed returns what the hub gives to each cluster of a template.
func placed(instance *v1beta1.Instance) clusters.Placed {
	out := clusters.Placed{Instance: instance}
	for _, c := range instance.Spec.Placement.Clusters {
		out.Clusters = append(out.Clusters, clusters.Target{Name: c.Name, Weight: c.EffectiveWeight(), Parameters: c.Parameters})
	}
	return out
}

// TestCompile checks C10, C11, C13, C14: what the policies select, where they place, what they divide, override and release, and that
// nothing else is in them.
func TestCompile(t *testing.T) {
	const selectors = `"resourceSelectors":[{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","name":"book","namespace":"shop"}]`
	const head = `{"conflictResolution":"Abort","placement":{"clusterAffinity":{"clusterNames":["m1","m2"]}`
	const tail = `},"preemption":"Never","preserveResourcesOnDeletion":false,"propagateDeps":true,` + selectors + `}`
	release := func(value, names string) string {
		return `{"overriders":{"plaintext":[{"operator":"add","path":"/metadata/annotations/kudo.dev~1released","value":"` + value +
			`"}]},"targetCluster":{"clusterNames":[` + names + `]}}`
	}
	overrides := func(rules ...string) string {
		return `{"overrideRules":[` + strings.Join(rules, ",") + `],` + selectors + `}`
	}
	for _, tc := range []struct {
		reason           string
		change           func(*clusters.Placed)
		policy, override string
	}{
		{"nothing is divided, overridden or released", func(*clusters.Placed) {}, head + tail, overrides()},
		{"a divided parameter gives a weight to each cluster", func(p *clusters.Placed) {
			p.Instance.Spec.Placement.Divide = "REPLICAS"
			p.Clusters[0].Weight = 2
			p.Clusters[1].Weight = 0
		}, head + `,"replicaScheduling":{"replicaDivisionPreference":"Weighted","replicaSchedulingType":"Divided","weightPreference":{"staticWeightList":[` +
			`{"targetCluster":{"clusterNames":["m1"]},"weight":2},{"targetCluster":{"clusterNames":["m2"]},"weight":1}]}}` + tail, overrides()},
		{"copies stay when the template is deleted", func(p *clusters.Placed) { p.Instance.Spec.Placement.OnDelete = v1beta1.OrphanPlaced },
			strings.Replace(head+tail, `"preserveResourcesOnDeletion":false`, `"preserveResourcesOnDeletion":true`, 1), overrides()},
		{"clusters of one release share a rule", func(p *clusters.Placed) {
			p.Clusters[0].Released, p.Clusters[1].Released = "u-1/3", "u-1/3"
		}, head + tail, overrides(release("u-1/3", `"m1","m2"`))},
		{"a cluster that is held has no rule", func(p *clusters.Placed) { p.Clusters[1].Released = "u-1/3" },
			head + tail, overrides(release("u-1/3", `"m2"`))},
		{"clusters of two releases have two rules, before those of values, whose keys are sorted and escaped", func(p *clusters.Placed) {
			p.Clusters[0].Released, p.Clusters[1].Released = "u-1/3", "u-1/2"
			p.Clusters[1].Parameters = map[string]string{"b/c~d": "2", "A": "1"}
		}, head + tail, overrides(release("u-1/3", `"m1"`), release("u-1/2", `"m2"`),
			`{"overriders":{"plaintext":[{"operator":"replace","path":"/spec/parameters/A","value":"1"},`+
				`{"operator":"replace","path":"/spec/parameters/b~1c~0d","value":"2"}]},"targetCluster":{"clusterNames":["m2"]}}`)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := placed(template("m1", "m2"))
			tc.change(&p)
			policy, override := Compile(p)
			for _, c := range []struct {
				object *unstructured.Unstructured
				want   string
			}{{policy, tc.policy}, {override, tc.override}} {
				got, err := json.Marshal(c.object.DeepCopy().Object["spec"])
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, string(got)); diff != "" {
					t.Error(diff)
				}
				for _, problem := range checkDocument(c.object.Object) {
					t.Error(problem)
				}
			}
		})
	}
}

// TestCompileNowhere checks C10: no policy is made that matches every cluster.
func TestCompileNowhere(t *testing.T) {
	if policy, override := Compile(placed(template())); policy != nil || override != nil {
		t.Errorf("the policies of no cluster are %v and %v", policy, override)
	}
}

// TestCompileOwner checks C6: names, labels and the owner.
func TestCompileOwner(t *testing.T) {
	long := strings.Repeat("a", 51) + "-b" + strings.Repeat("c", 100)
	for _, tc := range []struct{ reason, instance, name, label string }{
		{"a name that fits", "book", "kudo-book", "book"},
		{"the longest name that fits", strings.Repeat("a", 58), "kudo-" + strings.Repeat("a", 58), strings.Repeat("a", 58)},
		{"a name that does not fit with the prefix", strings.Repeat("a", 59), "kudo-" + strings.Repeat("a", 47) + "-fc48d2d745", strings.Repeat("a", 59)},
		{"a cut after a separator leaves none", long, "kudo-" + strings.Repeat("a", 47) + "-d5ab368164", strings.Repeat("a", 51) + "-41351f2435"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			instance := template("m1")
			instance.Name = tc.instance
			policy, override := Compile(placed(instance))
			for _, o := range []*unstructured.Unstructured{policy, override} {
				if o.GetName() != tc.name || len(o.GetName()) > 63 || o.GetNamespace() != "shop" {
					t.Errorf("the policy is %s/%s, want shop/%s", o.GetNamespace(), o.GetName(), tc.name)
				}
				if got := o.GetLabels()[v1beta1.InstanceLabel]; got != tc.label || len(got) > 63 {
					t.Errorf("the label is %s, want %s", got, tc.label)
				}
				if !metav1.IsControlledBy(o, instance) {
					t.Errorf("the owners are %v", o.GetOwnerReferences())
				}
			}
		})
	}
}

// checkDocument returns what the webhooks of Karmada refuse in a policy, though its definition does not (C19).
func checkDocument(document map[string]any) []string {
	var problems []string
	namespace := textAt(document, "metadata", "namespace")
	for _, element := range list(at(document, "spec", "resourceSelectors")) {
		selector, _ := element.(map[string]any)
		if of := textAt(selector, "namespace"); of != "" && of != namespace {
			problems = append(problems, "a selector is of namespace "+of)
		}
	}
	placement, _ := at(document, "spec", "placement").(map[string]any)
	if placement["clusterAffinity"] != nil && placement["clusterAffinities"] != nil {
		problems = append(problems, "clusterAffinity stands beside clusterAffinities")
	}
	suspension, _ := at(document, "spec", "suspension").(map[string]any)
	if suspension["dispatching"] != nil && suspension["dispatchingOnClusters"] != nil {
		problems = append(problems, "dispatching stands beside dispatchingOnClusters")
	}
	problems = append(problems, checkSpread(list(placement["spreadConstraints"]))...)
	if placement != nil && len(list(at(placement, "clusterAffinity", "clusterNames"))) == 0 {
		problems = append(problems, "every cluster matches")
	}
	if len(textAt(document, "metadata", "name")) > 63 {
		problems = append(problems, "the name is too long")
	}
	return problems
}

func checkSpread(constraints []any) []string {
	var problems []string
	fields := map[string]bool{}
	for _, element := range constraints {
		constraint, _ := element.(map[string]any)
		fields[textAt(constraint, "spreadByField")] = true
		least, _ := integer(constraint["minGroups"])
		most, given := integer(constraint["maxGroups"])
		if given && most < least {
			problems = append(problems, "maxGroups is less than minGroups")
		}
	}
	if len(constraints) > 0 && !fields["cluster"] {
		problems = append(problems, "no constraint spreads by cluster")
	}
	return problems
}

// TestCheckDocument checks C19: our check finds what the definitions accept and Karmada refuses.
func TestCheckDocument(t *testing.T) {
	const fits = `"clusterAffinity":{"clusterNames":["m1"]}`
	for _, tc := range []struct{ reason, spec, want string }{
		{"two kinds of affinity", `{"placement":{` + fits + `,"clusterAffinities":[{"affinityName":"a"}]}}`, "clusterAffinity stands beside clusterAffinities"},
		{"two kinds of suspension", `{"suspension":{"dispatching":true,"dispatchingOnClusters":{}}}`, "dispatching stands beside dispatchingOnClusters"},
		{"another namespace", `{"resourceSelectors":[{"namespace":"other"}]}`, "a selector is of namespace other"},
		{"no constraint by cluster", `{"placement":{` + fits + `,"spreadConstraints":[{"spreadByField":"region"}]}}`, "no constraint spreads by cluster"},
		{"less than the least", `{"placement":{` + fits + `,"spreadConstraints":[{"spreadByField":"cluster","minGroups":2,"maxGroups":1}]}}`, "maxGroups is less than minGroups"},
		{"an empty affinity", `{"placement":{"clusterAffinity":{}}}`, "every cluster matches"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			document := &unstructured.Unstructured{}
			err := document.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Test","metadata":{"name":"kudo-book","namespace":"shop"},"spec":` + tc.spec + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := checkDocument(document.Object); len(got) != 1 || got[0] != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
