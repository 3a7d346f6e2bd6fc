package rights

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

var (
	hello = filepath.Join(sourcetree.Root(), "operators", "catalog", "hello", "operator")
	whole = filepath.Join(sourcetree.Root(), "test", "rights", "testdata", "whole")
	broad = filepath.Join(sourcetree.Root(), "test", "rights", "testdata", "wide")
)

// strict has commands find a cluster whose plans write with the rights of accounts only.
func strict(t *testing.T) {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "kudo-config"), Data: map[string]string{"mode": "strict"}}
	if err := suite.Create(context.Background(), config); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return // init has made it
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = suite.Delete(context.Background(), config) })
}

// nothing wants a namespace without anything that install makes.
func nothing(t *testing.T, ns, after string) {
	t.Helper()
	for _, list := range []client.ObjectList{&v1beta1.OperatorList{}, &v1beta1.OperatorVersionList{}, &v1beta1.InstanceList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		env.Must(t, suite.List(context.Background(), list, client.InNamespace(ns)))
		if n := length(list); n != 0 {
			t.Errorf("after %s, there are %d of %T", after, n, list)
		}
	}
	if err := suite.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i-kudo"}, &corev1.ServiceAccount{}); !apierrors.IsNotFound(err) {
		t.Errorf("after %s, there is an account: %v", after, err)
	}
}

func length(list client.ObjectList) int {
	switch l := list.(type) {
	case *v1beta1.OperatorList:
		return len(l.Items)
	case *v1beta1.OperatorVersionList:
		return len(l.Items)
	case *v1beta1.InstanceList:
		return len(l.Items)
	case *rbacv1.RoleList:
		return len(l.Items)
	case *rbacv1.RoleBindingList:
		return len(l.Items)
	}
	return -1
}

// TestNoAccount is T33: on strict, install refuses an Instance without account in these words, and makes nothing; in a
// privileged namespace, and with an account, it goes on.
func TestNoAccount(t *testing.T) {
	strict(t)
	ns := suite.NewBareNamespace(t)
	out := suite.MustKudo(t, 1, "install", hello, "--instance", "i", "-n", ns)
	env.Contains(t, out, "Error: namespace "+ns+" has no ServiceAccount kudo: add --create-service-account, which shows the rights that this package needs and makes an account with them, or name one by --service-account\n")
	nothing(t, ns, "a refusal")
	out = suite.MustKudo(t, 1, "install", hello, "--instance", "i", "-n", ns, "--service-account", "other")
	env.Contains(t, out, "has no ServiceAccount other")
	out = suite.MustKudo(t, 2, "install", hello, "--instance", "i", "-n", ns, "--create-service-account")
	env.Contains(t, out, "deployments.apps", "say --yes")
	nothing(t, ns, "a question without an answer")
	suite.MustKudo(t, 2, "install", hello, "--instance", "i", "-n", ns, "--create-service-account", "--service-account", "x")
	suite.MustKudo(t, 2, "install", hello, "--skip-instance", "-n", ns, "--create-service-account")
	env.Contains(t, suite.MustKudo(t, 1, "install", hello, "-n", ns+"-absent"), "namespace "+ns+"-absent does not exist")

	env.Must(t, suite.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "other")}))
	suite.MustKudo(t, 0, "install", hello, "--instance", "i", "-n", ns, "--service-account", "other")
	if i := env.Read(t, suite.Cluster, &v1beta1.Instance{}, ns, "i"); i.Spec.ServiceAccountName != "other" {
		t.Errorf("the Instance names account %q", i.Spec.ServiceAccountName)
	}
	privileged := suite.NewBareNamespace(t)
	place := env.Read(t, suite.Cluster, &corev1.Namespace{}, "", privileged)
	place.Labels["kudo.dev/privileged"] = "true"
	env.Must(t, suite.Update(t.Context(), place))
	suite.MustKudo(t, 0, "install", hello, "--instance", "i", "-n", privileged)
}

// TestClusterScoped is T32: on strict, install refuses cluster-scoped objects that the account may not write, before it
// makes anything, and goes on when the account has what package rights prints.
func TestClusterScoped(t *testing.T) {
	strict(t)
	ns := suite.NewBareNamespace(t)
	out := suite.MustKudo(t, 1, "install", broad, "--instance", "i", "-n", ns, "--create-service-account", "-y")
	env.Contains(t, out, "Error: task deploy.rbac.roles.role: ClusterRole "+ns+`-i: clusterroles.rbac.authorization.k8s.io "`+ns+`-i" is forbidden: User "system:serviceaccount:`+ns+`:i-kudo" cannot get resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope. `+
		"Ask an administrator to move such objects to an install plan, to bind what kubectl kudo package rights "+broad+" prints to ServiceAccount "+ns+"/i-kudo, or to label Namespace "+ns+" kudo.dev/privileged=true\n")
	nothing(t, ns, "a refusal")

	table := suite.MustKudo(t, 0, "package", "rights", broad, "--instance", "i", "-n", ns)
	env.Contains(t, table, "For the whole cluster", "ClusterRole "+ns+"-i   deploy.rbac.roles.role   i", "nodes")
	yaml := suite.MustKudo(t, 0, "package", "rights", broad, "--instance", "i", "-n", ns, "-o", "yaml")
	apply := exec.Command(filepath.Join(suite.Bin, "kubectl"), "--kubeconfig", suite.Kubeconfig, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(yaml)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, yaml)
	}
	t.Cleanup(func() {
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: gen.Meta("", ns+"-i-kudo")}, &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", ns+"-i-kudo")}, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", ns+"-i")},
		} {
			_ = suite.Delete(context.Background(), o)
		}
	})
	suite.MustKudo(t, 0, "install", broad, "--instance", "i", "-n", ns, "--create-service-account", "-y", "--wait", "--wait-time", limit)
}

// TestRightsOfWhoAsks is T33: the account gets its rights from the user who asks, and the API server lets a user give
// only rights of his own; for a user who may not give them, nothing is made.
func TestRightsOfWhoAsks(t *testing.T) {
	ns := suite.NewBareNamespace(t)
	bind := func(name, role, user string) {
		env.Must(t, suite.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, name),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		}))
	}
	packager := rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	env.Must(t, suite.Create(t.Context(), &rbacv1.Role{ObjectMeta: gen.Meta(ns, "weak"), Rules: []rbacv1.PolicyRule{packager,
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "configmaps", "services"}, Verbs: []string{"*"}},
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"get", "create", "patch"}},
	}}))
	bind("weak", "weak", "ann")
	env.Must(t, suite.AwaitRight(t.Context(), "ann", authorizationv1.ResourceAttributes{Namespace: ns, Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles"}))
	out := suite.MustKudo(t, 1, "install", hello, "--instance", "i", "-n", ns, "--create-service-account", "-y", "--as", "ann")
	env.Contains(t, out, "Error: Role "+ns+"/i-kudo: ", "not currently held", `Resources:["deployments"]`, "you cannot give what you may not do yourself: ask an administrator of the namespace to run the same command, or to apply what kubectl kudo package rights PACKAGE -o yaml prints")
	for _, o := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &v1beta1.OperatorVersion{}} {
		for _, name := range []string{"i-kudo", "hello-1.27.4-1.0.0"} {
			if err := suite.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o); err == nil {
				t.Errorf("%T %s was made", o, name)
			}
		}
	}

	env.Must(t, suite.Create(t.Context(), &rbacv1.Role{ObjectMeta: gen.Meta(ns, "packager"), Rules: []rbacv1.PolicyRule{packager}}))
	bind("packager", "packager", "nadia")
	env.Must(t, suite.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "admin"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "nadia"}},
	}))
	env.Eventually(t, "nadia is an administrator of the namespace", func() string { // the role aggregates others, some time after the start
		if out, code := suite.Kudo("install", hello, "--instance", "i", "-n", ns, "--create-service-account", "-y", "--as", "nadia"); code != 0 && !strings.Contains(out, "exists already") {
			return out
		}
		return ""
	})
	suite.MustKudo(t, 0, "plan", "wait", "--instance", "i", "-n", ns)
}

// TestChangedRights is T33: an update that names other objects shows what changes of the rights, and gives them; without
// the flag it says what is missing. What is there already stays as it is.
func TestChangedRights(t *testing.T) {
	ns := suite.NewBareNamespace(t)
	suite.MustKudo(t, 0, "install", whole, "--instance", "i", "-n", ns, "--create-service-account", "-y", "--wait", "--wait-time", limit)
	again := suite.MustKudo(t, 0, "account", "create", "--instance", "i", "-n", ns)
	env.Contains(t, again, "serviceaccount "+ns+"/i-kudo has the rights that the plans need")

	out := suite.MustKudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "PAGE=b")
	env.Contains(t, out, "Warning: Role "+ns+"/i-kudo lacks rights that the plans need: add --create-service-account, which gives them", "+ configmaps   get, patch, delete   i-b")
	_, err := suite.Await(t.Context(), ns, "i", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return strings.Contains(i.Status.AggregatedStatus.Message, `configmaps "i-b" is forbidden`)
	})
	env.Must(t, err)
	out = suite.MustKudo(t, 0, "account", "create", "--instance", "i", "-n", ns, "-y")
	env.Contains(t, out, "the rights of serviceaccount "+ns+"/i-kudo in namespace "+ns+" change:", "i-b", "role "+ns+"/i-kudo changed")
	suite.MustKudo(t, 0, "plan", "wait", "--instance", "i", "-n", ns)

	suite.MustKudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "PAGE=c", "--create-service-account", "-y", "--wait", "--wait-time", limit)
	role := env.Read(t, suite.Cluster, &rbacv1.Role{}, ns, "i-kudo")
	var names []string
	for _, rule := range role.Rules {
		names = append(names, rule.ResourceNames...)
	}
	for _, name := range []string{"i-b", "i-c"} { // i-b is still there, and an upgrade deletes it
		if !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("the Role does not name %s: %v", name, names)
		}
	}
}

// TestAccountCreate is the remedy of T4: an Instance without account gets one, and runs.
func TestAccountCreate(t *testing.T) {
	ns := suite.NewBareNamespace(t)
	letIn(t, ns)
	suite.MustKudo(t, 0, "install", hello, "--skip-instance", "-n", ns)
	i := &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "i")}
	i.Spec.OperatorVersion.Name = "hello-1.27.4-1.0.0"
	i.Spec.ServiceAccountName = "deployer"
	env.Must(t, suite.Create(t.Context(), i))
	out := suite.MustKudo(t, 0, "account", "create", "--instance", "i", "-n", ns, "-y")
	env.Contains(t, out, "serviceaccount "+ns+"/deployer created", "role "+ns+"/i-kudo created", "rolebinding "+ns+"/i-kudo created")
	suite.MustKudo(t, 0, "plan", "wait", "--instance", "i", "-n", ns)
	env.Contains(t, suite.MustKudo(t, 1, "account", "create", "--instance", "none", "-n", ns), "does not exist")

	foreign := suite.NewBareNamespace(t)
	env.Must(t, suite.Create(t.Context(), &rbacv1.Role{ObjectMeta: gen.Meta(foreign, "i-kudo")}))
	env.Contains(t, suite.MustKudo(t, 1, "install", hello, "--instance", "i", "-n", foreign, "--create-service-account", "-y"), "Role "+foreign+"/i-kudo is there already", "it is not changed")
}
