package preview

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// askAdmission asks the API server and its webhooks whether they would admit the edit, and notes why not.
func (c *computation) askAdmission(ctx context.Context) error {
	var err error
	switch {
	case c.depth > 0, c.Local:
		return nil // a dry run of the parent's plan has asked about a child; Local sends no dry run
	case c.edit.Before == nil:
		err = c.Client.Create(ctx, c.edit.After.DeepCopy(), client.DryRunAll)
	default:
		err = c.Client.Patch(ctx, c.edit.After.DeepCopy(), client.MergeFrom(c.edit.Before), client.DryRunAll)
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case !errors.As(err, &status) && !isUnanswered(err):
		return err
	case apierrors.IsNotFound(err) && c.edit.Before == nil:
		c.newNamespace = true
		c.unknown("namespace %s does not exist yet: no object in it can be asked about", c.edit.After.Namespace)
	case isUnanswered(err):
		c.unknown("whether the edit is admitted: %s", err)
	default:
		c.out.Refused = append(c.out.Refused, c.mask.Text(err.Error()))
	}
	return nil
}

// admitVersions asks the API server and its webhooks whether they would admit the OperatorVersions that the edit creates or changes, and
// notes why not. A namespace that does not exist is noted with the Instance.
func (c *computation) admitVersions(ctx context.Context) error {
	if c.Local || c.depth > 0 {
		return nil
	}
	for _, version := range slices.Concat(c.coming, c.changing) {
		err := c.tryVersion(ctx, version)
		var status apierrors.APIStatus
		switch {
		case err == nil:
		case apierror.IsNamespaceNotFound(err):
			c.newNamespace = true
		case isUnanswered(err):
			c.unknown("whether OperatorVersion %s/%s is admitted: %s", version.Namespace, version.Name, err)
		case errors.As(err, &status):
			c.out.Refused = append(c.out.Refused, c.mask.Text(err.Error()))
		default:
			return err
		}
	}
	return nil
}

// tryVersion sends the creation of an OperatorVersion, or the change of its spec, as a dry run.
func (c *computation) tryVersion(ctx context.Context, version *v1beta1.OperatorVersion) error {
	if former := c.formerVersion(version); former != nil {
		changed := former.DeepCopy()
		changed.Spec = version.Spec
		return c.Client.Patch(ctx, changed, client.MergeFrom(former), client.DryRunAll)
	}
	created := version.DeepCopy()
	created.UID = "" // the preview has chosen it at random
	return c.Client.Create(ctx, created, client.DryRunAll)
}

// formerVersion returns an OperatorVersion as it exists; nil if it does not.
func (c *computation) formerVersion(version *v1beta1.OperatorVersion) *v1beta1.OperatorVersion {
	at := slices.IndexFunc(c.former, func(former *v1beta1.OperatorVersion) bool {
		return client.ObjectKeyFromObject(former) == client.ObjectKeyFromObject(version)
	})
	if at < 0 {
		return nil
	}
	return c.former[at]
}
