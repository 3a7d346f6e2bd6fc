package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators/edit"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// packageText returns the files of the package web/operator that commands of package add change.
func packageText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"operator.yaml", "params.yaml"} {
		text, err := os.ReadFile(filepath.Join("web", "operator", name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestAddRefuses checks which entries are refused, and that the files of the package stay as they are.
func TestAddRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Expect(t, New, 0, "", "package", "new", "web")
	t.Chdir("web")
	commandtest.Expect(t, New, 0, "", "package", "add", "task", "idle", "--kind", "Dummy")
	t.Chdir("..")
	before := packageText(t)
	for name, tc := range map[string]struct {
		reason, in string
		code       int
		args       []string
		want       string
	}{
		"MaintainerMail":    {"an address has an at sign", "", command.ExitUsage, []string{"maintainer", "Ann", "ann.example.com"}, `got "Ann" and "ann.example.com"`},
		"MaintainerAlone":   {"a maintainer has an address", "", command.ExitUsage, []string{"maintainer", "Ann"}, "a maintainer has a name and an e-mail address"},
		"MaintainerThree":   {"and no more", "", command.ExitUsage, []string{"maintainer", "Ann", "B", "a@x"}, "takes a name and an e-mail address, and got 3 arguments"},
		"MaintainerNobody":  {"nothing is asked without a terminal", "", command.ExitUsage, []string{"maintainer"}, "name the maintainer, and the e-mail address: questions are asked on a terminal only, or with --interactive"},
		"MaintainerEnd":     {"the first question without an answer is the last", "", command.ExitError, []string{"maintainer", "-i"}, `no answer to "Name": nothing was changed`},
		"ParameterGroup":    {"groups are declared", "", command.ExitError, []string{"parameter", "A", "--group", "main"}, `parameter group "main" of parameter "A" is not declared`},
		"ParameterDefault":  {"a list is a list", "", command.ExitUsage, []string{"parameter", "A", "--type", "array", "--default", "[a"}, "--default: "},
		"ParameterNumber":   {"a number is a number", "", command.ExitError, []string{"parameter", "A", "--type", "integer", "--default", "1.5"}, "A"},
		"ParameterEnum":     {"a default is one of the values", "", command.ExitError, []string{"parameter", "A", "--enum", "a,b", "--default", "c"}, "A"},
		"ParameterPattern":  {"a pattern is a regular expression", "", command.ExitError, []string{"parameter", "A", "--pattern", "(", "--default", "x"}, "A"},
		"ParameterTrigger":  {"the plan of a trigger exists", "", command.ExitError, []string{"parameter", "A", "--trigger", "none", "--default", "x"}, "none"},
		"ParameterTwo":      {"one name", "", command.ExitUsage, []string{"parameter", "A", "B"}, "takes the name of the parameter, and got 2 arguments"},
		"TaskKind":          {"a task has a kind", "", command.ExitUsage, []string{"task", "t"}, "a --kind that is one of Apply, Delete, Toggle, Pipe, KudoOperator, Dummy"},
		"TaskKindCase":      {"kinds are written as they are", "", command.ExitUsage, []string{"task", "t", "--kind", "apply"}, "a --kind that is one of"},
		"TaskTwice":         {"a task exists once", "", command.ExitError, []string{"task", "idle", "--kind", "Dummy"}, `the package has a task "idle" already`},
		"TaskPipe":          {"a pipe has fields", "", command.ExitUsage, []string{"task", "t", "--kind", "Pipe", "--pod", "config.yaml", "--pipe", "keys"}, `--pipe "keys": must be key=KEY`},
		"TaskNoResource":    {"a task of the kind Apply has templates", "", command.ExitError, []string{"task", "t", "--kind", "Apply"}, "t"},
		"PlanName":          {"a plan has a step", "", command.ExitUsage, []string{"plan", "p"}, "a plan needs a name and a --step"},
		"PlanStrategy":      {"strategies exist", "", command.ExitUsage, []string{"plan", "p", "--step", "a/b=idle", "--strategy", "random"}, `"random" is no strategy: there are serial and parallel`},
		"PlanPhases":        {"of phases, too", "", command.ExitUsage, []string{"plan", "p", "--step", "a/b=idle", "--phase-strategy", ""}, `"" is no strategy`},
		"PlanTwice":         {"a plan exists once", "", command.ExitError, []string{"plan", "deploy", "--step", "a/b=idle"}, `the package has a plan "deploy" already`},
		"PlanTask":          {"its tasks exist", "", command.ExitError, []string{"plan", "p", "--step", "a/b=none"}, "none"},
		"PlanStepNoPhase":   {"a step has a phase", "", command.ExitUsage, []string{"plan", "p", "--step", "/b=idle"}, `--step "/b=idle": must be PHASE/STEP=TASK`},
		"PlanStepNoName":    {"and a name", "", command.ExitUsage, []string{"plan", "p", "--step", "a/=idle"}, "must be PHASE/STEP=TASK"},
		"PlanStepCommas":    {"and tasks", "", command.ExitUsage, []string{"plan", "p", "--step", "a/b=,"}, "must be PHASE/STEP=TASK"},
		"PackageFolder":     {"the folder of --package holds a package", "", command.ExitError, []string{"task", "t", "--kind", "Dummy", "--package", "web"}, "--package: "},
		"UnknownSubcommand": {"four things can be added", "", command.ExitUsage, []string{"phase", "x"}, `has no command "phase"`},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"package", "add"}, tc.args...)
			if name != "PackageFolder" {
				args = append(args, "--package", filepath.Join("web", "operator"))
			}
			out, errs := commandtest.Expect(t, New, tc.code, tc.in, args...)
			if !strings.Contains(out+errs, tc.want) {
				t.Errorf("%s: no %q in\n%s%s", tc.reason, tc.want, out, errs)
			}
			if strings.Count(errs, "no answer to") > 1 {
				t.Errorf("%s: a question is asked after the end of the answers:\n%s", tc.reason, errs)
			}
			if after := packageText(t); after != before {
				t.Fatalf("%s: the package was changed: %s", tc.reason, cmp.Diff(before, after))
			}
		})
	}
}

