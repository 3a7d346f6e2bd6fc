package act

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
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
// and from hosts that the administrator has named. The author of a package must not choose which hosts the machine of the user asks.
type tarballs struct {
	*fetch.Fetcher
	// now are the settings of kudo, and known reports whether the user may read them.
	now   settings.Settings
	known bool
}

// newTarballs returns the tarballs of Instances by the settings of kudo.
func newTarballs(ctx context.Context, c client.Client, now settings.Settings, known bool) *tarballs {
	return &tarballs{now: now, known: known, Fetcher: fetch.New(ctx, fetch.Options{
		Policy: func() fetch.Policy { return fetch.PolicyOf(now) },
		Access: crdtarball.Access{ConfigMaps: fetch.Cluster{Reader: c}, Proxy: http.ProxyFromEnvironment, Timeout: tarballSilence},
	}, nil)}
}

// Fetch implements preview.Tarballs.
func (t *tarballs) Fetch(ctx context.Context, wanted fetch.Wanted) ([]*unstructured.Unstructured, error) {
	switch {
	case wanted.Tarball.CRDDownloadPolicy == v1beta1.DownloadNever:
		return nil, errors.New("crdDownloadPolicy is Never, and only kudo has the cache")
	case wanted.Tarball.ConfigMapSource != nil:
	case !t.known:
		return nil, errors.New("you may not read the settings of kudo, which name the hosts to ask")
	case len(t.now.AllowedHosts) == 0:
		return nil, errors.New("previews ask only hosts that the setting crd-allowed-hosts names")
	}
	resolved, err := fetchOnce(ctx, crdtarball.Request{Source: wanted.Source, Policy: v1beta1.DownloadAlways, Digest: wanted.Digest})
	if err != nil {
		return nil, err
	}
	return resolved.Objects(), nil
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
