package instance

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxOccupancy is how long a run occupies a place. A longer run continues without a place, so that runs that never end do not hold up the
// schedules of others.
const maxOccupancy = time.Hour

// places bounds the active scheduled runs of all Instances. A namespace with n active runs gets another place only while more than n places
// are free, so that a namespace whose runs never end leaves places to other namespaces. Waiting Instances are served in order of the active
// runs of their namespaces, then of their arrival. So the number of Instances in one namespace does not delay another namespace.
type places struct {
	mu     sync.Mutex
	seeded bool
	// taken maps the Instances with an active run to the time since when the run occupies its place.
	taken map[types.NamespacedName]time.Time
	// waiting lists the Instances of each namespace that wait, in order of arrival.
	waiting  map[string][]arrival
	arrivals int64
}

// arrival is an Instance that waits.
type arrival struct {
	key    types.NamespacedName
	number int64
}

// isSeeded reports whether seed was called.
func (p *places) isSeeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seeded
}

// seed takes places for the runs that were started before, at the given times, unless another caller has done so.
func (p *places) seed(running map[types.NamespacedName]time.Time, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seeded {
		return
	}
	p.seeded = true
	for key, since := range running {
		if since.After(now) { // a status may be forged
			since = now
		}
		p.occupy(key, since)
	}
}

// take takes a place for a run and reports whether there was one. If not, the Instance is put on the waiting list.
func (p *places) take(key types.NamespacedName, limit int, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, has := p.taken[key]; has {
		return true
	}
	line := p.waiting[key.Namespace]
	if !slices.ContainsFunc(line, func(a arrival) bool { return a.key == key }) {
		p.arrivals++
		if p.waiting == nil {
			p.waiting = map[string][]arrival{}
		}
		p.waiting[key.Namespace] = append(line, arrival{key, p.arrivals})
	}
	if !slices.Contains(p.next(limit, now), key) {
		return false
	}
	p.occupy(key, now)
	p.remove(key)
	return true
}

// set records whether a run is active, and returns the waiting Instances that can take a place now.
func (p *places) set(key types.NamespacedName, occupied bool, limit int, now time.Time) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, has := p.taken[key]; has == occupied {
		return nil
	}
	if occupied {
		p.occupy(key, now)
		return nil
	}
	delete(p.taken, key)
	return p.next(limit, now)
}

// nextFree returns when the next place becomes free although its run continues; zero if no run occupies a place.
func (p *places) nextFree(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first time.Time
	for _, since := range p.taken {
		if end := since.Add(maxOccupancy); end.After(now) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// leave removes an Instance from the waiting list, and returns the waiting Instances that can take a place now.
func (p *places) leave(key types.NamespacedName, limit int, now time.Time) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.remove(key) {
		return nil
	}
	return p.next(limit, now)
}

// forget removes an Instance that does not exist any more, and returns the waiting Instances that can take a place now.
func (p *places) forget(key types.NamespacedName, limit int, now time.Time) []types.NamespacedName {
	return append(p.leave(key, limit, now), p.set(key, false, limit, now)...)
}

// next returns the waiting Instances that can take a place now, in order.
func (p *places) next(limit int, now time.Time) []types.NamespacedName {
	if len(p.waiting) == 0 {
		return nil
	}
	free, runs, passed := limit, map[string]int{}, map[string]int{}
	for key, since := range p.taken {
		runs[key.Namespace]++
		if now.Sub(since) < maxOccupancy {
			free--
		}
	}
	var out []types.NamespacedName
	for ; free > 0; free-- {
		first, found := "", false
		for namespace, line := range p.waiting {
			if passed[namespace] == len(line) || runs[namespace] >= free {
				continue
			}
			if !found || runs[namespace] < runs[first] ||
				runs[namespace] == runs[first] && line[passed[namespace]].number < p.waiting[first][passed[first]].number {
				first, found = namespace, true
			}
		}
		if !found {
			break
		}
		out = append(out, p.waiting[first][passed[first]].key)
		runs[first]++
		passed[first]++
	}
	return out
}

// occupy takes a place.
func (p *places) occupy(key types.NamespacedName, since time.Time) {
	if p.taken == nil {
		p.taken = map[types.NamespacedName]time.Time{}
	}
	p.taken[key] = since
}

// remove removes an Instance from the waiting list, and reports whether it was there.
func (p *places) remove(key types.NamespacedName) bool {
	line := p.waiting[key.Namespace]
	i := slices.IndexFunc(line, func(a arrival) bool { return a.key == key })
	if i < 0 {
		return false
	}
	if line = slices.Delete(line, i, i+1); len(line) == 0 {
		delete(p.waiting, key.Namespace)
	} else {
		p.waiting[key.Namespace] = line
	}
	return true
}
