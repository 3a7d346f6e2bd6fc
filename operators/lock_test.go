package operators

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

const shop = `name: shop
operatorVersion: 1.0.0
kubernetesVersion: 1.31.0
tasks:
- {name: store, kind: KudoOperator, spec: {package: redis, operatorVersion: ^1.0}}
- {name: queue, kind: KudoOperator, spec: {package: ../queue}}
- {name: unused, kind: KudoOperator, spec: {package: other}}
plans:
  deploy: {phases: [{name: p, steps: [{name: s, tasks: [store, queue]}]}]}
`

var (
	contentA = "sha256:" + strings.Repeat("a", 64)
	contentB = "sha256:" + strings.Repeat("b", 64)
)

// shopLock is the lock of shop.
func shopLock() *Lock {
	return &Lock{Dependencies: []LockedDependency{
		{Task: "store", Wanted: LockWanted{Package: "redis", OperatorVersion: "^1.0"},
			Found: LockFound{Name: "redis", AppVersion: "7.4", OperatorVersion: "1.2.0", Content: contentA, From: "oci://r.example.org/kudo/redis@" + contentA}},
		{Task: "queue", Wanted: LockWanted{Package: "../queue"}, Found: LockFound{Name: "queue", OperatorVersion: "0.1.0", Content: contentB}},
	}}
}

// readShop reads a package with a lock file.
func readShop(t *testing.T, operator, lock string) (*Package, error) {
	t.Helper()
	return Read(fstest.MapFS{"operator.yaml": {Data: []byte(operator)}, "params.yaml": {Data: []byte("parameters: []\n")}, "operator.lock": {Data: []byte(lock)}})
}

