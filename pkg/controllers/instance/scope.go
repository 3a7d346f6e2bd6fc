package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// scope is what all parts of a reconcile share: the Instance, what is read once, and the result.
type scope struct {
	*Reconciler
	*loop.Object[*v1beta1.Instance]
	inputs
	result loop.Result
}

// inputs are what is read once in a reconcile: actions that prepare the Instance do not change them.
type inputs struct {
	// read is set when all of it has been read.
	read bool
	// ring holds the keys of records and digests.
	ring *keyring.Ring
	// version is what spec.operatorVersion names, and content its parsed content, or nil if it does not exist.
	version *v1beta1.OperatorVersion
	content *runner.ParsedVersion
	// serviceAccount is the one that the next run has; privileged is set if it is kudo's own.
	serviceAccount apply.Account
	privileged     bool
	// sourceValues is what spec.parametersFrom gives, and sourceError says why it cannot be determined.
	sourceValues paramsource.Values
	sourceError  string
}

// observeInputs reads the inputs, once.
func (s *scope) observeInputs(ctx context.Context) error {
	if s.read {
		return nil
	}
	clearKeylessHashes(s.Next)
	for _, observe := range []func(context.Context) error{s.observeVersion, s.observeAccount, s.observeParameters} {
		if err := observe(ctx); err != nil {
			return err
		}
	}
	s.rehashDigests()
	s.read = true
	return nil
}

// observeVersion gets the OperatorVersion that spec names.
func (s *scope) observeVersion(ctx context.Context) error {
	ov := &v1beta1.OperatorVersion{}
	err := s.Client.Get(ctx, s.Next.OperatorVersionKey(), ov)
	if apierror.IsObjectNotFound(err) || s.Next.Spec.OperatorVersion.Name == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("OperatorVersion %s: %w", s.Next.OperatorVersionKey(), err)
	}
	s.version = ov
	s.content, err = s.Versions.ForObject(ov)
	return err
}

// observeParameters reads what spec.parametersFrom names.
func (s *scope) observeParameters(ctx context.Context) error {
	if s.content == nil || len(s.Next.Spec.ParametersFrom) == 0 {
		return nil
	}
	if err := s.confirmPrivilege(ctx); err != nil {
		return err
	}
	values, err := s.Sources.Values(ctx, s.Next, types.NamespacedName(s.serviceAccount), s.content.Spec.Parameters)
	var missing *paramsource.MissingError
	if errors.As(err, &missing) {
		s.sourceError = missing.Message
		return nil
	}
	s.sourceValues = values
	return err
}

// previousVersion is the OperatorVersion of the baseline, if spec names another one.
func (s *scope) previousVersion(ctx context.Context) (*v1beta1.OperatorVersionSpec, error) {
	base := s.Next.Status.Baseline
	if base == nil || base.OperatorVersion == s.Next.OperatorVersionKey().String() {
		return nil, nil
	}
	kept, err := s.keptVersion(ctx, base.Snapshot)
	if err == nil && kept != nil {
		return kept.Spec, nil
	}
	if err != nil && !history.Unusable(err) {
		return nil, err
	}
	ov := &v1beta1.OperatorVersion{}
	err = s.Client.Get(ctx, key(base.OperatorVersion), ov)
	if apierror.IsObjectNotFound(err) {
		return nil, nil
	}
	return &ov.Spec, err
}

func key(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// unresolvedReasons are reasons of an Instance that waits for something to be put right.
var unresolvedReasons = []string{v1beta1.ReasonInvalidSpec, v1beta1.ReasonRecordNameTaken, v1beta1.ReasonOperatorVersionNotFound,
	v1beta1.ReasonWaitingForParameters, v1beta1.ReasonServiceAccountNotFound}

// isSpecAnswered reports whether all that spec asks for has been started. Schedules are no such request.
func (s *scope) isSpecAnswered() bool {
	status := s.Next.Status
	ready := meta.FindStatusCondition(status.Conditions, v1beta1.ReadyCondition)
	if s.wasPending() || ready != nil && (slices.Contains(unresolvedReasons, ready.Reason)) {
		return false
	}
	isRequested := func(q v1beta1.QueuedPlan) bool { return !trigger.IsScheduled(q.Cause) }
	return status.ObservedGeneration == s.Next.Generation && !slices.ContainsFunc(status.Queue, isRequested) &&
		status.Baseline != nil && status.Baseline.OperatorVersion == s.Next.OperatorVersionKey().String()
}

// pendingReasons are reasons of an Instance that is PENDING.
var pendingReasons = []string{v1beta1.ReasonPackageNotVerified, v1beta1.ReasonWaitingForInstallPlan, v1beta1.ReasonWaitingForCRDs,
	v1beta1.ReasonWaitingForDeletion}

// wasPending reports whether the Instance was pending when it was written last.
func (s *scope) wasPending() bool {
	ready := meta.FindStatusCondition(s.Committed.Status.Conditions, v1beta1.ReadyCondition)
	return ready != nil && slices.Contains(pendingReasons, ready.Reason)
}

// activePlan returns the name and status of the plan that runs, or "".
func (s *scope) activePlan() (string, v1beta1.PlanStatus) {
	name := plans.Running(s.Next.Status.PlanStatus)
	return name, s.Next.Status.PlanStatus[name]
}

// keptVersion returns the content of an OperatorVersion that the record of a run of the Instance holds, or nil without a name.
func (s *scope) keptVersion(ctx context.Context, name string) (*runner.ParsedVersion, error) {
	if name == "" {
		return nil, nil
	}
	spec, err := s.History.ReadVersion(ctx, s.Next, name)
	if err != nil {
		return nil, err
	}
	return s.Versions.ForSpec(spec)
}

func (s *scope) buildRun(record history.Run, version *runner.ParsedVersion) *runner.Run {
	account, privileged := s.accountOf(record)
	return &runner.Run{
		Subject: runner.Subject{
			Kind: "Instance", Namespace: s.Next.Namespace, Name: s.Next.Name, UID: s.Next.UID, Annotations: s.Next.Annotations,
			Owners: s.Next.OwnerReferences,
		},
		Source: cmp.Or(record.OperatorVersion, s.Next.OperatorVersionKey().String()), Version: version,
		Plan: record.Plan, UID: record.UID, Parameters: record.Parameters, Sensitive: record.Sensitive, Cause: record.Cause,
		Upgrade: record.Upgrade, From: record.From, Suspend: record.Suspend, Account: account, Privileged: privileged,
		Instances: s.Client, Keys: s.ring,
	}
}

// setPlanStatus puts the state of the running plan into the status.
func (s *scope) setPlanStatus(name string, st v1beta1.PlanStatus) {
	s.Next.Status.PlanStatus[name] = st
}

// watchInventory watches the kinds of the inventory, which a manager that has just started may not watch yet.
func (s *scope) watchInventory(ctx context.Context) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range s.Next.Status.Resources {
		kinds[schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)] = true
	}
	s.Mirror.Watch(ctx, slices.Collect(maps.Keys(kinds))...)
}
