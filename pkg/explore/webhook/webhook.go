// Package webhook is the layer of package explore that asks webhooks over TLS.
//
//	ResourceExploringWebhookConfigurations --Set--> index (by group, resource and operation)
//	                                                  |
//	Request --> candidates in order --> selector, conditions --> breaker, slot, budget --> call --> checked Answer
//	                                                  |
//	                           no match: next         a failure: Fail is unknown, Ignore asks the next
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// Limits of calls. Times are those of ResourceExploringWebhook.timeoutSeconds.
const (
	// MaxAnswer is the size of the largest answer that is read, in bytes.
	MaxAnswer = 3 << 20
	// MaxCalls is how many calls of one webhook run at a time; others wait, within their own time.
	MaxCalls = 16
)

// Options of a Layer. The zero value of each field but Resources works.
type Options struct {
	// Resources finds the resource of a kind. It is required.
	Resources Resources
	// Services finds services; with nil, webhooks behind one cannot be asked.
	Services Services
	// Named is called with the Services that the webhooks of the last Set name; nil is not called.
	Named func([]types.NamespacedName)
	// Clock measures the time of calls and of breakers; nil is the real one.
	Clock clock.WithDelayedExecution
	// NewUID makes the identifiers of requests; nil makes random ones.
	NewUID func() types.UID
	// Certificate is the client certificate that is offered to webhooks which ask for one, as
	// tls.Config.GetClientCertificate; nil offers none.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// CertificateVersion returns a text that differs when Certificate has another one, for which connections are made anew; nil is not
	// called.
	CertificateVersion func() string
	// Proxy for webhooks with a url, as http.Transport.Proxy; nil is none. Services are never asked through a proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// MaxTimeout bounds the time of a call, whatever the configuration says; 0 does not.
	MaxTimeout time.Duration
	// Changed is called when webhooks start or stop to answer in time, by which the State of their configuration changes; nil is not
	// called. It must not block.
	Changed func(Change)
}

// Layer asks webhooks. It is safe for concurrent use.
type Layer struct {
	options Options
	env     *cel.Env
	setting sync.Mutex
	index   atomic.Pointer[index]
}

var _ explore.Explorer = (*Layer)(nil)

// New makes a layer. Until Set is called, every answer is unknown.
func New(o Options) *Layer {
	if o.Services == nil {
		o.Services = noServices{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.NewUID == nil {
		o.NewUID = func() types.UID { return types.UID(uuid.NewString()) }
	}
	if o.CertificateVersion == nil {
		o.CertificateVersion = func() string { return "" }
	}
	if o.Named == nil {
		o.Named = func([]types.NamespacedName) {}
	}
	if o.Changed == nil {
		o.Changed = func(Change) {}
	}
	return &Layer{options: o, env: newEnv()}
}

// Layer implements explore.Explorer.
func (l *Layer) Layer() explore.Layer { return explore.Webhook }

// Set replaces the configurations, which are copied. Webhooks that stay as they were keep their connections and their
// breakers. One that cannot be used is kept too: what it would have been asked about is decided by its failure policy,
// and State says what is wrong.
func (l *Layer) Set(configurations []v1alpha1.ResourceExploringWebhookConfiguration) Change {
	l.setting.Lock()
	defer l.setting.Unlock()
	before := l.index.Load()
	after := l.build(configurations, before)
	l.index.Store(after)
	l.options.Named(after.services())
	return compare(l.options.Resources, before, after)
}

// ServiceChanged has the webhooks behind a Service asked at its address of now. Answers may be others: Options.Changed is called.
func (l *Layer) ServiceChanged(service types.NamespacedName) {
	ix := l.index.Load()
	if ix == nil {
		return
	}
	change := Change{resources: l.options.Resources}
	for _, h := range ix.hooks {
		if h.caller != nil && h.service() == service {
			h.caller.renew()
			change.before = append(change.before, h)
		}
	}
	if !change.Empty() {
		l.options.Changed(change)
	}
}

// Close releases idle connections. The layer can still be used.
func (l *Layer) Close() {
	if ix := l.index.Load(); ix != nil {
		for _, h := range ix.hooks {
			h.close()
		}
	}
}

var errNotLoaded = errors.New("the webhook configurations are not loaded yet")

// Explore implements explore.Explorer.
func (l *Layer) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	ix := l.index.Load()
	if ix == nil {
		return explore.Answer{}, false, r.NewUnknown(explore.Webhook, "", errNotLoaded)
	}
	t, candidates := ix.find(ctx, l.options.Resources, r)
	for _, h := range candidates {
		answer, known, err := l.ask(ctx, h, t)
		var refused *refusal
		switch {
		case err == nil && known:
			answer.Who = h.String()
			return answer, true, nil
		case err == nil:
			continue
		case ctx.Err() != nil || errors.As(err, &refused) || !h.ignore:
			return explore.Answer{}, false, r.NewUnknown(explore.Webhook, h.String(), err)
		}
	}
	return explore.Answer{}, false, nil
}

// ask asks one webhook. It answers false if the webhook does not care about the object.
func (l *Layer) ask(ctx context.Context, h *hook, t *target) (explore.Answer, bool, error) {
	cares, err := h.rulesMatch(t)
	if err != nil || !cares {
		return explore.Answer{}, false, err
	}
	if h.broken != nil {
		return explore.Answer{}, false, fmt.Errorf("the webhook cannot be used until its configuration is corrected: %w", h.broken)
	}
	if !h.selects(t.request) {
		return explore.Answer{}, false, nil
	}
	ctx, done := budget(ctx, l.options.Clock, h.timeout, h.limit)
	defer done()
	if cares, err = h.conditionsMatch(ctx, t); err != nil || !cares {
		return explore.Answer{}, false, err
	}
	uid := l.options.NewUID()
	object, body, err := newReview(uid, t.request)
	if err != nil {
		return explore.Answer{}, false, err
	}
	reply, err := h.caller.call(ctx, body)
	if err != nil {
		return explore.Answer{}, false, err
	}
	answer, err := readAnswer(t.request, object, uid, reply)
	return answer, err == nil, err
}
