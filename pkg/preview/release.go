package preview

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
)

// Release is the deletion of an OperatorVersion.
type Release struct {
	Version *v1beta1.OperatorVersion
	// Users are the Instances that use the version. Unlisted says why those of other namespaces are not known; nil if they are.
	Users    []types.NamespacedName
	Unlisted error
	// LeavesUsers is set if the version is deleted although Instances use it, and Force if data is destroyed with its objects.
	LeavesUsers, Force bool
}

// maxUsers is how many Instances a reason names.
const maxUsers = 10

// Uses of a version, for people.
const (
	useBlocks = "it uses this version"
	useLeft   = "it runs on from its records; its next change waits for an OperatorVersion"
)

// ComputeRelease returns what the deletion of an OperatorVersion would do to what its install plan has installed: what is deleted, what
// stays and why, and which Instances hold the deletion up.
func ComputeRelease(ctx context.Context, o Options, r Release) (*Preview, error) {
	name := r.Version.Namespace + "/" + r.Version.Name
	p := &Preview{APIVersion: Version, Verb: "uninstall", Subject: "OperatorVersion " + name, As: o.As}
	if r.Unlisted != nil {
		p.UnknownReasons = append(p.UnknownReasons, "which Instances of other namespaces use the version: "+r.Unlisted.Error())
	}
	p.noteUsers(r)
	basis := recordReads(o.Client)
	o.Client = basis
	holder := &v1beta1.Installation{}
	err := o.Client.Get(ctx, client.ObjectKey{Name: r.Version.InstallationName()}, holder)
	leaves := r.LeavesUsers && len(r.Users) > 0
	switch {
	case apierror.IsObjectNotFound(err): // it holds nothing in the cluster
	case apierrors.IsForbidden(err):
		p.UnknownReasons = append(p.UnknownReasons, "what the version holds in the cluster: "+err.Error())
	case err != nil:
		return nil, fmt.Errorf("installation %s: %w", r.Version.InstallationName(), err)
	case leaves:
		p.keepAll(holder)
	default:
		kinds := apply.NewKinds(o.Client.RESTMapper(), o.Discovery, o.Dynamic)
		engine := share.New(share.Options{Objects: apply.New(o.Dynamic, o.Metadata, kinds, nil, nil), Kinds: kinds, Reader: o.Client,
			Clock: clock.RealClock{}})
		if err := p.release(ctx, engine, holder, r.Force); err != nil {
			return nil, err
		}
	}
	if p.Basis, err = basis.list(Edit{Version: r.Version}, nil); err != nil {
		return nil, err
	}
	p.maskInstall(r.Version)
	return p, p.seal()
}

// noteUsers notes the Instances that use the version: they stay, and the deletion is refused unless it leaves them.
func (p *Preview) noteUsers(r Release) {
	if len(r.Users) == 0 {
		return
	}
	why, names := useBlocks, make([]string, len(r.Users))
	if r.LeavesUsers {
		why = useLeft
	}
	for n, user := range r.Users {
		names[n] = user.String()
		p.Stays = append(p.Stays, Stay{Object: "Instance " + names[n], Why: why})
	}
	if !r.LeavesUsers {
		p.Refused = append(p.Refused, fmt.Sprintf("Instances use it: %s. Uninstall or upgrade them first, or add --leave-users",
			text.List(names, maxUsers)))
	}
}

// keepAll notes that the objects of a version stay: Instances use the version, and its Installation holds the objects until none does.
func (p *Preview) keepAll(holder *v1beta1.Installation) {
	for _, r := range slices.Backward(holder.Status.Resources) {
		out := newObject(share.IDOf(r))
		out.Effect, out.Why = Keep, "it is held until no Instance uses this version any more"
		if r.State == v1beta1.HoldExisting {
			out.Why = "kudo did not create it"
		}
		p.Objects = append(p.Objects, out)
	}
}

// release notes what becomes of each object that the version holds:
//
//	it cannot be looked at                                  unknown
//	others hold it, it is kept, or kudo did not create it   keep
//	data would go with it, and the deletion is not forced   keep: nothing is released before that is settled
//	data would go with it, and the deletion is forced       delete, with the data
//	else                                                    delete
func (p *Preview) release(ctx context.Context, engine *share.Engine, holder *v1beta1.Installation, force bool) error {
	released, err := engine.Session(holder, share.Policy{}, holder.Status.Resources).Preview(ctx, force)
	if err != nil {
		return err
	}
	for _, object := range released {
		out := newObject(object.ID)
		switch {
		case object.Unknown != nil:
			out.Effect, out.Why = Unknown, object.Unknown.Error()
		case object.Blocks:
			out.Effect, out.Why = Keep, "it holds the release up: it "+object.Reason
			warning := "the release would wait, and delete nothing, as long as %s %s: --force destroys that"
			if holder.Spec.Subject.Kind == "Instance" { // its definitions are released one by one
				warning = "%s stays as long as it %s"
			}
			p.Warnings = append(p.Warnings, fmt.Sprintf(warning, object.ID, object.Reason))
		case object.Deleted && object.Reason != "":
			out.Effect, out.Why, out.Lost = Delete, "it is destroyed with what it holds: it "+object.Reason, true
		case object.Deleted:
			out.Effect = Delete
		default:
			out.Effect, out.Why = Keep, object.Reason
		}
		if len(object.Holders) > 0 {
			p.Shared = append(p.Shared, Share{object.ID.String(), ShareLeave, object.Holders})
		}
		p.Objects = append(p.Objects, out)
	}
	return nil
}
