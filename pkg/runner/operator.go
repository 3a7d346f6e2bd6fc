package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

const noOperatorVersion = "install the package with kubectl kudo install, which resolves dependencies, or name the version"

// prepareOperator makes the child Instance of a dependency. It is applied like any other object: parameters that leave
// the file leave the child, and it is awaited until its last run is complete.
func (r *Runner) prepareOperator(ctx context.Context, run *Run, inventory Inventory, w *PreparedTask, t task.KudoOperator,
	v render.Variables) *PreparedTask {
	if t.Shared {
		return r.prepareShared(ctx, run, w, t)
	}
	if t.OperatorVersion == "" {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: spec.operatorVersion is empty: %s", w.Name, noOperatorVersion))
	}
	child := newChild(run, t)
	if t.EnablingParameter != "" {
		on, err := run.boolParameter(t.EnablingParameter)
		if err != nil {
			return w.decide(plans.Fatal, fmt.Sprintf("task %q: %s", w.Name, err))
		}
		if !on {
			return w.deleteDisabledChild(child, inventory)
		}
	}
	if child.Spec.Suspend = run.Suspend; !run.Privileged && run.Installation == nil {
		child.Spec.ServiceAccountName = run.Account.Name
	}
	if circle, err := run.versionCycle(ctx, child.OperatorVersionKey().String()); err != nil {
		return w.failed(err)
	} else if circle != "" {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: the packages depend on one another in a circle: %s. Remove one of the "+
			"KudoOperator tasks", w.Name, circle))
	}
	if t.ParameterFile != "" {
		values, err := run.Version.Templates.Parameters(t.ParameterFile, v)
		if err != nil {
			return w.failed(err)
		}
		child.Spec.Parameters = values
	}
	secret, hidden, err := run.moveToSecret(child)
	if err != nil {
		return w.failed(err)
	}
	if len(hidden) > 0 {
		w.staleStatus = func(live *unstructured.Unstructured) string { return run.childLag(live, hidden) }
	}
	object, err := childObject(child)
	if err != nil {
		return w.failed(err)
	}
	if w = r.prepareObjects(ctx, w, append(secret, object), v); w.outcome != nil || run.Installation != nil {
		return w
	}
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: run.Subject.Kind, Name: run.Subject.Name, UID: run.Subject.UID,
	}})
	labels := object.GetLabels()
	labels[v1beta1.OperatorLabel] = t.Package
	object.SetLabels(labels)
	return w
}

// newChild returns the Instance of a dependency, without parameters.
func newChild(run *Run, t task.KudoOperator) *v1beta1.Instance {
	child := &v1beta1.Instance{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance"},
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Subject.Namespace,
			Name: cmp.Or(t.InstanceName, operators.ChildInstanceName(run.Subject.Name, t.Package))},
	}
	child.Spec.OperatorVersion.Name = operators.VersionName(t.Package, t.AppVersion, t.OperatorVersion)
	child.Spec.OperatorVersion.Kind = "OperatorVersion"
	if t.Content != "" {
		child.Annotations = map[string]string{v1beta1.VersionContentAnnotation: t.Content}
	}
	return child
}

// childLag says that a child has not begun to act on values that do not stand in its spec; empty if it has. A parameter that
// its version does not know is not in its baseline.
func (run *Run) childLag(live *unstructured.Unstructured, hidden map[string]string) string {
	if live.GetKind() != "Instance" {
		return ""
	}
	base, _, _ := unstructured.NestedStringMap(live.Object, "status", "baseline", "parameters")
	digests := keyring.Baseline{Ring: run.Keys, Owner: string(live.GetUID())}
	for name, value := range hidden {
		if seen, known := base[name]; known && !digests.Same(name, seen, value) {
			return "waits until its new parameters are observed"
		}
	}
	return ""
}

// moveToSecret moves the parameters of a child that hold sensitive values of its parent into a Secret, from which the child reads them: any
// user who may read Instances could read them in the spec of the child. A parameter counts also if it holds a line of such a value, or its
// base64 encoding.
func (run *Run) moveToSecret(child *v1beta1.Instance) (secrets []*unstructured.Unstructured, hidden map[string]string, err error) {
	hidden = map[string]string{}
	for name, value := range child.Spec.Parameters {
		if run.mask(value) != value || slices.ContainsFunc(run.secrets(), func(secret string) bool {
			return secret != "" &&
				strings.Contains(value, secret)
		}) {
			hidden[name] = value
			delete(child.Spec.Parameters, name)
		}
	}
	if len(hidden) == 0 {
		return nil, nil, nil
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: childSecret(child.Name)},
		Data:       map[string][]byte{},
	}
	for name, value := range hidden {
		secret.Data[name] = []byte(value)
	}
	child.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: secret.Name}}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return nil, nil, err
	}
	delete(fields["metadata"].(map[string]any), "creationTimestamp")
	return []*unstructured.Unstructured{{Object: fields}}, hidden, nil
}

// childSecret returns the name of the Secret that moveToSecret makes for a child.
func childSecret(child string) string { return operators.ChildSecretName(child) }

// deleteDisabledChild deletes the child of a dependency that is switched off, after its cleanup plan, which may need the Secret that
// moveToSecret has made.
func (w *PreparedTask) deleteDisabledChild(child *v1beta1.Instance, inventory Inventory) *PreparedTask {
	object, err := childObject(child)
	if err != nil {
		return w.failed(err)
	}
	w.objects, w.deletes = []*unstructured.Unstructured{object}, true
	secret := apply.ID{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret")}
	secret.Namespace, secret.Name = child.Namespace, childSecret(child.Name)
	if _, made := inventory[secret]; made {
		w.deleteLast = []*unstructured.Unstructured{secret.Object()}
	}
	return w
}

const (
	// maxDepth bounds the ancestors of an Instance: the Instance whose plan makes it, the one whose plan makes that one, and so on.
	maxDepth = 8
	// maxChildren is how many Instances the plans of one may make.
	maxChildren = 64
)

// versionCycle names the OperatorVersions between an Instance and the ancestor that runs the version already; empty if there is
// none. Without it, each child would make another one.
func (run *Run) versionCycle(ctx context.Context, version string) (string, error) {
	path, owners := []string{run.Source}, run.Subject.Owners
	for {
		if path[len(path)-1] == version {
			slices.Reverse(path)
			return strings.Join(append(path, version), " -> "), nil
		}
		at := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return isController(o) && v1beta1.OwnedBy(o, "Instance") })
		if at < 0 { // the child of a KudoOperator task has an owner that is no controller
			at = slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return v1beta1.OwnedBy(o, "Instance") })
		}
		if at < 0 {
			return "", nil
		}
		if len(path) == maxDepth {
			slices.Reverse(path)
			return "", &apply.FatalError{Err: fmt.Errorf("an Instance of version %s would have more than %d ancestors, each created by a plan of "+
				"the one before: %s. Make the chain shorter", version, maxDepth, strings.Join(path, " -> "))}
		}
		maker, err := run.owner(ctx, run.Subject.Namespace, owners[at])
		if err != nil || maker == nil { // a name without its uid counts for nothing: anybody could write it
			return "", err
		}
		path, owners = append(path, maker.OperatorVersionKey().String()), maker.OwnerReferences
	}
}

// checkInstances refuses Instances among the objects of a task that would never end, as checkInstance does, and more children than an
// Instance may have.
func (run *Run) checkInstances(ctx context.Context, inventory Inventory, objs []*unstructured.Unstructured) error {
	children := map[types.NamespacedName]bool{}
	for id := range inventory {
		if isInstance(id.GroupVersionKind) {
			children[id.NamespacedName] = true
		}
	}
	for _, obj := range objs {
		if !isInstance(obj.GroupVersionKind()) {
			continue
		}
		if err := run.checkInstance(ctx, obj); err != nil {
			return err
		}
		children[types.NamespacedName{Namespace: run.Subject.Namespace, Name: obj.GetName()}] = true
	}
	if len(children) > maxChildren {
		return &apply.FatalError{Err: fmt.Errorf("%s %s/%s would have %d child Instances, more than the %d allowed: create fewer Instances in "+
			"its plans", run.Subject.Kind, run.Subject.Namespace, run.Subject.Name, len(children), maxChildren)}
	}
	return nil
}

// checkInstance refuses an Instance that is its own ancestor by its version, and a chain of Instances that is too long. An Instance may
// have no owner but the Instance whose plan makes it, so that the chain can be followed, and is deleted with its first Instance. An
// Instance that names no account gets the account of the run, since without one it would have the rights of kudo in a privileged namespace.
func (run *Run) checkInstance(ctx context.Context, obj *unstructured.Unstructured) error {
	if slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return !isController(o) }) {
		return &apply.FatalError{Err: fmt.Errorf("%s names owners, but an Instance that a plan creates is owned by the Instance of the plan "+
			"only. Remove metadata.ownerReferences from the template", apply.IDOf(obj))}
	}
	child := &v1beta1.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, child); err != nil {
		return &apply.FatalError{Err: fmt.Errorf("%s: %w", apply.IDOf(obj), err)}
	}
	if child.Spec.ServiceAccountName == "" && !run.Privileged { // as for the children of KudoOperator tasks
		if err := unstructured.SetNestedField(obj.Object, run.Account.Name, "spec", "serviceAccountName"); err != nil {
			return &apply.FatalError{Err: fmt.Errorf("%s: %w", apply.IDOf(obj), err)}
		}
	}
	child.Namespace = run.Subject.Namespace
	circle, err := run.versionCycle(ctx, child.OperatorVersionKey().String())
	if err != nil {
		return err
	}
	if circle != "" {
		return &apply.FatalError{Err: fmt.Errorf("%s is its own ancestor by version %s: %s. Remove the object from the template, or let it "+
			"name another OperatorVersion", apply.IDOf(obj), child.OperatorVersionKey(), circle)}
	}
	return nil
}

func isController(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }

func isInstance(gvk schema.GroupVersionKind) bool {
	return gvk.GroupKind() == v1beta1.GroupVersion.WithKind("Instance").GroupKind()
}

func childObject(child *v1beta1.Instance) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(child)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "spec", "planExecution")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}
