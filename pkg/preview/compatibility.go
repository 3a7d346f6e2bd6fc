package preview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/crdcompat"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/pkg/storedversions"
	"kudo.dev/kudo/pkg/text"
)

// Definition is what the change of a CustomResourceDefinition would do to clients and custom resources. The digest does not cover it, but
// its consequences, such as a refused object.
type Definition struct {
	Name string `json:"name"`
	// BreakingChanges are the first of those that may break clients or custom resources, whether or not any of these exist. More counts the
	// rest.
	BreakingChanges crdcompat.BreakingChanges `json:"breakingChanges,omitempty"`
	More            int                       `json:"more,omitempty"`
	// Objects are the custom resources, as checked against each version of the new definition; nil if they were not checked.
	Objects *crdcompat.Findings `json:"objects,omitempty"`
	// Migration is set if kudo rewrites all custom resources, since the storage version changes.
	Migration *Migration `json:"migration,omitempty"`
}

// Migration is a change of the storage version.
type Migration struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// maxBreakingChanges is how many breaking changes of a definition a preview has.
const maxBreakingChanges = 100

// String formats for people what a change breaks. It does not count what stays valid, so that equal previews are equal texts. Warnings and
// refused objects say more.
func (d Definition) String() string {
	parts := []string{"no breaking change"}
	if n := len(d.BreakingChanges) + d.More; n > 0 {
		parts[0] = count(n, "breaking change")
	}
	switch {
	case d.Objects == nil:
		parts = append(parts, "its objects were not checked")
	case d.Objects.Invalid == 0:
		parts = append(parts, "no object would break")
	default:
		parts = append(parts, count(d.Objects.Invalid, "object")+" would break")
	}
	if d.Objects != nil && len(d.Objects.Unchecked) > 0 {
		parts = append(parts, "objects of version "+strings.Join(d.Objects.Unchecked, ", ")+" were not checked")
	}
	return text.Plain(fmt.Sprintf("definition %s: %s", d.Name, strings.Join(parts, ", ")), maxWhy)
}

// warning says that all objects are rewritten; empty if they are not.
func (d Definition) warning() string {
	if d.Migration == nil {
		return ""
	}
	return fmt.Sprintf("the storage version of CustomResourceDefinition %s changes from %s to %s: after the plan, kudo rewrites all of its "+
		"objects, without a change in them", d.Name, d.Migration.From, d.Migration.To)
}

// definitionComparer implements share.CRDComparer, and notes what it finds.
type definitionComparer struct {
	*crdcompat.Comparer
	mu    sync.Mutex
	found map[string]*Definition
	// unread are the changes that are not safe by the definition alone, so that no custom resource was read.
	unread map[string]definitionChange
}

// definitionChange is a definition as it is, and as it would be.
type definitionChange struct{ live, wanted *unstructured.Unstructured }

func newDefinitionComparer(o Options) *definitionComparer {
	return &definitionComparer{Comparer: crdcompat.NewNamingComparer(o.Dynamic, o.Client.RESTMapper()), found: map[string]*Definition{},
		unread: map[string]definitionChange{}}
}

// CheckUpdate implements share.CRDComparer.
func (c *definitionComparer) CheckUpdate(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	result, err := c.Judge(ctx, live, wanted)
	if result.Name == "" {
		return err
	}
	c.note(result.Name, func(d *Definition) {
		shown := min(len(result.BreakingChanges), maxBreakingChanges)
		d.BreakingChanges, d.More, d.Objects = result.BreakingChanges[:shown], len(result.BreakingChanges)-shown, result.Objects
		if delete(c.unread, d.Name); d.Objects == nil && shown > 0 {
			c.unread[d.Name] = definitionChange{live, wanted}
		}
	})
	return err
}

// noteMigration notes how all custom resources are rewritten after the plan if the storage version changes.
func (c *definitionComparer) noteMigration(change dryrun.Change) {
	if change.ID.GroupKind() != storedversions.DefinitionKind || change.Before == nil || change.After == nil {
		return
	}
	before, err := storedversions.Parse(change.Before)
	after, failed := storedversions.Parse(change.After)
	if err != nil || failed != nil || before.Storage == after.Storage {
		return // a definition that cannot be read is refused by the API server
	}
	c.note(before.Name, func(d *Definition) { d.Migration = &Migration{before.Storage, after.Storage} })
}

func (c *definitionComparer) note(name string, add func(*Definition)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found[name] == nil {
		c.found[name] = &Definition{Name: name}
	}
	add(c.found[name])
}

// definitions returns what was found, in the order of names, without sensitive values. It reads the custom resources that no verdict has
// needed so far. It is called after the runs, so that the requests of the runs come first.
func (c *definitionComparer) definitions(ctx context.Context, mask params.Mask) []Definition {
	for name, of := range c.unread {
		if objects, err := c.Objects(ctx, of.live, of.wanted); err == nil {
			c.found[name].Objects = objects
		}
	}
	var out []Definition
	for _, name := range slices.Sorted(maps.Keys(c.found)) {
		out = append(out, c.found[name].masked(mask))
	}
	return out
}

// masked returns the definition without sensitive values.
func (d Definition) masked(mask params.Mask) Definition {
	d.Name, d.BreakingChanges = mask.Whole(d.Name), slices.Clone(d.BreakingChanges)
	for n, b := range d.BreakingChanges {
		d.BreakingChanges[n].Path, d.BreakingChanges[n].Message = mask.Text(b.Path), mask.Text(b.Message)
	}
	if d.Objects == nil {
		return d
	}
	objects := *d.Objects
	objects.Objects = slices.Clone(objects.Objects)
	for n, o := range objects.Objects {
		o.Name, o.Problems = mask.Text(o.Name), slices.Clone(o.Problems)
		for i, problem := range o.Problems {
			o.Problems[i] = mask.Text(problem)
		}
		objects.Objects[n] = o
	}
	d.Objects = &objects
	return d
}

// checkDefinition warns of a change of a CustomResourceDefinition, by a plan of the Instance, that breaks clients or custom resources.
// Install plans and tarballs refuse such a change; the plan of an Instance makes it.
func (r report) checkDefinition(ctx context.Context, change dryrun.Change, fields []Field) {
	inSpec := func(f Field) bool { return strings.HasPrefix(f.Path, ".spec") }
	if change.ID.GroupKind() != storedversions.DefinitionKind || !slices.ContainsFunc(fields, inSpec) {
		return
	}
	err := r.definitions.CheckUpdate(ctx, change.Before, change.After)
	var unsafe *crdcompat.UnsafeError
	var stored *crdcompat.MigrationError
	switch {
	case errors.As(err, &unsafe), errors.As(err, &stored):
		r.warn("%s: %s", change.ID, err)
	case err != nil:
		r.unknown("%s: %s", change.ID, err)
	}
}
