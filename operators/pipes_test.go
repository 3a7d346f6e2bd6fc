package operators

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestPipes shows rule 14: .Pipes holds the pipes of all plans, under KUDO's names.
func TestPipes(t *testing.T) {
	plan := func(tasks ...string) v1beta1.Plan {
		return v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "Main-1", Steps: []v1beta1.Step{{Name: "gen_files", Tasks: tasks}}}}}
	}
	pipe := func(name string, keys ...string) v1beta1.Task {
		t := v1beta1.Task{Name: name, Kind: v1beta1.PipeTask}
		for _, key := range keys {
			t.Spec.Pipe = append(t.Spec.Pipe, v1beta1.PipeSpec{Key: key})
		}
		return t
	}
	for name, tc := range map[string]struct {
		tasks   []v1beta1.Task
		plans   map[string]v1beta1.Plan
		running string
		want    map[string]string
		fail    string
		reason  string
	}{
		"None":     {nil, map[string]v1beta1.Plan{"deploy": plan("x")}, "deploy", map[string]string{}, "", "no Pipe task, no pipes"},
		"Names":    {[]v1beta1.Task{pipe("Gen", "indexHtml")}, map[string]v1beta1.Plan{"deploy": plan("Gen")}, "deploy", map[string]string{"indexHtml": "myi.deploy.main1.genfiles.gen.indexhtml"}, "", "parts are lower case, and lose what is neither letter nor digit"},
		"AllPlans": {[]v1beta1.Task{pipe("a", "x"), pipe("b", "y")}, map[string]v1beta1.Plan{"deploy": plan("a"), "backup": plan("b")}, "other", map[string]string{"x": "myi.deploy.main1.genfiles.a.x", "y": "myi.backup.main1.genfiles.b.y"}, "", "of all plans, whichever runs"},
		"Running":  {[]v1beta1.Task{pipe("a", "x")}, map[string]v1beta1.Plan{"deploy": plan("a"), "backup": plan("a")}, "backup", map[string]string{"x": "myi.backup.main1.genfiles.a.x"}, "", "the plan that runs comes first"},
		"Deploy":   {[]v1beta1.Task{pipe("a", "x")}, map[string]v1beta1.Plan{"deploy": plan("a"), "backup": plan("a")}, "other", map[string]string{"x": "myi.deploy.main1.genfiles.a.x"}, "", "then deploy"},
		"Unused":   {[]v1beta1.Task{pipe("a", "x")}, map[string]v1beta1.Plan{"deploy": plan("b")}, "deploy", map[string]string{}, "", "a task that no plan uses makes nothing"},
		"Alike":    {[]v1beta1.Task{pipe("a", "tls_key", "tlskey")}, map[string]v1beta1.Plan{"deploy": plan("a")}, "deploy", nil, `of pipe "tls_key" and of pipe "tlskey"`, "two keys, one name"},
		"Suffix": {[]v1beta1.Task{{Name: "a", Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{Pipe: []v1beta1.PipeSpec{{Key: "x", NameSuffix: "tls"}}}}},
			map[string]v1beta1.Plan{"deploy": plan("a"), "renew": plan("a")}, "renew", map[string]string{"x": "my-i-tls"}, "", "G2: a suffix makes one name in all plans"},
		"Twice": {[]v1beta1.Task{pipe("a", "x"), pipe("b", "x")}, map[string]v1beta1.Plan{"deploy": plan("a", "b")}, "deploy", nil, `plan deploy makes pipe "x" twice`, "one key, one file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Pipes(&v1beta1.OperatorVersionSpec{Tasks: tc.tasks, Plans: tc.plans}, "my-i", tc.running)
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Errorf("%s: want %q, got %v", tc.reason, tc.fail, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
