package preview

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"

	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
)

// result returns the preview of what was computed.
func (c *computation) result(ctx context.Context) (*Preview, error) {
	c.noteObjects(ctx, c.order)
	if err := settleHeld(ctx, c); err != nil {
		return nil, err
	}
	if err := c.collect(ctx); err != nil {
		return nil, err
	}
	var err error
	c.out.Basis, err = c.basis.list(c.edit, c.cluster.Changes())
	maskReads(c.out.Basis, c)
	return c.out, err
}

// noteObjects notes what would become of objects, as the runs so far have left them. It is called before the runs of other Instances, whose
// effects on an object are not those of this one.
func (c *computation) noteObjects(ctx context.Context, ids []apply.ID) {
	r := reportOf(c)
	for _, id := range ids {
		c.objects[id] = r.object(ctx, id, c.touched[id])
	}
}

// collect completes the preview, and those of children: what is held is known now.
func (c *computation) collect(ctx context.Context) error {
	c.out.noteHeld(ctx, c.share, c.held, c.deleted)
	for _, id := range c.order {
		c.out.Objects = append(c.out.Objects, c.objects[id])
	}
	c.out.Definitions = c.definitions.definitions(ctx, c.mask)
	for _, d := range c.out.Definitions {
		if warning := d.warning(); warning != "" {
			c.warn("%s", warning)
		}
	}
	reportOf(c).warnOfUsedClaims(ctx)
	for i := range c.out.Warnings {
		c.out.Warnings[i] = strings.TrimSpace(c.out.Warnings[i])
	}
	slices.Sort(c.out.Warnings)
	c.out.Warnings = slices.Compact(c.out.Warnings)
	c.out.maskNames(c.mask)
	for _, child := range c.children {
		if err := child.collect(ctx); err != nil {
			return err
		}
		c.out.Children = append(c.out.Children, child.out)
	}
	return c.out.seal()
}

// report turns what the tasks do to objects into the objects of the preview.
type report struct {
	*touches
	share       *share.Engine
	definitions *definitionComparer
	ownedBefore runner.Inventory
	metadata    metadata.Interface
}

func reportOf(c *computation) report {
	return report{c.touches, c.share, c.definitions, c.ownedBefore, c.Metadata}
}

// object returns what would become of an object:
//
//	a write is refused                                refused
//	what is written is not known                      unknown
//	it stays although the version does not name it    keep
//	it is deleted with its Instance                   delete
//	before: nothing       after: nothing              unchanged
//	        nothing              an object            create
//	        an object            nothing              delete
//	        of an install plan   the same one         join, or change
//	        an object            another one          recreate
//	        of another owner     the same one         adopt
//	        an object            one that differs     change
//	        an object            an equal one         unchanged
func (r report) object(ctx context.Context, id apply.ID, t *touch) Object {
	out := newObject(id)
	out.Places = t.places
	change, known := r.cluster.Find(id)
	switch {
	case t.refused != "":
		out.Effect, out.Why = Refused, t.refused
		out.Blame = t.blame
		if change.Before != nil && change.Refused != nil {
			wanted, _ := merge(content(change.Before), content(change.Refused)).(map[string]any)
			out.Fields = compare(change.Before, &unstructured.Unstructured{Object: wanted}, r.mask).fields
		}
	case t.unknown != "":
		out.Effect, out.Why = Unknown, t.unknown
	case t.kept != "":
		out.Effect, out.Why = Keep, t.kept
	case t.released && change.Before == nil:
		out.Effect, out.Why = Create, "it is deleted again with the Instance"
	case t.released:
		out.Effect, out.Why = Delete, "it is deleted with the Instance"
	case !known || change.Before == nil && change.After == nil:
		out.Effect = Unchanged
	case change.Before == nil:
		out.Effect, out.content = Create, contentOf(change.Body, r.mask)
		if r.cluster.IsDefined(id) {
			out.Why = "its kind is defined in the same run: it fits the definition, and no webhook was asked"
			for _, lost := range change.Lost {
				r.warn("%s: %s, since its definition does not have it", id, lost)
			}
		}
	case change.After == nil:
		out.Effect = Delete
	case t.shared:
		r.shared(ctx, &out, change)
	default:
		if r.compared(&out, change, t); out.Effect == Modify || out.Effect == Adopt {
			r.checkDefinition(ctx, change, out.Fields)
		}
	}
	if known {
		out.noteLoss(change, t.released)
	}
	return out
}

