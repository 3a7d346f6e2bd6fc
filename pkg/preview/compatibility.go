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

// Definition is what the change of a CustomResourceDefinition would do to clients and custom resources. It is no part of the digest: what
// follows from it is.
type Definition struct {
	Name string `json:"name"`
	// BreakingChanges are those that may break clients or custom resources, whether or not there are any.
	BreakingChanges crdcompat.BreakingChanges `json:"breakingChanges,omitempty"`
	// Objects are the custom resources, as checked against each version of the new definition; nil if they could not be read.
	Objects *crdcompat.Findings `json:"objects,omitempty"`
	// Migration is set if kudo rewrites all custom resources, since the storage version changes.
	Migration *Migration `json:"migration,omitempty"`
}

// Migration is a change of the storage version.
type Migration struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// String is how people read how a change was checked. Warnings and refused objects say more.
func (d Definition) String() string {
	broken := "no breaking change"
	if n := len(d.BreakingChanges); n > 0 {
		broken = count(n, "breaking change")
	}
	objects := "its objects could not be read"
	if d.Objects != nil {
		objects = fmt.Sprintf("%s checked, %d would break", count(d.Objects.Checked, "object"), d.Objects.Invalid)
	}
	return text.Plain(fmt.Sprintf("definition %s: %s, %s", d.Name, broken, objects), maxWhy)
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
}

func newDefinitionComparer(o Options) *definitionComparer {
	return &definitionComparer{Comparer: crdcompat.NewNamingComparer(o.Dynamic, o.Client.RESTMapper()), found: map[string]*Definition{}}
}

// CheckUpdate implements share.CRDComparer.
func (c *definitionComparer) CheckUpdate(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	result, err := c.Examine(ctx, live, wanted)
	if result.Name != "" {
		c.note(result.Name, func(d *Definition) { d.BreakingChanges, d.Objects = result.BreakingChanges, result.Objects })
	}
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

// definitions returns what was found, in the order of names, without sensitive values.
func (c *definitionComparer) definitions(mask params.Mask) []Definition {
	var out []Definition
	for _, name := range slices.Sorted(maps.Keys(c.found)) {
		d := *c.found[name]
		d.BreakingChanges = slices.Clone(d.BreakingChanges)
		for n, b := range d.BreakingChanges {
			d.BreakingChanges[n].Path, d.BreakingChanges[n].Message = mask.Text(b.Path), mask.Text(b.Message)
		}
		out = append(out, d)
	}
	return out
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
