// Package helmstore reads the Secrets in which Helm stores its releases, sets them aside, and restores them.
package helmstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/helmrelease"
)

// Labels by which Helm finds its releases, and their values.
const (
	ownerKey   = "owner"
	nameKey    = "name"
	statusKey  = "status"
	versionKey = "version"

	helmOwner = "helm"
	// asideOwner is the owner of a release that is set aside: Helm does not find it.
	asideOwner = "kudo"
	// deployed is the status of the revision that runs.
	deployed = "deployed"
)

// Releases are the Secrets of a release, in the order of its revisions.
type Releases []corev1.Secret

// List returns the Secrets of a release of Helm, which Helm finds; none if there is no such release.
func List(ctx context.Context, c client.Reader, namespace, release string) (Releases, error) {
	return list(ctx, c, namespace, client.MatchingLabels{ownerKey: helmOwner, nameKey: release}, release)
}

// ListAside returns the Secrets of a release that were set aside for an Instance.
func ListAside(ctx context.Context, c client.Reader, namespace, release, instance string) (Releases, error) {
	return list(ctx, c, namespace, client.MatchingLabels{ownerKey: asideOwner, nameKey: release, v1beta1.FromHelmLabel: instance}, release)
}

func list(ctx context.Context, c client.Reader, namespace string, selector client.MatchingLabels, release string) (Releases, error) {
	if problems := validation.IsValidLabelValue(release); len(problems) > 0 || release == "" {
		return nil, fmt.Errorf("%.64q cannot be the name of a release of Helm", release)
	}
	secrets := &corev1.SecretList{}
	if err := c.List(ctx, secrets, client.InNamespace(namespace), selector); err != nil {
		return nil, fmt.Errorf("list the Secrets of release %s in namespace %s: %w", release, namespace, err)
	}
	out := slices.DeleteFunc(Releases(secrets.Items), func(s corev1.Secret) bool { return s.Type != helmrelease.SecretType })
	slices.SortFunc(out, func(a, b corev1.Secret) int {
		return cmp.Or(cmp.Compare(revision(&a), revision(&b)), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// revision is that of the release in a Secret; 0 if the label is wrong.
func revision(secret *corev1.Secret) int {
	n, err := strconv.Atoi(secret.Labels[versionKey])
	if err != nil {
		return 0
	}
	return n
}

// Deployed returns the newest revision that is deployed, and the status of the newest revision of all, which is another one if an
// upgrade has failed or is under way.
func (r Releases) Deployed() (*helmrelease.Release, string, error) {
	for _, secret := range slices.Backward(r) {
		if secret.Labels[statusKey] != deployed {
			continue
		}
		release, err := helmrelease.Decode(secret.Data["release"])
		if err != nil {
			return nil, "", fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		if release.Namespace == "" {
			release.Namespace = secret.Namespace
		}
		if release.Name != secret.Labels[nameKey] || release.Namespace != secret.Namespace {
			return nil, "", fmt.Errorf("the Secret %s/%s holds the release %.64q of namespace %.64q, and not what its labels say", secret.Namespace,
				secret.Name, release.Name, release.Namespace)
		}
		return release, r[len(r)-1].Labels[statusKey], nil
	}
	return nil, "", fmt.Errorf("no revision of the release is deployed: its %d revisions have failed, or Helm works at them", len(r))
}

// SetAside hides Secrets of a release from Helm, so that it deletes no objects. The newest revision is the last one, so that Helm does not
// take an older one for it if this is interrupted.
func (r Releases) SetAside(ctx context.Context, c client.Client, instance string) error {
	for i := range r {
		if err := relabel(ctx, c, &r[i], map[string]string{ownerKey: asideOwner, v1beta1.FromHelmLabel: instance}); err != nil {
			return fmt.Errorf("set Secret %s/%s aside: %w", r[i].Namespace, r[i].Name, err)
		}
	}
	return nil
}

// Restore lets Helm find Secrets of a release again, the newest revision first.
func (r Releases) Restore(ctx context.Context, c client.Client) error {
	for i := range slices.Backward(r) {
		if err := relabel(ctx, c, &r[i], map[string]string{ownerKey: helmOwner, v1beta1.FromHelmLabel: ""}); err != nil {
			return fmt.Errorf("restore Secret %s/%s: %w", r[i].Namespace, r[i].Name, err)
		}
	}
	return nil
}

// relabel changes labels of a Secret, which has not changed since it was read. An empty value removes a label.
func relabel(ctx context.Context, c client.Client, secret *corev1.Secret, labels map[string]string) error {
	before := secret.DeepCopy()
	secret.Labels = maps.Clone(secret.Labels)
	maps.Copy(secret.Labels, labels)
	maps.DeleteFunc(secret.Labels, func(key, value string) bool { _, changed := labels[key]; return changed && value == "" })
	return c.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
