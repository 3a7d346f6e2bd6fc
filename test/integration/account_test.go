package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A plan writes with the rights of the account that the Instance names, and no others", Label("service-account"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "worker")}))
	role := &rbacv1.Role{ObjectMeta: gen.Meta(ns, "worker"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}}
	env.Must(t, cluster.Create(t.Context(), role))
	env.Must(t, cluster.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "worker"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "worker"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "worker"}},
	}))
	ov := gen.Version(ns, "op", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 2), gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}'}\n"),
		gen.Apply("s", "s.yaml"), gen.Serial("deploy", "cm", "s"))
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.AwaitRight(t.Context(), "system:serviceaccount:"+ns+":worker", authorizationv1.ResourceAttributes{Namespace: ns, Verb: "create", Resource: "configmaps"}))
	i := gen.Instance("i", ov, nil)
	i.Spec.ServiceAccountName = "worker"
	env.Must(t, cluster.Create(t.Context(), i))
	waits := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "forbidden")
	})
	contains(t, waits.Status.AggregatedStatus.Message, "system:serviceaccount:"+ns+":worker", "secrets")
	get(t, &corev1.ConfigMap{}, ns, "i-cm-0")

	role.Rules[0].Resources = append(role.Rules[0].Resources, "secrets")
	env.Must(t, cluster.Update(t.Context(), role))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
	get(t, &corev1.Secret{}, ns, "i")
})
