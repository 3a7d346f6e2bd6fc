package preview

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
)

// ComputeVersions returns what the creation of OperatorVersions without an Instance would do: the install plans of those that do not exist.
// The last one gives the preview its name; those that it depends on stand before it. keeps is set if the command uses those that exist as
// they are, and does not replace them.
func ComputeVersions(ctx context.Context, o Options, verb string, versions []*v1beta1.OperatorVersion, keeps bool) (*Preview, error) {
	last := versions[len(versions)-1]
	none := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: last.Namespace}}
	c := newComputation(o, Edit{Verb: verb, After: none, Version: last, Versions: versions, KeepsVersions: keeps})
	c.out.Subject = fmt.Sprintf("OperatorVersion %s/%s", last.Namespace, last.Name)
	if err := c.computeVersions(ctx); err != nil {
		return nil, err
	}
	return c.result(ctx)
}

func (c *computation) computeVersions(ctx context.Context) error {
	if err := c.settleVersions(ctx); err != nil {
		return err
	}
	c.instance = c.edit.After.DeepCopy()
	var err error
	if c.version, err = runner.NewVersions().ForSpec(&c.edit.Version.Spec); err != nil {
		return err
	}
	if c.keys, err = newKeys(); err != nil {
		return err
	}
	c.hide(c.installValues()...)
	if err := c.compareVersions(); err != nil {
		return err
	}
	if err := c.admitVersions(ctx); err != nil || len(c.out.Refused) > 0 {
		return err
	}
	if c.newNamespace {
		c.unknown("namespace %s does not exist yet: no object in it can be asked about", c.edit.Version.Namespace)
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	_, err = c.installVersions(ctx)
	return err
}

// compareVersions fills in what becomes of the OperatorVersions themselves. settleVersions has noted why one is not known.
func (c *computation) compareVersions() error {
	for _, version := range c.edit.Versions {
		kind := v1beta1.GroupVersion.WithKind("OperatorVersion")
		out := newObject(apply.ID{GroupVersionKind: kind, NamespacedName: client.ObjectKeyFromObject(version)})
		former := c.formerVersion(version)
		switch {
		case slices.Contains(c.coming, version):
			out.Effect = Create
		case former == nil:
			out.Effect, out.Why = Unknown, "it cannot be read"
		default:
			var err error
			if out.Effect, err = c.compareSpecs(&out, former, version); err != nil {
				return err
			}
		}
		c.out.Objects = append(c.out.Objects, out)
	}
	return nil
}

// compareSpecs fills in how an OperatorVersion that exists would change.
func (c *computation) compareSpecs(out *Object, there, wanted *v1beta1.OperatorVersion) (Effect, error) {
	var sides [2]*unstructured.Unstructured
	for n, version := range []*v1beta1.OperatorVersion{there, wanted} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(version)
		if err != nil {
			return "", err
		}
		sides[n] = &unstructured.Unstructured{Object: map[string]any{"spec": content["spec"]}}
		for _, name := range c.sensitive { // a value may be too short for the mask
			unstructured.RemoveNestedField(sides[n].Object, "spec", "installParameters", name)
		}
	}
	out.Fields = compare(sides[0], sides[1], c.mask).fields
	for _, name := range c.sensitive {
		if there.Spec.InstallParameters[name] != wanted.Spec.InstallParameters[name] {
			out.Fields = append(out.Fields, Field{Path: ".spec.installParameters." + name, Masked: true})
		}
	}
	if len(out.Fields) == 0 {
		return Unchanged, nil
	}
	if c.edit.KeepsVersions { // only its install parameters are changed
		return Modify, nil
	}
	c.unknown("what the change of OperatorVersion %s/%s would do to the Instances that use it: ask for one of them", there.Namespace,
		there.Name)
	return Modify, nil
}
