package crdtarball

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"syscall"
	"time"

	"kudo.dev/kudo/pkg/text"

	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Reason says in one word why a tarball could not be had. It labels the metric of failures.
type Reason string

const (
	// ReasonTimeout is a source that did not answer, or a lock that another process did not release, in time.
	ReasonTimeout Reason = "Timeout"
	// ReasonConnection is a source that cannot be reached, or a connection that broke.
	ReasonConnection Reason = "Connection"
	// ReasonStatus is an answer that is not the tarball, such as 404.
	ReasonStatus Reason = "Status"
	// ReasonCertificate is a server whose certificate is not trusted.
	ReasonCertificate Reason = "Certificate"
	// ReasonRefused is a URL, an address or a redirect that is not allowed.
	ReasonRefused Reason = "Refused"
	// ReasonCredentials is a Secret that is missing or unfit, or a ConfigMap that is.
	ReasonCredentials Reason = "Credentials"
	// ReasonPin is a tarball whose digest is not the one that was asked for.
	ReasonPin Reason = "Pin"
	// ReasonArchive is something that is no gzipped tar within the limits.
	ReasonArchive Reason = "Archive"
	// ReasonDocuments is an archive that holds something else than CustomResourceDefinitions.
	ReasonDocuments Reason = "Documents"
	// ReasonSpec is a crdTarball that cannot be right.
	ReasonSpec Reason = "Spec"
	// ReasonNotCached is a tarball that may not be fetched, by the policy Never, and is not in the cache.
	ReasonNotCached Reason = "NotCached"
	// ReasonDisk is a cache folder that cannot be written or read.
	ReasonDisk Reason = "Disk"
	// ReasonCanceled is a fetch for which no caller waits any more.
	ReasonCanceled Reason = "Canceled"
)

// Error says why a tarball could not be had. Its text holds no secrets: of URLs it shows neither user nor query.
type Error struct {
	Reason Reason
	// URL is the source, as Display shows it; empty if it is not known yet.
	URL string
	// Err is the cause.
	Err error
	// Temporary reports whether the same again may succeed without a change by anybody.
	Temporary bool
	// RetryAfter is how long the source asked to be left alone; 0 if it did not.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string {
	if e.URL == "" {
		return "CRD tarball: " + e.Err.Error()
	}
	return "CRD tarball " + e.URL + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail returns a fatal Error: the same attempt would meet it again.
func fail(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// wrapSource names the source in an error, making an Error of any.
func wrapSource(source string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		e = classifyDisk("using the cache", err)
	}
	named := *e
	named.URL = Display(source)
	return &named
}

// classifyDisk puts errors of the file system into words that say what to do.
func classifyDisk(what string, err error) *Error {
	hint := ""
	temporary := false
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Reason: ReasonCanceled, Err: fmt.Errorf("%s: %w", what, err), Temporary: true}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint, temporary = "the disk of the cache folder is full: make room or enlarge it: ", true
	case errors.Is(err, syscall.EFBIG):
		hint = "the cache folder's file system or the process's limits take no file of that size: "
	case errors.Is(err, syscall.EROFS):
		hint = "the cache folder is read-only: mount it writable, or use what is in it by crdDownloadPolicy Never: "
	case errors.Is(err, fs.ErrPermission):
		hint = "the cache folder may not be written: give it to the user that runs this: "
	}
	return &Error{Reason: ReasonDisk, Err: fmt.Errorf("%s: %s%w", what, hint, err), Temporary: temporary}
}

// Display is a URL as it may be shown: without user, query and fragment, any of which may be secret.
func Display(raw string) string {
	rest, _, _ := strings.Cut(raw, "#")
	rest, _, query := strings.Cut(rest, "?")
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		host, path, slash := strings.Cut(after, "/")
		if i := strings.LastIndex(host, "@"); i >= 0 && scheme != "oci" {
			host = host[i+1:]
		}
		rest = scheme + "://" + host
		if slash {
			rest += "/" + path
		}
	}
	if query {
		rest += "?…"
	}
	return rest
}

// withoutSecrets is the text of an error of net/http or of the registry client, with its URLs as Display shows them.
func withoutSecrets(err error) string {
	message := err.Error()
	var inURL *url.Error
	if errors.As(err, &inURL) {
		message = strings.ReplaceAll(message, fmt.Sprintf("%q", inURL.URL), Display(inURL.URL))
		message = strings.ReplaceAll(message, inURL.URL, Display(inURL.URL))
	}
	var response *errcode.ErrorResponse
	if errors.As(err, &response) && response.URL != nil {
		raw := response.URL.String()
		message = strings.ReplaceAll(message, fmt.Sprintf("%q", raw), Display(raw))
		message = strings.ReplaceAll(message, raw, Display(raw))
	}
	const most = 600
	return text.Truncate(message, most)
}
