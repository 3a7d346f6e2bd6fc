package lint

import (
	"strings"
	"testing"

	"kudo.dev/kudo/operators"
)

// plansOf is the plain operator.yaml with other plans.
func plansOf(text string) files {
	return files{"operator.yaml": plainOperator[:strings.Index(plainOperator, "plans:")] + text}
}

// only runs a linter alone, so that each case shows its findings and no others.
func only(t *testing.T, linter Linter, cases map[string]lintCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(lines(Chain{linter}.Lint(NewSubject(tc.files.read(t)))), "\n")
			if want := strings.Join(tc.want, "\n"); got != want {
				t.Errorf("%s:\n-%s\n+%s", tc.reason, want, got)
			}
		})
	}
}

// TestVersions checks which texts are versions, field by field.
func TestVersions(t *testing.T) {
	with := func(line string) files { return files{"operator.yaml": plainOperator + line + "\n"} }
	cases := map[string]lintCase{}
	for _, version := range []string{"1", "1.2", "1.2.3", "v1.2.3", "1.2.3-rc.1+b", "0.0.0"} {
		cases["Right "+version] = lintCase{"a version of three, two or one number", with("appVersion: '" + version + "'"), nil}
	}
	for _, version := range []string{"latest", "1.2.3.4", "1.x", "1..2", " 1.2", "-1.0.0", ">=1.0", "1.2.3-"} {
		cases["Wrong "+version] = lintCase{"what is no version", with("kudoVersion: '" + version + "'"),
			[]string{`E operator.yaml:7: unable to parse "kudoVersion": "` + version + `" is not semver`}}
	}
	only(t, versions, cases)
}

// TestTasksOfSteps checks which names of tasks the linter reports, and at which places.
func TestTasksOfSteps(t *testing.T) {
	only(t, tasksDefined, map[string]lintCase{
		"All": {"in all plans, in the order of the file",
			plansOf("plans:\n  z: {phases: [{steps: [{tasks: [b]}]}]}\n  a: {phases: [{steps: [{tasks: [a,\n    c]}]}]}\n"),
			[]string{`E operator.yaml:6: task "b" in plan "z" is not defined, did you mean a?`,
				`E operator.yaml:8: task "c" in plan "a" is not defined, did you mean a?`}},
		"Empty": {"a task without a name", plansOf("plans: {deploy: {phases: [{steps: [{tasks: ['']}]}]}}"),
			[]string{`E operator.yaml:5: task "" in plan "deploy" is not defined, did you mean a?`}},
		"None": {"a step without tasks", plansOf("plans: {deploy: {phases: [{steps: [{name: s}]}]}}"), nil},
	})
	only(t, tasksUsed, map[string]lintCase{
		"Other":  {"a task of any plan is used", plansOf("plans: {backup: {phases: [{steps: [{tasks: [a]}]}]}}"), nil},
		"Unused": {"a task of no plan", plansOf("plans: {deploy: {}}"), []string{`W operator.yaml:4: task "a" defined but not used`}},
		"NoName": {"a task without a name is reported elsewhere", files{"operator.yaml": operator("{kind: Dummy}")}, nil},
	})
}

// TestStrategies checks which strategies of plans and phases the linter reports.
func TestStrategies(t *testing.T) {
	only(t, strategies, map[string]lintCase{
		"Parallel": {"both words are known", plansOf("plans: {deploy: {strategy: parallel, phases: [{strategy: serial, steps: [{}]}]}}"),
			nil},
		"NoMembers": {"without members a strategy has no meaning",
			plansOf("plans: {deploy: {phases: []}, other: {strategy: serial, phases: [{name: p}]}}"), nil},
		"OnlyPhase": {"a phase", plansOf("plans: {deploy: {strategy: serial, phases: [{name: p, steps: [{}]}]}}"),
			[]string{`W operator.yaml:5: phase "p" of plan "deploy" has no strategy, which means parallel: say serial or parallel`}},
		"WrongEmpty": {"a wrong word is reported even without members",
			plansOf("plans: {deploy: {strategy: Parallel, phases: [{name: p, strategy: in order}]}}"),
			[]string{`W operator.yaml:5: plan "deploy" has the unknown strategy "Parallel", which means parallel: say serial or parallel`,
				`W operator.yaml:5: phase "p" of plan "deploy" has the unknown strategy "in order", which means parallel: say serial or parallel`}},
		"Lines": {"the line is that of the field",
			plansOf("plans:\n  deploy:\n    strategy: x\n    phases:\n    - name: p\n      strategy: y\n"),
			[]string{`W operator.yaml:7: plan "deploy" has the unknown strategy "x", which means parallel: say serial or parallel`,
				`W operator.yaml:10: phase "p" of plan "deploy" has the unknown strategy "y", which means parallel: say serial or parallel`}},
	})
}

// TestEndlessTasks checks which Dummy tasks end.
func TestEndlessTasks(t *testing.T) {
	const endless = `W operator.yaml:6: task "b" is a Dummy that is never done: its plan stays in progress until another one is asked ` +
		`for or it is cancelled`
	only(t, endlessTasks, map[string]lintCase{
		"Plain":   {"a Dummy without fields", files{"operator.yaml": operator("{name: b, kind: Dummy}")}, []string{endless}},
		"Done":    {"one that is done", files{"operator.yaml": operator("{name: b, kind: Dummy, spec: {done: true}}")}, nil},
		"WantErr": {"one that fails", files{"operator.yaml": operator("{name: b, kind: Dummy, spec: {wantErr: true}}")}, nil},
		"Other":   {"a task of another kind", files{"operator.yaml": operator("{name: b, kind: Apply, spec: {resources: [a.yaml]}}")}, nil},
	})
}

// TestChain checks that a chain asks its linters in order, and reports a finding of several linters once.
func TestChain(t *testing.T) {
	say := func(errors, warnings []string) Linter {
		return func(*Subject) (found Findings) {
			for _, text := range errors {
				found.Errors = append(found.Errors, operators.Finding{Message: text})
			}
			for _, text := range warnings {
				found.Warnings = append(found.Warnings, operators.Finding{Message: text})
			}
			return found
		}
	}
	found := Chain{say([]string{"b", "a", "b"}, []string{"x"}),
		say([]string{"a", "c"}, []string{"y", "x", "c"})}.Lint(NewSubject(files{}.read(t)))
	if got := strings.Join(lines(found), " "); got != "E b E a E c W x W y" || found.Valid() {
		t.Errorf("got %s", got)
	}
	if found := (Chain{}).Lint(nil); !found.Valid() || lines(found) != nil {
		t.Errorf("no linters: %v", found)
	}
	if !(Findings{Warnings: []operators.Finding{{}}}).Valid() {
		t.Error("warnings keep a package valid")
	}
}
