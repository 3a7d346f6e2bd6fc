package instances

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/settings"
)

// Bounds of the time in which a tarball is fetched for a preview.
const (
	// tarballSilence is how long the source of a tarball may be silent.
	tarballSilence = 5 * time.Second
	// tarballTimeout is how long the fetch may take.
	tarballTimeout = 20 * time.Second
)

// tarballs fetches the tarballs of Instances for previews, as kudo would, but without credentials: from ConfigMaps that the user may read,
// and from hosts that the administrator has named. A package must not have this machine ask whom it likes.
type tarballs struct {
	client  client.Client
	fetcher *fetch.Fetcher
	// settings of kudo, and whether the user may read them.
	settings func() (now settings.Settings, known bool)
}

// previewTarballs returns the tarballs of Instances for a preview.
func previewTarballs(ctx context.Context, c client.Client) preview.Tarballs {
	t := &tarballs{client: c, settings: sync.OnceValues(func() (settings.Settings, bool) { return kudoinit.ReadSettings(ctx, c) })}
	policy := func() fetch.Policy {
		now, _ := t.settings()
		return fetch.PolicyOf(now)
	}
	t.fetcher = fetch.New(ctx, fetch.Options{Policy: policy, Access: crdtarball.Access{ConfigMaps: fetch.Cluster{Reader: c},
		Proxy: http.ProxyFromEnvironment, Timeout: tarballSilence}}, nil)
	return t.definitions
}

// definitions implements preview.Tarballs.
func (t *tarballs) definitions(ctx context.Context, i *v1beta1.Instance, version *v1beta1.OperatorVersion) (preview.Definitions, error) {
	wanted, err := t.fetcher.Resolve(i, i.OperatorVersionKey().Namespace, &version.Spec)
	if err != nil || wanted.Tarball == nil {
		return preview.Definitions{}, err
	}
	out := preview.Definitions{Source: crdtarball.Display(wanted.Source.Identity()),
		UpdateIfSafe: wanted.Tarball.CRDUpdatePolicy == v1beta1.UpdateIfSafe}
	digest, err := t.remembered(ctx, i, wanted.SpecHash)
	if err != nil {
		out.Unknown = err.Error()
		return out, nil
	}
	out.Installed = digest != ""
	if out.Unknown = t.unasked(wanted); out.Unknown != "" {
		return out, nil
	}
	resolved, err := fetchOnce(ctx, crdtarball.Request{Source: wanted.Source, Policy: v1beta1.DownloadAlways, Digest: digest})
	if err != nil {
		out.Unknown = err.Error()
		return out, nil
	}
	out.Objects = resolved.Objects()
	return out, nil
}

// remembered returns the digest that the Installation of an Instance remembers of the same tarball, or "" if there is none.
func (t *tarballs) remembered(ctx context.Context, i *v1beta1.Instance, specHash string) (string, error) {
	if i.UID == "" {
		return "", nil
	}
	holder := &v1beta1.Installation{}
	if err := t.client.Get(ctx, client.ObjectKey{Name: v1beta1.InstallationName(i.Namespace, i.Name, i.UID)}, holder); err != nil {
		return "", apierror.IgnoreObjectNotFound(err)
	}
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == specHash {
		return known.Digest, nil
	}
	return "", nil
}

// unasked says why a tarball is not fetched for a preview; empty if it is.
func (t *tarballs) unasked(wanted fetch.Wanted) string {
	now, known := t.settings()
	switch {
	case wanted.Tarball.CRDDownloadPolicy == v1beta1.DownloadNever:
		return "crdDownloadPolicy is Never, and only kudo has the cache"
	case wanted.Tarball.ConfigMapSource != nil:
		return ""
	case !known:
		return "you may not read the settings of kudo, which name the hosts to ask"
	case len(now.AllowedHosts) == 0:
		return "previews ask only hosts that the setting crd-allowed-hosts names"
	}
	return ""
}

// fetchOnce fetches a tarball into a folder that is removed again.
func fetchOnce(ctx context.Context, request crdtarball.Request) (*crdtarball.Resolved, error) {
	ctx, cancel := context.WithTimeout(ctx, tarballTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "kudo-preview-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cache, err := crdtarball.Open(crdtarball.Options{Dir: dir, Retry: crdtarball.Retry{Attempts: 1}})
	if err != nil {
		return nil, err
	}
	return cache.Resolve(ctx, request)
}
