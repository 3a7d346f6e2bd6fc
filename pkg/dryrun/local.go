package dryrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"kudo.dev/kudo/pkg/apply"
)

// Pruner drops from an object what the served schema does not declare, as apply.Kinds does.
type Pruner interface {
	Prune(ctx context.Context, obj *unstructured.Unstructured) ([]apply.Dropped, error)
}

// NewLocal returns a cluster that only reads with a client: what a write would leave is computed in the process, as the API server
// merges it. It knows neither the defaults nor the admission of the API server. Lists in custom resources are replaced as a whole, since
// their schemas are not read. A body with fields that the pruner would drop is refused as by the API server.
func NewLocal(client dynamic.Interface, mapper meta.RESTMapper, pruner Pruner) *Cluster {
	c := New(client, mapper)
	c.local, c.pruner = true, pruner
	return c
}

// applyLocally is a server-side apply to the object as earlier writes have left it.
func (r resource) applyLocally(ctx context.Context, obj *object, body *unstructured.Unstructured,
	o metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	if err := r.read(ctx, obj, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if err := r.checkPreconditions(obj, body); err != nil {
		return nil, err
	}
	form := body.DeepCopy()
	form.SetUID("")
	form.SetResourceVersion("")
	live := obj.now
	if live == nil {
		live = &unstructured.Unstructured{}
		live.SetGroupVersionKind(form.GroupVersionKind())
		live.SetNamespace(form.GetNamespace())
		live.SetName(form.GetName())
		live.SetUID(types.UID(uuid.NewString()))
	}
	if r.pruner != nil {
		if dropped, err := r.pruner.Prune(ctx, form.DeepCopy()); err == nil && len(dropped) > 0 {
			return nil, errUndeclared(dropped[0])
		}
	}
	merged, err := Merge(live, form, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", obj.id, err)
	}
	if d := r.definedKind(r.gvr); d != nil {
		return r.admit(ctx, d, obj, merged)
	}
	return merged, nil
}

// errUndeclared is how the API server answers to a field that the schema lacks.
func errUndeclared(field apply.Dropped) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: fmt.Sprintf("%s: field not declared in schema", field.Path)}}
}

// admit returns an object of a defined kind as the API server would store it.
func (r resource) admit(ctx context.Context, d *defined, obj *object,
	merged *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	admission, err := r.admission(d)
	if err != nil {
		return nil, err
	}
	stored, lost, err := admission.Admit(ctx, merged, obj.now)
	obj.lost = lost
	return stored, err
}

// checkPreconditions refuses a body that names another object than the one that exists, or another version of it.
func (r resource) checkPreconditions(obj *object, body *unstructured.Unstructured) error {
	version, uid := body.GetResourceVersion(), body.GetUID()
	switch {
	case obj.before == nil && (version == "" || version == apply.NoResourceVersion):
	case obj.before != nil && (version == "" || version == obj.before.GetResourceVersion()) && (uid == "" || uid == obj.before.GetUID()):
	default:
		return apierrors.NewConflict(r.gvr.GroupResource(), body.GetName(), errors.New("it is not the object that was read"))
	}
	return nil
}

// Merge returns an object after a server-side apply of a form, as the API server merges it. It sets no defaults, and replaces lists in
// custom resources as a whole. An error of apierrors.IsConflict says that other managers own fields of the form.
func Merge(live, form *unstructured.Unstructured, o metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	deduced := managedfields.NewDeducedTypeConverter()
	if !clientgoscheme.Scheme.Recognizes(form.GroupVersionKind()) {
		return mergeBy(deduced, live, form, o)
	}
	merged, err := mergeBy(applyconfigurations.NewTypeConverter(clientgoscheme.Scheme), live, form, o)
	if err != nil && !apierrors.IsConflict(err) { // the API server may have fields that are not known here
		return mergeBy(deduced, live, form, o)
	}
	return merged, err
}

// mergeBy merges with a converter that knows which lists and maps of a kind are merged, and which are replaced.
func mergeBy(converter managedfields.TypeConverter, live, form *unstructured.Unstructured,
	o metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	kind := form.GroupVersionKind()
	fields, err := managedfields.NewDefaultCRDFieldManager(converter, oneVersion{}, oneVersion{},
		unstructuredscheme.NewUnstructuredCreator(), kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return nil, err
	}
	merged, err := fields.Apply(live.DeepCopy(), form.DeepCopy(), o.FieldManager, o.Force)
	if err != nil {
		return nil, err
	}
	out, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is not unstructured", merged)
	}
	return out, nil
}

// oneVersion converts to the same version only, and sets no defaults. Fields that a manager has written in another version than that of the
// form have no owner then.
type oneVersion struct{}

// Default implements runtime.ObjectDefaulter.
func (oneVersion) Default(runtime.Object) {}

// Convert implements runtime.ObjectConvertor.
func (oneVersion) Convert(in, _, _ any) error { return fmt.Errorf("convert %T: not supported", in) }

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	kind := in.GetObjectKind().GroupVersionKind()
	if wanted, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); !ok || wanted != kind {
		return nil, runtime.NewNotRegisteredErrForTarget("one version", nil, to)
	}
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (oneVersion) ConvertFieldLabel(schema.GroupVersionKind, string, string) (label, value string, err error) {
	return "", "", errors.New("convert a field label: not supported")
}

// patchLocally patches an object that exists, by a merge patch or a JSON patch.
func patchLocally(live *unstructured.Unstructured, kind types.PatchType, patch []byte) (*unstructured.Unstructured, error) {
	before, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var after []byte
	switch kind {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(before)
		}
	default:
		err = fmt.Errorf("a patch of type %s: not supported without the API server", kind)
	}
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(after)
}
