package preview

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/share"
)

// Tarballs resolves and fetches the CRD tarballs of Instances.
type Tarballs interface {
	// Resolve returns the tarball that an Instance has with a version, as kudo resolves it. An error says why kudo would refuse the tarball.
	Resolve(i *v1beta1.Instance, namespace string, version *v1beta1.OperatorVersionSpec) (fetch.Wanted, error)
	// Fetch returns the definitions of a tarball. An error says why they are not known.
	Fetch(ctx context.Context, wanted fetch.Wanted) ([]*unstructured.Unstructured, error)
}

// installDefinitions previews the installation of the tarball of the Instance, and reports whether its plans would start: they wait for
// the definitions.
func (c *computation) installDefinitions(ctx context.Context) (bool, error) {
	if c.Tarballs == nil {
		return true, nil
	}
	wanted, err := c.Tarballs.Resolve(c.edit.After, c.edit.After.OperatorVersionKey().Namespace, &c.edit.Version.Spec)
	if err != nil {
		c.refuseDefinitions(err)
		return false, nil
	}
	if wanted.Tarball == nil {
		return true, nil
	}
	holder, err := c.holder(ctx)
	if err != nil {
		return false, err
	}
	if holder == nil {
		c.tarballUnknown = true
		return true, nil
	}
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == wanted.SpecHash {
		wanted.Digest = known.Digest
	}
	objs, err := c.Tarballs.Fetch(ctx, wanted)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && wanted.Digest != "": // the Instance has installed this tarball
		return true, nil
	case err != nil:
		c.tarballUnknown = true
		c.unknown("which CustomResourceDefinitions %s holds: %s", crdtarball.Display(wanted.Source.Identity()), err)
		return true, nil
	}
	return c.join(ctx, holder, wanted, objs)
}

// join previews the installation of definitions, and reports whether all of them would be there.
func (c *computation) join(ctx context.Context, holder *v1beta1.Installation, wanted fetch.Wanted,
	objs []*unstructured.Unstructured) (bool, error) {
	policy := share.Policy{Tarball: true, SafeCRDs: wanted.Tarball.CRDUpdatePolicy == v1beta1.UpdateIfSafe}
	source := crdtarball.Display(wanted.Source.Identity())
	session := c.share.Session(holder, policy, holder.Status.Resources)
	changes := session.Check(ctx, objs)
	if changes == nil {
		changes = session.Join(ctx, objs)
	}
	var failed []apply.Change
	for _, change := range changes {
		if change.Err != nil {
			failed = append(failed, change)
			continue
		}
		c.at(change.ID, source).shared = true
	}
	c.noteFailures(failed, source)
	for _, change := range failed {
		if c.touched[change.ID].refused != "" {
			c.refuseDefinitions(change.Err)
			return false, ctx.Err()
		}
	}
	c.leftovers = withoutWanted(holder, objs)
	return true, ctx.Err()
}

// holder returns the Installation of the Instance, or one as kudo would create it; nil if the user may not read Installations, and the
// Instance has one.
func (c *computation) holder(ctx context.Context) (*v1beta1.Installation, error) {
	i := c.edit.After
	holder := &v1beta1.Installation{}
	if i.UID != "" {
		err := c.Client.Get(ctx, client.ObjectKey{Name: v1beta1.InstallationName(i.Namespace, i.Name, i.UID)}, holder)
		if err == nil || !apierror.IsObjectNotFound(err) && !isUnanswered(err) {
			return holder, err
		}
		if err != nil && !apierror.IsObjectNotFound(err) && i.Status.CRDs != nil {
			c.unknown("which CustomResourceDefinitions the Instance holds: %s", err)
			return nil, nil
		}
	}
	holder.UID = types.UID(uuid.NewString())
	holder.Name = v1beta1.InstallationName(i.Namespace, i.Name, holder.UID)
	holder.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: i.Namespace, Name: i.Name, UID: i.UID}
	return holder, nil
}

// withoutWanted returns a copy of the Installation that lists only the objects which the tarball does not hold.
func withoutWanted(holder *v1beta1.Installation, objs []*unstructured.Unstructured) *v1beta1.Installation {
	out := holder.DeepCopy()
	out.Status.Resources = slices.DeleteFunc(out.Status.Resources, func(r v1beta1.HeldResource) bool {
		return slices.ContainsFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetName() == r.Name })
	})
	return out
}

// releaseAllDefinitions previews what becomes of the definitions of a deleted Instance.
func (c *computation) releaseAllDefinitions(ctx context.Context) (err error) {
	if c.leftovers, err = c.holder(ctx); err != nil {
		return err
	}
	return c.releaseDefinitions(ctx)
}

// releaseDefinitions previews what becomes of the definitions that only the tarball of the version before has: kudo releases them when the
// plans are complete.
func (c *computation) releaseDefinitions(ctx context.Context) error {
	failed := slices.ContainsFunc(c.out.Runs, func(r Run) bool { return r.Failure != nil })
	if c.leftovers == nil || failed {
		return nil
	}
	if err := c.out.release(ctx, c.share, c.leftovers, false); err != nil {
		return fmt.Errorf("installation %s: %w", c.leftovers.Name, err)
	}
	return nil
}
