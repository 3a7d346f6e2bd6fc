package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// readyAt is the latest generation that a status has called ready, and when.
type readyAt struct {
	generation int64
	at         time.Time
}

// follower follows changes of Instances.
type follower struct {
	mu         sync.Mutex
	began      map[string]time.Time
	generation map[string]int64
	ready      map[string]readyAt
}

// do does something to Instances, and records the generations that this gives them.
func (f *follower) do(n int, do func(n int) (*v1beta1.Instance, error)) error {
	slots, failed := make(chan struct{}, 16), make(chan error, n)
	for k := range n {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			began := time.Now()
			i, err := do(k)
			if err == nil {
				f.mu.Lock()
				f.began[i.Name], f.generation[i.Name] = began, i.Generation
				f.mu.Unlock()
			}
			failed <- err
		}()
	}
	for range n {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// wait reads a watch until all are ready.
func (f *follower) wait(ctx context.Context, n int, events watch.Interface, failed <-chan error, say func(string, ...any)) ([]float64, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	told := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d Instances are ready: %w", len(f.times()), n, ctx.Err())
		case err := <-failed:
			if err != nil {
				return nil, err
			}
			failed = nil
		case <-tick.C:
			times := f.times()
			if len(times) == n {
				return times, nil
			}
			if time.Since(told) > 10*time.Second {
				told = time.Now()
				say("%d of %d Instances are ready", len(times), n)
			}
		case e, open := <-events.ResultChan():
			i, ok := e.Object.(*v1beta1.Instance)
			if !open || !ok {
				return nil, fmt.Errorf("the watch of the hub fails: %v", e.Object)
			}
			ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
			if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == i.Generation && f.ready[i.Name].generation < i.Generation {
				f.ready[i.Name] = readyAt{i.Generation, time.Now()}
			}
		}
	}
}

// times returns how long each Instance took that is ready.
func (f *follower) times() []float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []float64
	for name, generation := range f.generation {
		if ready := f.ready[name]; ready.generation >= generation {
			out = append(out, ready.at.Sub(f.began[name]).Seconds())
		}
	}
	return out
}
