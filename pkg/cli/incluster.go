package cli

import (
	"context"
	"fmt"
	"sort"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
)

// installKnown makes an Instance of an OperatorVersion that is installed in the namespace.
func (t *tool) installKnown(ctx context.Context, operator string, o *installOptions, given map[string]string) error {
	if o.skipInstance || o.namespace {
		return usage("--in-cluster makes an Instance of what is installed: it goes neither with --skip-instance nor with --create-namespace")
	}
	c, _, namespace, err := t.connect()
	if err != nil {
		return err
	}
	list := &v1beta1.OperatorVersionList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	ov := highest(list.Items, operator, o.appVersion, o.operatorVersion)
	if ov == nil {
		return fmt.Errorf("no OperatorVersion of operator %s fits in namespace %s: kubectl kudo get operatorversions -n %s lists those that are there", operator, namespace, namespace)
	}
	if o.instance == "" {
		o.instance = operators.DefaultInstanceName(operator)
	}
	if unknown := params.Unknown(ov.Spec.Parameters, given); len(unknown) > 0 {
		return fmt.Errorf("parameter %s is not defined by operatorversion %s", unknown[0], ov.Name)
	}
	if err := params.Validate(ov.Spec.Parameters, given).Err(); err != nil {
		return err
	}
	instance := newInstance(namespace, o, operator, ov.Name, given)
	if err := absent(ctx, c, instance); err != nil {
		return err
	}
	return t.makeInstance(ctx, c, instance, []*v1beta1.OperatorVersion{ov}, &o.waiting)
}

// highest is the OperatorVersion of an operator with the highest appVersion, and among these with the highest version.
// Versions that are not semantic count less than all that are.
func highest(all []v1beta1.OperatorVersion, operator, appVersion, version string) *v1beta1.OperatorVersion {
	var fit []v1beta1.OperatorVersion
	for _, ov := range all {
		if ov.Spec.Operator.Name == operator && (appVersion == "" || ov.Spec.AppVersion == appVersion) && (version == "" || ov.Spec.Version == version) {
			fit = append(fit, ov)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	sort.SliceStable(fit, func(i, j int) bool {
		if order := compare(fit[i].Spec.AppVersion, fit[j].Spec.AppVersion); order != 0 {
			return order > 0
		}
		return compare(fit[i].Spec.Version, fit[j].Spec.Version) > 0
	})
	return &fit[0]
}

func compare(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	switch {
	case errX == nil && errY == nil:
		return x.Compare(y)
	case errX == nil:
		return 1
	case errY == nil:
		return -1
	}
	return 0
}