// TestAddWrites checks what of the flags comes into the files.
func TestAddWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     string
		args   []string
		want   []string
	}{
		"Maintainer": {"name and address", "", []string{"maintainer", "Ann Lee", "ann@example.com"}, []string{"name: Ann Lee", "email: ann@example.com"}},
		"Empty":      {"an empty default is a default", "", []string{"parameter", "A", "--default", ""}, []string{"name: A", `default: ""`}},
		"Optional":   {"an optional parameter", "", []string{"parameter", "A", "--optional"}, []string{"name: A", "required: false"}},
		"Texts":      {"what people read", "", []string{"parameter", "A", "--default", "x", "--display-name", "Name", "--description", "What: it does.", "--hint", "short", "--advanced", "--immutable"}, []string{"displayName: Name", "What: it does.", "hint: short", "advanced: true", "immutable: true"}},
		"Enum":       {"values", "", []string{"parameter", "A", "--enum", "a,b", "--default", "a"}, []string{"enum:", "a", "b"}},
		"List":       {"a list as YAML", "", []string{"parameter", "A", "--type", "array", "--default", "[x, y]"}, []string{"type: array", "x", "y"}},
		"Dummy":      {"a task that is done", "", []string{"task", "t", "--kind", "Dummy"}, []string{"name: t", "kind: Dummy", "done: true"}},
		"NotDone":    {"and one that is not", "", []string{"task", "t", "--kind", "Dummy", "--done=false"}, []string{"done: false"}},
		"Operator":   {"a dependency", "", []string{"task", "t", "--kind", "KudoOperator", "--operator", "zookeeper", "--operator-version", "0.3.3"}, []string{"package: zookeeper", "operatorVersion: 0.3.3"}},
		"Interview":  {"answers are written as flags are", "Ann\nann@example.com\n", []string{"maintainer", "-i"}, []string{"name: Ann", "email: ann@example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			commandtest.Expect(t, New, 0, "", "package", "new", "web")
			before := packageText(t)
			t.Chdir("web") // the one folder below that holds a package is found
			out, _ := commandtest.Expect(t, New, 0, tc.in, append([]string{"package", "add"}, tc.args...)...)
			if !strings.Contains(out, " added to "+filepath.Join("operator", "")) {
				t.Errorf("%s: the file is not named: %s", tc.reason, out)
			}
			t.Chdir("..")
			added := packageText(t)
			for line := range strings.Lines(before) {
				added = strings.Replace(added, line, "", 1)
			}
			for _, want := range tc.want {
				if !strings.Contains(added, want) {
					t.Errorf("%s: no %q in what was added:\n%s", tc.reason, want, added)
				}
			}
			commandtest.Expect(t, New, 0, "", "package", "verify", filepath.Join("web", "operator"))
		})
	}
}

