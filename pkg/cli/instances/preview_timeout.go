package instances

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
)

// defaultPreviewTimeout is how long the questions of a preview may take in all.
const defaultPreviewTimeout = 30 * time.Second

// previewTimeout is the flag for the time in which the cluster answers a preview, with what is read before. What is not answered by then
// is not known.
type previewTimeout struct {
	limit time.Duration
	flag  *pflag.Flag
	// spent is how long the reads before the preview have waited for answers, in nanoseconds. Downloads of packages between them do not count.
	spent *atomic.Int64
	// begun is set once the preview asks its own questions.
	begun *atomic.Bool
}

func (p *previewTimeout) add(flags *pflag.FlagSet) {
	flags.DurationVar(&p.limit, "timeout", defaultPreviewTimeout, "time limit of the answers that a preview needs of the cluster: what is "+
		"not answered by then is not known")
	p.flag, p.spent, p.begun = flags.Lookup("timeout"), &atomic.Int64{}, &atomic.Bool{}
}

// previewer returns what computes previews with the rights of the user, in the time that is left.
func (p *previewTimeout) previewer(env *command.Env, c client.Client, isLocal bool) (*act.Previewer, error) {
	config, err := env.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return &act.Previewer{Config: config, Client: c, IsLocal: isLocal, Limit: p.limit, Begin: p.begin,
		Late: p.lateError(" what would happen")}, nil
}

// begin ends the reads before a preview, and returns the time that they have left.
func (p *previewTimeout) begin() time.Duration {
	p.begun.Store(true)
	return p.limit - time.Duration(p.spent.Swap(0))
}

// resume limits the reads before the preview of a further Instance, which has the whole time again.
func (p *previewTimeout) resume() {
	p.spent.Store(0)
	p.begun.Store(false)
}

func (p *previewTimeout) check() error {
	if p.limit <= 0 {
		return command.UsageError("--timeout %s: use a duration above 0, such as 1m", p.limit)
	}
	return nil
}

// limitReads limits what a command reads before its preview, such as the Instance and its OperatorVersion.
func (p *previewTimeout) limitReads(env *command.Env) {
	wrap := env.Flags.WrapConfigFn
	env.Flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		if wrap != nil {
			config = wrap(config)
		}
		config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return firstReads{inner, p, env.Now} })
		return config
	}
}

// lateError is the error of what was not answered in time.
func (p *previewTimeout) lateError(what string) error {
	return fmt.Errorf("the cluster did not answer within %s%s: try again later, or with a longer --timeout", p.limit, what)
}

// firstReads is the transport of what is read before a preview.
type firstReads struct {
	http.RoundTripper
	timeout *previewTimeout
	now     func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (f firstReads) RoundTrip(request *http.Request) (*http.Response, error) {
	if f.timeout.begun.Load() {
		return f.RoundTripper.RoundTrip(request)
	}
	start := f.now()
	limit, cancel := context.WithTimeout(context.Background(), f.timeout.limit-time.Duration(f.timeout.spent.Load()))
	end := func() {
		cancel()
		f.timeout.spent.Add(int64(f.now().Sub(start)))
	}
	response, err := act.LimitTransport(limit, f.timeout.lateError(""))(f.RoundTripper).RoundTrip(request)
	if err != nil {
		end()
		return nil, err
	}
	response.Body = closedBody{response.Body, sync.OnceFunc(end)}
	return response, nil
}

// closedBody calls a function when it is closed.
type closedBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b closedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
