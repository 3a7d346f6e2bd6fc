package instance

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/runner"
)

// objectDrift is the result of comparing an object. It holds while the digest of the fields that the Instance owns is the same.
type objectDrift struct {
	digest string
	// drift is nil if the changed fields may be set by other clients.
	drift *apply.Drift
}

// checkDrift lists in status.drift the objects that other clients have changed since a run wrote them. It reads an object only when the
// digest of the object in the mirror changes.
func (c *objectChecker) checkDrift(ctx context.Context, inventory runner.Inventory) {
	key := client.ObjectKeyFromObject(c.Next)
	manager := runner.Manager(key.Namespace, key.Name)
	found, _ := c.drifts.Load(key)
	before, _ := found.(map[apply.ID]objectDrift)
	now := map[apply.ID]objectDrift{}
	status := &c.Next.Status
	var out []v1beta1.ObjectDrift
	// keep copies the entry of an object from the last status. It is for an object that cannot be compared now.
	keep := func(id apply.ID) {
		of := driftOf(id)
		if at := slices.IndexFunc(status.Drift, of.IsSameObject); at >= 0 {
			out = append(out, status.Drift[at])
		}
	}
	for id, record := range inventory {
		digest, known := c.Mirror.Digest(id, manager)
		if !known {
			keep(id)
		}
		if record.Fields == "" || digest == "" || digest == record.Fields {
			continue
		}
		look, again := before[id]
		if !again || look.digest != digest {
			drift, err := c.Runner.Drift(ctx, c.serviceAccount, c.Next, id, record)
			if apierrors.IsForbidden(err) { // the status names only what the account may read
				keep(id)
				continue
			}
			if err != nil {
				c.result.Transient = true
				keep(id)
				continue
			}
			look = objectDrift{digest, drift}
		}
		now[id] = look
		if look.drift != nil {
			of := driftOf(id)
			of.Fields, of.Writer, of.Message = look.drift.Fields, strings.Join(look.drift.By, ", "), look.drift.String()
			out = append(out, of)
		}
	}
	if c.drifts.Delete(key); len(now) > 0 {
		c.drifts.Store(key, now)
	}
	known := status.Drift
	status.Drift = conditions.ListDrift(known, out, c.Clock.Now())
	c.warnOfDrift(known, status.Drift)
}

// warnOfDrift records an event for each drift that the status has not listed before.
func (c *objectChecker) warnOfDrift(known, now []v1beta1.ObjectDrift) {
	for _, d := range now {
		isListed := func(old v1beta1.ObjectDrift) bool { return old.IsSameObject(d) && old.Since.Equal(d.Since) }
		if !slices.ContainsFunc(known, isListed) {
			c.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventObjectChanged, "%s", d.Message)
		}
	}
}

// driftOf returns an entry that names an object, and nothing else.
func driftOf(id apply.ID) v1beta1.ObjectDrift {
	return v1beta1.ObjectDrift{APIVersion: id.GroupVersion().String(), Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}
