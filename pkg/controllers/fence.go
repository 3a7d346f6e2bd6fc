package controllers

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// The lease of the manager that leads, and how long it lasts after each renewal. Another manager may lead after that time.
const (
	leaseName     = "kudo-manager"
	leaseDuration = 15 * time.Second
)

// errLeaseExpired is the error of a write after the end of the lease.
var errLeaseExpired = errors.New("the lease " + leaseName + " of this manager has expired, and another may lead: nothing is written")

// fence refuses the writes of a manager whose lease has expired. The election ends such a manager, too. But a manager that was frozen
// continues the steps of its plan for a moment when it resumes, while another manager has done these steps and later ones: it could
// create an object again that a later step has deleted. A manager that has not led yet may write its certificate, for example.
type fence struct {
	clock     clock.PassiveClock
	namespace string
	// renewed is when the last renewal that succeeded was sent; nil if this manager has never held the lease.
	renewed atomic.Pointer[time.Time]
}

// wrap is a transport.WrapperFunc.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper { return &fenceTransport{f, next} }

// fenceTransport sends the requests that the fence allows.
type fenceTransport struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *fenceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, f := t.fence.clock.Now(), t.fence
	if r.Method == http.MethodGet {
		return t.next.RoundTrip(r)
	}
	if f.isRenewal(r) {
		answer, err := t.next.RoundTrip(r)
		if err == nil && answer.StatusCode < http.StatusMultipleChoices {
			f.renewed.Store(&sent)
		}
		return answer, err
	}
	if renewed := f.renewed.Load(); renewed != nil && sent.Sub(*renewed) >= leaseDuration {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errLeaseExpired
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t *fenceTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isRenewal reports whether a request creates or updates the lease. The manager has no other lease in its namespace.
func (f *fence) isRenewal(r *http.Request) bool {
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + f.namespace + "/leases"
	return strings.HasSuffix(r.URL.Path, leases) || strings.HasSuffix(r.URL.Path, leases+"/"+leaseName)
}
