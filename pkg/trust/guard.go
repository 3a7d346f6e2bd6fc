package trust

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/text"
)

// maxMessage bounds the message of a verdict, in bytes: it is put into statuses and events.
const maxMessage = 2048

// maxVerdicts bounds how many verdicts are remembered.
const maxVerdicts = 4096

// Guard judges by the policies of a cluster. It remembers verdicts, so that a package that nothing has changed of is verified once.
type Guard struct {
	// Cache has the policies and the Namespaces. A Namespace that it lacks is read live.
	Cache, Live client.Reader
	// Required reports whether a package that no policy is for is refused.
	Required func(context.Context) bool
	Clock    clock.PassiveClock
	// Metrics counts the verdicts; it may be nil.
	Metrics *metrics.Verifications

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]Verdict
}

// Request asks whether an OperatorVersion may be run.
type Request struct {
	// Caller is what asks, for the metrics.
	Caller metrics.Caller
	// Version has the name and the spec of what is to be run.
	Version *v1beta1.OperatorVersion
	// Identity differs if the name or the spec does.
	Identity string
	// Namespace is where it runs.
	Namespace string
	// Signatures are bundles that were found elsewhere than in spec.
	Signatures []string
	// UnpinnedTarball says which CRD tarball besides that of spec is to be installed, as in Candidate.
	UnpinnedTarball string
}

// Judge decides whether an OperatorVersion may be run now. The verdict has no reason if the cluster has no policies and requires none.
// An error is one of reading: nothing may be run then.
func (g *Guard) Judge(ctx context.Context, r Request) (Verdict, error) {
	verdict, err := g.judge(ctx, r)
	switch {
	case err == nil:
		g.Metrics.Count(r.Caller, verdict.result(), string(cmp.Or(verdict.Reason, NoPolicy)))
	// A check that its caller has cancelled says nothing of the policies, nor does a Namespace that was deleted meanwhile.
	case ctx.Err() == nil && !apierror.IsObjectNotFound(err):
		g.Metrics.Count(r.Caller, metrics.ResultError, "")
	}
	return verdict, err
}

// result sums a verdict up for the metrics.
func (v Verdict) result() metrics.Result {
	switch {
	case !v.Allowed:
		return metrics.ResultRefused
	case v.Reason == "", v.Reason == NoPolicy:
		return metrics.ResultNoPolicy
	case v.Reason == Verified, v.Reason == NotRequired:
		return metrics.ResultAccepted
	}
	return metrics.ResultWarned
}

// judge is Judge without the metrics.
func (g *Guard) judge(ctx context.Context, r Request) (Verdict, error) {
	list := &configv1alpha1.PackagePolicyList{}
	if err := g.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return Verdict{}, fmt.Errorf("list PackagePolicies: %w", err)
	}
	required := g.Required(ctx)
	if len(list.Items) == 0 && !required {
		return Verdict{Allowed: true}, nil
	}
	namespace, err := g.labelsOf(ctx, r.Namespace)
	if err != nil {
		return Verdict{}, err
	}
	key := r.key(list.Items, namespace, required)
	now := g.Clock.Now()
	g.mu.Lock()
	known, found := g.verdicts[key]
	g.mu.Unlock()
	if found && (known.Until.IsZero() || now.Before(known.Until)) {
		return known, nil
	}
	defer func() { g.Metrics.Took(g.Clock.Since(now)) }()
	candidate, err := NewCandidate(r.Version, namespace)
	if err != nil {
		return Verdict{Reason: ContentDiffers, Message: text.Plain(err.Error(), maxMessage)}, nil
	}
	candidate.Signatures = append(slices.Clone(candidate.Signatures), r.Signatures...)
	if r.UnpinnedTarball != "" {
		candidate.UnpinnedTarball = r.UnpinnedTarball
	}
	policies := make([]Policy, len(list.Items))
	for i := range list.Items {
		policies[i] = ParsePolicy(&list.Items[i])
	}
	slices.SortFunc(policies, func(a, b Policy) int { return strings.Compare(a.Name, b.Name) })
	verdict := Judge(policies, candidate, required, now)
	verdict.Message = text.Plain(verdict.Message, maxMessage)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.verdicts == nil || len(g.verdicts) >= maxVerdicts {
		g.verdicts = map[[sha256.Size]byte]Verdict{}
	}
	g.verdicts[key] = verdict
	return verdict, nil
}

// labelsOf returns the labels of a Namespace. One that cannot be read is an error: a policy could select it.
func (g *Guard) labelsOf(ctx context.Context, name string) (labels.Set, error) {
	namespace := &corev1.Namespace{}
	err := g.Cache.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if apierrors.IsNotFound(err) { // it may have been made this moment
		err = g.Live.Get(ctx, types.NamespacedName{Name: name}, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read Namespace %s, by whose labels PackagePolicies select: %w", name, err)
	}
	return namespace.Labels, nil
}

// key is equal for requests that have the same verdict until a time.
func (r Request) key(policies []configv1alpha1.PackagePolicy, namespace labels.Set, required bool) (key [sha256.Size]byte) {
	parts := make([]string, len(policies))
	for i, p := range policies {
		parts[i] = fmt.Sprintf("%q %q %d", p.Name, p.UID, p.Generation)
	}
	slices.Sort(parts)
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %t", parts, r.Identity, namespace.String(), r.Signatures, r.UnpinnedTarball,
		required))
}
