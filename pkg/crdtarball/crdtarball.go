// Package crdtarball gets the CustomResourceDefinitions of an application from a tarball: it resolves the source for one
// Instance, fetches it at most once into a cache on the disk, unpacks it within limits, and checks what is in it.
//
//	RenderTarball ─> NewSource ─> Cache.Resolve ─> Resolved.Objects
//	 templates        HTTP, OCI,   one fetch a key,   the CustomResourceDefinitions,
//	 resolved         ConfigMaps   atomic entries     checked and in order
//
// It applies nothing.
package crdtarball

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Request asks for a tarball.
type Request struct {
	// Source that it comes from.
	Source Source
	// Digest is what an earlier fetch has found, `sha256:` and 64 hexadecimal digits, for a source that has no Pin. Other
	// content is refused. Without Digest and Pin, the source is asked: the cache is not believed.
	Digest string
	// Policy says when the source is asked. Empty means IfNotPresent.
	Policy v1beta1.CRDDownloadPolicy
	// Progress is told how a fetch goes: at the start of each attempt, and then at most as often as
	// Options.ProgressEvery. It is called by another goroutine and must not block. It may be nil.
	Progress func(Progress)
}

// Progress is how far a fetch is.
type Progress struct {
	// Attempt counts from 1.
	Attempt int
	// Bytes that have come in this attempt, and Total as the source announced it (0 if it did not).
	Bytes, Total int64
	// Last is why the attempt before failed; nil in the first.
	Last error
	// Age is the time since the tarball was first asked for, for the same run.
	Age time.Duration
}

// Resolved is a tarball that is in the cache, complete and checked.
type Resolved struct {
	// Key of the entry in the cache.
	Key string
	// URL of the source, as Display shows it.
	URL string
	// Digest of the tarball: `sha256:` and 64 hexadecimal digits.
	Digest string
	// CachedAt is when it was fetched.
	CachedAt time.Time
	// Names of the CustomResourceDefinitions, in order.
	Names []string
	// Fetched tells that the tarball came from the source just now; else it was in the cache.
	Fetched bool
	// Stale is why the source could not be asked for a newer one, or nil if it was asked or did not need to be.
	Stale error

	objects []*unstructured.Unstructured
}

// Objects returns copies of the CustomResourceDefinitions, in order.
func (r *Resolved) Objects() []*unstructured.Unstructured {
	copies := make([]*unstructured.Unstructured, len(r.objects))
	for i, object := range r.objects {
		copies[i] = object.DeepCopy()
	}
	return copies
}

// Resolve gets a tarball from the cache, or from its source into the cache, as the policy says. All that ask for the
// same at the same time share one fetch; the fetch ends when the contexts of all of them have. Errors are *Error.
func (c *Cache) Resolve(ctx context.Context, request Request) (*Resolved, error) {
	identity := request.Source.Identity()
	resolved, err := c.resolve(ctx, request)
	if err != nil {
		return nil, wrapSource(identity, err)
	}
	resolved.URL = Display(identity)
	return resolved, nil
}

func (c *Cache) resolve(ctx context.Context, request Request) (*Resolved, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Reason: ReasonCanceled, Err: err, Temporary: true}
	}
	switch request.Policy {
	case v1beta1.DownloadAlways, v1beta1.DownloadIfNotPresent, v1beta1.DownloadNever, "":
	default:
		return nil, fail(ReasonSpec, "crdDownloadPolicy %s is invalid: use Always, IfNotPresent or Never", quoteShort(string(request.Policy)))
	}
	source := request.Source
	want, err := request.wanted()
	if err != nil {
		return nil, err
	}
	key := Key(source.Identity())
	var missing error
	if request.Policy != v1beta1.DownloadAlways && want.known {
		found, err := c.find(ctx, key, want)
		if err == nil {
			c.metrics.hit()
			return found.resolved(key), nil
		}
		missing = err
	}
	if request.Policy == v1beta1.DownloadNever && !want.known {
		c.metrics.failed(ReasonNotCached)
		return nil, fail(ReasonNotCached, "crdDownloadPolicy is Never, and no digest is known, without which the cache is not trusted: set "+
			"spec.crdTarball.httpSource.sha256")
	}
	if request.Policy == v1beta1.DownloadNever {
		c.metrics.failed(ReasonNotCached)
		return nil, fail(ReasonNotCached, "crdDownloadPolicy is Never, and the cache %s: import it by kubectl kudo cache import",
			describeMissing(missing))
	}
	flight := key + " " + string(request.Policy) + " " + want.digest + " " + source.Access()
	return c.flights.do(ctx, flight, request.Progress, func(ctx context.Context, report func(Progress)) (*Resolved, error) {
		return c.fetch(ctx, key, request, want, report)
	})
}

