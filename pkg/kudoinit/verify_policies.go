package kudoinit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
)

// inForce is how long a policy may take to be in force: the apiserver needs about a second, and more when it is busy.
const inForce = 20 * time.Second

// errNoObject is the error of a probe whose objects were all deleted after they had been listed: it says nothing about the policy.
var errNoObject = errors.New("there is no object that the policy looks at")

// probeName is the name of all that a probe would make.
const probeName = "kudo-init-probe"

// policies tests the policies, by dry runs that they must refuse. It tests kudo-finalizer, kudo-leave-users and kudo-privileged-use only if
// there is an object that they check.
func (i *inspection) policies(ctx context.Context) []Finding {
	probes := append(i.creations(), i.changes(ctx)...)
	probes = append(probes, i.privilegedUse(ctx)...)
	out := make([]Finding, len(probes)+1)
	var inNamespace []Finding
	var running sync.WaitGroup
	running.Go(func() { inNamespace = i.namespaced(ctx) })
	running.Go(func() { out[0] = i.undeletable(ctx) })
	for n, p := range probes {
		running.Go(func() { out[n+1] = i.try(ctx, p) })
	}
	running.Wait()
	out = slices.DeleteFunc(out, func(f Finding) bool { return f.Check == "" })
	return append(out, inNamespace...)
}

// probe is a request that a policy must answer.
type probe struct {
	policy string
	// account is the name of the user who sends the request: a ServiceAccount of kudo, or a user of the probe. Its roles allow the request,
	// and it lacks the right that the policy requires.
	account string
	// object that is asked for. Its kind must be served.
	object client.Object
	// request sends the dry run.
	request func(ctx context.Context, as client.Client) error
	// warns is set for a policy that warns, and refuses nothing.
	warns bool
}

// installer is the user name of kudo's own account for install plans, which may write everything and has none of the verbs that
// the policies ask for.
func (i *inspection) installer() string {
	return "system:serviceaccount:" + i.live.Namespace + ":" + settings.InstallerAccount
}

// creations returns a probe for each policy that refuses what is created.
func (i *inspection) creations() []probe {
	kudo := func(kind, namespace string, spec, metadata map[string]any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "metadata": metadata}}
		if metadata == nil {
			obj.Object["metadata"] = map[string]any{}
		}
		obj.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
		obj.SetNamespace(namespace)
		return obj
	}
	const name, elsewhere = probeName, metav1.NamespaceDefault
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
	packagePolicy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"action": "Allow"}}}
	packagePolicy.SetAPIVersion("config.kudo.dev/v1alpha1")
	packagePolicy.SetKind("PackagePolicy")
	installation := kudo("Installation", "", map[string]any{"subject": map[string]any{"kind": "Instance", "namespace": elsewhere, "name": name,
		"uid": name}}, nil)
	var out []probe
	for _, p := range []struct {
		policy string
		object *unstructured.Unstructured
	}{
		{"kudo-install", kudo("OperatorVersion", elsewhere,
			map[string]any{"installPlan": "probe", "plans": map[string]any{"probe": map[string]any{}}}, nil)},
		{"kudo-instance-crds", kudo("Instance", elsewhere,
			map[string]any{"crdTarball": map[string]any{"httpSource": map[string]any{"url": "https://example.invalid/crds.tgz"}}}, nil)},
		{"kudo-force-release", kudo("OperatorVersion", elsewhere, map[string]any{},
			map[string]any{"annotations": map[string]any{v1beta1.ForceReleaseAnnotation: "true"}})},
		{"kudo-account", kudo("Instance", elsewhere, account, nil)},
		{"kudo-version", kudo("Instance", elsewhere, map[string]any{"operatorVersion": version(i.live.Namespace)}, nil)},
		{"kudo-adopt", kudo("Instance", elsewhere, map[string]any{"operatorVersion": version("")},
			map[string]any{"annotations": map[string]any{v1beta1.AdoptAnnotation: "true"}})},
		{"kudo-package-policies", packagePolicy},
		{"kudo-status", installation},
		{"kudo-history", history},
		{"kudo-privileged", space},
		{"kudo-home", kudo("Instance", i.live.Namespace, map[string]any{"operatorVersion": version("")}, nil)},
	} {
		p.object.SetName(name)
		out = append(out, probe{policy: p.policy, account: i.installer(), object: p.object,
			request: func(ctx context.Context, as client.Client) error {
				return as.Create(ctx, p.object.DeepCopy(), client.DryRunAll)
			}})
	}
	return out
}

