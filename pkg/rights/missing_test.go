package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/test/apitest"
)

// reviewer answers questions about accounts, and lists them.
type reviewer struct {
	mu    sync.Mutex
	asked []string
	fails bool
	// allows decides about `VERB RESOURCE NAME`, with a * before it for the whole cluster.
	allows func(question string) bool
}

func (r *reviewer) answer(t *testing.T, request apitest.Request) (any, error) {
	var spec *authorizationv1.SubjectAccessReviewSpec
	var status *authorizationv1.SubjectAccessReviewStatus
	var review any
	place := ""
	switch request.Kind {
	case "LocalSubjectAccessReview":
		local := &authorizationv1.LocalSubjectAccessReview{}
		request.Decode(t, local)
		spec, status, review = &local.Spec, &local.Status, local
	case "SubjectAccessReview":
		wide := &authorizationv1.SubjectAccessReview{}
		request.Decode(t, wide)
		spec, status, review, place = &wide.Spec, &wide.Status, wide, "*"
	default:
		return nil, nil
	}
	if spec.User != "system:serviceaccount:ns:robot" || !slices.Contains(spec.Groups, "system:serviceaccounts:ns") {
		t.Errorf("asked about %s of %v", spec.User, spec.Groups)
	}
	question := ""
	if a := spec.ResourceAttributes; a != nil {
		question = strings.TrimSpace(strings.Join([]string{place, a.Verb, ResourceName(a.Group, strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")), a.Name}, " "))
	} else {
		question = place + " " + spec.NonResourceAttributes.Verb + " " + spec.NonResourceAttributes.Path
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, question)
	if r.fails {
		return nil, errors.New("you may not ask")
	}
	status.Allowed = r.allows(question)
	return review, nil
}

// TestMissing checks which rights of an account are asked about, and which are missing (P11).
func TestMissing(t *testing.T) {
	rule := func(resource string, verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
	}
	var many []string
	for n := range maxReviews + 1 {
		many = append(many, fmt.Sprintf("s%d", n))
	}
	for name, tc := range map[string]struct {
		reason    string
		namespace string
		rules     []rbacv1.PolicyRule
		allows    func(string) bool
		fails     bool
		want      []string
		asked     int
		err       string
	}{
		"Nothing": {reason: "without rules nothing is asked", namespace: "ns"},
		"All":     {"what the account may do with all objects is not asked by name", "ns", []rbacv1.PolicyRule{rule("secrets", []string{"get"}, "a", "b")}, func(string) bool { return true }, false, nil, 1, ""},
		"ByName": {"else each object is asked about", "ns", []rbacv1.PolicyRule{rule("secrets", []string{"get"}, "a", "b")},
			func(q string) bool { return q == "get secrets a" }, false, []string{"secrets: get (b)"}, 3, ""},
		"Verbs": {"each verb is asked about", "ns", []rbacv1.PolicyRule{rule("pods", []string{"get", "patch"})}, func(q string) bool { return q == "get pods" }, false, []string{"pods: patch"}, 2, ""},
		"Subresource": {"subresources are told apart", "ns", []rbacv1.PolicyRule{rule("pods/exec", []string{"create"})},
			func(q string) bool { return q == "create pods" }, false, []string{"pods/exec: create"}, 1, ""},
		"Cluster": {"rights for the whole cluster are asked as such", "", []rbacv1.PolicyRule{rule("nodes", []string{"get"}), {NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
			func(q string) bool { return q == "* get nodes" }, false, []string{"/metrics: get"}, 2, ""},
		"MayNotAsk":         {"a user who may not ask learns so", "ns", []rbacv1.PolicyRule{rule("pods", []string{"get"})}, nil, true, nil, 1, "ask whether ServiceAccount ns/robot may get pods"},
		"MayNotAskAnything": {"by one question, which is always the same", "ns", []rbacv1.PolicyRule{rule("secrets", []string{"get"}), rule("pods", []string{"patch", "create"}), rule("pods", []string{"get"}, "a")}, nil, true, nil, 1, "ask whether ServiceAccount ns/robot may create pods"},
		"NoVerb":            {"a rule that allows nothing needs no question", "ns", []rbacv1.PolicyRule{rule("pods", nil)}, nil, true, nil, 0, ""},
		"TooMany":           {"questions are bounded", "ns", []rbacv1.PolicyRule{rule("secrets", []string{"get"}, many...)}, func(string) bool { return false }, false, nil, maxReviews, "more rights than"},
	} {
		t.Run(name, func(t *testing.T) {
			server, r := apitest.Start(t), &reviewer{allows: tc.allows, fails: tc.fails}
			server.Before(func(request apitest.Request) (any, error) { return r.answer(t, request) })
			missing, err := Missing(t.Context(), server.Client(), types.NamespacedName{Namespace: "ns", Name: "robot"}, tc.namespace, tc.rules)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			var got []string
			for _, rule := range missing {
				got = append(got, Describe(rule))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(r.asked) != tc.asked {
				t.Errorf("%s: asked %d: %s", tc.reason, len(r.asked), diff)
			}
		})
	}
}

// TestCountVerbs checks what counts as one right.
func TestCountVerbs(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"a", "b"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"c"}, ResourceNames: []string{"x", "y", "z"}, Verbs: []string{"get"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}
	if got := CountVerbs(rules); got != 8+3+1 {
		t.Errorf("got %d", got)
	}
}
