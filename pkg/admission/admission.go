// Package admission guards Instances: it denies edits that can never be right, writes the defaults of immutable parameters
// into new Instances, and notes who asks for a plan. It also warns of OperatorVersions that policies refuse. It decides nothing else: plans
// run without it.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/containment"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans/trigger"
)

// Paths under which the webhooks are served. The first is KUDO's.
const (
	MutatePath   = "/admit-kudo-dev-v1beta1-instance"
	ValidatePath = "/validate-kudo-dev-v1beta1-instance"
)

// Versions finds OperatorVersions: first in a cache, then live, since the one that a new Instance names may be some
// milliseconds old (engine rule 5).
type Versions struct{ Cache, Live client.Reader }

// get returns the OperatorVersion, or nil if it does not exist.
func (v Versions) get(ctx context.Context, key types.NamespacedName) (*v1beta1.OperatorVersion, error) {
	if key.Name == "" {
		return nil, nil
	}
	ov := &v1beta1.OperatorVersion{}
	err := v.Cache.Get(ctx, key, ov)
	if apierrors.IsNotFound(err) {
		err = v.Live.Get(ctx, key, ov)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return ov, err
}

// Validator denies edits of Instances that can never be right.
type Validator struct {
	Versions Versions
	// Keys of the digests in baselines. Where one cannot be read, an edit is compared with the spec before it.
	Keys history.Keys
	// Hub is set on a hub, which places Instances, and Decisions on one that reads the decisions of schedulers.
	Hub, Decisions bool
}

// Handle implements admission.Handler.
func (v *Validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation == admissionv1.Delete {
		logDeletion(ctx, req)
		return deletion(req)
	}
	instance, err := decode(req.Object.Raw, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if err := operators.CheckInstanceName(instance.Name); req.Operation == admissionv1.Create && err != nil {
		return responseFor(err, nil)
	}
	if req.Operation != admissionv1.Update {
		return v.judge(ctx, nil, instance)
	}
	old, err := decode(req.OldObject.Raw, req.Namespace)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case equality.Semantic.DeepEqual(old.Spec, instance.Spec):
		return admission.Allowed("")
	case instance.DeletionTimestamp != nil:
		return responseFor(trigger.Validate(old, trigger.Input{Instance: instance}), nil)
	}
	return v.judge(ctx, old, instance)
}

// judge answers a request that creates an Instance, for which old is nil, or that changes its spec.
func (v *Validator) judge(ctx context.Context, old, instance *v1beta1.Instance) admission.Response {
	key := instance.OperatorVersionKey()
	ov, err := v.Versions.get(ctx, key)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	warnings, err := timing(old, instance, ov)
	if err != nil {
		return responseFor(err, nil)
	}
	placed, err := placement(old, instance, ov, v.Hub, v.Decisions)
	if err != nil {
		return responseFor(err, nil)
	}
	warnings = append(warnings, placed...)
	if ov == nil {
		warnings = append(warnings, fmt.Sprintf("OperatorVersion %s does not exist yet: the Instance waits for it", key))
		return admission.Allowed("").WithWarnings(warnings...)
	}
	before, err := v.specBefore(ctx, old, key)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	response := v.check(ctx, old, instance, ov, before)
	if !response.Allowed {
		return response
	}
	if err := structure(ctx, old, instance, ov); err != nil {
		return responseFor(err, nil)
	}
	return response.WithWarnings(warnings...)
}

// specBefore returns the spec of the OperatorVersion that an Instance changes from, or nil if the Instance is new, keeps its version, or
// changes from one that does not exist.
func (v *Validator) specBefore(ctx context.Context, old *v1beta1.Instance,
	next types.NamespacedName) (*v1beta1.OperatorVersionSpec, error) {
	if old == nil || baselineVersion(old) == next {
		return nil, nil
	}
	previous, err := v.Versions.get(ctx, baselineVersion(old))
	if previous == nil || err != nil {
		return nil, err
	}
	return &previous.Spec, nil
}

// digests are those of the baseline. Of one that no key tells, it is known what the spec before the edit had.
type digests struct {
	keyring.Baseline
	old *v1beta1.Instance
}

// Same implements trigger.Digests.
func (d digests) Same(name, digest, value string) bool {
	if d.Knows(digest) || d.old == nil {
		return d.Baseline.Same(name, digest, value)
	}
	before, set := d.old.Spec.Parameters[name]
	return set && before == value
}

func (v *Validator) digests(ctx context.Context, old, instance *v1beta1.Instance) digests {
	var ring *keyring.Ring
	if v.Keys != nil {
		ring, _ = v.Keys.Ring(ctx) // without keys, no plan starts; edits are judged as well as can be
	}
	return digests{keyring.Baseline{Ring: ring, Owner: string(instance.UID)}, old}
}

// structure refuses a value that the edit adds or changes, and that changes the structure of a template. What sources
// give is not known here; the run, which checks again, knows it.
func structure(ctx context.Context, old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) error {
	same := old != nil && old.OperatorVersionKey() == instance.OperatorVersionKey()
	if same && maps.Equal(old.Spec.Parameters, instance.Spec.Parameters) {
		return nil
	}
	err := containment.Check(ctx, &ov.Spec, containment.Subject{Name: instance.Name, Namespace: instance.Namespace,
		Parameters: instance.Spec.Parameters, From: instance.CompletedVersion()})
	var refused *render.Error
	if !errors.As(err, &refused) {
		return nil // out of time: the run checks, too
	}
	if same && refused.Parameter != "" && old.Spec.Parameters[refused.Parameter] == instance.Spec.Parameters[refused.Parameter] {
		return nil
	}
	return refused
}

// check judges an edit against the OperatorVersion that it names.
func (v *Validator) check(ctx context.Context, old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion,
	before *v1beta1.OperatorVersionSpec) admission.Response {
	edited := instance.DeepCopy()
	edited.Status = v1beta1.InstanceStatus{}
	digests := v.digests(ctx, old, instance)
	if old != nil {
		edited.Status.Baseline, edited.Status.PlanStatus = baseline(old, digests), old.Status.PlanStatus
		if v.Hub {
			fixDefaults(edited.Status.Baseline, old, ov, before)
		}
	}
	in := trigger.Input{Instance: edited, Given: instance.Spec.Parameters, ParametersFromUnread: len(instance.Spec.ParametersFrom) > 0,
		Version: ov.Spec, Old: before, Digests: digests}
	if err := trigger.Validate(old, in); err != nil {
		return responseFor(err, nil)
	}
	unknown := params.Unknown(ov.Spec.Parameters, instance.Spec.Parameters)
	var added, kept []string
	for _, name := range unknown {
		if old != nil {
			if value, had := old.Spec.Parameters[name]; had && value == instance.Spec.Parameters[name] {
				kept = append(kept, name)
				continue
			}
		}
		added = append(added, name)
	}
	if len(added) > 0 {
		return responseFor(fmt.Errorf("spec.parameters: %s not defined by OperatorVersion %s, which defines %s: correct or remove it",
			strings.Join(added, ", "), instance.OperatorVersionKey(), names(ov.Spec.Parameters)), nil)
	}
	if err := values(old, instance, ov).Err(); err != nil {
		return responseFor(err, nil)
	}
	var warnings []string
	warnings = append(warnings, warnExposedValues(old, instance, ov)...)
	if len(kept) > 0 {
		warnings = append(warnings, fmt.Sprintf("spec.parameters %s are not defined by OperatorVersion %s and are ignored",
			strings.Join(kept, ", "), instance.OperatorVersionKey()))
	}
	return responseFor(nil, warnings)
}

// warnExposedValues warns of sensitive values that the edit writes into spec.
func warnExposedValues(old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) (warnings []string) {
	for _, def := range ov.Spec.Parameters {
		value, set := instance.Spec.Parameters[def.Name]
		if !set || !def.Sensitive || old != nil && old.Spec.Parameters[def.Name] == value {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("spec.parameters.%s is sensitive, and everybody who may read the Instance sees it: give it in "+
			"a Secret that spec.parametersFrom names", def.Name))
	}
	return warnings
}

// values checks the values that the edit adds or changes; all of them at creation and with another version.
func values(old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) params.Problems {
	validate := params.Validate
	if len(instance.Spec.ParametersFrom) > 0 {
		validate = params.ValidateGiven
	}
	problems := validate(ov.Spec.Parameters, instance.Spec.Parameters)
	if old == nil || old.OperatorVersionKey() != instance.OperatorVersionKey() {
		return problems
	}
	return slices.DeleteFunc(problems, func(p params.Problem) bool {
		a, had := old.Spec.Parameters[p.Parameter]
		b, has := instance.Spec.Parameters[p.Parameter]
		return had == has && a == b
	})
}

// baseline is what the edit is compared with: what was last acted upon, as in the controller, so that the two never
// disagree. The old spec may be wrong, or still wait for its run. It counts where the controller has not been yet.
func baseline(old *v1beta1.Instance, digests trigger.Digests) *v1beta1.Baseline {
	if old.Status.Baseline != nil {
		return old.Status.Baseline
	}
	exec := old.Spec.PlanExecution
	out := &v1beta1.Baseline{OperatorVersion: old.OperatorVersionKey().String(), Parameters: map[string]string{}, PlanName: exec.PlanName}
	for name, value := range old.Spec.Parameters {
		out.Parameters[name] = digests.Of(name, value)
	}
	if exec.UID != "" {
		out.RequestUIDs = []types.UID{exec.UID}
	}
	return out
}

// baselineVersion is the OperatorVersion that was last acted upon.
func baselineVersion(old *v1beta1.Instance) types.NamespacedName {
	b := old.Status.Baseline
	if b == nil {
		return old.OperatorVersionKey()
	}
	namespace, name, _ := strings.Cut(b.OperatorVersion, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// deletion warns of a foreground delete, which removes the Instance's objects before its cleanup plan can run, and of claims that are
// deleted with their data.
func deletion(req admission.Request) admission.Response {
	instance := &v1beta1.Instance{}
	options := &metav1.DeleteOptions{}
	if json.Unmarshal(req.OldObject.Raw, instance) != nil || json.Unmarshal(req.Options.Raw, options) != nil {
		return admission.Allowed("")
	}
	policy := ptr.Deref(options.PropagationPolicy, metav1.DeletePropagationBackground)
	var warnings []string
	if slices.Contains(instance.Finalizers, v1beta1.CleanupFinalizer) && policy == metav1.DeletePropagationForeground {
		warnings = append(warnings, "a foreground delete removes the Instance's objects before its cleanup plan runs: use "+
			"kubectl kudo uninstall, or --cascade=background")
	}
	if claims := claimsOf(instance); len(claims) > 0 && policy != metav1.DeletePropagationOrphan {
		warnings = append(warnings, fmt.Sprintf("%s%s, unless they are annotated %s=true: kubectl kudo uninstall --keep-claims annotates them",
			v1beta1.ClaimsWarning, text.List(claims, maxNames), v1beta1.KeepAnnotation))
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

// maxNames is how many names a message lists.
const maxNames = 20

// claimsOf returns the names of the PersistentVolumeClaims that plans of an Instance have made.
func claimsOf(instance *v1beta1.Instance) (names []string) {
	for _, r := range instance.Status.Resources {
		if r.Kind == "PersistentVolumeClaim" && r.APIVersion == "v1" {
			names = append(names, r.Name)
		}
	}
	return names
}

func responseFor(err error, warnings []string) admission.Response {
	if err != nil {
		return admission.Denied(err.Error())
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

func decode(raw []byte, namespace string) (*v1beta1.Instance, error) {
	instance := &v1beta1.Instance{}
	if err := json.Unmarshal(raw, instance); err != nil {
		return nil, fmt.Errorf("decode Instance: %w", err)
	}
	if instance.Namespace == "" {
		instance.Namespace = namespace
	}
	return instance, nil
}

func names(defs []v1beta1.Parameter) string {
	if len(defs) == 0 {
		return "none"
	}
	out := make([]string, 0, len(defs))
	for _, d := range defs {
		out = append(out, d.Name)
	}
	sort.Strings(out)
	return text.List(out, maxNames)
}
