// Package karmada answers the webhook protocol of Karmada's resource interpreter by a chain of explore layers.
//
// Source: https://karmada.io/docs/userguide/globalview/customizing-resource-interpreter/#custom-interpreter
package karmada

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/text"
)

const (
	// Path at which a hub serves the handler: the one that its ResourceInterpreterWebhookConfiguration names.
	Path = "/karmada/v1alpha1"
	// MaxBody is the size of the largest request that is read, in bytes. Karmada's own helper reads 1 MiB; the protocol sets no limit.
	MaxBody = 8 << 20
	// MaxTime is the longest timeoutSeconds of Karmada: after it, Karmada reads no answer.
	MaxTime = 30 * time.Second
)

const (
	// minWeight is what a request counts of the bytes that requests may have together, even if its body is smaller. It bounds how many
	// requests are read and answered at a time.
	minWeight = MaxBody / 32
	// maxWaiting is how many requests wait for others at a time. Further ones are refused at once.
	maxWaiting = 256
	// maxRead is how long the body of a request may take to arrive.
	maxRead = 5 * time.Second
	// maxWrite is how long the answer may take to be sent.
	maxWrite = 5 * time.Second
)

// maxMessage is the length of the longest message of a refusal, in bytes.
const maxMessage = 1024

// Answerer answers requests, as an explore.Chain does, which is no explore.Explorer.
type Answerer interface {
	Explore(ctx context.Context, r explore.Request) (answer explore.Answer, known bool, err error)
}

// handler serves the protocol.
type handler struct {
	chain Answerer
	check func(schema.GroupVersionKind) error
	limit time.Duration
	// bytes are those that the bodies of all requests may have together: what is decoded of a body takes many times its size.
	bytes *semaphore.Weighted
	// waiting is how many requests wait for bytes.
	waiting atomic.Int64
}

// NewHandler returns a handler that answers a ResourceInterpreterContext by the chain. Serve it over TLS at Path: Karmada asks only so.
//
// The chain is asked only about kinds for which check returns nil: those that the rules of the hub name. Otherwise the error is the reason
// of the refusal, in which the kind is named already. check is never nil, and is called by several goroutines at once. limit is how long a
// request may take, from the end of its header to the answer of the chain; 0, and more than MaxTime, is MaxTime. The server bounds the time
// of the header.
//
// Karmada has no credentials to show, so that whoever reaches the server can ask. The requests that are read and answered at a time have
// at most MaxBody bytes together, and are at most 32; others wait within their time, up to 256 of them. A body must arrive within 5
// seconds, and so must the answer at the client.
//
// What cannot be answered is refused by a response that is not successful, with a message and a code as of HTTP, and never by an empty
// answer, which Karmada would act upon. The status of HTTP is 200 in all these cases, and 405 for another method than POST.
//
//	400  the request is malformed, or lacks what its operation needs
//	404  the kind is not answered, or no layer has a rule
//	413  the body is larger than MaxBody
//	415  the media type is not application/json
//	500  the answer is not known: a layer has failed
//	501  the protocol has no such operation
//	503  too many requests wait
//	504  the time is over
func NewHandler(chain Answerer, check func(schema.GroupVersionKind) error, limit time.Duration) http.Handler {
	if limit <= 0 || limit > MaxTime {
		limit = MaxTime
	}
	return &handler{chain: chain, check: check, limit: limit, bytes: semaphore.NewWeighted(MaxBody)}
}

// refusal is why a request has no answer.
type refusal struct {
	code int
	err  error
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code, fmt.Errorf(format, args...)}
}

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	limitRead(ctx, w) // a body that nothing reads, since the request is refused, must not hold the connection
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method "+text.Quote(r.Method, 32)+": want POST", http.StatusMethodNotAllowed)
		return
	}
	asked := &request{}
	var given *response
	done, err := h.admit(ctx, r.ContentLength)
	if err == nil {
		defer done()
		if asked, err = read(ctx, w, r); err == nil {
			given, err = h.answer(ctx, asked)
		}
	}
	if err != nil {
		given = &response{Status: statusOf(ctx, err)}
	}
	if asked.UID == "" {
		w.Header().Set("Connection", "close") // else the server reads the rest of the body first, while the request counts
	}
	given.UID = asked.UID
	body, err := encode(given)
	if err != nil {
		body, err = encode(&response{UID: asked.UID, Status: statusOf(ctx, fmt.Errorf("write the answer: %w", err))})
	}
	if err != nil {
		http.Error(w, "write the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	send(ctx, w, body)
}

// send sends an answer, and returns when it is sent: until then, it counts as a request. Whoever has asked may have closed the connection,
// and a connection of a test may have no deadlines.
func send(ctx context.Context, w http.ResponseWriter, body []byte) {
	connection := http.NewResponseController(w)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWrite) // an answer that the time is over is sent, too
	defer cancel()
	if until, bounded := ctx.Deadline(); bounded {
		_ = connection.SetWriteDeadline(until)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
	if connection.Flush() == nil {
		_ = connection.SetWriteDeadline(time.Time{}) // the next request on the connection may be another handler's
	}
}

// admit waits until the bytes of a request may be read, and returns what gives them back. A length that is not known is below 0.
func (h *handler) admit(ctx context.Context, length int64) (done func(), err error) {
	weight := max(length, minWeight)
	if length < 0 || length > MaxBody {
		weight = MaxBody
	}
	if !h.bytes.TryAcquire(weight) {
		if h.waiting.Add(1) > maxWaiting {
			h.waiting.Add(-1)
			return nil, refuse(http.StatusServiceUnavailable, "more than %d requests wait", maxWaiting)
		}
		err := h.bytes.Acquire(ctx, weight)
		h.waiting.Add(-1)
		if err != nil {
			return nil, fmt.Errorf("wait for other requests: %w", err)
		}
	}
	return func() { h.bytes.Release(weight) }, nil
}

// encode returns a response in its envelope.
func encode(r *response) ([]byte, error) {
	return json.Marshal(&envelope{APIVersion: apiVersion, Kind: envelopeKind, Response: r})
}

// read reads the request. If it is malformed, what has been read is returned beside the error: the answer names its uid.
func read(ctx context.Context, w http.ResponseWriter, r *http.Request) (*request, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return &request{}, refuse(http.StatusUnsupportedMediaType, "want Content-Type application/json")
	}
	ctx, cancel := context.WithTimeout(ctx, maxRead)
	defer cancel()
	limitRead(ctx, w)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &request{}, refuse(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", large.Limit)
	case err != nil:
		return &request{}, refuse(http.StatusBadRequest, "read the request: %w", err)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return parse(body)
}

// limitRead lets the connection be read until the deadline of a context. One that cannot have a deadline, as in a test, is read to its end.
func limitRead(ctx context.Context, w http.ResponseWriter) {
	if until, bounded := ctx.Deadline(); bounded {
		_ = http.NewResponseController(w).SetReadDeadline(until)
	}
}

// statusOf returns what a response says of an error.
func statusOf(ctx context.Context, err error) *status {
	code := http.StatusInternalServerError
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		code = refused.code
	case ctx.Err() != nil:
		code = http.StatusGatewayTimeout
	}
	return &status{Message: text.Plain(err.Error(), maxMessage), Code: int32(code)}
}
