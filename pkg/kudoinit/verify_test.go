package kudoinit

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestRightsOf has rules, and the rights that the API server is asked for: each group, resource, verb and name by itself.
func TestRightsOf(t *testing.T) {
	for reason, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want []string
	}{
		"one right":           {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}, []string{"get deployments//apps/"}},
		"each of two groups":  {rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}}, []string{"create events///", "create events//events.k8s.io/"}},
		"a subresource":       {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}}, []string{"get pods/log//"}},
		"names":               {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}, ResourceNames: []string{"a", "b"}}, []string{"get pods///a", "get pods///b"}},
		"a path is no object": {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, nil},
		"no verbs":            {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}}, nil},
	} {
		var got []string
		for _, r := range rightsOf(tc.rule, "ns") {
			if r.Namespace != "ns" {
				t.Errorf("%s: the right is for namespace %q", reason, r.Namespace)
			}
			got = append(got, fmt.Sprintf("%s %s/%s/%s/%s", r.Verb, r.Resource, r.Subresource, r.Group, r.Name))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// TestVerifyRights names the rights that the manager's account lacks, and how many more there are.
func TestVerifyRights(t *testing.T) {
	wanted, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		lacks   func(authorizationv1.ResourceAttributes) bool
		state   State
		message string
		remedy  string
	}{
		"All":    {"the account has all rights", func(authorizationv1.ResourceAttributes) bool { return false }, OK, "", ""},
		"Events": {"the events of one of two groups", func(r authorizationv1.ResourceAttributes) bool { return r.Group == "events.k8s.io" }, Failed, "may not create events.events.k8s.io, patch events.events.k8s.io, update events.events.k8s.io", again},
		"Status": {"a subresource of several kinds", func(r authorizationv1.ResourceAttributes) bool {
			return r.Group == v1beta1.GroupVersion.Group && r.Subresource == "status"
		},
			Failed, "may not update instances/status.kudo.dev, patch instances/status.kudo.dev, update operatorversions/status.kudo.dev, and 3 more", again},
	} {
		server := apitest.Start(t)
		server.Before(func(r apitest.Request) (any, error) {
			if r.Kind != "SubjectAccessReview" {
				return nil, nil
			}
			review := &authorizationv1.SubjectAccessReview{}
			r.Decode(t, review)
			if review.Spec.User != "system:serviceaccount:kudo-system:kudo-manager" {
				t.Errorf("the review is about %s", review.Spec.User)
			}
			review.Status.Allowed = !tc.lacks(*review.Spec.ResourceAttributes)
			return review, nil
		})
		i := &inspection{client: server.Client(), live: &InstalledState{Options: Options{}.withDefaults()}, wanted: wanted}
		want := []Finding{{"rights of serviceaccount kudo-manager", tc.state, tc.message, tc.remedy}}
		if diff := cmp.Diff(want, i.rights(t.Context())); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestVerifyVersion compares the version of the command with that of the cluster.
func TestVerifyVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, version, live, predecessor string
		want                               Finding
	}{
		"Same":    {"the same", "v1.2.0", "v1.2.0", "", Finding{"version", OK, "kudo v1.2.0 in namespace ns", ""}},
		"Newer":   {"the command is newer", "v1.10.0", "v1.2.0", "", Finding{"version", Warning, "kudo v1.2.0 in namespace ns, and this command is v1.10.0", again}},
		"Older":   {"the command is older", "v1.2.0", "v1.10.0", "", Finding{"version", Warning, "kudo v1.10.0 in namespace ns, which is newer than this command, v1.2.0", "use the kubectl plugin of that version"}},
		"Unknown": {"no version was written", "v1.2.0", "", "", Finding{"version", Warning, "kudo of unknown version in namespace ns, and this command is v1.2.0", again}},
		"KUDO":    {"KUDO's manager comes before all else", "v1.2.0", "v1.2.0", "old", Finding{"version", Failed, "KUDO's manager still runs in namespace old", again}},
	} {
		i := &inspection{version: tc.version, live: &InstalledState{Options: Options{Namespace: "ns", Version: tc.live}, Predecessor: tc.predecessor}}
		if diff := cmp.Diff([]Finding{tc.want}, i.installation(t.Context())); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestVerifyMode warns of modes in which users have the rights of kudo.
func TestVerifyMode(t *testing.T) {
	space := &corev1.Namespace{ObjectMeta: gen.Meta("", "open")}
	space.Labels = map[string]string{v1beta1.PrivilegedLabel: "true"}
	for name, tc := range map[string]struct {
		reason  string
		space   bool
		mode    settings.Mode
		wrong   error
		refused string
		want    State
	}{
		"Strict":     {"each plan has an account", false, settings.Strict, nil, "", OK},
		"Namespace":  {"but not in a namespace with the label", true, settings.Strict, nil, "", Warning},
		"Privileged": {"no plan needs one", false, settings.Privileged, nil, "", Warning},
		"Wrong":      {"the settings are wrong", true, settings.Privileged, fmt.Errorf("mode: wrong"), "", Failed},
		"Forbidden":  {"what cannot be read is not fine", false, settings.Strict, nil, "Namespace", Failed},
	} {
		server := apitest.Start(t)
		if tc.space {
			server.Put(space)
		}
		server.Before(refusal(tc.refused))
		live := &InstalledState{Options: Options{Namespace: "ns", Settings: settings.Settings{Mode: tc.mode}}, SettingsError: tc.wrong}
		got := (&inspection{client: server.Client(), live: live}).mode(t.Context())
		if len(got) != 1 || got[0].State != tc.want || (got[0].Remedy == "") != (tc.want == OK) || CountFailed(got) > 0 != (tc.want == Failed) {
			t.Errorf("%s: %s: %+v", name, tc.reason, got)
		}
	}
}

// TestVerifyDeleted checks that a policy is tried on another OperatorVersion if one is deleted after it was listed, and that nothing is said
// of a policy for which none is left: neither that it is in force nor that it is not.
func TestVerifyDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		left    []string
		refuses bool
		want    []Finding
	}{
		"Another": {"the other one is tried", []string{"b"}, true, []Finding{{checkOf("kudo-leave-users"), OK, "", ""}}},
		"Broken":  {"what the other one says counts", []string{"b"}, false, []Finding{{checkOf("kudo-leave-users"), Failed, "cannot be tried: wrong", again}}},
		"None":    {"there is nothing to try it on", nil, true, []Finding{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t, gen.Version("ns", "a"), gen.Version("ns", "b"))
			server.Before(func(r apitest.Request) (any, error) {
				switch {
				case r.Verb != "patch":
					return nil, nil
				case !slices.Contains(tc.left, r.Name):
					return nil, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("operatorversions").GroupResource(), r.Name)
				case tc.refuses:
					return nil, apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("operatorversions").GroupResource(), r.Name,
						errors.New("ValidatingAdmissionPolicy 'kudo-leave-users' denied request"))
				}
				return nil, apierrors.NewBadRequest("wrong")
			})
			i := &inspection{client: server.Client(), config: server.Config(), live: &InstalledState{Options: Options{}.withDefaults()}}
			probes := i.changes(t.Context())
			if len(probes) != 1 {
				t.Fatalf("there are %d probes", len(probes))
			}
			if diff := cmp.Diff(tc.want, []Finding{i.try(t.Context(), probes[0])}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
