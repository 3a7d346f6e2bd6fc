package operators

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestPipeName checks that a name is made of six parts, each of small letters and digits only, as KUDO makes it.
func TestPipeName(t *testing.T) {
	for want, parts := range map[string][6]string{
		"i.deploy.main.s.t.key":     {"i", "deploy", "main", "s", "t", "key"},
		"myi1.deploy.ab.b.c.tlscrt": {"My-I_1", "Deploy", "a b", "b.", "-c", "tls.crt"},
		"i.d.p.s.t.pipepod":         {"i", "d", "p", "s", "t", PodSuffix},
		".....":                     {"", "", "", "", "", ""},
		"i....t.k":                  {"i", "日本", "--", "é", "t", "k"},
	} {
		if got := PipeName(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]); got != want {
			t.Errorf("%v: got %s, want %s", parts, got, want)
		}
	}
}

// TestArtifactName is G2: a suffix gives an object the same name in all plans.
func TestArtifactName(t *testing.T) {
	for _, plan := range []string{"deploy", "certificates"} {
		if got := ArtifactName("db", plan, "p", "s", "t", v1beta1.PipeSpec{Key: "k", NameSuffix: "tls"}); got != "db-tls" {
			t.Errorf("plan %s with a suffix makes %s", plan, got)
		}
		if got := ArtifactName("db", plan, "p", "s", "t", v1beta1.PipeSpec{Key: "k"}); got != "db."+plan+".p.s.t.k" {
			t.Errorf("plan %s without a suffix makes %s", plan, got)
		}
	}
}

// TestPipesTwice checks the message for a key that stands twice, with the plan and the remedy.
func TestPipesTwice(t *testing.T) {
	pipe := func(name string, keys ...string) v1beta1.Task {
		task := v1beta1.Task{Name: name, Kind: v1beta1.PipeTask}
		for _, key := range keys {
			task.Spec.Pipe = append(task.Spec.Pipe, v1beta1.PipeSpec{Key: key})
		}
		return task
	}
	step := func(name string, tasks ...string) v1beta1.Step { return v1beta1.Step{Name: name, Tasks: tasks} }
	for name, tc := range map[string]struct {
		reason string
		tasks  []v1beta1.Task
		steps  []v1beta1.Step
		want   string
	}{
		"Task": {"in one task", []v1beta1.Task{pipe("a", "k", "k")}, []v1beta1.Step{step("s", "a")},
			`plan p makes pipe "k" twice: give each pipe of a plan a key of its own`},
		"Steps": {"of one task in two steps", []v1beta1.Task{pipe("a", "k")}, []v1beta1.Step{step("s", "a"), step("t", "a")},
			`plan p makes pipe "k" twice: give each pipe of a plan a key of its own`},
		"Alike": {"keys that make one name are named in their order", []v1beta1.Task{pipe("a", "b-c", "B_C")}, []v1beta1.Step{step("s", "a")},
			`plan p makes i.p.ph.s.a.bc of pipe "B_C" and of pipe "b-c": give them keys that differ in letters or digits`},
		"Names": {"tasks whose names are alike", []v1beta1.Task{pipe("a-b", "x"), pipe("ab", "X")}, []v1beta1.Step{step("s", "a-b", "ab")},
			`plan p makes i.p.ph.s.ab.x of pipe "X" and of pipe "x": give them keys that differ in letters or digits`},
		"Suffixes": {"two keys with one suffix", []v1beta1.Task{{Name: "a", Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{
			Pipe: []v1beta1.PipeSpec{{Key: "x", NameSuffix: "tls"}, {Key: "y", NameSuffix: "tls"}}}}}, []v1beta1.Step{step("s", "a")},
			`plan p makes i-tls of pipe "x" and of pipe "y": give each a nameSuffix of its own`},
		"Differ": {"the same suffix in two tasks makes two names", []v1beta1.Task{pipe("a", "x"), pipe("b", "X")},
			[]v1beta1.Step{step("s", "a", "b")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1beta1.OperatorVersionSpec{Tasks: tc.tasks,
				Plans: map[string]v1beta1.Plan{"p": {Phases: []v1beta1.Phase{{Name: "ph", Steps: tc.steps}}}}}
			_, err := Pipes(spec, "i", "")
			if got := ""; err != nil && err.Error() != tc.want || err == nil && tc.want != got {
				t.Errorf("%s: error %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestPipesOrderOfPlans checks that of several plans with one key the running one counts, then deploy, then the first by name.
func TestPipesOrderOfPlans(t *testing.T) {
	task := v1beta1.Task{Name: "t", Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{Pipe: []v1beta1.PipeSpec{{Key: "k"}}}}
	plan := v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"t"}}}}}}
	for name, tc := range map[string]struct {
		plans   []string
		running string
		want    string
	}{
		"Running":     {[]string{"b", "deploy", "a"}, "b", "b"},
		"Deploy":      {[]string{"b", "deploy", "a"}, "other", "deploy"},
		"ByName":      {[]string{"c", "b", "a"}, "", "a"},
		"RunningLast": {[]string{"a", "deploy", "z"}, "z", "z"},
		"Itself":      {[]string{"a", "deploy"}, "deploy", "deploy"},
	} {
		spec := &v1beta1.OperatorVersionSpec{Tasks: []v1beta1.Task{task}, Plans: map[string]v1beta1.Plan{}}
		for _, p := range tc.plans {
			spec.Plans[p] = plan
		}
		for range 10 {
			got, err := Pipes(spec, "i", tc.running)
			if diff := cmp.Diff(map[string]string{"k": "i." + tc.want + ".p.s.t.k"}, got); diff != "" || err != nil {
				t.Fatalf("%s: %v, -want +got:\n%s", name, err, diff)
			}
		}
	}
}

// TestFindPipes shows that a plan names its pipes by phase, step, task and key, a task that it uses twice at both places.
func TestFindPipes(t *testing.T) {
	tasks := map[string]v1beta1.Task{
		"a": {Spec: v1beta1.TaskSpec{Pipe: []v1beta1.PipeSpec{{Key: "y"}, {Key: "x"}}}},
		"b": {Spec: v1beta1.TaskSpec{Pipe: []v1beta1.PipeSpec{{Key: "z", NameSuffix: "tls"}}}},
	}
	plan := v1beta1.Plan{Phases: []v1beta1.Phase{
		{Name: "one", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"b", "a"}}, {Name: "other", Tasks: []string{"none"}}}},
		{Name: "two", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"a"}}}},
	}}
	var got []string
	for _, pipe := range findPipes(plan, "i", "deploy", tasks) {
		got = append(got, pipe.Key+" "+pipe.artifact)
	}
	want := []string{"z i-tls", "y i.deploy.one.s.a.y", "x i.deploy.one.s.a.x", "y i.deploy.two.s.a.y", "x i.deploy.two.s.a.x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
