package rights

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestMay checks what the API server is asked about the user of a client, and what is refused.
func TestMay(t *testing.T) {
	use := authorizationv1.ResourceAttributes{Namespace: "lab", Verb: "use", Resource: "serviceaccounts", Name: "robot"}
	impersonate := use
	impersonate.Verb = "impersonate"
	create := authorizationv1.ResourceAttributes{Namespace: "lab", Verb: "create", Group: "kudo.dev", Resource: "instances"}
	for name, tc := range map[string]struct {
		reason  string
		use     bool // MayUse is asked, else MayCreate
		allowed string
		fails   bool
		asked   []authorizationv1.ResourceAttributes
		want    string
	}{
		"Use":         {"the verb of kudo", true, "use", false, []authorizationv1.ResourceAttributes{use}, ""},
		"Impersonate": {"the verb of Kubernetes counts, too", true, "impersonate", false, []authorizationv1.ResourceAttributes{use, impersonate}, ""},
		"UseNot":      {"neither", true, "", false, []authorizationv1.ResourceAttributes{use, impersonate}, `you need the verb "use" on serviceaccounts "robot" in namespace lab`},
		"UseFails":    {"it is not known", true, "", true, []authorizationv1.ResourceAttributes{use}, "the server is down"},
		"Create":      {"allowed", false, "create", false, []authorizationv1.ResourceAttributes{create}, ""},
		"CreateNot":   {"not allowed", false, "use", false, []authorizationv1.ResourceAttributes{create}, "you may not create instances.kudo.dev in namespace lab"},
		"CreateFails": {"it is not known", false, "", true, []authorizationv1.ResourceAttributes{create}, "the server is down"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []authorizationv1.ResourceAttributes
			server := apitest.Start(t)
			server.Before(func(r apitest.Request) (any, error) {
				if r.Kind != "SelfSubjectAccessReview" {
					return nil, nil
				}
				review := &authorizationv1.SelfSubjectAccessReview{}
				r.Decode(t, review)
				asked = append(asked, *review.Spec.ResourceAttributes)
				if tc.fails {
					return nil, errors.New("the server is down")
				}
				review.Status.Allowed = review.Spec.ResourceAttributes.Verb == tc.allowed
				return review, nil
			})
			var err error
			if tc.use {
				err = MayUse(t.Context(), server.Client(), "lab", "robot")
			} else {
				err = MayCreate(t.Context(), server.Client(), "lab", v1beta1.Resource("instances"))
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("%s: asked: -want +got: %s", tc.reason, diff)
			}
		})
	}
}
