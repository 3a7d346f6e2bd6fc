package preview

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// TestPlaced checks the preview of an Instance of a hub: no plan runs there, and each cluster has its line.
func TestPlaced(t *testing.T) {
	version := gen.Version("lab", "db-1", gen.Param("REPLICAS", "1", ""), gen.Param("TOKEN", "", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	version.Spec.Parameters[1].Sensitive = true
	before := gen.Instance("db", version, map[string]string{"REPLICAS": "6", "TOKEN": "hunter2"})
	before.Spec.Placement = &v1beta1.Placement{Divide: "REPLICAS", Clusters: []v1beta1.PlacedCluster{{Name: "m1", Weight: 2}, {Name: "m2"}}}
	const running = "no plan runs on the hub: the plans run in the clusters"
	const unknown = "? not known: what the plans do in the clusters"
	for _, tc := range []struct {
		reason   string
		created  bool
		change   func(*v1beta1.Instance)
		want     []string
		concerns string
	}{
		{"it is created", true, func(*v1beta1.Instance) {}, []string{running + ", in 1 wave\n", "+ cluster m1: wave 1, share 4\n",
			"+ cluster m2: wave 1, share 2\n", "+ Instance lab/db\n", unknown}, "unknown"},
		{"a cluster leaves, another comes", false, func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters[1] = v1beta1.PlacedCluster{Name: "m3", Parameters: map[string]string{"TOKEN": "swordfish"}}
		}, []string{"  cluster m1: wave 1, share 4\n", "- cluster m2: the Instance is deleted there, after its cleanup plan\n",
			"+ cluster m3: wave 1, share 2, values of its own: TOKEN\n"}, "delete data unknown"},
		{"a cluster is left", false, func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters, i.Spec.Placement.OnDelete = i.Spec.Placement.Clusters[:1], v1beta1.OrphanPlaced
		}, []string{"~ cluster m1: wave 1, share 4 -> 6\n", "= cluster m2: the hub leaves the Instance there as it is\n"}, "unknown"},
		{"waves change", false, func(i *v1beta1.Instance) {
			i.Spec.Placement.Waves = &v1beta1.Waves{Groups: [][]string{{"m2"}}}
		}, []string{"in 2 waves\n", "  cluster m1: wave 2, share 4\n", "  cluster m2: wave 1, share 2\n", "! no plan starts by this change"}, ""},
		{"a decision, which is not known", false, func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters, i.Spec.Placement.Decision = nil, &v1beta1.DecisionReference{Name: "prod"}
		}, []string{"the plans run in the clusters that the decision prod names; a cluster that it does not name loses the Instance\n",
			"? not known: which clusters the decision prod names"}, "unknown"},
		{"a decision, which is known", false, func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters, i.Spec.Placement.Decision = nil, &v1beta1.DecisionReference{Name: "prod"}
			i.Status.Decision = &v1beta1.DecisionStatus{Name: "prod", Clusters: []string{"m1", "m3"}}
		}, []string{"in 1 wave of those that the decision prod names now\n", "~ cluster m1: wave 1, share 4 -> 3\n", "- cluster m2: the Instance is deleted",
			"+ cluster m3: wave 1, share 3\n"}, "delete data unknown"},
		{"a value of all changes", false, func(i *v1beta1.Instance) { i.Spec.Parameters["TOKEN"] = "swordfish" },
			[]string{"~ cluster m1: wave 1, share 4\n", "~ Instance lab/db\n", ".spec.parameters.TOKEN: (masked, changed)"}, "unknown"},
	} {
		l := newLab(t, version)
		edit := Edit{Verb: "update", Before: before, After: before.DeepCopy(), Version: version}
		tc.change(edit.After)
		if tc.created {
			edit.Verb, edit.Before = "install", nil
		} else {
			l.Put(before)
			l.Read(edit.Before)
			edit.After.ResourceVersion = edit.Before.ResourceVersion
		}
		p, err := Compute(t.Context(), l.options(), edit)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		var text, markdown strings.Builder
		if err := p.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if err := p.WriteMarkdown(&markdown); err != nil || !strings.Contains(markdown.String(), "no plan runs on the hub") {
			t.Errorf("%s: %v\n%s", tc.reason, err, markdown.String())
		}
		for _, want := range tc.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: no %q in\n%s", tc.reason, want, text.String())
			}
		}
		if len(p.Runs) > 0 || strings.Contains(text.String(), "hunter2") || strings.Contains(text.String(), "swordfish") || p.Fails() {
			t.Errorf("%s: a run, a secret or a failure in\n%s", tc.reason, text.String())
		}
		var raised []string
		for _, concern := range Concerns() {
			if p.Raises(concern) {
				raised = append(raised, concern)
			}
		}
		if got := strings.Join(raised, " "); got != tc.concerns {
			t.Errorf("%s: raises %q, want %q", tc.reason, got, tc.concerns)
		}
	}
}
