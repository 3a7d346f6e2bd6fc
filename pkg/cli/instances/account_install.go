package instances

import (
	"cmp"
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/settings"
)

// newcomer is an Instance that the command is going to create.
type newcomer struct {
	*v1beta1.Instance
	// pkg is what the user calls its package.
	pkg  string
	spec *v1beta1.OperatorVersionSpec
	// versions finds those of its dependencies.
	versions func(string) *v1beta1.OperatorVersionSpec
	// made are the OperatorVersions that the command makes before it, unless they exist.
	made  []*v1beta1.OperatorVersion
	flags *accountFlags
	// houses is set if the command creates the namespace.
	houses bool
	// strict is set if its plans surely write with the rights of an account only.
	strict bool
	// needed are the rights that its plans need; nil if they are not known.
	needed *rights.Rights
	// change is what was done for its account.
	change *rights.Change
}

// edit returns the creation of the Instance, with the account that it is going to name.
func (n *newcomer) edit() preview.Edit {
	after := n.Instance.DeepCopy()
	if n.flags.create {
		after.Spec.ServiceAccountName = rights.NewAccount(n.Namespace, n.Name, "", nil).Name
	}
	version := &v1beta1.OperatorVersion{Spec: *n.spec}
	version.Namespace, version.Name = n.Namespace, n.Spec.OperatorVersion.Name
	return preview.Edit{Verb: "install", After: after, Version: version, Versions: n.made, KeepsVersions: true, GivesRights: n.flags.create}
}

// fitAccount refuses flags that contradict each other about the account.
func (o *installOptions) fitAccount() error {
	switch {
	case o.account.create && o.accountName != "":
		return command.UsageError("--service-account cannot be used with --create-service-account: name an account, or have one made")
	case o.account.create && o.placed != nil:
		return errAccountOnHub
	case o.skipInstance && o.placed != nil:
		return command.UsageError("--clusters cannot be used with --skip-instance: clusters are those of an Instance")
	case o.skipInstance && (o.account.create || o.accountName != ""):
		return command.UsageError("--service-account and --create-service-account cannot be used with --skip-instance: the account is that of " +
			"an Instance")
	}
	return nil
}

// checkAccount refuses an Instance whose plans surely could not write, before anything is made: it has no account, or one
// that may not write cluster-scoped objects of the package.
//
//	settings           account     what is asked
//	may not be read    any         nothing: the plan says what it lacks
//	privileged         none named  nothing
//	strict             is there    whether it may write cluster-scoped objects, if the package has any
//	strict             missing     whether the namespace is privileged, else it is refused
func checkAccount(ctx context.Context, env *command.Env, c client.Client, n *newcomer) error {
	if n.Spec.Placement != nil { // the plans run in the clusters, with accounts that are there
		return nil
	}
	now, known := kudoinit.ReadSettings(ctx, c)
	n.strict = known && (now.Mode == settings.Strict || n.Spec.ServiceAccountName != "")
	if !n.strict && !n.flags.create {
		return nil
	}
	name := cmp.Or(n.Spec.ServiceAccountName, now.DefaultAccount)
	if n.flags.create {
		name = rights.NewAccount(n.Namespace, n.Name, "", nil).Name
	} else if missing := n.accountMissing(ctx, c, name); missing != nil {
		if n.Spec.ServiceAccountName == "" && kudoinit.IsPrivilegedNamespace(ctx, c, n.Namespace) {
			return nil
		}
		return missing
	}
	var err error
	if n.needed, err = neededRights(ctx, c, n.Instance, n.spec, n.versions); err != nil {
		if !n.flags.create {
			return nil // not known here: the plan fails if the account lacks rights
		}
		return err
	}
	if !n.strict || len(n.needed.ClusterScoped) == 0 || n.Spec.ServiceAccountName == "" && !n.flags.create &&
		kudoinit.IsPrivilegedNamespace(ctx, c, n.Namespace) {
		return nil
	}
	return checkClusterScoped(ctx, env, c, n, name)
}

// accountMissing refuses an account that is not there. A namespace that is not there is refused elsewhere.
func (n *newcomer) accountMissing(ctx context.Context, c client.Client, name string) error {
	if !apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: name}, &corev1.ServiceAccount{})) {
		return nil
	}
	if !n.houses && apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: n.Namespace}, &corev1.Namespace{})) {
		return nil
	}
	return fmt.Errorf("namespace %s has no ServiceAccount %s: add --create-service-account, which shows the rights that this package needs "+
		"and makes an account with them, or name one by --service-account", n.Namespace, name)
}

