package instances

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
)

// tarballTimeout is how long the source of a tarball may be silent.
const tarballTimeout = 5 * time.Second

// previewTarballs returns the tarballs of Instances as kudo would fetch them, but without credentials: by ConfigMaps that the user may
// read, and by hosts that kudo may ask. A package must not learn by a preview what a Secret holds, nor reach what only this machine does.
func previewTarballs(ctx context.Context, c client.Client) preview.Tarballs {
	policy := sync.OnceValue(func() fetch.Policy {
		now, _ := kudoinit.ReadSettings(ctx, c) // if they cannot be read, their defaults count
		return fetch.PolicyOf(now)
	})
	fetcher := fetch.New(ctx, fetch.Options{Policy: policy, Access: crdtarball.Access{ConfigMaps: fetch.Cluster{Reader: c},
		Proxy: http.ProxyFromEnvironment, Timeout: tarballTimeout}}, nil)
	return func(ctx context.Context, i *v1beta1.Instance, version *v1beta1.OperatorVersion) (preview.Definitions, error) {
		wanted, err := fetcher.Resolve(i, i.OperatorVersionKey().Namespace, &version.Spec)
		if err != nil || wanted.Tarball == nil {
			return preview.Definitions{}, err
		}
		out := preview.Definitions{Source: crdtarball.Display(wanted.Source.Identity()),
			UpdateIfSafe: wanted.Tarball.CRDUpdatePolicy == v1beta1.UpdateIfSafe}
		resolved, err := fetchOnce(ctx, wanted.Source)
		if err == nil {
			out.Objects = resolved.Objects()
			return out, nil
		}
		var wrong *crdtarball.Error
		if errors.As(err, &wrong) {
			switch wrong.Reason {
			case crdtarball.ReasonPin, crdtarball.ReasonArchive, crdtarball.ReasonDocuments:
				return out, err // whoever fetches it
			}
		}
		out.Unknown = err.Error()
		return out, nil
	}
}

// fetchOnce fetches a tarball into a folder that is removed again.
func fetchOnce(ctx context.Context, source crdtarball.Source) (*crdtarball.Resolved, error) {
	dir, err := os.MkdirTemp("", "kudo-preview-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cache, err := crdtarball.Open(crdtarball.Options{Dir: dir, Retry: crdtarball.Retry{Attempts: 1}})
	if err != nil {
		return nil, err
	}
	return cache.Resolve(ctx, crdtarball.Request{Source: source, Policy: v1beta1.DownloadAlways})
}
