package instance

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/runner"
)

// drifted is what was found out of an object that somebody has changed, while the fields that the Instance owns of it stay
// those of the digest.
type drifted struct {
	digest string
	// drift is nil if what was changed is left to others.
	drift *apply.Drift
}

// drift says in a condition which objects others have changed since a run wrote them. It costs no request until one is:
// the mirror tells, and each change is looked at once, however often it is made.
func (p *pass) drift(ctx context.Context, inventory runner.Inventory) {
	key := client.ObjectKeyFromObject(p.instance)
	manager := runner.Manager(key.Namespace, key.Name)
	found, _ := p.drifts.Load(key)
	before, _ := found.(map[apply.ID]drifted)
	now, partial := map[apply.ID]drifted{}, false
	var out []string
	for id, record := range inventory {
		digest, known := p.Mirror.Digest(id, manager)
		partial = partial || !known
		if record.Fields == "" || digest == "" || digest == record.Fields {
			continue
		}
		look, again := before[id]
		if !again || look.digest != digest {
			drift, err := p.Runner.Drift(ctx, p.instance, id, record)
			if err != nil {
				p.transient, partial = true, true
				continue
			}
			look = drifted{digest, drift}
		}
		now[id] = look
		if look.drift != nil {
			out = append(out, look.drift.String())
		}
	}
	if p.drifts.Delete(key); len(now) > 0 {
		p.drifts.Store(key, now)
	}
	if partial && len(out) == 0 {
		return // what was said stays: it is not known that it is over
	}
	slices.Sort(out)
	conditions.Drifted(p.instance, out)
}
