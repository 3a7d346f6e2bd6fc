package share

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
)

// forbidden says why the holder may not change an object that is there; empty if it may:
//
//	kudo did not create it                                       no
//	only this holder has it, and the package has changed         yes
//	only this holder has it, and another client has changed it    no: a drift is reported, and not overwritten
//	others have it: versions of the same operator, none newer,
//	    and the policy says so                                   yes
//	a CustomResourceDefinition                                   only if the change is safe besides
func (s *Session) forbidden(ctx context.Context, obj *unstructured.Unstructured, v *inspection) (string, error) {
	if !Managed(v.live) {
		return "kudo did not create it", nil
	}
	crd := len(apply.Definitions([]*unstructured.Unstructured{obj})) == 1
	others := others(v.live, s.holder)
	known := s.inventory.record(apply.IDOf(obj))
	switch {
	case len(others) == 0 && known.UID == v.live.GetUID() && apply.SameHash(known.Hash, obj, s.ring):
		return "it was changed since it was installed", nil
	case len(others) == 0, crd && s.policy.SafeCRDs:
	case s.policy.Tarball:
		return "crdUpdatePolicy is Fail, which leaves a CustomResourceDefinition that differs as it is", nil
	case !s.policy.SameOperator:
		return "spec.installPolicy.sharedUpdates does not allow to change what others hold", nil
	default:
		reason, err := s.foreign(ctx, others)
		if reason != "" || err != nil {
			return reason, err
		}
	}
	if !crd || s.safety == nil {
		return "", nil
	}
	err := s.safety.CheckUpdate(ctx, v.live, v.body)
	if err == nil {
		return "", nil
	}
	if wait, unread := s.awaitMigration(ctx, v.live, err); wait != nil || unread != nil {
		return "", errors.Join(wait, unread)
	}
	return err.Error(), nil
}

// others are the owners of an object besides the holder and the guard.
func others(live *unstructured.Unstructured, holder *v1beta1.Installation) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(o metav1.OwnerReference) bool {
		return o.UID == holder.UID || guards(o)
	})
}

// installation returns the Installation that an owner reference names, live; nil if it does not exist.
func (e *Engine) installation(ctx context.Context, owner metav1.OwnerReference) (*v1beta1.Installation, error) {
	i := &v1beta1.Installation{}
	err := e.reader.Get(ctx, types.NamespacedName{Name: owner.Name}, i)
	if apierror.IsObjectNotFound(err) || err == nil && i.UID != owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Installation %s: %w", owner.Name, err)
	}
	return i, nil
}

// version returns the OperatorVersion of an Installation; nil if it does not exist.
func (e *Engine) version(ctx context.Context, i *v1beta1.Installation) (*v1beta1.OperatorVersion, error) {
	ov := &v1beta1.OperatorVersion{}
	err := e.reader.Get(ctx, types.NamespacedName{Namespace: i.Spec.Subject.Namespace, Name: i.Spec.Subject.Name}, ov)
	if apierror.IsObjectNotFound(err) || i.Spec.Subject.Kind != "OperatorVersion" || err == nil && ov.UID != i.Spec.Subject.UID {
		return nil, nil
	}
	return ov, err
}

// foreign says why versions of the same operator may not change what these owners hold; empty if they may.
func (s *Session) foreign(ctx context.Context, owners []metav1.OwnerReference) (string, error) {
	own, err := s.version(ctx, s.holder)
	if err != nil || own == nil {
		return "its OperatorVersion does not exist", err
	}
	for _, owner := range owners {
		if !v1beta1.OwnedBy(owner, "Installation") {
			return fmt.Sprintf("%s %s is an owner of it too", owner.Kind, owner.Name), nil
		}
		i, err := s.installation(ctx, owner)
		if err != nil {
			return "", err
		}
		if i == nil {
			continue
		}
		other, err := s.version(ctx, i)
		switch {
		case err != nil:
			return "", err
		case other == nil || other.Spec.Operator.Name != own.Spec.Operator.Name:
			return "not only versions of operator " + own.Spec.Operator.Name + " hold it", nil
		case newer(other, own):
			return fmt.Sprintf("OperatorVersion %s/%s, an owner of it, is newer", other.Namespace, other.Name), nil
		}
	}
	return "", nil
}

