package instance

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/runner"
)

// objectDrift is what was found out of an object that another client has changed, while the fields that the Instance owns of it stay
// those of the digest.
type objectDrift struct {
	digest string
	// drift is nil if what was changed is left to others.
	drift *apply.Drift
}

// checkDrift says in a condition which objects others have changed since a run wrote them. It costs no request until one is:
// the mirror tells, and each change is looked at once, however often it is made.
func (a *action) checkDrift(ctx context.Context, inventory runner.Inventory) {
	key := client.ObjectKeyFromObject(a.Next)
	manager := runner.Manager(key.Namespace, key.Name)
	found, _ := a.drifts.Load(key)
	before, _ := found.(map[apply.ID]objectDrift)
	now := map[apply.ID]objectDrift{}
	var out []string
	// unknown is set if something is not known of an object that the condition may name.
	unknown := false
	skip := func(id apply.ID) { unknown = unknown || before == nil || before[id].drift != nil }
	for id, record := range inventory {
		digest, known := a.Mirror.Digest(id, manager)
		if !known {
			skip(id)
		}
		if record.Fields == "" || digest == "" || digest == record.Fields {
			continue
		}
		look, again := before[id]
		if !again || look.digest != digest {
			drift, err := a.Runner.Drift(ctx, a.serviceAccount, a.Next, id, record)
			if apierrors.IsForbidden(err) { // the condition names only what the account may read
				skip(id)
				continue
			}
			if err != nil {
				a.result.Transient = true
				skip(id)
				continue
			}
			look = objectDrift{digest, drift}
		}
		now[id] = look
		if look.drift != nil {
			out = append(out, look.drift.String())
		}
	}
	if a.drifts.Delete(key); len(now) > 0 {
		a.drifts.Store(key, now)
	}
	if unknown && len(out) == 0 {
		return // what was said stays: it is not known that it is over
	}
	slices.Sort(out)
	conditions.SetDrifted(a.Next, out)
}
