package crdtarball

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Retry says how often and when a failed fetch is tried again: on timeouts, broken connections and the statuses 408,
// 429 and 5xx only.
type Retry struct {
	// Attempts in all; 0 means 5.
	Attempts int
	// InitialDelay is the wait before the second attempt, doubled before each further one; 0 means 500 ms.
	InitialDelay time.Duration
	// MaxDelay is the longest wait; 0 means 1 min. A source that asks to be left alone for longer is not asked again.
	MaxDelay time.Duration
	// Attempt is how long one attempt may take; 0 means 10 min.
	Attempt time.Duration
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	if r.InitialDelay <= 0 {
		r.InitialDelay = 500 * time.Millisecond
	}
	if r.MaxDelay <= 0 {
		r.MaxDelay = time.Minute
	}
	if r.Attempt <= 0 {
		r.Attempt = 10 * time.Minute
	}
	return r
}

// wait is how long to wait after an attempt that failed: half of the back-off and, by chance, up to all of it, but no
// less than the source asked for.
func (r Retry) wait(attempt int, random float64, asked time.Duration) time.Duration {
	backOff := min(r.InitialDelay<<min(attempt-1, 20), r.MaxDelay)
	return max(backOff/2+time.Duration(random*float64(backOff)/2), asked)
}

// retry calls an attempt until it succeeds, fails permanently, or has been called often enough.
func retry[T any](ctx context.Context, r Retry, c clock.Clock, random func() float64, attempt func(n int) (T, error)) (T, error) {
	for n := 1; ; n++ {
		result, err := attempt(n)
		if err == nil {
			return result, nil
		}
		e := asError(err)
		wait := r.wait(n, random(), e.RetryAfter)
		if !e.Temporary || e.Reason == ReasonDisk || e.Reason == ReasonCanceled || e.RetryAfter > r.MaxDelay {
			return result, e
		}
		if n >= r.Attempts {
			tired := *e
			tired.Err = fmt.Errorf("%w (attempt %d of %d)", e.Err, n, r.Attempts)
			return result, &tired
		}
		timer := c.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return result, &Error{Reason: ReasonCanceled, Err: fmt.Errorf("%w, after: %w", ctx.Err(), e.Err), Temporary: true}
		}
	}
}
