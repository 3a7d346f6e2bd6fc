package tenancy

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// The personas of an attack, all in one namespace.
const (
	// ann may write Instances.
	ann = "ann"
	// otto may write OperatorVersions.
	otto = "otto"
	// nadia is the namespace's administrator, with all rights on kudo's kinds and on ControllerRevisions.
	nadia = "nadia"
	// vera may read.
	vera = "vera"
)

// personas makes the personas of a namespace. They have rights in this namespace, and in no other.
func personas(t *testing.T, ns string) {
	t.Helper()
	plain := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rules := map[string][]rbacv1.PolicyRule{
		ann: {
			{APIGroups: []string{"kudo.dev"}, Resources: []string{"instances", "instances/status"}, Verbs: plain},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"kudo"}, Verbs: []string{"use"}},
		},
		otto:  {{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions", "operatorversions/status"}, Verbs: plain}},
		nadia: {{APIGroups: []string{"kudo.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}}, {APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"*"}}, {APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status"}, Verbs: []string{"get", "update", "patch"}}},
	}
	for who, own := range rules {
		env.Must(t, suite.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(ns, "persona-"+who), Rules: own}))
		bind(t, ns, who, "Role", "persona-"+who)
	}
	bind(t, ns, nadia, "ClusterRole", "admin")
	bind(t, ns, vera, "ClusterRole", "view")
	for who, resource := range map[string]string{ann: "instances", otto: "operatorversions", nadia: "instances"} {
		env.Must(t, suite.AwaitRight(ctx, who, authorizationv1.ResourceAttributes{Namespace: ns, Verb: "create", Group: "kudo.dev", Resource: resource}))
	}
	for _, who := range []string{nadia, vera} {
		env.Must(t, suite.AwaitRight(ctx, who, authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Resource: "configmaps"}))
	}
}

func bind(t *testing.T, ns, who, kind, role string) {
	t.Helper()
	env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, strings.ToLower("persona-"+who+"-"+kind+"-"+role)),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}},
	}))
}

// as returns a client of a persona.
func as(t *testing.T, who string) client.Client {
	t.Helper()
	config := rest.CopyConfig(suite.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: who, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: suite.Scheme(), Mapper: suite.RESTMapper()})
	env.Must(t, err)
	return c
}
