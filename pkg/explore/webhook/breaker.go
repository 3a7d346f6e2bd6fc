package webhook

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// When a breaker opens, and for how long.
const (
	// tripAfter is how many calls in a row must time out.
	tripAfter = 3
	// firstPause is how long nothing is asked at first; after each failed probe it is twice as long, up to maxPause.
	firstPause = 30 * time.Second
	maxPause   = 5 * time.Minute
)

// breaker stops calls of a webhook that times out again and again, so that what waits for it does not hold up the rest.
//
//	closed --tripAfter time-outs in a row--> open --pause is over--> one probe runs
//	   ^                                       ^                        |   |
//	   +-------- answered in time -------------|------------------------+   |
//	                                           +---- timed out: pause x2 ---+
type breaker struct {
	clock   clock.PassiveClock
	changed func()

	mu       sync.Mutex
	timeouts int
	open     bool
	until    time.Time
	pause    time.Duration
	probing  bool
}

// outcome of a call, as far as it matters here.
type outcome int

const (
	// finished in time, whatever the answer: a server that refuses quickly holds nothing up.
	finished outcome = iota
	// timedOut took its whole budget.
	timedOut
	// abandoned by the caller: nothing is learnt.
	abandoned
)

var errOpen = errors.New("it timed out again and again, and is not asked for a while")

// allow returns errOpen if the webhook must not be asked now. Otherwise the outcome has to be recorded by the function.
func (b *breaker) allow() (record func(outcome), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return func(o outcome) { b.record(o, false) }, nil
	}
	if b.probing || b.clock.Now().Before(b.until) {
		return nil, errOpen
	}
	b.probing = true
	return func(o outcome) { b.record(o, true) }, nil
}

// refuses reports whether allow would refuse now.
func (b *breaker) refuses() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open && (b.probing || b.clock.Now().Before(b.until))
}

// isOpen reports whether calls are held back, but for probes.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

func (b *breaker) record(o outcome, probe bool) {
	b.mu.Lock()
	was := b.open
	if probe {
		b.probing = false
	}
	switch {
	case o == abandoned, b.open && !probe: // calls that began before it opened do not count
	case o == finished:
		b.open, b.timeouts, b.pause = false, 0, 0
	default:
		b.timeouts++
		if probe || b.timeouts >= tripAfter {
			b.open = true
			b.pause = min(max(2*b.pause, firstPause), maxPause)
			b.until = b.clock.Now().Add(b.pause)
		}
	}
	is := b.open
	b.mu.Unlock()
	if was != is {
		b.changed()
	}
}

// Reasons of a State.
const (
	// ReasonReady: all webhooks of the configuration are asked.
	ReasonReady = "WebhooksReady"
	// ReasonInvalid: a webhook cannot be asked until the configuration is corrected.
	ReasonInvalid = "InvalidWebhook"
	// ReasonTimeouts: a webhook timed out repeatedly, and is asked only now and then.
	ReasonTimeouts = "WebhookTimesOut"
	// ReasonUnknown: the configuration has not been handed to Set.
	ReasonUnknown = "NotLoaded"
)

// State says whether the webhooks of a configuration are asked. It is meant for the configuration's Ready condition: it
// holds no times or counts, and stays the same while nothing changes.
type State struct {
	Ready bool
	// Reason is one of the Reason constants.
	Reason string
	// Message names the webhooks that are not asked, and why; it is empty if all are.
	Message string
}

// State returns the state of a configuration. See also Options.Changed.
func (l *Layer) State(configuration string) State {
	state := State{Ready: true, Reason: ReasonReady}
	ix, known := l.index.Load(), false
	if ix != nil {
		for _, h := range ix.hooks {
			if h.configuration != configuration {
				continue
			}
			known = true
			reason, message := h.unavailableReason()
			switch {
			case message == "":
				continue
			case state.Ready:
				state = State{Reason: reason, Message: message}
			default:
				state.Message += "; " + message
				if reason == ReasonInvalid {
					state.Reason = reason
				}
			}
		}
	}
	if !known {
		return State{Reason: ReasonUnknown, Message: "the configuration is not loaded"}
	}
	return state
}

// unavailableReason says why a webhook is not asked.
func (h *hook) unavailableReason() (reason, message string) {
	switch {
	case h.broken != nil:
		return ReasonInvalid, fmt.Sprintf("webhook %s: %v", h.spec.Name, h.broken)
	case h.caller.breaker.isOpen():
		return ReasonTimeouts, fmt.Sprintf("webhook %s did not answer within %s several times in a row and is asked only now and then: see "+
			"whether it runs and can be reached", h.spec.Name, h.timeout)
	}
	return "", ""
}
