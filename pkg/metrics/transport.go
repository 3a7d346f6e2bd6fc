package metrics

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxGroups bounds the label of API groups, which templates of packages name.
const maxGroups = 100

// Classes of writes, by the account that writes.
const (
	ownWrite       = "own"
	installerWrite = "installer"
	instanceWrite  = "instance"
)

// Requests counts the requests of a client to the API server.
type Requests struct {
	requests, writes, conflicts *prometheus.CounterVec
	groups                      *Values
	// installer is the user with whose rights install plans write.
	installer string
}

// NewRequests registers the metrics of requests. The installer is the user as which the objects of install plans are written.
func NewRequests(registry prometheus.Registerer, installer string) (*Requests, error) {
	r := &Requests{
		requests: NewCounter(APIRequests), writes: NewCounter(Writes), conflicts: NewCounter(WriteConflicts),
		groups: NewValues(maxGroups), installer: installer,
	}
	return r, Register(registry, r.requests, r.writes, r.conflicts)
}

// Wrap returns a RoundTripper that counts; it is a rest.Config's WrapTransport.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{r, next} }

type transport struct {
	*Requests
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil || request.Context().Err() == nil { // a request that the manager has cancelled says nothing of the API server
		t.count(request, response)
	}
	return response, err
}

// WrappedRoundTripper returns the RoundTripper that this one wraps, by which client-go closes connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// count counts a request with its answer; nil if there was none.
func (r *Requests) count(request *http.Request, response *http.Response) {
	target, code := parseTarget(request.URL.Path), 0
	if response != nil {
		code = response.StatusCode
	}
	verb := verbOf(request, target)
	r.requests.WithLabelValues(verb, codeLabel(code), r.groups.Bound(target.group)).Inc()
	if !slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, verb) || !target.stored ||
		request.URL.Query().Has("dryRun") {
		return
	}
	if code == http.StatusConflict {
		r.conflicts.WithLabelValues(conflictReason(verb, response)).Inc()
	}
	if code >= 200 && code < 300 {
		r.writes.WithLabelValues(verb, r.class(request)).Inc()
	}
}

// class is the class of a write.
func (r *Requests) class(request *http.Request) string {
	switch request.Header.Get("Impersonate-User") {
	case "":
		return ownWrite
	case r.installer:
		return installerWrite
	}
	return instanceWrite
}

// target is what the path of a request names.
type target struct {
	group, resource string
	// named is set if it is one object.
	named bool
	// stored is set if a write changes what is stored: reviews are answered only.
	stored bool
}

// parseTarget reads a path such as /apis/apps/v1/namespaces/NAMESPACE/deployments/NAME/status. A proxy may serve the API below another
// path.
func parseTarget(path string) target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	parts = parts[max(0, slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })):]
	var out target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		out.group, parts = parts[1], parts[3:]
	case len(parts) >= 2 && parts[0] == "apis":
		out.group = parts[1]
		return out
	default:
		return out
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	out.resource, out.named = parts[0], len(parts) > 1
	out.stored = !strings.HasSuffix(out.resource, "reviews") && (len(parts) < 3 || parts[2] != "token")
	return out
}

// verbOf is the verb of a request, as the API server names it, with apply for server-side apply.
func verbOf(request *http.Request, of target) string {
	switch request.Method {
	case http.MethodGet:
		if request.URL.Query().Get("watch") == "true" || request.URL.Query().Get("watch") == "1" {
			return "watch"
		}
		if of.resource != "" && !of.named {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return Other
}

// codeLabel is the label of a status code; an attempt without an answer has "error".
func codeLabel(code int) string {
	if code == 0 {
		return "error"
	}
	return strconv.Itoa(code)
}

// conflictReason is why a write is a conflict: the status code is the same for all of them. The answer to an apply names each field that
// another client owns as a cause; without such causes, the apply was bound to a version.
func conflictReason(verb string, response *http.Response) string {
	switch {
	case verb == "create":
		return "exists"
	case verb == "apply" && bytes.Contains(peek(response, maxConflict), []byte(metav1.CauseTypeFieldManagerConflict)):
		return "fields"
	}
	return "version"
}

// maxConflict is how many bytes of the answer to an apply are searched for a cause.
const maxConflict = 64 << 10

// peek returns the first bytes of the body of an answer, which can still be read from its beginning.
func peek(response *http.Response, most int64) []byte {
	if response.Body == nil {
		return nil
	}
	start, _ := io.ReadAll(io.LimitReader(response.Body, most)) // the reader of the answer gets the error again
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), response.Body), response.Body}
	return start
}
