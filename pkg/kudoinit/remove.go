package kudoinit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/text"
)

// InstancePolicy says what becomes of Instances and Installations, and of what they hold, when kudo is removed. Empty means that
// kudo is not removed while there are any.
type InstancePolicy string

const (
	// KeepInstances leaves all that they hold as it is. If the CRDs go, the objects are first released, so that
	// the garbage collector does not delete them.
	KeepInstances InstancePolicy = "keep"
	// UninstallInstances uninstalls them, as kubectl kudo uninstall and uninstall-version do, and needs a manager that works.
	UninstallInstances InstancePolicy = "uninstall"
)

// RemovalResult is what becomes of an object when kudo is removed.
type RemovalResult struct {
	// Object is kind and name.
	Object string
	// ID names the object for programs.
	ID apply.ID
	// Deleted is set if it is deleted; else it stays.
	Deleted bool
	// Reason is why it stays, or what is deleted with it.
	Reason string
	// Lost is set if objects are deleted with it, or may be.
	Lost bool
}

// resultOf is the result of an Instance or an Installation, which is named after what it is of.
func resultOf(obj client.Object, deleted bool, reason string) RemovalResult {
	out := RemovalResult{Deleted: deleted, Reason: reason}
	switch of := obj.(type) {
	case *v1beta1.Instance:
		out.Object, out.ID = "instance "+of.Namespace+"/"+of.Name, idOf(v1beta1.GroupVersion.String(), "Instance", of.Namespace, of.Name)
	case *v1beta1.Installation:
		subject := of.Spec.Subject
		out.Object = "installation of " + subject.Kind + " " + subject.Namespace + "/" + subject.Name
		out.ID = idOf(v1beta1.GroupVersion.String(), "Installation", "", of.Name)
	}
	return out
}

func idOf(apiVersion, kind, namespace, name string) apply.ID {
	out := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(apiVersion, kind)}
	out.Namespace, out.Name = namespace, name
	return out
}

// Remover removes kudo from a cluster.
type Remover struct {
	Client client.Client
	// Scanner finds what the garbage collector would delete along with kudo's objects.
	Scanner *Scanner
	// CRDs is set if the CRDs are deleted, too, and with them all Operators, OperatorVersions, Instances and Installations.
	CRDs bool
	// Instances says what becomes of Instances and Installations.
	Instances InstancePolicy
	// DryRun deletes nothing.
	DryRun bool
	// Report is called with the result of each object, and Waiting with the objects that the removal waits for.
	Report  func(RemovalResult)
	Waiting func(message string)

	live *InstalledState
	held holders
	// toDelete has kind and name of the objects that a dry run leaves and a real run deletes.
	toDelete map[string]bool
}

// holders are kudo's objects that others depend on.
type holders struct {
	instances     []v1beta1.Instance
	installations []v1beta1.Installation
	versions      []v1beta1.OperatorVersion
}

// InUse is the error of a removal that is refused since Instances or Installations exist.
type InUse struct {
	Instances, Installations []string
	CRDs                     bool
}

// Error implements error.
func (e *InUse) Error() string {
	var there []string
	if len(e.Instances) > 0 {
		there = append(there, "Instances "+text.List(e.Instances, shown))
	}
	if len(e.Installations) > 0 {
		there = append(there, "Installations of "+text.List(e.Installations, shown))
	}
	what := "they and all that they hold stay, and wait for the next kubectl kudo init"
	if e.CRDs {
		what = "all that they hold stays, and is no longer kudo's; they themselves go"
	}
	return fmt.Sprintf("kudo is in use: there are %s. Uninstall them first (kubectl kudo uninstall, uninstall-version), or give "+
		"--instances=uninstall, "+
		"which does that for all of them, or --instances=keep: %s", strings.Join(there, ", and "), what)
}