func formatLock(t *testing.T, l *Lock) string {
	t.Helper()
	text, err := l.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLock checks S32: a lock that fits says which dependencies a package has, also in the OperatorVersion that it becomes.
func TestLock(t *testing.T) {
	p, err := readShop(t, shop, formatLock(t, shopLock()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shopLock(), p.Lock); diff != "" {
		t.Errorf("what was written is read again: -want +got:\n%s", diff)
	}
	want := []Dependency{
		{Index: 0, Task: "store", Package: "redis", AppVersion: "7.4", OperatorVersion: "1.2.0", Content: contentA, From: "oci://r.example.org/kudo/redis@" + contentA},
		{Index: 1, Task: "queue", Package: "../queue", OperatorVersion: "0.1.0", Content: contentB},
	}
	if diff := cmp.Diff(want, p.Dependencies()); diff != "" {
		t.Errorf("dependencies: -want +got:\n%s", diff)
	}
	_, version, err := Convert(p, "ns")
	if err != nil {
		t.Fatal(err)
	}
	spec := func(i int) v1beta1.TaskSpec { return version.Spec.Tasks[i].Spec }
	if diff := cmp.Diff(v1beta1.TaskSpec{Package: "redis", AppVersion: "7.4", OperatorVersion: "1.2.0", Content: contentA}, spec(0)); diff != "" {
		t.Errorf("the task: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(v1beta1.TaskSpec{Package: "queue", OperatorVersion: "0.1.0", Content: contentB}, spec(1)); diff != "" {
		t.Errorf("the task: -want +got:\n%s", diff)
	}
	if spec(2).Package != "other" || p.Operator.Tasks[0].Spec.OperatorVersion != "^1.0" {
		t.Error("a task that no plan uses, and the package itself, are left as they are")
	}
	c := p.DeepCopy()
	c.Lock.Dependencies[0].Found.Content = contentB
	if p.Lock.Dependencies[0].Found.Content != contentA {
		t.Error("a copy shares its lock with the package")
	}
}

// TestLockFits checks S32: a lock that does not fit the tasks is an error that names the entry and the remedy.
func TestLockFits(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		operator string
		change   func(*Lock)
		want     string
	}{
		"Range":   {"the task asks for another range", strings.Replace(shop, "^1.0", "^2.0", 1), nil, `dependencies[0]: task "store" asks for something else`},
		"Package": {"the task names another package", strings.Replace(shop, "redis", "valkey", 1), nil, `dependencies[0]: task "store" asks for something else`},
		"Missing": {"a task has no entry", shop, func(l *Lock) { l.Dependencies = l.Dependencies[:1] }, `dependencies: task "queue" has no entry`},
		"Unused":  {"a task is not used any more", strings.Replace(shop, "[store, queue]", "[store]", 1), nil, `dependencies[1]: no plan uses a KudoOperator task "queue"`},
		"Twice":   {"a task has two entries", shop, func(l *Lock) { l.Dependencies = append(l.Dependencies, l.Dependencies[0]) }, `dependencies[2]: task "store" has two entries`},
		"Blank":   {"a file without content locks nothing", shop, nil, `dependencies: task "store" has no entry`},
		"Empty":   {"an empty lock locks nothing", shop, func(l *Lock) { l.Dependencies = nil }, `dependencies: task "store" has no entry`},
		"Renamed": {"two tasks of one name", strings.Replace(shop, "name: queue", "name: store", 1), nil, `two tasks are called "store"`},
	} {
		t.Run(name, func(t *testing.T) {
			l := shopLock()
			if tc.change != nil {
				tc.change(l)
			}
			text := formatLock(t, l)
			if name == "Blank" {
				text = "# nothing\n"
			}
			p, err := readShop(t, tc.operator, text)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Convert(p, "ns")
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "operator.lock") || !strings.Contains(err.Error(), "package lock") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestLockFile checks S32: a lock file that is not understood as a whole is refused.
func TestLockFile(t *testing.T) {
	good := formatLock(t, shopLock())
	for name, tc := range map[string]struct{ reason, from, to, want string }{
		"Field":   {"an unknown field could mean anything", "name: queue", "name: queue\n    optional: true", "optional"},
		"Digest":  {"a digest of another kind", contentB, "md5:abc", "dependencies[1].found.content"},
		"Upper":   {"a digest in another letter case", contentB, strings.ToUpper(contentB), "dependencies[1].found.content"},
		"From":    {"a reference by a tag could move", "redis@" + contentA, "redis:1.2.0", "dependencies[0].found.from"},
		"Path":    {"a path of this machine", "oci://r.example.org/kudo/redis@" + contentA, "/home/me/redis", "dependencies[0].found.from"},
		"Task":    {"an entry for no task", "task: queue", `task: ""`, "dependencies[1].task"},
		"Version": {"no version", "operatorVersion: 0.1.0", `operatorVersion: ""`, "dependencies[1].found.operatorVersion"},
		"List":    {"no list", "dependencies:\n", "dependencies: nothing\nother:\n", "expected a list"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tc.from) {
				t.Fatalf("no %q in\n%s", tc.from, good)
			}
			_, err := readShop(t, shop, strings.Replace(good, tc.from, tc.to, 1))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
	p, err := Read(fstest.MapFS{"operator.yaml": {Data: []byte(shop)}, "params.yaml": {Data: []byte("parameters: []\n")}})
	if err != nil || p.Lock != nil || p.Dependencies()[0].OperatorVersion != "^1.0" {
		t.Errorf("a package without the file: %v, %v", p, err)
	}
}

// FuzzLock checks that no lock file leads to more than an error.
func FuzzLock(f *testing.F) {
	text, err := shopLock().Format()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("dependencies: [{task: store}]")
	f.Fuzz(func(t *testing.T, lock string) {
		p, err := readShop(t, shop, lock)
		if err != nil {
			return
		}
		if _, version, err := Convert(p, "ns"); err == nil && version.Spec.Tasks[0].Spec.Content == "" {
			t.Errorf("a lock that fits locks nothing:\n%s", lock)
		}
	})
}