// changes returns a probe for each policy that refuses changes of an OperatorVersion, if there is one that it looks at. The manager
// asks for the second, since the account for install plans may delete every OperatorVersion.
func (i *inspection) changes(ctx context.Context) []probe {
	list := &v1beta1.OperatorVersionList{}
	if err := i.client.List(ctx, list); err != nil {
		return nil // the definition is missing, which other findings say
	}
	patched := func(policy, account string, versions []*v1beta1.OperatorVersion, patch string) probe {
		return probe{policy: policy, account: account, object: versions[0], request: func(ctx context.Context, as client.Client) error {
			for ; len(versions) > 0; versions = versions[1:] {
				err := as.Patch(ctx, versions[0].DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
				if !apierrors.IsNotFound(err) { // it may be deleted meanwhile
					return err
				}
			}
			return errNoObject
		}}
	}
	var finalized, living []*v1beta1.OperatorVersion
	for n := range list.Items {
		ov := &list.Items[n]
		if ov.DeletionTimestamp != nil {
			continue
		}
		living = append(living, ov)
		if controllerutil.ContainsFinalizer(ov, v1beta1.OperatorVersionFinalizer) {
			finalized = append(finalized, ov)
		}
	}
	var out []probe
	if len(finalized) > 0 {
		out = append(out, patched("kudo-finalizer", i.installer(), finalized, `{"metadata":{"finalizers":null}}`))
	}
	if len(living) > 0 {
		out = append(out, patched("kudo-leave-users", i.live.user(), living,
			`{"metadata":{"annotations":{"`+v1beta1.LeaveUsersAnnotation+`":"`+probeName+`"}}}`))
	}
	return out
}

// privilegedUse returns the probe of the policy that warns, if there is a namespace that it looks at.
func (i *inspection) privilegedUse(ctx context.Context) []probe {
	namespace := ""
	if i.live.Settings.Mode == settings.Privileged {
		namespace = metav1.NamespaceDefault
	}
	list := &corev1.NamespaceList{}
	if err := i.client.List(ctx, list, client.MatchingLabels{v1beta1.PrivilegedLabel: "true"}); err != nil {
		return nil // the check mode reports this
	}
	for _, ns := range list.Items {
		if namespace == "" && ns.DeletionTimestamp == nil && ns.Name != i.live.Namespace && ns.Name != metav1.NamespaceSystem {
			namespace = ns.Name
		}
	}
	if namespace == "" {
		return nil
	}
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probeName}}
	instance.Spec.OperatorVersion.Name = probeName
	return []probe{{policy: "kudo-privileged-use", account: i.installer(), object: instance, warns: true,
		request: func(ctx context.Context, as client.Client) error {
			return as.Create(ctx, instance.DeepCopy(), client.DryRunAll)
		}}}
}

// checkOf names the check of a policy.
func checkOf(policy string) string { return "policy " + policy + " in force" }

// refusedBy reports whether an error is the refusal of a policy, which the apiserver quotes.
func refusedBy(err error, policy string) bool { return strings.Contains(err.Error(), "'"+policy+"'") }

// try sends the request of a probe until the policy refuses it, or warns of it, and returns the finding; an empty one if the objects of the
// probe do not exist any more.
func (i *inspection) try(ctx context.Context, p probe) Finding {
	found := Finding{Check: checkOf(p.policy), State: OK}
	gvk, err := i.client.GroupVersionKindFor(p.object)
	if err != nil {
		return Finding{found.Check, Failed, err.Error(), again}
	}
	if gvk.Group == v1beta1.GroupVersion.Group && !i.served(gvk.Kind) {
		return Finding{found.Check, Failed, gvk.Kind + " is not served, so that it cannot be tried", again}
	}
	warned := &listener{text: "'" + p.policy + "'"}
	config := rest.CopyConfig(i.config)
	config.WarningHandler = warned
	config.Impersonate = rest.ImpersonationConfig{UserName: p.account}
	as, err := client.New(config, client.Options{Scheme: i.client.Scheme(), Mapper: i.client.RESTMapper()})
	if err != nil {
		return Finding{found.Check, Failed, err.Error(), again}
	}
	ctx, cancel := context.WithTimeout(ctx, inForce)
	defer cancel()
	err = poll(ctx, func() (string, error) {
		err := p.request(ctx, as)
		switch {
		case err == nil && p.warns && warned.heard.Load():
			return "", nil
		case err == nil:
			return "it refuses nothing", nil
		case refusedBy(err, p.policy):
			return "", nil
		}
		return "", err
	})
	if errors.Is(err, errNoObject) {
		return Finding{}
	}
	return i.verdict(ctx, found, p, err)
}

// verdict words the end of a trial.
func (i *inspection) verdict(ctx context.Context, found Finding, p probe, err error) Finding {
	account := "user " + p.account
	if namespaced, is := strings.CutPrefix(p.account, "system:serviceaccount:"); is {
		account = "ServiceAccount " + namespaced[strings.Index(namespaced, ":")+1:]
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		found.State, found.Remedy = Failed, again
		found.Message = "it does not refuse what it must: it is missing, changed, or not bound"
		if p.warns {
			found.Message = "it does not warn of what it must: it is missing, changed, or not bound"
		}
		found.Message += ", or " + account + " has more rights than kudo gives it"
	case apierrors.IsForbidden(err):
		found.State, found.Message, found.Remedy = Failed, "cannot be tried, since "+account+" lacks rights: "+err.Error(), again
	default:
		found.State, found.Message, found.Remedy = Failed, "cannot be tried: "+err.Error(), again
	}
	return found
}

// undeletable checks that a foreground deletion of an Installation is refused.
func (i *inspection) undeletable(ctx context.Context) Finding {
	found := Finding{Check: checkOf("kudo-installations"), State: OK}
	if !i.served("Installation") {
		return Finding{found.Check, Failed, "Installation is not served, so that it cannot be tried", again}
	}
	ctx, cancel := context.WithTimeout(ctx, inForce)
	defer cancel()
	list := &v1beta1.InstallationList{}
	if err := i.client.List(ctx, list, client.Limit(1)); err != nil {
		return i.verdict(ctx, found, probe{account: i.installer()}, err)
	}
	if len(list.Items) == 0 {
		return i.verdict(ctx, found, probe{account: i.installer()}, WaitForPolicies(ctx, i.client))
	}
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	err := poll(ctx, func() (string, error) {
		err := i.client.Delete(ctx, &list.Items[0], foreground, client.DryRunAll)
		if err == nil {
			return "it refuses nothing", nil
		}
		if absent(err) || err != nil && refusedBy(err, "kudo-installations") {
			return "", nil
		}
		return "", err
	})
	return i.verdict(ctx, found, probe{account: i.installer()}, err)
}
