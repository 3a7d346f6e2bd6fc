package tenancy

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	managerUser = "system:serviceaccount:kudo-system:kudo-manager"
	installer   = "kudo-installer"
	home        = "kudo-system"
)

// event is an event of the audit log: a request that was answered.
type event struct {
	Verb, RequestURI string
	User             user
	ImpersonatedUser *user
	ObjectRef        *reference
	ResponseStatus   struct {
		Code    int
		Message string
	}
}

type user struct {
	Username string
	Groups   []string
}

type reference struct{ APIGroup, Resource, Subresource, Namespace, Name string }

// readAudit reads an audit log.
func readAudit(file string) ([]event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), managerUser) { // most are of others
			continue
		}
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", file, err, lines.Text())
		}
		if e.User.Username == managerUser {
			out = append(out, e)
		}
	}
	return out, lines.Err()
}

func (e event) reads() bool { return e.Verb == "get" || e.Verb == "list" || e.Verb == "watch" }

// what is the verb with the resource, as roles have them.
func (e event) what() string {
	if e.ObjectRef == nil {
		return e.Verb + " " + e.RequestURI
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	if e.ObjectRef.APIGroup != "" {
		resource += "." + e.ObjectRef.APIGroup
	}
	return e.Verb + " " + resource
}

func (e event) String() string {
	as := ""
	if e.ImpersonatedUser != nil {
		as = " as " + e.ImpersonatedUser.Username
	}
	return fmt.Sprintf("%s%s: %s: %d %s", e.what(), as, e.RequestURI, e.ResponseStatus.Code, e.ResponseStatus.Message)
}

// own are the writes of the manager in its own name, each with what it is for. Everything else is written by an account.
var own = map[string]string{
	"patch instances.kudo.dev":                         "the finalizer of the cleanup plan",
	"patch instances/status.kudo.dev":                  "the status",
	"patch operatorversions.kudo.dev":                  "the finalizer of what is installed",
	"patch operatorversions/status.kudo.dev":           "the status",
	"create installations.kudo.dev":                    "what an OperatorVersion or Instance has installed",
	"update installations.kudo.dev":                    "the same",
	"patch installations.kudo.dev":                     "the same",
	"delete installations.kudo.dev":                    "the same, when it is released",
	"patch installations/status.kudo.dev":              "the status",
	"create controllerrevisions.apps":                  "the records of runs",
	"patch controllerrevisions.apps":                   "what came of a run",
	"delete controllerrevisions.apps":                  "a run beyond the last ten, or one that was never started",
	"create events":                                    "events",
	"patch events":                                     "events that repeat",
	"create events.events.k8s.io":                      "events",
	"patch events.events.k8s.io":                       "events that repeat",
	"create subjectaccessreviews.authorization.k8s.io": "who may read a source of parameters",
}

// ownAtHome are the writes of the manager in its own namespace, or on its own cluster-scoped objects.
var ownAtHome = map[string]string{
	"create leases.coordination.k8s.io": "the lease of the leader",
	"update leases.coordination.k8s.io": "the same",
	"patch leases.coordination.k8s.io":  "the same",
	"update secrets":                    "the certificate of the webhooks",
	"patch secrets":                     "the same",
	"update mutatingwebhookconfigurations.admissionregistration.k8s.io":   "the CA of that certificate",
	"patch mutatingwebhookconfigurations.admissionregistration.k8s.io":    "the same",
	"update validatingwebhookconfigurations.admissionregistration.k8s.io": "the same",
	"patch validatingwebhookconfigurations.admissionregistration.k8s.io":  "the same",
	"create tokenreviews.authentication.k8s.io":                           "who asks for the metrics",
}

// refusals are parts of messages with which the API server may refuse a request in the manager's own name.
var refusals = map[string]string{
	"because it is being terminated":                "the namespace of a test goes while something of it is still recorded",
	`cannot impersonate resource "serviceaccounts"`: "a namespace that goes, or its administrator, lets the manager in no more; the request writes nothing",
}

// ledger is what the tests have given to namespaces.
type ledger struct {
	mu sync.Mutex
	// accounts are those that plans of a namespace may run as; a namespace that is not listed may have any of its own.
	accounts map[string][]string
}

var tenants = &ledger{accounts: map[string][]string{}}

// allow lists accounts that plans of a namespace may run as, and no others. kudo-installer is kudo's own.
func (l *ledger) allow(ns string, accounts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts[ns] = append(l.accounts[ns], accounts...)
}

// only takes back what allow has given, but for these.
func (l *ledger) only(ns string, accounts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts[ns] = accounts
}

// judge returns the requests that the manager should not have made.
func (l *ledger) judge(events []event) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range events {
		if why := l.violation(e); why != "" {
			out = append(out, why+": "+e.String())
		}
	}
	return out
}

// violation says what is wrong with a request of the manager; empty if nothing is.
func (l *ledger) violation(e event) string {
	if e.ImpersonatedUser != nil {
		return l.borrowed(e)
	}
	if e.ResponseStatus.Code == 403 {
		for part := range refusals {
			if strings.Contains(e.ResponseStatus.Message, part) && !strings.Contains(e.ResponseStatus.Message, `in the namespace "`+home+`"`) {
				return ""
			}
		}
		return "the manager was refused in its own name"
	}
	if e.reads() || own[e.what()] != "" {
		return ""
	}
	if _, known := ownAtHome[e.what()]; known && (e.ObjectRef.Namespace == home || e.ObjectRef.Namespace == "") {
		return ""
	}
	return "the manager writes in its own name"
}