// superseded reports whether a newer version of the same operator, which may change what its older versions hold, has the
// object too.
func (s *Session) superseded(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	own, err := s.version(ctx, s.holder)
	if err != nil || own == nil || owned(live, s.holder) < 0 {
		return false, err
	}
	for _, owner := range others(live, s.holder) {
		i, err := s.installation(ctx, owner)
		if err != nil {
			return false, err
		}
		if i == nil {
			continue
		}
		other, err := s.version(ctx, i)
		if err != nil {
			return false, err
		}
		if other != nil && other.Spec.Operator.Name == own.Spec.Operator.Name && newer(other, own) &&
			other.Spec.InstallPolicy != nil && other.Spec.InstallPolicy.SharedUpdates == v1beta1.SameOperatorUpdates {
			return true, nil
		}
	}
	return false, nil
}

// newer reports whether a is newer than b, by the versions of the package, then of the application. Versions that are not semantic versions
// are not compared.
func newer(a, b *v1beta1.OperatorVersion) bool {
	for _, pair := range [][2]string{{a.Spec.Version, b.Spec.Version}, {a.Spec.AppVersion, b.Spec.AppVersion}} {
		x, errX := semver.NewVersion(pair[0])
		y, errY := semver.NewVersion(pair[1])
		if errX != nil || errY != nil {
			continue
		}
		if order := x.Compare(y); order != 0 {
			return order > 0
		}
	}
	return false
}

// Holders names those who hold an object, for people: OperatorVersions, else other owners, else field managers.
func (e *Engine) Holders(ctx context.Context, live metav1.Object) []string {
	if owners := e.ownerNames(ctx, live.GetOwnerReferences()); len(owners) > 0 {
		return owners
	}
	return fieldManagers(managersOf(live))
}

// OtherHolders names those who hold an object besides Instances that are deleted, which are given by uid and field manager: its owners, and
// Instances whose plans write it, else other field managers.
func (e *Engine) OtherHolders(ctx context.Context, live metav1.Object, deleted map[types.UID]string) []string {
	owners := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(o metav1.OwnerReference) bool { return deleted[o.UID] != "" })
	out, without := e.ownerNames(ctx, owners), slices.Collect(maps.Values(deleted))
	var others []string
	for _, name := range managersOf(live) {
		switch instance, is := v1beta1.InstanceOfManager(name); {
		case name == manager, slices.Contains(without, name): // the owners say who shares it
		case is:
			out = append(out, "Instance "+instance.String())
		default:
			others = append(others, name)
		}
	}
	if len(out) > 0 {
		return out
	}
	return fieldManagers(others)
}

// ownerNames names the owners of an object, and the subject of an Installation in its place.
func (e *Engine) ownerNames(ctx context.Context, owners []metav1.OwnerReference) []string {
	var out []string
	for _, owner := range owners {
		if guards(owner) {
			continue
		}
		text := owner.Kind + " " + owner.Name
		if v1beta1.OwnedBy(owner, "Installation") {
			if i, err := e.installation(ctx, owner); err == nil && i != nil {
				text = fmt.Sprintf("%s %s/%s", i.Spec.Subject.Kind, i.Spec.Subject.Namespace, i.Spec.Subject.Name)
			}
		}
		out = append(out, text)
	}
	return out
}

// managersOf are the field managers that write more than a subresource of an object.
func managersOf(live metav1.Object) []string {
	var out []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && !slices.Contains(out, entry.Manager) {
			out = append(out, entry.Manager)
		}
	}
	return out
}

func fieldManagers(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{"field manager " + strings.Join(names, ", ")}
}
