package karmada

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// longestSilence is how old the Lease of Karmada's controller manager may be.
const longestSilence = time.Minute

// liveness follows the Lease of Karmada's controller manager. The age of the Lease counts from when this process has seen a renewal, as in
// the election of leaders, so that the clocks of the two machines need not agree. Only a Lease that was not renewed yet counts by its
// own time.
type liveness struct {
	lease types.NamespacedName
	clock clock.PassiveClock

	mu        sync.Mutex
	exists    bool
	renewTime string
	renewed   time.Time
	// reported is what judge has returned last as silent.
	reported string
}

// see notes a Lease that a watch has shown.
func (l *liveness) see(lease *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	renewTime, now := textAt(lease.Object, "spec", "renewTime"), l.clock.Now()
	switch {
	case !l.exists:
		l.renewed = time.Time{}
		if t, err := time.Parse(metav1.RFC3339Micro, renewTime); err == nil {
			l.renewed = t
		}
		if l.renewed.After(now) {
			l.renewed = now
		}
	case renewTime != l.renewTime && renewTime != "":
		l.renewed = now
	}
	l.exists, l.renewTime = true, renewTime
}

// lose notes that the Lease was deleted.
func (l *liveness) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exists = false
}

// silent returns why the reports of Karmada are not fresh, or "".
func (l *liveness) silent() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why()
}

func (l *liveness) why() string {
	switch {
	case !l.exists:
		return fmt.Sprintf("Lease %s of Karmada's controller manager does not exist: start the controller manager, or name its Lease", l.lease)
	case l.clock.Since(l.renewed) > longestSilence:
		return fmt.Sprintf("Lease %s of Karmada's controller manager was not renewed for more than %d seconds: start the controller manager",
			l.lease, int(longestSilence.Seconds()))
	}
	return ""
}

// judge reports whether the answer of silent has changed since the last call.
func (l *liveness) judge() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := l.why()
	changed := why != l.reported
	l.reported = why
	return changed
}
