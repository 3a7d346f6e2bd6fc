package operators

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestHostileLock checks that a lock file that someone else has written costs little, and is refused as a whole.
func TestHostileLock(t *testing.T) {
	entry := strings.TrimPrefix(formatLock(t, shopLock()), lockHeader)
	for name, tc := range map[string]struct {
		reason, lock string
		mode         fs.FileMode
		want         string
	}{
		"Large":    {"a file that is too large", "# " + strings.Repeat("x", MaxFile) + "\n" + entry, 0, "has more than"},
		"Aliases":  {"aliases that grow", "a: &a [" + strings.Repeat("x,", 9) + "x]\nb: &b [" + strings.Repeat("*a,", 9) + "*a]\ndependencies: [*b, *b, *b]\n", 0, "operator.lock"},
		"Keys":     {"a key twice", entry + entry, 0, "dependencies"},
		"Case":     {"a field in another letter case", strings.Replace(entry, "found:", "Found:", 1), 0, "Found"},
		"NoYAML":   {"no YAML", "\t{", 0, "operator.lock"},
		"Binary":   {"no text", "\x00\x01\x02", 0, "operator.lock"},
		"Text":     {"no map", "hello\n", 0, "operator.lock"},
		"Number":   {"a number in place of a digest", strings.Replace(entry, contentA, "12345", 1), 0, "dependencies[0].found.content"},
		"Folder":   {"a folder", "", fs.ModeDir | 0o755, "operator.lock"},
		"NoDigest": {"a URL without a digest", strings.Replace(entry, "oci://r.example.org/kudo/redis@"+contentA, "https://example.org/redis.tgz", 1), 0, "found.from"},
		"Script":   {"an address of another kind", strings.Replace(entry, "oci://r.example.org/kudo/redis@"+contentA, "javascript:alert(1)//@"+contentA, 1), 0, "found.from"},
		"TwoAts":   {"an address that names two digests", strings.Replace(entry, "redis@"+contentA, "redis@"+contentB+"@"+contentA, 1), 0, "found.from"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{"operator.yaml": {Data: []byte(shop)}, "params.yaml": {Data: []byte("parameters: []\n")},
				LockFileName: {Data: []byte(tc.lock), Mode: tc.mode}}
			_, err := Read(tree)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if err != nil && len(err.Error()) > 10_000 {
				t.Errorf("%s: the error has %d bytes", tc.reason, len(err.Error()))
			}
		})
	}
}

// TestLockRoundTrip checks that what is written of random locks is read again, and says what the tasks name.
func TestLockRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a sequence that is the same each time
	word := func() string { return fmt.Sprintf("w%d", r.IntN(1000)) }
	for range 200 {
		l := &Lock{Dependencies: []LockedDependency{}}
		operator := "name: shop\noperatorVersion: 1.0.0\nkubernetesVersion: 1.31.0\ntasks:\n"
		var used []string
		for i := range r.IntN(6) {
			d := LockedDependency{Task: fmt.Sprintf("t%d", i), Wanted: LockWanted{Package: word()}}
			d.Found = LockFound{Name: d.Wanted.Package, OperatorVersion: fmt.Sprintf("%d.0.0", r.IntN(9)), Content: fmt.Sprintf("sha256:%064x", r.Uint64())}
			if r.IntN(2) == 0 {
				d.Wanted.OperatorVersion, d.Found.AppVersion = "^1."+fmt.Sprint(r.IntN(9)), "7.1"
				d.Found.From = fmt.Sprintf("https://example.org/%s.tgz#sha256=%064x", word(), r.Uint64())
			}
			l.Dependencies = append(l.Dependencies, d)
			operator += fmt.Sprintf("- {name: %s, kind: KudoOperator, spec: {package: %s, operatorVersion: '%s'}}\n", d.Task, d.Wanted.Package, d.Wanted.OperatorVersion)
			used = append(used, d.Task)
		}
		operator += "plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [" + strings.Join(used, ", ") + "]}]}]}}\n"
		if len(used) == 0 {
			operator = strings.Replace(operator, "tasks:\n", "", 1)
		}
		p, err := readShop(t, operator, formatLock(t, l))
		if err != nil {
			t.Fatalf("%v\n%s", err, operator)
		}
		if diff := cmp.Diff(l, p.Lock); diff != "" {
			t.Fatalf("-written +read: %s", diff)
		}
		_, version, err := Convert(p, "ns")
		if err != nil {
			t.Fatal(err)
		}
		for i, task := range version.Spec.Tasks {
			found := l.Dependencies[i].Found
			want := v1beta1.TaskSpec{Package: found.Name, AppVersion: found.AppVersion, OperatorVersion: found.OperatorVersion, Content: found.Content}
			if diff := cmp.Diff(want, task.Spec); diff != "" {
				t.Fatalf("task %d: -want +got: %s", i, diff)
			}
		}
	}
}

// TestLockEntry checks that a package without a lock has no entries, and one with a lock those of its tasks.
func TestLockEntry(t *testing.T) {
	var none *Lock
	if none.Entry("store") != nil || none.DeepCopy() != nil {
		t.Error("a package without a lock has an entry")
	}
	l := shopLock()
	if l.Entry("other") != nil || l.Entry("queue") != &l.Dependencies[1] {
		t.Error("the entry of a task is not the one of its name")
	}
	p := packageOf(v1beta1.Task{Name: "a", Kind: "KudoOperator", Spec: v1beta1.TaskSpec{Package: "p", Content: contentA}})
	if p.ValidateLock() != nil {
		t.Error("a package without a lock has one that does not fit")
	}
	same, err := p.resolved()
	if err != nil || same != p {
		t.Errorf("a package without a lock is not returned as it is: %v", err)
	}
}

