package crdtarball

import (
	"context"
	"sync"
)

// flights makes one fetch of those that are asked for at the same time.
type flights struct {
	mu      sync.Mutex
	running map[string]*flight
}

// flight is a fetch that some wait for.
type flight struct {
	done     chan struct{}
	cancel   context.CancelFunc
	resolved *Resolved
	err      error
	// Guarded by the mutex of flights.
	waiting   int
	last      *Progress
	listeners []func(Progress)
}

// do starts a fetch or joins the one that runs. It returns early when the context ends; the fetch is cancelled once no
// caller waits for it.
func (f *flights) do(ctx context.Context, key string, listen func(Progress),
	fetch func(context.Context, func(Progress)) (*Resolved, error)) (*Resolved, error) {
	one := f.join(ctx, key, listen, fetch)
	select {
	case <-one.done:
		if one.err != nil {
			return nil, one.err
		}
		result := *one.resolved
		return &result, nil
	case <-ctx.Done():
		f.leave(key, one)
		return nil, &Error{Reason: ReasonCanceled, Err: ctx.Err(), Temporary: true}
	}
}

func (f *flights) join(ctx context.Context, key string, listen func(Progress),
	fetch func(context.Context, func(Progress)) (*Resolved, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.running[key]
	if !ok {
		detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
		one = &flight{done: make(chan struct{}), cancel: cancel}
		if f.running == nil {
			f.running = map[string]*flight{}
		}
		f.running[key] = one
		go func() {
			defer cancel()
			one.resolved, one.err = fetch(detached, func(p Progress) { f.report(one, p) })
			f.forget(key, one)
			close(one.done)
		}()
	}
	one.waiting++
	if listen != nil {
		one.listeners = append(one.listeners, listen)
		if one.last != nil {
			listen(*one.last)
		}
	}
	return one
}

func (f *flights) report(one *flight, p Progress) {
	f.mu.Lock()
	one.last = &p
	listeners := append([]func(Progress){}, one.listeners...)
	f.mu.Unlock()
	for _, listen := range listeners {
		listen(p)
	}
}

func (f *flights) leave(key string, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting == 0 {
		one.cancel()
		if f.running[key] == one {
			delete(f.running, key)
		}
	}
}

func (f *flights) forget(key string, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[key] == one {
		delete(f.running, key)
	}
}
