package faults

import (
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
)

// sharedKill is a kill of the manager that hits several testbeds at once, each at a write of its own: who has come to it is held
// there until all have, or have ended without.
type sharedKill struct {
	mu   sync.Mutex
	left int
	// over is closed when the next manager has been started; err is why it could not be.
	over chan struct{}
	err  error
}

func newWave(members int) *sharedKill { return &sharedKill{left: members, over: make(chan struct{})} }

// arrive is called once for each member.
func (v *sharedKill) arrive() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left--; v.left == 0 {
		v.err = manager.revive()
		close(v.over)
	}
}

// moments are those at which the manager is killed.
var moments = []func(v *sharedKill, arrive func()) writeFault{killed, answered}

// killed kills the manager after its write was committed, before the answer reaches it.
func killed(v *sharedKill, arrive func()) writeFault {
	return writeFault{name: "killed after the commit", kills: true, hit: func(_ *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		if answer, err := forward(r); err == nil {
			_ = answer.Body.Close()
		}
		arrive()
		<-v.over
		return nil, apiproxy.ErrCut
	}}
}

// answered lets the manager have the answer, and kills it then. No other write of the testbed passes in between.
func answered(_ *sharedKill, arrive func()) writeFault {
	return writeFault{name: "killed after the answer", kills: true, hit: func(_ *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		answer, err := forward(r)
		if err != nil {
			arrive()
			return nil, err
		}
		answer.Body = &last{answer.Body, func() { go arrive() }}
		return answer, nil
	}}
}

// last tells when all has been sent on.
type last struct {
	io.ReadCloser
	over func()
}

func (b *last) Close() error {
	defer b.over()
	return b.ReadCloser.Close()
}

// refusal answers with an error instead of sending the write on.
func refusal(name string, code int, reason metav1.StatusReason) writeFault {
	return writeFault{name: name, hit: func(_ *managerProxy, r *http.Request, _ apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		return env.Refuse(r, code, reason)
	}}
}

// harmless are faults that leave the manager running: it has to cope with the answer.
var toleratedFaults = []writeFault{
	{name: "answer lost after the commit", hit: func(_ *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		if answer, err := forward(r); err == nil {
			_ = answer.Body.Close()
		}
		return nil, apiproxy.ErrCut
	}},
	{name: "lost on the way", hit: func(_ *managerProxy, _ *http.Request, _ apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		return nil, apiproxy.ErrCut
	}},
	{name: "sent twice", hit: func(_ *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		return env.Twice(r, forward, true)
	}},
	{name: "sent twice, first answer", hit: func(_ *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		return env.Twice(r, forward, false)
	}},
	{name: "etcd away", hit: func(_ *managerProxy, r *http.Request, _ apiproxy.Forward, over func()) (*http.Response, error) {
		defer over()
		return env.RefuseWithMessage(r, http.StatusInternalServerError, "", "rpc error: code = Unavailable desc = error reading from server: EOF")
	}},
	refusal("409", http.StatusConflict, metav1.StatusReasonConflict),
	refusal("429", http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests),
	refusal("500", http.StatusInternalServerError, metav1.StatusReasonInternalError),
	refusal("503", http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable),
	refusal("504", http.StatusGatewayTimeout, metav1.StatusReasonTimeout),
	refusal("403", http.StatusForbidden, metav1.StatusReasonForbidden),
}
