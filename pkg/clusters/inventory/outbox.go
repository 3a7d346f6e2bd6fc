package inventory

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// outbox gives out keys in the order in which they came, each once until it is taken. Adding one never blocks.
type outbox struct {
	out   chan types.NamespacedName
	added chan struct{}

	mu      sync.Mutex
	waiting []types.NamespacedName
	known   map[types.NamespacedName]bool
}

func newOutbox() *outbox {
	return &outbox{out: make(chan types.NamespacedName), added: make(chan struct{}, 1), known: map[types.NamespacedName]bool{}}
}

func (o *outbox) add(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[key] {
		return
	}
	o.known[key] = true
	o.waiting = append(o.waiting, key)
	signal(o.added)
}

// take returns the first key, and reports whether there is one.
func (o *outbox) take() (types.NamespacedName, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return types.NamespacedName{}, false
	}
	key := o.waiting[0]
	o.waiting = o.waiting[1:]
	delete(o.known, key)
	return key, true
}

// run gives keys out until the context ends.
func (o *outbox) run(ctx context.Context) {
	for {
		key, found := o.take()
		if !found {
			select {
			case <-ctx.Done():
				return
			case <-o.added:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case o.out <- key:
		}
	}
}

// signal marks a channel of length one, which may be marked already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
