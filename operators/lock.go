package operators

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/text"
)

// LockFileName is the file of a package that says what its dependencies were found to be.
const LockFileName = "operator.lock"

// lockHeader is the beginning of a lock file.
const lockHeader = "# The dependencies that the tasks of the package were found to name. Written by kubectl kudo package lock.\n"

// Lock says what the dependencies of a package were found to be. So the package has the same dependencies wherever and whenever it is
// installed.
type Lock struct {
	// Dependencies has one entry for each KudoOperator task that a plan uses.
	Dependencies []LockedDependency `json:"dependencies"`
}

// LockedDependency is the dependency of one task.
type LockedDependency struct {
	// Task is the name of the task.
	Task string `json:"task"`
	// Wanted is what the task asked for when the entry was written.
	Wanted LockWanted `json:"wanted"`
	// Found is what was found.
	Found LockFound `json:"found"`
}

// LockWanted is what a KudoOperator task asks for.
type LockWanted struct {
	// Package is a name, a path, a URL or a reference.
	Package string `json:"package"`
	// AppVersion and OperatorVersion are versions or ranges; empty ones are any.
	AppVersion      string `json:"appVersion,omitempty"`
	OperatorVersion string `json:"operatorVersion,omitempty"`
}

// LockFound is a version of a package.
type LockFound struct {
	Name string `json:"name"`
	// AppVersion is empty if the package has none.
	AppVersion      string `json:"appVersion,omitempty"`
	OperatorVersion string `json:"operatorVersion"`
	// From is where it was found, with a digest: oci://HOST/PATH/NAME@sha256:<hex> or URL#sha256=<hex>. It is empty for a path, since
	// paths differ between machines.
	From string `json:"from,omitempty"`
	// Content is the content digest of the OperatorVersion that the package becomes.
	Content string `json:"content"`
}

// reference returns what a task names once the lock is applied.
func (f LockFound) reference() Reference {
	return Reference{Operator: f.Name, AppVersion: f.AppVersion, OperatorVersion: f.OperatorVersion, Content: f.Content}
}

// Entry returns the entry of a task; nil if there is none.
func (l *Lock) Entry(task string) *LockedDependency {
	if l == nil {
		return nil
	}
	at := slices.IndexFunc(l.Dependencies, func(d LockedDependency) bool { return d.Task == task })
	if at < 0 {
		return nil
	}
	return &l.Dependencies[at]
}

// Format returns the text of the lock file.
func (l *Lock) Format() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(lockHeader)
	encoded, err := yaml.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", LockFileName, err)
	}
	out.Write(encoded)
	return out.Bytes(), nil
}

// DeepCopy returns a copy that shares nothing with the lock.
func (l *Lock) DeepCopy() *Lock {
	if l == nil {
		return nil
	}
	return &Lock{Dependencies: slices.Clone(l.Dependencies)}
}

// Wanted returns what the task of a dependency asks for.
func (d Dependency) Wanted() LockWanted {
	return LockWanted{Package: d.Package, AppVersion: d.AppVersion, OperatorVersion: d.OperatorVersion}
}

// lockRemedy ends messages about lock files that do not fit their package.
const lockRemedy = "run kubectl kudo package lock, which writes the file anew"

var (
	contentPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	fromPattern    = regexp.MustCompile(`^((oci://|layout:)[^@]+@sha256:[0-9a-f]{64}|(https?|file)://[^#]+#sha256=[0-9a-f]{64})$`)
)

// IsContentDigest reports whether a text is the content digest of an OperatorVersion.
func IsContentDigest(s string) bool { return contentPattern.MatchString(s) }

// lock reads the lock file of a package, if it has one. Unknown fields are errors: a lock that is not understood locks nothing.
func (r *reader) lock() *Lock {
	if !exists(r.fsys, LockFileName) {
		return nil
	}
	l := &Lock{}
	root := r.yaml(LockFileName)
	if root == nil { // an empty file locks nothing, and does not fit what depends on something
		return l
	}
	strict := r.strict
	r.strict = true
	defer func() { r.strict = strict }()
	r.decodeInto(LockFileName, root, l)
	for i, d := range l.Dependencies {
		r.checkLocked(fmt.Sprintf("dependencies[%d]", i), d)
	}
	return l
}

// checkLocked reports what is wrong with an entry of a lock file by itself.
func (r *reader) checkLocked(path string, d LockedDependency) {
	for _, field := range []struct{ name, value string }{
		{"task", d.Task}, {"wanted.package", d.Wanted.Package}, {"found.name", d.Found.Name}, {"found.operatorVersion", d.Found.OperatorVersion},
	} {
		if field.value == "" {
			r.fail(r.lines[LockFileName+":"+path], path+"."+field.name, "is empty: "+lockRemedy)
		}
	}
	if !IsContentDigest(d.Found.Content) {
		r.fail(r.lines[LockFileName+":"+path], path+".found.content", "%q is no digest, sha256:<hex>: %s", text.Truncate(d.Found.Content, 80),
			lockRemedy)
	}
	if d.Found.From != "" && !fromPattern.MatchString(d.Found.From) {
		r.fail(r.lines[LockFileName+":"+path], path+".found.from", "%q is neither a reference nor a URL with a digest: %s",
			text.Truncate(d.Found.From, 200), lockRemedy)
	}
}

// ValidateLock finds where the lock of a package does not fit its tasks.
func (p *Package) ValidateLock() Errors {
	if p.Lock == nil {
		return nil
	}
	var errs Errors
	fail := func(i int, format string, args ...any) {
		field := "dependencies"
		if i >= 0 {
			field = fmt.Sprintf("dependencies[%d]", i)
		}
		errs = append(errs, Finding{File: LockFileName, Line: p.Line(LockFileName, field), Field: field,
			Message: fmt.Sprintf(format, args...) + ": " + lockRemedy})
	}
	asked := map[string]LockWanted{}
	for _, d := range DependenciesOf(p.Operator.Tasks, p.Operator.Plans) {
		if before, is := asked[d.Task]; is && before != d.Wanted() {
			fail(-1, "two tasks are called %q", text.Truncate(d.Task, 64))
		}
		asked[d.Task] = d.Wanted()
	}
	for i, entry := range p.Lock.Dependencies {
		wanted, is := asked[entry.Task]
		switch {
		case p.Lock.Entry(entry.Task) != &p.Lock.Dependencies[i]:
			fail(i, "task %q has two entries", text.Truncate(entry.Task, 64))
		case !is:
			fail(i, "no plan uses a KudoOperator task %q", text.Truncate(entry.Task, 64))
		case wanted != entry.Wanted:
			fail(i, "task %q asks for something else than when the file was written", text.Truncate(entry.Task, 64))
		}
	}
	for _, d := range DependenciesOf(p.Operator.Tasks, p.Operator.Plans) {
		if p.Lock.Entry(d.Task) == nil {
			fail(-1, "task %q has no entry", text.Truncate(d.Task, 64))
		}
	}
	return errs
}

// resolved returns the package with tasks that name what the lock says, and without the lock. A package without a lock is returned as it
// is.
func (p *Package) resolved() (*Package, error) {
	if p.Lock == nil {
		return p, nil
	}
	found := map[int]Reference{}
	for _, d := range p.Dependencies() {
		found[d.Index] = p.Lock.Entry(d.Task).Found.reference()
	}
	return p.WithDependencies(found)
}