// TestCheckShared checks which fields a task with a shared Instance needs, and which it cannot have.
func TestCheckShared(t *testing.T) {
	good := v1beta1.TaskSpec{Package: "postgres", InstanceName: "common", AppVersion: "17.x", OperatorVersion: "^1.2", Shared: true}
	for name, tc := range map[string]struct {
		reason string
		change func(*v1beta1.TaskSpec)
		field  string
	}{
		"Good":     {"all that it can have", func(*v1beta1.TaskSpec) {}, ""},
		"Any":      {"any version", func(s *v1beta1.TaskSpec) { s.AppVersion, s.OperatorVersion = "", "" }, ""},
		"Switched": {"a parameter that decides", func(s *v1beta1.TaskSpec) { s.EnablingParameter = "ON" }, ""},
		"NotShared": {"an Instance that is made may have all", func(s *v1beta1.TaskSpec) {
			*s = v1beta1.TaskSpec{Package: "../p", ParameterFile: "x", Content: contentA}
		}, ""},
		"Path":       {"a path", func(s *v1beta1.TaskSpec) { s.Package = "../postgres" }, "package"},
		"URL":        {"a URL", func(s *v1beta1.TaskSpec) { s.Package = "https://example.org/postgres.tgz" }, "package"},
		"Nameless":   {"no name", func(s *v1beta1.TaskSpec) { s.InstanceName = "" }, "instanceName"},
		"OtherSpace": {"the name of another namespace", func(s *v1beta1.TaskSpec) { s.InstanceName = "other/common" }, "instanceName"},
		"File":       {"parameters", func(s *v1beta1.TaskSpec) { s.ParameterFile = "x.yaml" }, "parameterFile"},
		"Content":    {"a content", func(s *v1beta1.TaskSpec) { s.Content = contentA }, "content"},
		"AppRange":   {"a range that cannot be read", func(s *v1beta1.TaskSpec) { s.AppVersion = "^a.b" }, "appVersion"},
		"Range":      {"a range that cannot be read", func(s *v1beta1.TaskSpec) { s.OperatorVersion = ">>1" }, "operatorVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			tc.change(&s)
			field, remedy := CheckShared(s)
			if field != tc.field || (remedy == "") != (tc.field == "") {
				t.Errorf("%s: %q, %q, want %q", tc.reason, field, remedy, tc.field)
			}
			p := packageOf(v1beta1.Task{Name: "a", Kind: "KudoOperator", Spec: s})
			if errs := p.ValidateTaskFields(); (len(errs) > 0) != (tc.field != "") && tc.reason != "an Instance that is made may have all" {
				t.Errorf("%s: %v", tc.reason, errs)
			}
		})
	}
}

// TestSharedIsNoDependency checks that a shared Instance is neither resolved nor locked, since it is installed by itself.
func TestSharedIsNoDependency(t *testing.T) {
	p := packageOf(v1beta1.Task{Name: "a", Kind: "KudoOperator", Spec: v1beta1.TaskSpec{Package: "p", InstanceName: "i", Shared: true}},
		v1beta1.Task{Name: "b", Kind: "KudoOperator", Spec: v1beta1.TaskSpec{Package: "q", Content: contentA}})
	p.Operator.Plans = map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Steps: []v1beta1.Step{{Tasks: []string{"a", "b"}}}}}}}
	want := []Dependency{{Index: 1, Task: "b", Package: "q", Content: contentA}}
	if diff := cmp.Diff(want, p.Dependencies()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	p.Lock = &Lock{Dependencies: []LockedDependency{{Task: "a", Wanted: LockWanted{Package: "p"}}, {Task: "b", Wanted: LockWanted{Package: "q"}}}}
	if errs := p.ValidateLock(); len(errs) != 1 || !strings.Contains(errs[0].Message, `no plan uses a KudoOperator task "a"`) {
		t.Errorf("%v", errs)
	}
}

// TestIsContentDigest checks the form of content digests, by which a task and a lock name a content.
func TestIsContentDigest(t *testing.T) {
	for text, is := range map[string]bool{
		contentA: true, contentB: true, "": false, "sha256:": false, contentA + "a": false, contentA[:70]: false, strings.ToUpper(contentA): false,
		"sha512:" + strings.Repeat("a", 64): false, " " + contentA: false, contentA + "\n": false, strings.Repeat("a", 64): false,
		"sha256:" + strings.Repeat("g", 64): false,
	} {
		if IsContentDigest(text) != is {
			t.Errorf("%q is a content digest: %t", text, !is)
		}
	}
}

// TestLockOfStrict checks that strict reading and lenient reading of the same lock agree, and that a link to one is followed within the package.
func TestLockOfStrict(t *testing.T) {
	tree := fstest.MapFS{"operator.yaml": {Data: []byte(shop)}, "params.yaml": {Data: []byte("parameters: []\n")}, LockFileName: {Data: []byte(formatLock(t, shopLock()))}}
	lenient, err := Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := Read(tree, WithStrict(), WithPath("here"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lenient.Lock, strict.Lock); diff != "" {
		t.Errorf("-lenient +strict: %s", diff)
	}
	if line := lenient.Line(LockFileName, "dependencies[1]"); line < 3 {
		t.Errorf("the second entry is in line %d", line)
	}
	if c := lenient.DeepCopy(); c.Lock == lenient.Lock || cmp.Diff(c.Lock, lenient.Lock) != "" {
		t.Error("a copy has the lock of the package, or another one")
	}
}
