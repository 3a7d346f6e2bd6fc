package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
)

func groupKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: kind}
}

// user is the manager's name for the apiserver.
func (l *Live) user() string { return "system:serviceaccount:" + l.Namespace + ":" + l.Account }

func (l *Live) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + l.Namespace, "system:authenticated"}
}

// rights asks the apiserver whether the manager's account may do what the manager's role says, whatever gives it the right.
func (i *inspection) rights(ctx context.Context) []Finding {
	found := Finding{Check: "rights of serviceaccount " + i.live.Account, State: OK}
	if i.live.Account != ServiceAccount {
		if err := Account(ctx, i.client, i.live.Namespace, i.live.Account); err != nil {
			return []Finding{{found.Check, Failed, err.Error(), "kubectl create serviceaccount " + i.live.Account + " -n " + i.live.Namespace}}
		}
	}
	var lacks []string
	for _, right := range i.needed() {
		review := &authorizationv1.SubjectAccessReview{}
		review.Spec.User, review.Spec.Groups, review.Spec.ResourceAttributes = i.live.user(), i.live.groups(), &right
		if err := i.client.Create(ctx, review); err != nil {
			return []Finding{{found.Check, Warning, "cannot be asked for: " + err.Error(), "use an administrator's kubeconfig"}}
		}
		if !review.Status.Allowed {
			lacks = append(lacks, right.Verb+" "+strings.Trim(right.Resource+"/"+right.Subresource, "/")+strings.TrimSuffix("."+right.Group, "."))
		}
	}
	if len(lacks) > 0 {
		found.State, found.Remedy = Failed, again
		if len(lacks) > shown {
			lacks = append(lacks[:shown:shown], fmt.Sprintf("and %d more", len(lacks)-shown))
		}
		found.Message = "may not " + strings.Join(lacks, ", ")
	}
	return []Finding{found}
}

// needed are the rights of the manager's roles, one by one.
func (i *inspection) needed() []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, obj := range i.wanted {
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if !strings.HasSuffix(obj.GetKind(), "Role") || obj.GetName() != roleName || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, role) != nil {
			continue
		}
		for _, rule := range role.Rules {
			out = append(out, rightsOf(rule, obj.GetNamespace())...)
		}
	}
	return out
}

// rightsOf are the rights that a rule gives in a namespace, or in the whole cluster if that is empty.
func rightsOf(rule rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []authorizationv1.ResourceAttributes
	for _, text := range rule.Resources {
		resource, subresource, _ := strings.Cut(text, "/")
		for _, verb := range rule.Verbs {
			for _, name := range names {
				out = append(out, authorizationv1.ResourceAttributes{Namespace: namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Name: name, Verb: verb})
			}
		}
	}
	return out
}

// inForce is how long a policy may take to be in force: the apiserver needs about a second, and more when it is busy.
const inForce = 20 * time.Second

// policies tries them: what they must refuse is asked for, as a dry run, in the name of kudo's own account for install
// plans, which may write everything and has none of the verbs that the policies ask for.
func (i *inspection) policies(ctx context.Context) []Finding {
	out := []Finding{i.undeletable(ctx)}
	for _, probe := range i.probes() {
		out = append(out, i.refused(ctx, probe.policy, probe.object))
	}
	return out
}

// probe is an object that a policy must refuse.
type probe struct {
	policy string
	object *unstructured.Unstructured
}

