package operatorversion

import (
	"context"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
)

// writeInventory writes the inventory if it has changed.
func (a *action) writeInventory(ctx context.Context) error {
	holder := loop.NewObject(a.Client, a.Reader, a.Events, a.installation)
	holder.Next.Status.SetInventory(a.inventory)
	if err := holder.Commit(ctx); err != nil {
		return err
	}
	a.installation, a.inventory = holder.Next, holder.Next.DeepCopy().Status.Resources
	if a.run != nil {
		a.run.Held = a.inventory
	}
	return nil
}

// setHeldResource puts an entry into the inventory, at its place if it has one.
func (a *action) setHeldResource(r v1beta1.HeldResource) {
	id := share.IDOf(r)
	if at := a.inventory.Find(id); at >= 0 {
		a.inventory[at] = r
		return
	}
	a.inventory = append(a.inventory, r)
}

// maxMessage bounds a message in the inventory, in bytes.
const maxMessage = 1024
