package instances

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

// defaultPreviewTimeout is how long the questions of a preview may take in all.
const defaultPreviewTimeout = 30 * time.Second

// previewTimeout is the flag for the time in which the questions of a preview are asked. What is not answered by then is not known.
type previewTimeout struct {
	limit time.Duration
	flag  *pflag.Flag
}

func (p *previewTimeout) add(flags *pflag.FlagSet) {
	flags.DurationVar(&p.limit, "timeout", defaultPreviewTimeout, "time limit of a preview: what is not answered by then is not known")
	p.flag = flags.Lookup("timeout")
}

func (p *previewTimeout) check() error {
	if p.limit <= 0 {
		return command.UsageError("--timeout %s: use a duration above 0, such as 1m", p.limit)
	}
	return nil
}

// limitedTransport lets requests fail once a context has ended, also those whose answers are being read. So each question
// after that has no answer, and the computation that asks continues.
type limitedTransport struct {
	http.RoundTripper
	limit context.Context
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
		return preview.ErrLate
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
