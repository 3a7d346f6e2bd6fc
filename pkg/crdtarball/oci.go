package crdtarball

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	dockerconfig "oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// maxManifest bounds the manifest of an artifact, in bytes, as the distribution specification suggests.
const maxManifest = 4 << 20

// ociSource pulls a tarball from a registry of OCI artifacts. The reference has the digest of the manifest, which has
// that of the tarball: what comes is what was meant, whoever serves it.
type ociSource struct {
	spec      v1beta1.OCISource
	namespace string
	access    Access
	digest    string
	origin    *url.URL
}

func newOCISource(spec v1beta1.OCISource, namespace string, access Access) (Source, error) {
	repository, err := remote.NewRepository(spec.Ref)
	if err != nil {
		return nil, fail(ReasonSpec, "ociSource.ref %s is no reference such as registry.example.org/crds@sha256:…: %w", quoteShort(spec.Ref), err)
	}
	digest, err := repository.Reference.Digest()
	if err != nil {
		return nil, fail(ReasonSpec, "ociSource.ref %s must end in the digest of its manifest, @sha256:…", quoteShort(spec.Ref))
	}
	origin := &url.URL{Scheme: "https", Host: repository.Reference.Host()}
	return &ociSource{spec: spec, namespace: namespace, access: access, digest: digest.String(), origin: origin}, nil
}

// Identity implements Source.
func (s *ociSource) Identity() string { return "oci://" + s.spec.Ref }

// addressed implements addressed: the reference ends in the digest of the manifest.
func (s *ociSource) addressed() {}

// Pin implements Source. The digest of the reference is that of the manifest, and is checked by Fetch.
func (s *ociSource) Pin() string { return "" }

// Access implements Source.
func (s *ociSource) Access() string {
	return accessKey(s.namespace, s.spec.SecretRef, s.spec.ProxyURL, s.spec.CABundle, s.access.Hosts)
}

// Fetch implements Source. What has been fetched by its digest cannot have changed, so that it is not asked for again.
func (s *ociSource) Fetch(ctx context.Context, to Target, known Validators) (Fetched, error) {
	if known.ETag == s.digest {
		return Fetched{NotModified: true, Validators: known}, nil
	}
	secret, err := readCredentials(ctx, s.access.Secrets, s.namespace, s.spec.SecretRef)
	if err != nil {
		return Fetched{}, err
	}
	client, done, err := newClient(clientConfig{access: s.access, origin: s.origin, proxy: s.spec.ProxyURL, ca: s.spec.CABundle,
		credentials: secret, registry: true})
	if err != nil {
		return Fetched{}, err
	}
	defer done()
	ctx, watch := watchSilence(ctx, s.access.timeout())
	defer watch.stop()
	watch.pause()
	repository, err := s.repository(client, secret)
	if err != nil {
		return Fetched{}, err
	}
	if err := s.pull(ctx, repository, to, watch); err != nil {
		return Fetched{}, registryError(ctx, err)
	}
	return Fetched{Validators: Validators{ETag: s.digest}}, nil
}

func (s *ociSource) repository(client *http.Client, secret credentials) (*remote.Repository, error) {
	repository, err := remote.NewRepository(s.spec.Ref)
	if err != nil {
		return nil, fail(ReasonSpec, "ociSource.ref: %w", err)
	}
	find, err := s.credential(repository.Reference.Registry, secret)
	if err != nil {
		return nil, err
	}
	repository.Client = &auth.Client{Client: client, Credential: find, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {userAgent}}}
	return repository, nil
}

// credential finds what to log in with: of a pull secret the entry of the registry, else what the Secret holds.
func (s *ociSource) credential(registry string, secret credentials) (auth.CredentialFunc, error) {
	if len(secret.docker) > 0 {
		store, err := dockerconfig.NewMemoryStoreFromDockerConfig(secret.docker)
		if err != nil {
			return nil, fail(ReasonCredentials, "the Secret %s/%s: .dockerconfigjson cannot be read", s.namespace, s.spec.SecretRef.Name)
		}
		return dockerconfig.Credential(store), nil
	}
	if secret.token == "" && secret.username == "" {
		return nil, nil
	}
	return auth.StaticCredential(registry, auth.Credential{Username: secret.username, Password: secret.password,
		AccessToken: strings.TrimSpace(secret.token)}), nil
}

