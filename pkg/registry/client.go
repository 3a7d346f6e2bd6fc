package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"kudo.dev/kudo/pkg/text"
)

const (
	// maxTags and maxTagPages bound the tags of a repository. The client asks for pages that are large enough to have all of these tags.
	maxTags     = 10_000
	maxTagPages = 20
	// maxTagPage bounds a page of tags, in bytes.
	maxTagPage = 4 << 20
	// requestTimeout bounds a download, and a push of one blob.
	requestTimeout = 2 * time.Minute
)

// ErrNotFound is the error of a request for a tag, digest or repository that a registry does not have.
var ErrNotFound = errdef.ErrNotFound

// Client reads and writes artifacts of one repository in bounds.
type Client struct{ repository *remote.Repository }

// NewClient returns a client of a repository; see NewRepository.
func NewClient(reference string, o Options) (*Client, error) {
	repository, err := NewRepository(reference, o)
	if err != nil {
		return nil, err
	}
	repository.MaxMetadataBytes = maxTagPage
	repository.TagListMaxPages, repository.TagListPageSize = maxTagPages, maxTags/maxTagPages
	repository.ReferrerListMaxPages, repository.ReferrerListPageSize = maxTagPages, MaxReferrers
	repository.SkipReferrersGC = true // deleting the list before needs a right that those who push need not have
	return &Client{repository}, nil
}

// Manifest returns the manifest of a tag or digest, of at most limit bytes, which has the digest. The error is ErrNotFound if there is
// none.
func (c *Client) Manifest(ctx context.Context, reference string, limit int64) (ocispec.Descriptor, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	d, body, err := c.repository.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return d, nil, fmt.Errorf("fetch the manifest %s: %w", reference, explain(err))
	}
	defer func() { _ = body.Close() }()
	data, err := readAll(body, d, limit)
	if err != nil {
		return d, nil, fmt.Errorf("read the manifest %s: %w", reference, err)
	}
	return d, data, nil
}

// Blob returns a blob, which has the digest and the size of its descriptor. The caller has bounded the size.
func (c *Client) Blob(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := c.repository.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("fetch the blob %s: %w", d.Digest, explain(err))
	}
	defer func() { _ = body.Close() }()
	data, err := readAll(body, d, d.Size)
	if err != nil {
		return nil, fmt.Errorf("read the blob %s: %w: push it again", d.Digest, err)
	}
	return data, nil
}

// readAll reads what a descriptor describes, if it has at most limit bytes.
func readAll(body io.Reader, d ocispec.Descriptor, limit int64) ([]byte, error) {
	switch {
	case d.Digest.Algorithm() != digest.SHA256:
		return nil, fmt.Errorf("its digest %s is not of sha256: push it again by package push", text.Quote(string(d.Digest), 100))
	case d.Size < 0 || d.Size > limit:
		return nil, fmt.Errorf("it has %d bytes, more than the %d allowed: it cannot be that of a package", d.Size, limit)
	}
	return content.ReadAll(body, d)
}

// Tags returns the tags of the repository, each once. It returns an error if the repository has more than maxTags tags, or if a page has no
// tag that the pages before it do not have.
func (c *Client) Tags(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	seen, tags := map[string]bool{}, []string(nil)
	err := c.repository.Tags(ctx, "", func(page []string) error {
		before := len(tags)
		for _, tag := range page {
			if !seen[tag] {
				seen[tag] = true
				tags = append(tags, tag)
			}
		}
		switch {
		case len(tags) > maxTags:
			return fmt.Errorf("the repository has more than the %d tags allowed: name a tag or digest", maxTags)
		case len(tags) == before && before > 0:
			return errors.New("the pages of tags do not advance: name a tag or digest")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list tags: %w", explain(err))
	}
	return tags, nil
}

// Blob is content with its descriptor.
type Blob struct {
	ocispec.Descriptor
	Data []byte
}

// Push writes blobs and then the manifest that names them, under a tag, or under its digest if the tag is empty. Blobs that the repository
// has are not sent. A manifest that refers to another one is added to the list of those that do.
func (c *Client) Push(ctx context.Context, manifest Blob, blobs []Blob, tag string) error {
	for _, b := range blobs {
		if err := c.pushBlob(ctx, b); err != nil {
			return fmt.Errorf("push the blob %s: %w", b.Digest, explain(err))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	tag = cmp.Or(tag, manifest.Digest.String())
	if err := c.repository.Manifests().PushReference(ctx, manifest.Descriptor, bytes.NewReader(manifest.Data), tag); err != nil {
		return fmt.Errorf("push the manifest %s as %s: %w", manifest.Digest, tag, explain(err))
	}
	return nil
}

func (c *Client) pushBlob(ctx context.Context, b Blob) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	exists, err := c.repository.Blobs().Exists(ctx, b.Descriptor)
	if err != nil || exists {
		return err
	}
	return c.repository.Blobs().Push(ctx, b.Descriptor, bytes.NewReader(b.Data))
}

// explain adds to an answer what its status means, and what a user can do.
func explain(err error) error {
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("%w: log in by docker login, name the file with the credentials by --registry-config, or give them to repo add", err)
		case http.StatusNotFound:
			return fmt.Errorf("%w: %w: check the reference, or log in, since a registry can hide what it has", ErrNotFound, err)
		}
	}
	return err
}