// compared fills in what would become of an object that exists before and after.
func (r report) compared(out *Object, change dryrun.Change, t *touch) {
	d := compare(change.Before, change.After, r.mask)
	uncertain := ""
	if d.hash {
		uncertain = t.uncertain
	}
	if d.hash && t.sameHash {
		d.hash, d.metadata = false, d.metadata-1
		d.template = d.templateFields > 0 || d.version
	}
	out.Fields, out.Metadata = d.fields, d.metadata
	switch {
	case change.Recreated:
		out.Effect, out.Why = Recreate, "it is deleted and written again by the same run"
		out.content = contentOf(change.Body, r.mask)
		out.Fields, out.Metadata = nil, 0
		return
	case !r.isOurs(change.Before):
		out.Effect, out.Why = Adopt, "it exists, and the Instance does not own it yet"
	case len(d.fields)+d.metadata > 0:
		out.Effect = Modify
	default:
		out.Effect = Unchanged
	}
	out.Restart = restartOf(change, d, uncertain)
}

// isOurs reports whether an object was in the inventory of the Instance before the edit.
func (r report) isOurs(live *unstructured.Unstructured) bool {
	record, found := r.ownedBefore[apply.IDOf(live)]
	return found && (record.UID == live.GetUID() || record.UID == "")
}

func namesOf(dependencies []enhance.Dependency) []string {
	var out []string
	for _, d := range dependencies {
		out = append(out, d.Kind+" "+d.Name)
	}
	return out
}

// changedSince reports whether the content of one object was written after that of another.
func changedSince(dependency, workload *unstructured.Unstructured) bool {
	written, last := lastWrite(dependency), lastWrite(workload)
	return written.After(last)
}

// lastWrite is when the content of an object was written last, to the second; zero if it is not known.
func lastWrite(obj *unstructured.Unstructured) time.Time {
	var last metav1.Time
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && last.Before(entry.Time) {
			last = *entry.Time
		}
	}
	return last.Time
}

// restartOf says which pods of a workload would be replaced; nil if none would.
func restartOf(change dryrun.Change, d difference, uncertain string) *Restart {
	if !d.template {
		return nil
	}
	out := &Restart{Pods: podsOf(change.Before), Strategy: strategyOf(change.After), Uncertain: uncertain != ""}
	if out.Strategy == "" || out.Pods == 0 {
		return nil
	}
	switch {
	case uncertain != "":
		out.Why = uncertain
	case d.templateFields > 0:
		out.Why = "the pod template changes"
	case d.hash && d.version:
		out.Why = "a ConfigMap or Secret that the pods use changes, and an upgrade replaces all pods"
	case d.hash:
		out.Why = "a ConfigMap or Secret that the pods use changes"
	case d.version:
		out.Why = "an upgrade replaces all pods"
	default:
		out.Why = "kudo's own metadata on the pod template changes"
	}
	return out
}

// podsOf is how many pods a workload is to have.
func podsOf(live *unstructured.Unstructured) int64 {
	if live.GetKind() == "DaemonSet" {
		n, _, _ := unstructured.NestedInt64(live.Object, "status", "desiredNumberScheduled")
		return n
	}
	n, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return n
}

// strategyOf is how the pods of a workload are replaced when its template changes; empty if they are not.
func strategyOf(obj *unstructured.Unstructured) string {
	field, ok := map[string]string{"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}[obj.GetKind()]
	if !ok || obj.GroupVersionKind().Group != "apps" {
		return ""
	}
	switch kind, _, _ := unstructured.NestedString(obj.Object, "spec", field, "type"); kind {
	case "Recreate":
		return "recreate"
	case "OnDelete":
		return "on delete"
	}
	return "rolling"
}