// pull fetches the manifest, then the layer that is the tarball, and verifies the digests of both.
func (s *ociSource) pull(ctx context.Context, repository *remote.Repository, to Target, watch *idleTimeout) error {
	layer, err := s.layer(ctx, repository, watch)
	if err != nil {
		return err
	}
	if err := to.Expect(layer.Size); err != nil {
		return err
	}
	watch.pause()
	blob, err := repository.Blobs().Fetch(ctx, layer)
	if err != nil {
		return fmt.Errorf("fetching the layer: %w", err)
	}
	defer func() { _ = blob.Close() }()
	verified := content.NewVerifyReader(watch.reader(blob), layer)
	if _, err := io.Copy(to, verified); err != nil {
		return fmt.Errorf("fetching the layer: %w", err)
	}
	if err := verified.Verify(); err != nil {
		return fail(ReasonPin, "the layer has not the digest of the manifest, %s: %w", layer.Digest, err)
	}
	return nil
}

func (s *ociSource) layer(ctx context.Context, repository *remote.Repository, watch *idleTimeout) (ocispec.Descriptor, error) {
	description, body, err := repository.Manifests().FetchReference(ctx, s.digest)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("fetching the manifest: %w", err)
	}
	defer func() { _ = body.Close() }()
	if description.Size > maxManifest {
		return ocispec.Descriptor{}, fail(ReasonArchive, "the manifest has %d bytes, more than %d", description.Size, maxManifest)
	}
	text, err := content.ReadAll(watch.reader(body), description)
	if errors.Is(err, content.ErrMismatchedDigest) {
		return ocispec.Descriptor{}, fail(ReasonPin, "the manifest is not the one that ociSource.ref names: %w", err)
	}
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("fetching the manifest: %w", err)
	}
	return parseManifest(text)
}

// parseManifest returns the layer that is the tarball.
func parseManifest(text []byte) (ocispec.Descriptor, error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return ocispec.Descriptor{}, fail(ReasonArchive, "the manifest is no manifest of an OCI artifact: %w", err)
	}
	return tarballLayer(manifest)
}

// tarballLayer picks the one layer that is a gzipped tar; if there is one layer only, it may call itself anything.
func tarballLayer(manifest ocispec.Manifest) (ocispec.Descriptor, error) {
	layers := manifest.Layers
	if len(layers) > 1 {
		layers = slices.DeleteFunc(slices.Clone(layers), func(d ocispec.Descriptor) bool {
			return !strings.HasSuffix(d.MediaType, "tar+gzip") && !strings.HasSuffix(d.MediaType, "tar.gzip")
		})
	}
	if len(layers) != 1 {
		return ocispec.Descriptor{}, fail(ReasonArchive, "the manifest has %d layers, %d of them gzipped tars: it must have one (an index of "+
			"manifests has none: name one of its manifests)", len(manifest.Layers), len(layers))
	}
	if err := layers[0].Digest.Validate(); err != nil || layers[0].Size < 0 {
		return ocispec.Descriptor{}, fail(ReasonArchive, "the manifest describes its layer in a wrong way")
	}
	return layers[0], nil
}

// registryError puts an error of the registry client into words.
func registryError(ctx context.Context, err error) *Error {
	var response *errcode.ErrorResponse
	var known *Error
	if !errors.As(err, &response) || errors.As(err, &known) {
		return networkError(ctx, err)
	}
	code := response.StatusCode
	e := fail(ReasonStatus, "the registry answers %d %s%s (%s)", code, http.StatusText(code), statusHint(code), withoutSecrets(err))
	e.Temporary = code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500
	return e
}
