package preview

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// askAdmission asks the API server and its webhooks whether they would admit the edit, and notes why not.
func (c *computation) askAdmission(ctx context.Context) error {
	var err error
	switch {
	case c.depth > 0, c.Local:
		return nil // the run of its parent has asked, or no dry run is to be sent
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