// TestPackageFolder checks where a package is looked for.
func TestPackageFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, dir string
		files       []string
		want, fails string
	}{
		"Here":    {"this folder", "", []string{"operator.yaml"}, ".", ""},
		"First":   {"before one below", "", []string{"operator.yaml", "a/operator.yaml"}, ".", ""},
		"Below":   {"the one folder below", "", []string{"a/operator.yaml", "b/other.yaml"}, "a", ""},
		"Flag":    {"the folder of the flag", "b", []string{"a/operator.yaml", "b/operator.yaml"}, "b", ""},
		"Several": {"several folders below", "", []string{"a/operator.yaml", "b/operator.yaml"}, "", "several folders below hold operator.yaml ("},
		"Deeper":  {"a folder further below is not found", "", []string{"a/b/operator.yaml"}, "", "neither this folder nor one below holds operator.yaml: go to the package, or name it by --package"},
		"None":    {"no package", "", nil, "", "name it by --package"},
		"NoFlag":  {"the folder of the flag holds none", "a", []string{"operator.yaml"}, "", "--package: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, file := range tc.files {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := packageFolder(tc.dir)
			if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: %q, error %v", tc.reason, got, err)
			}
		})
	}
}

// TestAddToLink checks that a file that is a link is not replaced.
func TestAddToLink(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Expect(t, New, 0, "", "package", "new", "web")
	file := filepath.Join("web", "operator", "params.yaml")
	if err := os.Rename(file, "shared.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "..", "shared.yaml"), file); err != nil {
		t.Fatal(err)
	}
	_, errs := commandtest.Expect(t, New, command.ExitError, "", "package", "add", "parameter", "A", "--default", "x", "--package", filepath.Join("web", "operator"))
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v\n%s", err, errs)
	}
}

// TestParsePipe checks the fields of --pipe.
func TestParsePipe(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         edit.Pipe
		wrong        bool
	}{
		{"a file", "key=keys,kind=Secret,file=/tmp/key.pem", edit.Pipe{Key: "keys", Kind: "Secret", File: "/tmp/key.pem"}, false},
		{"a file of variables", "key=env,kind=ConfigMap,envFile=/tmp/env", edit.Pipe{Key: "env", Kind: "ConfigMap", EnvFile: "/tmp/env"}, false},
		{"a name of its own", "key=k,kind=Secret,file=/a,nameSuffix=tls", edit.Pipe{Key: "k", Kind: "Secret", File: "/a", NameSuffix: "tls"}, false},
		{"in any order, with blanks", " file=/a , key=k ", edit.Pipe{Key: "k", File: "/a"}, false},
		{"a value has equals signs", "file=/a=b,key=k", edit.Pipe{Key: "k", File: "/a=b"}, false},
		{"fields are written as they are", "Key=k", edit.Pipe{}, true},
		{"a field has a value", "key=", edit.Pipe{}, true},
		{"a value has a field", "/tmp/key.pem", edit.Pipe{}, true},
	} {
		got, err := parsePipe(tc.text)
		if (err != nil) != tc.wrong || err == nil && got != tc.want {
			t.Errorf("%s: %+v, error %v", tc.reason, got, err)
		}
	}
}