// wanted is the digest that a tarball must have.
type wanted struct {
	// digest in hex; empty if any will do.
	digest string
	// remembered reports whether the digest is that of an earlier fetch, not one that the source names.
	remembered bool
	// known reports whether the cache can be believed: by the digest, or since the source is known by one.
	known bool
}

func (r Request) wanted() (wanted, error) {
	if pin := r.Source.Pin(); pin != "" {
		return wanted{digest: pin, known: true}, nil
	}
	_, addressed := r.Source.(addressed)
	if r.Digest == "" {
		return wanted{known: addressed}, nil
	}
	digest, ok := strings.CutPrefix(r.Digest, "sha256:")
	if !ok || digest == "" || checkPin(digest) != nil {
		return wanted{}, fail(ReasonSpec, "the recorded digest %s must be sha256: and 64 hexadecimal digits in lower case", quoteShort(r.Digest))
	}
	return wanted{digest: digest, remembered: true, known: true}, nil
}

// describeMissing says why the cache is of no use for a key.
func describeMissing(err error) string {
	var damaged *damagedError
	var pin *pinError
	switch {
	case errors.As(err, &damaged):
		return "has a damaged copy (" + damaged.Error() + ")"
	case errors.As(err, &pin):
		return "has another tarball of that URL (" + pin.Error() + ")"
	case errors.Is(err, errMissing):
		return "does not have it"
	}
	return "cannot be read (" + err.Error() + ")"
}

// fetch asks the source, with the file lock of the key held. A good copy in the cache stays until a better one is
// complete, and serves if there is none to be had.
func (c *Cache) fetch(ctx context.Context, key string, request Request, want wanted, report func(Progress)) (*Resolved, error) {
	always := request.Policy == v1beta1.DownloadAlways
	var good *entry
	fetched, err := func() (*entry, error) {
		unlock, err := c.lock(ctx, key)
		if err != nil {
			return nil, err
		}
		defer unlock()
		if want.known { // another process may have been faster
			good, err = c.find(ctx, key, want)
			if err == nil && !always {
				return good, nil
			}
		}
		return c.download(ctx, key, request.Source, want, good, report)
	}()
	if err == nil {
		resolved := fetched.resolved(key)
		resolved.Fetched = fetched != good
		return resolved, nil
	}
	failed := asError(err)
	c.metrics.failed(failed.Reason)
	if good == nil && always && want.known {
		// The lock itself may have failed: on a read-only disk, or since another process holds it.
		good, _ = c.find(ctx, key, want)
	}
	if good == nil || failed.Reason == ReasonCanceled {
		return nil, failed
	}
	resolved := good.resolved(key)
	resolved.Stale = wrapSource(request.Source.Identity(), failed)
	return resolved, nil
}

// find loads a good entry of the wanted digest.
func (c *Cache) find(ctx context.Context, key string, want wanted) (*entry, error) {
	found, err := c.load(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := want.check(found.meta.SHA256); err != nil {
		return nil, err
	}
	return found, nil
}

// check refuses other content than what is wanted.
func (w wanted) check(got string) error {
	if w.digest == "" || got == w.digest {
		return nil
	}
	return &pinError{want: w, got: got}
}

// pinError is a tarball of another digest than the one asked for.
type pinError struct {
	want wanted
	got  string
}

// Error implements error.
func (e *pinError) Error() string {
	text := "content has digest sha256:" + e.got + ", not sha256:" + e.want.digest
	if e.want.remembered {
		text += ", which it had when it was used first: if the change is right, set spec.crdTarball.httpSource.sha256"
	}
	return text
}

// asError makes an *Error of any error.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return classifyDisk("using the cache", err)
}
