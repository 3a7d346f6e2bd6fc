package act

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// LimitTransport returns a wrapper of a rest.Config. Requests fail with an error once a context has ended, also those whose answers are
// being read. So each question after that has no answer, and the computation that asks continues.
func LimitTransport(limit context.Context, late error) func(http.RoundTripper) http.RoundTripper {
	return func(inner http.RoundTripper) http.RoundTripper { return limitedTransport{inner, limit, late} }
}

// limitedTransport is the transport of LimitTransport.
type limitedTransport struct {
	http.RoundTripper
	limit context.Context
	// late is the error of a request that has failed so.
	late error
}

// RoundTrip implements http.RoundTripper.
func (l limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	stop := context.AfterFunc(l.limit, cancel)
	end := func() { stop(); cancel() }
	response, err := l.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		end()
		return nil, l.explain(err)
	}
	response.Body = &limitedBody{response.Body, l, end}
	return response, nil
}

// explain returns why a request has failed: the end of the context, if that has come.
func (l limitedTransport) explain(err error) error {
	if l.limit.Err() != nil {
		return l.late
	}
	return err
}

// limitedBody is the body of an answer.
type limitedBody struct {
	io.ReadCloser
	of  limitedTransport
	end func()
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.of.explain(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
