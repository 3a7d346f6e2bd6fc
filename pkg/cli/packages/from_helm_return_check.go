package packages

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/helmrelease"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/helmstore"
	"kudo.dev/kudo/pkg/text"
)

// releaseObjects are the objects of a release.
type releaseObjects map[objectName]helmrelease.Object

// checkReturn refuses an Instance that has no object of the release, whose objects would have no owner then, and warns of the objects that
// the Instance has and the release does not. It returns the objects of the release, or nil if they cannot be determined.
func (m *helmMove) checkReturn(ctx context.Context, instance *v1beta1.Instance, aside, known helmstore.Releases) (releaseObjects, error) {
	objs, err := m.releaseObjects(slices.Concat(aside, known))
	if err != nil {
		m.env.Warnf("the objects of release %s/%s cannot be determined: the label heritage of its objects is removed instead of restored, and "+
			"objects of Instance %s that are not the release's are not named: %v", m.namespace, m.release, m.instance, err)
		marked, err := m.hasMarked(ctx, instance)
		if err == nil && !marked {
			err = m.errNotOfRelease()
		}
		return nil, err
	}
	has, others := false, []string(nil)
	for _, r := range instance.Status.Resources {
		if _, released := objs[nameOf(r)]; !released {
			others = append(others, r.Kind+" "+r.Name)
		} else if r.UID != "" {
			has = true
		}
	}
	if !has && (len(aside) == 0 || objs.areOfPlans()) {
		return nil, m.errNotOfRelease()
	}
	if len(others) > 0 {
		m.env.Warnf("release %s/%s does not have %s of Instance %s: the objects stay, without an owner. Delete them yourself if they are not "+
			"needed", m.namespace, m.release, text.List(others, maxMissing), m.instance)
	}
	return objs, nil
}

func (m *helmMove) errNotOfRelease() error {
	return fmt.Errorf("instance %s/%s has no object of release %s/%s: nothing was changed; name the right one by --instance", m.namespace,
		m.instance, m.namespace, m.release)
}

// releaseObjects returns the objects of the release.
func (m *helmMove) releaseObjects(stored helmstore.Releases) (releaseObjects, error) {
	release, _, err := stored.Deployed()
	if err != nil {
		return nil, err
	}
	converted, err := helmrelease.Convert(release, scopeOf(m.client), nil)
	if err != nil {
		return nil, err
	}
	out := releaseObjects{}
	for _, obj := range converted.Objects {
		out[releasedName(obj)] = obj
	}
	return out, nil
}

// areOfPlans reports whether an Instance has objects of the release. Otherwise they are all those of the install plan, and the Secrets that
// were set aside say which Instance has taken the release over.
func (o releaseObjects) areOfPlans() bool {
	for _, obj := range o {
		if !obj.Installed {
			return true
		}
	}
	return false
}

// hasMarked reports whether the Instance has an object that Helm has marked as one of the release.
func (m *helmMove) hasMarked(ctx context.Context, instance *v1beta1.Instance) (bool, error) {
	for _, r := range instance.Status.Resources {
		kind, err := m.servedKind(ctx, schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
		if err != nil {
			return false, fmt.Errorf("get %s %s: %w", r.Kind, r.Name, err)
		}
		if r.UID == "" || kind.Empty() {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(kind)
		err = m.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, live)
		switch {
		case apierror.IsObjectNotFound(err):
		case err != nil:
			return false, fmt.Errorf("get %s %s: %w", r.Kind, r.Name, err)
		case live.UID == r.UID && isOfRelease(live, m.namespace, m.release):
			return true, nil
		}
	}
	return false, nil
}

// servedKind returns a kind in a version in which it is served: its objects are the same in each. It returns none if the kind has no
// objects, since it is not served and no CustomResourceDefinition defines it. An API that is not available is an error, since its objects
// come back with it.
func (m *helmMove) servedKind(ctx context.Context, kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	mapper := m.client.RESTMapper()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = mapper.RESTMapping(kind.GroupKind())
	}
	if err == nil {
		return mapping.GroupVersionKind, nil
	}
	if !meta.IsNoMatchError(err) {
		return schema.GroupVersionKind{}, err
	}
	definitions := &unstructured.UnstructuredList{}
	definitions.SetAPIVersion("apiextensions.k8s.io/v1")
	definitions.SetKind("CustomResourceDefinitionList")
	if err := m.client.List(ctx, definitions); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	for i := range definitions.Items {
		group, _, _ := unstructured.NestedString(definitions.Items[i].Object, "spec", "group")
		name, _, _ := unstructured.NestedString(definitions.Items[i].Object, "spec", "names", "kind")
		if group == kind.Group && name == kind.Kind {
			return schema.GroupVersionKind{}, fmt.Errorf("wait until its CustomResourceDefinition is served: %w", err)
		}
	}
	return schema.GroupVersionKind{}, nil
}