// checkClusterScoped refuses cluster-scoped objects that the account may not write. If the user may not ask what the account may do, the
// plan reports what it may not.
func checkClusterScoped(ctx context.Context, env *command.Env, c client.Client, n *newcomer, account string) error {
	user := serviceaccount.MakeUsername(n.Namespace, account)
	for _, object := range n.needed.ClusterScoped {
		verbs := []string{"get", "create", "patch"}
		if object.Deleted {
			verbs = []string{"get", "delete"}
		}
		for _, verb := range verbs {
			allowed, err := rights.AccountMay(ctx, c, types.NamespacedName{Namespace: n.Namespace, Name: account},
				authorizationv1.ResourceAttributes{Verb: verb, Group: object.Group, Resource: object.Resource, Name: object.Name})
			if err != nil {
				env.Warnf("it is not known whether ServiceAccount %s/%s may %s %s %s, as task %s does: %v", n.Namespace, account, verb, object.Kind,
					command.QuoteControls(object.Name), command.QuoteControls(object.Task), err)
				return nil
			}
			if allowed {
				continue
			}
			return fmt.Errorf("task %s: %s %s: %s %q is forbidden: User %q cannot %s resource %q in API group %q at the cluster scope. Ask an "+
				"administrator to move such objects to an install plan, to bind what kubectl kudo package rights %s prints to ServiceAccount %s/%s, "+
				"or to label Namespace %s %s=true",
				command.QuoteControls(object.Task), object.Kind, command.QuoteControls(object.Name), rights.ResourceName(object.Group, object.Resource),
				object.Name, user, verb, object.Resource, object.Group,
				n.pkg, n.Namespace, account, n.Namespace, v1beta1.PrivilegedLabel)
		}
	}
	return nil
}

// makeAccount makes the account of an Instance that is going to be made, if that was asked for.
func makeAccount(ctx context.Context, env *command.Env, c client.Client, n *newcomer) error {
	if !n.flags.create {
		return nil
	}
	n.Spec.ServiceAccountName = rights.NewAccount(n.Namespace, n.Name, "", nil).Name
	err := rights.MayCreate(ctx, c, n.Namespace, v1beta1.Resource("instances"))
	if err == nil && n.strict {
		err = rights.MayUse(ctx, c, n.Namespace, n.Spec.ServiceAccountName)
	}
	if err != nil {
		return fmt.Errorf("instance %s/%s: %w", n.Namespace, n.Name, err)
	}
	n.change, err = giveRights(ctx, env, c, n.Instance, n.needed, n.flags.yes)
	return err
}

// halfway adds to an error what was created for the account before it, and how to continue.
func (n *newcomer) halfway(err error) error {
	if err == nil || n.change == nil || len(n.change.Steps) == 0 {
		return err
	}
	return fmt.Errorf("%w (ServiceAccount %s/%s and its rights were made before; %s)", err, n.Namespace, n.change.Name, rights.Continue)
}

// update gives the account of a changed Instance the rights that the plans need. Without the flag, it warns of rights that an
// account lacks which a command has made.
func (o *accountFlags) update(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance,
	spec *v1beta1.OperatorVersionSpec, versions func(string) *v1beta1.OperatorVersionSpec) (*rights.Change, error) {
	if !o.create {
		warnOfRights(ctx, env, c, instance, spec, versions)
		return nil, nil
	}
	needed, err := neededRights(ctx, c, instance, spec, versions)
	if err != nil {
		return nil, err
	}
	return giveRights(ctx, env, c, instance, needed, o.yes)
}

// warnOfRights says that the Role which a command has made lacks rights.
func warnOfRights(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance, spec *v1beta1.OperatorVersionSpec,
	versions func(string) *v1beta1.OperatorVersionSpec) {
	if instance.Spec.ServiceAccountName != rights.NewAccount(instance.Namespace, instance.Name, "", nil).Name {
		return
	}
	needed, err := neededRights(ctx, c, instance, spec, versions)
	if err != nil {
		return // the plan says so
	}
	change, err := rights.CompareAccount(ctx, c, instance, needed, kudoinit.ManagerAccount(ctx, c))
	if err != nil || change.IsNew || len(change.Added) == 0 {
		return // this user may not look at roles, or nothing is missing
	}
	env.Warnf("Role %s/%s lacks rights that the plans need: add --create-service-account, which gives them", instance.Namespace,
		change.RoleName())
	_ = env.PrintTable(command.RuleRows("+ ", change.Added))
}

// setAccount sets the account of an Instance, if one was made.
func setAccount(i *v1beta1.Instance, change *rights.Change) {
	if change != nil {
		i.Spec.ServiceAccountName = change.Name
	}
}