// borrowed says what is wrong with a request in the name of an account.
func (l *ledger) borrowed(e event) string {
	ns, name, found := strings.Cut(strings.TrimPrefix(e.ImpersonatedUser.Username, "system:serviceaccount:"), ":")
	if !found || !strings.HasPrefix(e.ImpersonatedUser.Username, "system:serviceaccount:") || slices.Contains(e.ImpersonatedUser.Groups, "system:masters") {
		return "the manager impersonates a user that is no ServiceAccount"
	}
	to := ""
	if e.ObjectRef != nil {
		to = cmp.Or(e.ObjectRef.Namespace, e.ObjectRef.Name) // tests name cluster-scoped objects like their namespaces
	}
	if ns == home {
		switch {
		case name != installer:
			return "the manager acts as another account of its own namespace"
		case !e.reads() && !slices.Contains(l.accounts[to], installer):
			return "the manager acts as " + installer + " where no run may"
		}
		return ""
	}
	if given, listed := l.accounts[ns]; listed && !slices.Contains(given, name) {
		return "the manager acts as an account that was not given"
	}
	// What a plan tries and is refused is the plan's own affair.
	if e.ObjectRef != nil && e.ObjectRef.Namespace != ns && !e.reads() && e.ResponseStatus.Code < 400 {
		return "an account writes outside of its namespace"
	}
	return ""
}

// summary counts the requests by what they are.
func summary(events []event) string {
	counts := map[string]int{}
	for _, e := range events {
		as := "itself"
		if e.ImpersonatedUser != nil {
			as = "an account"
			if strings.HasSuffix(e.ImpersonatedUser.Username, ":"+installer) {
				as = installer
			}
		}
		counts[fmt.Sprintf("%-14s %3d %s", as, e.ResponseStatus.Code, e.what())]++
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, "%6d %s\n", counts[key], key)
	}
	return out.String()
}

// TestViolations: what the audit log is searched for.
func TestViolations(t *testing.T) {
	account := func(name string) *user { return &user{Username: "system:serviceaccount:" + name} }
	answered := func(e event, code int, message string) event {
		e.User.Username, e.ResponseStatus.Code, e.ResponseStatus.Message = managerUser, code, message
		return e
	}
	write := func(verb, resource, ns string, as *user) event {
		return event{Verb: verb, ObjectRef: &reference{Resource: resource, Namespace: ns}, ImpersonatedUser: as}
	}
	l := &ledger{accounts: map[string][]string{"tight": {"worker"}, "open": {installer}}}
	status := event{Verb: "patch", ObjectRef: &reference{APIGroup: "kudo.dev", Resource: "instances", Subresource: "status", Namespace: "lab"}}
	for name, tc := range map[string]struct {
		reason string
		event  event
		want   string
	}{
		"Status":       {"the manager writes the status", answered(status, 200, ""), ""},
		"Reads":        {"it reads everything", answered(write("list", "secrets", "lab", nil), 200, ""), ""},
		"Own":          {"it writes nothing else itself", answered(write("create", "configmaps", "lab", nil), 201, ""), "the manager writes in its own name"},
		"Certificate":  {"it writes its certificate", answered(write("update", "secrets", home, nil), 200, ""), ""},
		"OtherSecret":  {"and no other Secret", answered(write("update", "secrets", "lab", nil), 200, ""), "the manager writes in its own name"},
		"Refused":      {"it asks for nothing that it may not have", answered(write("get", "secrets", "lab", nil), 403, "no"), "the manager was refused in its own name"},
		"Ending":       {"but for what ends", answered(write("create", "events", "lab", nil), 403, "unable to create new content in namespace lab because it is being terminated"), ""},
		"LetIn":        {"or lets it in no more", answered(write("patch", "secrets", "lab", nil), 403, `cannot impersonate resource "serviceaccounts" in API group "" in the namespace "lab"`), ""},
		"NeverLetIn":   {"but to other accounts of its own namespace", answered(write("patch", "secrets", "lab", nil), 403, `cannot impersonate resource "serviceaccounts" in API group "" in the namespace "kudo-system"`), "the manager was refused in its own name"},
		"Account":      {"plans write as an account of their namespace", answered(write("create", "secrets", "lab", account("lab:kudo")), 201, ""), ""},
		"Elsewhere":    {"and nowhere else", answered(write("create", "secrets", "other", account("lab:kudo")), 201, ""), "an account writes outside of its namespace"},
		"Cluster":      {"nor what is in no namespace", answered(write("create", "clusterroles", "", account("lab:kudo")), 201, ""), "an account writes outside of its namespace"},
		"Tried":        {"they may try", answered(write("create", "clusterroles", "", account("lab:kudo")), 403, "no"), ""},
		"Given":        {"as the account that they were given", answered(write("create", "secrets", "tight", account("tight:worker")), 201, ""), ""},
		"NotGiven":     {"and no other, even if it may not", answered(write("create", "secrets", "tight", account("tight:kudo")), 403, "no"), "the manager acts as an account that was not given"},
		"Installer":    {"kudo-installer writes where it may", answered(write("create", "secrets", "open", account(home+":"+installer)), 201, ""), ""},
		"NotInstaller": {"and nowhere else", answered(write("create", "secrets", "lab", account(home+":"+installer)), 201, ""), "the manager acts as kudo-installer where no run may"},
		"Home":         {"no plan runs as the manager", answered(write("create", "secrets", "lab", account(home+":kudo-manager")), 201, ""), "the manager acts as another account of its own namespace"},
		"User":         {"nor as a person", answered(write("create", "secrets", "lab", &user{Username: "ann"}), 201, ""), "the manager impersonates a user that is no ServiceAccount"},
		"Masters":      {"nor as an administrator", answered(write("create", "secrets", "lab", &user{"system:serviceaccount:lab:kudo", []string{"system:masters"}}), 201, ""), "the manager impersonates a user that is no ServiceAccount"},
	} {
		if got := l.violation(tc.event); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