// Remove takes kudo off the cluster, in an order in which nothing is lost at whatever point it ends; it can be run again.
//
//	what is in use is refused, released by the manager, or kept
//	the manager stops: its Deployment, its rights, its webhooks
//	what is deleted with the CRDs is released by kudo; then the CRDs, and the policies that guard their objects
//	the rest
func (r *Remover) Remove(ctx context.Context) error {
	var err error
	if r.live, err = ReadState(ctx, r.Client); err != nil {
		return err
	}
	if err := r.live.CheckRelease(); err != nil {
		return err
	}
	r.toDelete = map[string]bool{}
	if err := r.observe(ctx); err != nil {
		return err
	}
	if used := r.inUse(); used != nil && r.Instances == "" {
		return refuse(used)
	}
	switch {
	case r.Instances == UninstallInstances:
		if err := r.release(ctx); err != nil {
			return err
		}
	case !r.CRDs:
		r.reportHolders()
	}
	objs, err := r.objects()
	if err != nil {
		return err
	}
	if err := r.stop(ctx, objs); err != nil {
		return err
	}
	if r.CRDs {
		if err := r.detachHeld(ctx); err != nil {
			return err
		}
	}
	for _, obj := range objs {
		if err := r.object(ctx, obj); err != nil {
			return err
		}
	}
	if err := r.key(ctx); err != nil {
		return err
	}
	return r.namespace(ctx)
}

