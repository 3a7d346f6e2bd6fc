package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/sources"
)

// runAsName is the ClusterRole by which a namespace lets the manager act as its ServiceAccounts, and the RoleBinding of it.
const runAsName = "kudo-run-as"

// account is a ServiceAccount for the plans of an Instance, with what gives it rights.
type account struct {
	namespace, instance string
	// name of the ServiceAccount; the Role and its binding are always <instance>-kudo.
	name string
	// rules of the Role.
	rules []rbacv1.PolicyRule
	// manager is the ServiceAccount of the manager.
	manager types.NamespacedName
}

// newAccount returns the account of an Instance; an empty name is that of the Role.
func newAccount(namespace, instance, name string, rules []rbacv1.PolicyRule) *account {
	a := &account{namespace: namespace, instance: instance, rules: rules}
	a.name = cmp.Or(name, a.roleName())
	return a
}

func (a *account) roleName() string { return a.instance + "-kudo" }

func (a *account) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.namespace, Name: name, Labels: map[string]string{v1beta1.InstanceLabel: a.instance}}
}

func (a *account) serviceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: a.meta(a.name)}
}

func (a *account) role() *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: a.meta(a.roleName()), Rules: a.rules}
}

func (a *account) binding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{TypeMeta: rbacType("RoleBinding"), ObjectMeta: a.meta(a.roleName()),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: a.roleName()},
		Subjects: []rbacv1.Subject{subject(a.namespace, a.name)},
	}
}

// runAs lets the manager act as the accounts of the namespace: one for all Instances.
func (a *account) runAs() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{TypeMeta: rbacType("RoleBinding"), ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: runAsName},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: runAsName},
		Subjects: []rbacv1.Subject{subject(a.manager.Namespace, a.manager.Name)},
	}
}

// objects are all of them, in the order in which they are to be made.
func (a *account) objects() []client.Object {
	return []client.Object{a.serviceAccount(), a.role(), a.binding(), a.runAs()}
}

// clusterObjects give the account rights for the whole cluster. Commands print them and never make them.
func (a *account) clusterObjects(rules []rbacv1.PolicyRule) []client.Object {
	if len(rules) == 0 {
		return nil
	}
	name := a.namespace + "-" + a.roleName()
	labels := map[string]string{v1beta1.InstanceLabel: a.instance}
	return []client.Object{
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{subject(a.namespace, a.name)}},
	}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func subject(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// accountFlags are those of commands that can make the account of an Instance.
type accountFlags struct{ create, yes bool }

func (o *accountFlags) add(flags *pflag.FlagSet, what string) {
	flags.BoolVar(&o.create, "create-service-account", false, "make the ServiceAccount <instance>-kudo with the rights that the plans need"+what)
	o.addYes(flags)
}

func (o *accountFlags) addYes(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.yes, "yes", "y", false, "give the rights without asking")
}

func (t *tool) accountCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "account",
		Short: "Make the ServiceAccount of an Instance",
		Long: `Make the ServiceAccount with whose rights the plans of an Instance write.

  kubectl kudo account create -n lab --instance site`,
	}
	group(cmd)
	cmd.AddCommand(t.accountCreateCommand())
	return cmd
}

func (t *tool) accountCreateCommand() *cobra.Command {
	o, instance := &accountFlags{}, ""
	cmd := &cobra.Command{
		Use:   "create --instance NAME",
		Short: "Make the ServiceAccount of an Instance",
		Long: `Make a ServiceAccount with the rights that the plans of an Instance need, let the manager act as it, and name it in the
Instance. The account is the one that the Instance names, or else <instance>-kudo. The rights are shown first. They are given
with yours: the API server lets nobody give what he may not do himself. The account's objects are deleted with the Instance.

What is there already stays, and rights that have changed are changed.

  kubectl kudo account create -n lab --instance site`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.createAccount(cmd.Context(), instance, o) },
	}
	instanceFlag(cmd, &instance)
	o.addYes(cmd.Flags())
	return cmd
}

func (t *tool) createAccount(ctx context.Context, name string, o *accountFlags) error {
	c, _, namespace, err := t.connect()
	if err != nil {
		return err
	}
	instance, err := t.find(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, instance.OperatorVersionKey(), ov); err != nil {
		return fmt.Errorf("operatorversion %s of instance %s: %w", instance.OperatorVersionKey(), name, err)
	}
	needed, err := neededRights(ctx, c, instance, &ov.Spec, installedSpecs(ctx, c, namespace))
	if err != nil {
		return err
	}
	change, err := t.giveRights(ctx, c, instance, needed, o.yes)
	if err != nil {
		return err
	}
	if instance.Spec.ServiceAccountName != change.name {
		if err := write(ctx, c, instance, func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = change.name }); err != nil {
			return fmt.Errorf("instance %s/%s: name ServiceAccount %s in spec.serviceAccountName: %w; %s", namespace, name, change.name, err, goOn)
		}
		t.say("instance %s/%s runs its plans as serviceaccount %s/%s", namespace, name, namespace, change.name)
	}
	t.ownAccount(ctx, c, change, instance)
	return nil
}

// neededRights computes what the plans of an Instance need, as it is to be.
func neededRights(ctx context.Context, c client.Client, instance *v1beta1.Instance, spec *v1beta1.OperatorVersionSpec, versions func(string) *v1beta1.OperatorVersionSpec) (*rights.Rights, error) {
	sourced, err := sources.Read(ctx, c, instance, spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("which rights are needed may hang on parameters that spec.parametersFrom gives: %w", err)
	}
	given := sourced.Given
	maps.Copy(given, instance.Spec.Parameters)
	return rights.Of(rights.Subject{
		Namespace: instance.Namespace, Name: instance.Name, Version: spec, Parameters: given,
		Sources: instance.Spec.ParametersFrom, Written: instance.Status.Resources,
	}, rights.Known{Versions: versions, Served: c.RESTMapper().RESTMapping})
}

// installedSpecs finds the OperatorVersions of a namespace.
func installedSpecs(ctx context.Context, c client.Client, namespace string) func(string) *v1beta1.OperatorVersionSpec {
	return func(name string) *v1beta1.OperatorVersionSpec {
		ov := &v1beta1.OperatorVersion{}
		if c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ov) != nil {
			return nil // which is noted
		}
		return &ov.Spec
	}
}

// errNotAsked says that rights are given only after a question, which nobody can answer.
var errNotAsked = usage("rights are given only after a question, and stdin is no terminal: say --yes to give those that are shown")

// canConfirm refuses a question that nobody can answer, before anything is made.
func (t *tool) canConfirm(yes bool) error {
	if file, ok := t.in.(*os.File); !yes && (!ok || !term.IsTerminal(int(file.Fd()))) {
		return errNotAsked
	}
	return nil
}

// confirm asks whether to go on, on a terminal.
func (t *tool) confirm(question string, yes bool) error {
	if err := t.canConfirm(yes); err != nil || yes {
		return err
	}
	agreed := false
	if err := newAsker(t.in, t.err).yes(&agreed, question); err != nil {
		return err
	}
	if !agreed {
		return errors.New("the rights were not given: nothing was changed")
	}
	return nil
}
