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
	"kudo.dev/kudo/pkg/share"
)

// Definitions are the CustomResourceDefinitions of the tarball of an Instance.
type Definitions struct {
	// Source of the tarball, for people; empty if the Instance has none.
	Source  string
	Objects []*unstructured.Unstructured
	// Unknown is why the objects are not known; empty if they are.
	Unknown string
	// Installed is set if the Instance has installed the same tarball already.
	Installed bool
	// UpdateIfSafe is set if definitions that exist are changed where that is safe.
	UpdateIfSafe bool
}

// Tarballs returns the definitions of the tarball that an Instance has with a version. An error says why kudo would refuse the tarball.
type Tarballs func(ctx context.Context, i *v1beta1.Instance, version *v1beta1.OperatorVersion) (Definitions, error)

// installDefinitions previews the installation of the tarball of the Instance, and reports whether its plans would start: they wait for
// the definitions.
func (c *computation) installDefinitions(ctx context.Context) (bool, error) {
	if c.Tarballs == nil {
		return true, nil
	}
	wanted, err := c.Tarballs(ctx, c.edit.After, c.edit.Version)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		c.refuseDefinitions(err)
		return false, nil
	case wanted.Source == "" || wanted.Unknown != "" && wanted.Installed:
		return true, nil
	case wanted.Unknown != "":
		c.tarballUnknown = true
		c.unknown("which CustomResourceDefinitions %s holds: %s", wanted.Source, wanted.Unknown)
		return true, nil
	}
	holder, err := c.holder(ctx)
	if err != nil {
		return false, err
	}
	session := c.share.Session(holder, share.Policy{Tarball: true, SafeCRDs: wanted.UpdateIfSafe}, holder.Status.Resources)
	changes := session.Check(ctx, wanted.Objects)
	if changes == nil {
		changes = session.Join(ctx, wanted.Objects)
	}
	var failed []apply.Change
	for _, change := range changes {
		if change.Err != nil {
			failed = append(failed, change)
			continue
		}
		c.at(change.ID, wanted.Source).shared = true
	}
	c.noteFailures(failed, wanted.Source)
	for _, change := range failed {
		if c.touched[change.ID].refused != "" {
			c.refuseDefinitions(change.Err)
			return false, ctx.Err()
		}
	}
	c.leftovers = withoutWanted(holder, wanted.Objects)
	return true, ctx.Err()
}

func (c *computation) refuseDefinitions(why error) {
	c.out.Refused = append(c.out.Refused, "the plan would wait for its CustomResourceDefinitions: "+c.mask.Text(why.Error()))
}

// holder returns the Installation of the Instance, or one as kudo would create it.
func (c *computation) holder(ctx context.Context) (*v1beta1.Installation, error) {
	i := c.edit.After
	holder := &v1beta1.Installation{}
	if i.UID != "" {
		err := c.Client.Get(ctx, client.ObjectKey{Name: v1beta1.InstallationName(i.Namespace, i.Name, i.UID)}, holder)
		if err == nil || !apierror.IsObjectNotFound(err) && !isUnanswered(err) {
			return holder, err
		}
		if err != nil && !apierror.IsObjectNotFound(err) {
			c.unknown("what the Instance holds in the cluster: %s", err)
		}
	}
	holder.UID = types.UID(uuid.NewString())
	holder.Name = v1beta1.InstallationName(i.Namespace, i.Name, holder.UID)
	holder.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: i.Namespace, Name: i.Name, UID: i.UID}
	return holder, nil
}

// withoutWanted returns the Installation with those of its objects only that a tarball does not hold.
func withoutWanted(holder *v1beta1.Installation, objs []*unstructured.Unstructured) *v1beta1.Installation {
	out := holder.DeepCopy()
	out.Status.Resources = slices.DeleteFunc(out.Status.Resources, func(r v1beta1.HeldResource) bool {
		return slices.ContainsFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetName() == r.Name })
	})
	return out
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