// objects returns the objects of an installation in the order of their deletion: an object that guards another one is deleted after it.
func (r *Remover) objects() ([]*unstructured.Unstructured, error) {
	o := r.live.Options
	o.External, o.WebhookURL = false, ""
	objs, err := Objects(o)
	if err != nil {
		return nil, err
	}
	rank := func(obj *unstructured.Unstructured) int {
		switch obj.GetKind() {
		case "CustomResourceDefinition":
			return 1
		case "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy":
			return 2
		}
		return 0
	}
	objs = slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Namespace" })
	slices.Reverse(objs)
	slices.SortStableFunc(objs, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return objs, nil
}

// observe reads what depends on kudo.
func (r *Remover) observe(ctx context.Context) error {
	instances, installations, versions := &v1beta1.InstanceList{}, &v1beta1.InstallationList{}, &v1beta1.OperatorVersionList{}
	for _, list := range []client.ObjectList{instances, installations, versions} {
		if err := r.Client.List(ctx, list); err != nil && !absent(err) {
			return fmt.Errorf("read what is in use: %w", err)
		}
	}
	r.held = holders{instances.Items, installations.Items, versions.Items}
	return nil
}

func (r *Remover) inUse() error {
	if len(r.held.instances)+len(r.held.installations) == 0 {
		return nil
	}
	used := &InUse{CRDs: r.CRDs}
	for _, i := range r.held.instances {
		used.Instances = append(used.Instances, i.Namespace+"/"+i.Name)
	}
	for _, i := range r.held.installations {
		used.Installations = append(used.Installations, i.Spec.Subject.Kind+" "+i.Spec.Subject.Namespace+"/"+i.Spec.Subject.Name)
	}
	return used
}

// reportHolders says that all who hold something stay.
func (r *Remover) reportHolders() {
	const why = "it and all that it holds wait for the next kubectl kudo init"
	for _, i := range r.held.instances {
		r.Report(resultOf(&i, false, why))
	}
	for _, i := range r.held.installations {
		r.Report(resultOf(&i, false, why))
	}
}

// stop deletes the Deployment of the manager, the bindings of its roles and the webhooks. Without rights, a manager outside of the cluster
// ends, too.
func (r *Remover) stop(ctx context.Context, objs []*unstructured.Unstructured) error {
	if r.DryRun {
		return nil
	}
	r.Waiting("the manager to stop")
	for _, obj := range objs {
		powers := obj.GetKind() == "Deployment" || strings.HasSuffix(obj.GetKind(), "RoleBinding") || isWebhook(obj)
		if !powers {
			continue
		}
		name := lowerKind(obj)
		gone, err := deleteAwait(ctx, r.Client, obj.DeepCopy(), metav1.DeletePropagationForeground)
		if err != nil {
			return err
		}
		if gone {
			r.Report(RemovalResult{Object: name, ID: apply.IDOf(obj), Deleted: true})
		}
	}
	if !r.CRDs {
		return nil
	}
	if holder, err := Leader(ctx, r.Client, r.live.Namespace); err == nil {
		return fmt.Errorf("a manager still works, as %s: stop it first, and see that its account has no other rights than those of "+
			"ClusterRole %s", holder, roleName)
	}
	return nil
}

// dashboard is the ConfigMap with the dashboard, which holds nothing that was decided.
const dashboard = "kudo-dashboard"

// object deletes an object of the installation, or says why it stays.
func (r *Remover) object(ctx context.Context, obj *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GroupVersionKind())
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", lowerKind(obj), err)
	}
	result := RemovalResult{Object: lowerKind(obj), ID: apply.IDOf(obj), Deleted: true}
	switch kind := obj.GetKind(); {
	case kind == "CustomResourceDefinition" && !r.CRDs:
		held, _ := r.count(ctx, live)
		result.Deleted, result.Reason = false, "it holds the objects of its kind: "+held+"; --remove-crds deletes them all"
	case kind == "CustomResourceDefinition":
		held, some := r.count(ctx, live)
		result.Reason, result.Lost = "and with it "+held, some
	case strings.HasPrefix(kind, "ValidatingAdmissionPolicy") && !r.CRDs:
		result.Deleted, result.Reason = false, "it guards kudo's objects as long as their CustomResourceDefinitions are there"
	case kind == "ConfigMap" && obj.GetName() != dashboard && !r.CRDs:
		result.Deleted, result.Reason = false, "it holds what was decided about kudo, for the next kubectl kudo init"
	case obj.GetLabels()["app"] != live.GetLabels()["app"]:
		result.Deleted, result.Reason = false, "it lacks the label app=kudo-manager, so it is not kudo's"
	}
	switch {
	case result.Deleted && r.DryRun:
		r.toDelete[obj.GetKind()+" "+obj.GetName()] = true
	case result.Deleted:
		r.Waiting(result.Object + " to go")
		uid := live.GetUID()
		err := r.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if err != nil && !absent(err) {
			return fmt.Errorf("delete %s: %w", result.Object, err)
		}
		if _, err := deleteAwait(ctx, r.Client, live, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	r.Report(result)
	return nil
}

// key deletes the history key, unless something stays that is sealed with it.
func (r *Remover) key(ctx context.Context) error {
	key := &HistoryKey{Client: r.Client, Namespace: r.live.Namespace}
	var result *RemovalResult
	var err error
	if r.CRDs && r.DryRun { // nothing of kudo's stays
		result, err = key.Remove(ctx, true)
		if result != nil {
			result.Deleted, result.Reason = true, ""
		}
	} else {
		result, err = key.Remove(ctx, r.DryRun)
	}
	if err != nil || result == nil {
		return err
	}
	r.toDelete["Secret "+keyring.SecretName] = result.Deleted
	r.Report(*result)
	return nil
}

// namespace deletes the manager's namespace if init has made it and nothing else is in it.
func (r *Remover) namespace(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.live.Namespace, Name: leaseName}}
	if !r.DryRun {
		if err := r.Client.Delete(ctx, lease); err != nil && !absent(err) {
			return fmt.Errorf("delete the manager's lease: %w", err)
		}
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(unstructuredKind("v1", "Namespace"))
	if there, err := getIfPresent(ctx, r.Client, ns, "", r.live.Namespace); err != nil || !there {
		return err
	}
	result := RemovalResult{Object: "namespace " + ns.Name, ID: idOf("v1", "Namespace", "", ns.Name), Deleted: true}
	content, err := r.Scanner.Content(ctx, ns.Name, func(group, kind, name string) bool {
		return r.toDelete[kind+" "+name] || r.DryRun && r.CRDs && group == v1beta1.GroupVersion.Group
	})
	switch {
	case ns.Annotations[createdAnnotation] != manager:
		result.Deleted, result.Reason = false, "it was there before kudo"
	case err != nil:
		result.Deleted, result.Reason = false, "its content cannot be read: "+err.Error()
	case len(content) > 0:
		result.Deleted, result.Reason = false, "it holds what is not kudo's: "+text.List(content, shown)
	}
	if result.Deleted && !r.DryRun {
		if _, err := deleteAwait(ctx, r.Client, ns, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	r.Report(result)
	return nil
}

// conflict reports whether an object has changed meanwhile.
func conflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }
