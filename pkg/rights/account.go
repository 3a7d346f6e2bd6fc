package rights

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// runAsName is the ClusterRole by which a namespace lets the manager act as its ServiceAccounts, and the RoleBinding of it.
const runAsName = "kudo-run-as"

// Account is a ServiceAccount for the plans of an Instance, with what gives it rights.
type Account struct {
	Namespace, Instance string
	// Name of the ServiceAccount; the Role and its binding are always <instance>-kudo.
	Name string
	// Rules of the Role.
	Rules []rbacv1.PolicyRule
	// Manager is the ServiceAccount of the manager.
	Manager types.NamespacedName
}

// NewAccount returns the account of an Instance; an empty name stands for the name of the Role.
func NewAccount(namespace, instance, name string, rules []rbacv1.PolicyRule) *Account {
	a := &Account{Namespace: namespace, Instance: instance, Rules: rules}
	a.Name = cmp.Or(name, a.RoleName())
	return a
}

// AccountOf returns the account of an Instance, without rules.
func AccountOf(i *v1beta1.Instance) *Account {
	return NewAccount(i.Namespace, i.Name, i.Spec.ServiceAccountName, nil)
}

// RoleName returns the name of the Role and of its RoleBinding.
func (a *Account) RoleName() string { return a.Instance + "-kudo" }

// meta returns the metadata of an object of the account.
func (a *Account) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.Namespace, Name: name, Labels: map[string]string{v1beta1.InstanceLabel: a.Instance}}
}

// ServiceAccount returns the ServiceAccount that the plans of the Instance run as.
func (a *Account) ServiceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: a.meta(a.Name)}
}

// Role returns the rights of the account in its namespace.
func (a *Account) Role() *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: a.meta(a.RoleName()), Rules: a.Rules}
}

// RoleBinding returns the binding of the Role to the account.
func (a *Account) RoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{TypeMeta: rbacType("RoleBinding"), ObjectMeta: a.meta(a.RoleName()),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: a.RoleName()},
		Subjects: []rbacv1.Subject{accountSubject(a.Namespace, a.Name)},
	}
}

// RunAsBinding returns the RoleBinding that lets the manager act as any account of the namespace; all Instances share it.
func (a *Account) RunAsBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{TypeMeta: rbacType("RoleBinding"), ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: runAsName},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: runAsName},
		Subjects: []rbacv1.Subject{accountSubject(a.Manager.Namespace, a.Manager.Name)},
	}
}

// Objects returns all objects of the namespace, in the order in which they are created.
func (a *Account) Objects() []client.Object { return append(a.Own(), a.RunAsBinding()) }

// Own returns the ServiceAccount, the Role and its RoleBinding, without the RoleBinding that all accounts share. The garbage collector
// deletes those that the Instance owns.
func (a *Account) Own() []client.Object {
	return []client.Object{a.ServiceAccount(), a.Role(), a.RoleBinding()}
}

// IsDeletedWith reports whether a live object of the account is deleted with an Instance: the Instance owns what a command has made. An
// object that could not be read may be deleted if the spec names the account that commands make.
func (a *Account) IsDeletedWith(i *v1beta1.Instance, live metav1.Object, unread error) bool {
	if unread != nil {
		return i.Spec.ServiceAccountName == a.RoleName()
	}
	return v1beta1.HasOwner(live, i.UID)
}

// ClusterObjects returns objects that give the account rights for the whole cluster. Commands print and never create them.
func (a *Account) ClusterObjects(rules []rbacv1.PolicyRule) []client.Object {
	if len(rules) == 0 {
		return nil
	}
	name := a.Namespace + "-" + a.RoleName()
	labels := map[string]string{v1beta1.InstanceLabel: a.Instance}
	return []client.Object{
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{accountSubject(a.Namespace, a.Name)}},
	}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func accountSubject(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}
