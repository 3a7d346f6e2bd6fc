package packages

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators/helmrelease"
	"kudo.dev/kudo/pkg/text"
)

// Annotations by which Helm marks the objects of a release.
const (
	releaseNameKey      = "meta.helm.sh/release-name"
	releaseNamespaceKey = "meta.helm.sh/release-namespace"
)

// checkInstalled refuses objects of the install plan that nothing but the Secret of the release proves to be the release's: whoever may
// write Secrets in one namespace must not have an administrator install what the cluster or other namespaces then hold.
func (o *fromHelmOptions) checkInstalled(ctx context.Context, c client.Reader, release *helmrelease.Release,
	objs []helmrelease.Object) error {
	var unproven []string
	for _, obj := range objs {
		if !obj.Installed {
			continue
		}
		if reason := whyUnproven(ctx, c, release, obj); reason != "" {
			unproven = append(unproven, describeObject(obj)+" ("+reason+")")
		}
	}
	if o.allowUnproven {
		for _, object := range unproven {
			o.env.Warnf("the install plan has %s: look at its template, which is what the Secret of the release says", object)
		}
		return nil
	}
	if len(unproven) > 0 {
		return fmt.Errorf("the install plan would have objects that nothing proves to be those of release %s/%s: %s. Nothing was written. "+
			"Whoever may write Secrets in namespace %s can name such objects: look at the manifest of the release (helm get manifest), then use "+
			"--allow-cluster-objects", release.Namespace, o.release, text.List(unproven, maxMissing), release.Namespace)
	}
	return nil
}

// whyUnproven returns why an object is not proven to be that of a release, or "". Only the annotations prove it, which are on an
// object that the writer of the Secret may not be able to write.
func whyUnproven(ctx context.Context, c client.Reader, release *helmrelease.Release, obj helmrelease.Object) string {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(obj.GroupVersionKind)
	err := c.Get(ctx, types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}, live)
	switch {
	case apierrors.IsNotFound(err):
		return "it does not exist"
	case err != nil:
		return "it cannot be read: " + text.Plain(err.Error(), maxReason)
	case obj.Unmarked || isOfRelease(live, release.Namespace, release.Name):
		return ""
	}
	return "its annotation " + releaseNameKey + " or " + releaseNamespaceKey + " names another release, or it has none"
}

// maxReason is how many bytes of an error stand behind the name of an object.
const maxReason = 200

// isOfRelease reports whether Helm has marked an object as that of a release.
func isOfRelease(live metav1.Object, namespace, release string) bool {
	annotations := live.GetAnnotations()
	return annotations[releaseNameKey] == release && annotations[releaseNamespaceKey] == namespace
}

// describeObject names an object of a release for people.
func describeObject(obj helmrelease.Object) string {
	name := obj.Name
	if obj.Namespace != "" {
		name = obj.Namespace + "/" + name
	}
	return text.Plain(obj.Kind+" "+name, maxReason)
}
