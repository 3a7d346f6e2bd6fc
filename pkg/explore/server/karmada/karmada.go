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
	"time"

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

// maxMessage is the length of the longest message of a refusal, in bytes.
const maxMessage = 1024

// handler serves the protocol.
type handler struct {
	chain   explore.Chain
	answers func(schema.GroupVersionKind) bool
	limit   time.Duration
}

// NewHandler returns a handler that answers a ResourceInterpreterContext by the chain. Serve it over TLS at Path: Karmada asks only so.
//
// Only kinds for which answers returns true are asked about: those that the rules of the hub name. It is never nil, and is called by
// several goroutines at once. limit is how long a request may take, from the end of its header to the answer of the chain; 0, and more
// than MaxTime, is MaxTime. The server bounds the time of the header and that of writing the answer.
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
//	504  the time is over
func NewHandler(chain explore.Chain, answers func(schema.GroupVersionKind) bool, limit time.Duration) http.Handler {
	if limit <= 0 || limit > MaxTime {
		limit = MaxTime
	}
	return &handler{chain, answers, limit}
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
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method "+text.Quote(r.Method, 32)+": want POST", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	asked, err := read(ctx, w, r)
	var given *response
	if err == nil {
		given, err = h.answer(ctx, asked)
	}
	if err != nil {
		given = &response{Status: statusOf(ctx, err)}
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
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // who has asked may have closed the connection
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
	// A connection that cannot have a deadline, as in a test, is read to its end.
	connection := http.NewResponseController(w)
	if deadline, bounded := ctx.Deadline(); bounded {
		_ = connection.SetReadDeadline(deadline)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &request{}, refuse(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", large.Limit)
	case err != nil:
		// The deadline stays: before it sends the answer, the server reads what is left of the body.
		return &request{}, refuse(http.StatusBadRequest, "read the request: %w", err)
	}
	_ = connection.SetReadDeadline(time.Time{})
	return parse(body)
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
