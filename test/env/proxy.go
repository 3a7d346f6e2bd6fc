package env

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/apiproxy"
)

// Twice sends a request two times, as a network may, and returns the second answer, or the first.
func Twice(r *http.Request, forward apiproxy.Forward, second bool) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var answers [2]*http.Response
	for n := range answers {
		r.Body = io.NopCloser(bytes.NewReader(body))
		if answers[n], err = forward(r); err != nil {
			return nil, err
		}
	}
	keep, drop := answers[0], answers[1]
	if second {
		keep, drop = drop, keep
	}
	_, _ = io.Copy(io.Discard, drop.Body)
	return keep, drop.Body.Close()
}

// Refuse is an answer of the apiserver's form with an HTTP status. A 429 and a 503 ask to come back after a second, as the
// apiserver's do.
func Refuse(r *http.Request, code int, reason metav1.StatusReason) (*http.Response, error) {
	return RefuseWithMessage(r, code, reason, "refused by a test: "+http.StatusText(code))
}

// RefuseWithMessage is Refuse with a text of its own.
func RefuseWithMessage(r *http.Request, code int, reason metav1.StatusReason, text string) (*http.Response, error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text}
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	answer := &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, nil
}