// probes returns one for each policy that refuses what is created. kudo's own account may read every source of parameters, so
// that kudo-sources-1 and -2 are compared only.
func (i *inspection) probes() []probe {
	kudo := func(kind, namespace string, spec, metadata map[string]any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "metadata": metadata}}
		if metadata == nil {
			obj.Object["metadata"] = map[string]any{}
		}
		obj.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
		obj.SetNamespace(namespace)
		return obj
	}
	const name, elsewhere = "kudo-init-probe", "default"
	version := func(namespace string) map[string]any { return map[string]any{"name": name, "namespace": namespace} }
	account := map[string]any{"operatorVersion": version(""), "serviceAccountName": name}
	history := &unstructured.Unstructured{Object: map[string]any{"revision": int64(1), "data": map[string]any{}}}
	history.SetAPIVersion("apps/v1")
	history.SetKind("ControllerRevision")
	history.SetNamespace(elsewhere)
	history.SetLabels(map[string]string{v1beta1.HistoryLabel: name})
	space := &unstructured.Unstructured{Object: map[string]any{}}
	space.SetAPIVersion("v1")
	space.SetKind("Namespace")
	space.SetLabels(map[string]string{v1beta1.PrivilegedLabel: "true"})
	installation := kudo("Installation", "", map[string]any{"for": map[string]any{"kind": "Instance", "namespace": elsewhere, "name": name, "uid": name}}, nil)
	out := []probe{
		{"kudo-install", kudo("OperatorVersion", elsewhere, map[string]any{"installPlan": "probe", "plans": map[string]any{"probe": map[string]any{}}}, nil)},
		{"kudo-instance-crds", kudo("Instance", elsewhere, map[string]any{"crdTarball": map[string]any{"httpSource": map[string]any{"url": "https://example.invalid/crds.tgz"}}}, nil)},
		{"kudo-account", kudo("Instance", elsewhere, account, nil)},
		{"kudo-version", kudo("Instance", elsewhere, map[string]any{"operatorVersion": version(i.live.Namespace)}, nil)},
		{"kudo-adopt", kudo("Instance", elsewhere, map[string]any{"operatorVersion": version("")}, map[string]any{"annotations": map[string]any{v1beta1.AdoptAnnotation: "true"}})},
		{"kudo-status", installation},
		{"kudo-history", history},
		{"kudo-privileged", space},
		{"kudo-home", kudo("Instance", i.live.Namespace, map[string]any{"operatorVersion": version("")}, nil)},
	}
	for _, p := range out {
		p.object.SetName(name)
	}
	return out
}

// refused wants a policy to refuse an object.
func (i *inspection) refused(ctx context.Context, policy string, obj *unstructured.Unstructured) Finding {
	found := Finding{Check: "policy " + policy + " in force", State: OK}
	if obj.GroupVersionKind().Group == v1beta1.GroupVersion.Group && !i.served(obj.GetKind()) {
		return Finding{found.Check, Failed, obj.GetKind() + " is not served, so that it cannot be tried", again}
	}
	config := rest.CopyConfig(i.config)
	config.WarningHandler = rest.NoWarnings{}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + i.live.Namespace + ":" + settings.InstallerAccount}
	as, err := client.New(config, client.Options{Scheme: i.client.Scheme(), Mapper: i.client.RESTMapper()})
	if err != nil {
		return Finding{found.Check, Failed, err.Error(), again}
	}
	ctx, cancel := context.WithTimeout(ctx, inForce)
	defer cancel()
	err = poll(ctx, func() (string, error) {
		err := as.Create(ctx, obj.DeepCopy(), client.DryRunAll)
		switch {
		case err == nil:
			return "it refuses nothing", nil
		case strings.Contains(err.Error(), "'"+policy+"'"):
			return "", nil
		}
		return "", err
	})
	return i.verdict(ctx, found, err)
}

// verdict words the end of a trial.
func (i *inspection) verdict(ctx context.Context, found Finding, err error) Finding {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		found.State, found.Remedy = Failed, again
		found.Message = "it does not refuse what it must: it is missing, changed, or not bound"
		found.Message += ", or ServiceAccount " + settings.InstallerAccount + " has more rights than kudo gives it"
	case apierrors.IsForbidden(err):
		found.State, found.Message, found.Remedy = Failed, "cannot be tried, since ServiceAccount "+settings.InstallerAccount+" lacks rights: "+err.Error(), again
	default:
		found.State, found.Message, found.Remedy = Failed, "cannot be tried: "+err.Error(), again
	}
	return found
}

// undeletable wants a foreground deletion of an Installation to be refused.
func (i *inspection) undeletable(ctx context.Context) Finding {
	found := Finding{Check: "policy kudo-installations in force", State: OK}
	if !i.served("Installation") {
		return Finding{found.Check, Failed, "Installation is not served, so that it cannot be tried", again}
	}
	ctx, cancel := context.WithTimeout(ctx, inForce)
	defer cancel()
	list := &v1beta1.InstallationList{}
	if err := i.client.List(ctx, list, client.Limit(1)); err != nil {
		return i.verdict(ctx, found, err)
	}
	if len(list.Items) == 0 {
		return i.verdict(ctx, found, Enforced(ctx, i.client))
	}
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	err := poll(ctx, func() (string, error) {
		err := i.client.Delete(ctx, &list.Items[0], foreground, client.DryRunAll)
		if err == nil {
			return "it refuses nothing", nil
		}
		if absent(err) || err != nil && strings.Contains(err.Error(), "'kudo-installations'") {
			return "", nil
		}
		return "", err
	})
	return i.verdict(ctx, found, err)
}
