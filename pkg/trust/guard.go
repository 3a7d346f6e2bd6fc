package trust

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/text"
)

// maxMessage bounds the message of a verdict, in bytes: it is put into statuses and events.
const maxMessage = 2048

// parentInterval is how long a verdict is remembered that may rest on another OperatorVersion.
const parentInterval = time.Minute

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
	// Manifest is the digest of the manifest that the package is said to have come in, if that stands elsewhere than in spec.
	Manifest string
	// Content is the content digest that the OperatorVersion must have, whatever policies say; empty if any content is taken.
	Content string
	// Tarball is one that the Instance names; nil if it names none.
	Tarball *Tarball
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
	if r.Content != "" {
		if v := g.compareContent(r); !v.Allowed {
			return v, nil
		}
	}
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
	parents, err := g.parents(ctx, list.Items, r.Version.Namespace)
	if err != nil {
		return Verdict{}, err
	}
	key := r.key(list.Items, parents, namespace, required)
	now := g.Clock.Now()
	if known, found := g.recall(key); found && (known.Until.IsZero() || now.Before(known.Until)) {
		return known, nil
	}
	defer func() { g.Metrics.Took(g.Clock.Since(now)) }()
	candidate, err := NewCandidate(r.Version, namespace)
	if err != nil {
		return Verdict{Reason: ContentDiffers, Message: text.Plain(err.Error(), maxMessage)}, nil
	}
	candidate.Signatures = append(slices.Clone(candidate.Signatures), r.Signatures...)
	candidate.AddParents(r.Version.Namespace, parents)
	candidate.Tarball, candidate.Manifest = r.Tarball, cmp.Or(candidate.Manifest, r.Manifest)
	if r.UnpinnedTarball != "" {
		candidate.UnpinnedTarball = r.UnpinnedTarball
	}
	policies := make([]Policy, len(list.Items))
	for i := range list.Items {
		policies[i] = ParsePolicy(&list.Items[i])
	}
	slices.SortFunc(policies, func(a, b Policy) int { return strings.Compare(a.Name, b.Name) })
	verdict := Judge(policies, candidate, required, now)
	if len(candidate.Parents) > 0 { // no watch shows that one of them has changed
		verdict.Until = ends(verdict.Until, now.Add(parentInterval))
	}
	verdict.Message = text.Plain(verdict.Message, maxMessage)
	g.remember(key, verdict)
	return verdict, nil
}

// parents returns the OperatorVersions of a namespace that may vouch for others by their locks; none if no policy takes that.
func (g *Guard) parents(ctx context.Context, policies []configv1alpha1.PackagePolicy, namespace string) ([]v1beta1.OperatorVersion, error) {
	if !slices.ContainsFunc(policies, func(p configv1alpha1.PackagePolicy) bool {
		return p.Spec.Dependencies == configv1alpha1.PinnedDependencies
	}) {
		return nil, nil
	}
	list := &v1beta1.OperatorVersionList{}
	if err := g.Cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the OperatorVersions of namespace %s, which may vouch for their dependencies: %w", namespace, err)
	}
	var out []v1beta1.OperatorVersion
	for _, ov := range list.Items {
		if namesContent(&ov) {
			out = append(out, ov)
		}
	}
	slices.SortFunc(out, func(a, b v1beta1.OperatorVersion) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// compareContent refuses an OperatorVersion whose content is not the wanted one.
func (g *Guard) compareContent(r Request) Verdict {
	key := sha256.Sum256(fmt.Appendf(nil, "content %q %q", r.Identity, r.Content))
	if known, found := g.recall(key); found {
		return known
	}
	verdict := Verdict{Allowed: true}
	digest, err := content.Digest(r.Version)
	switch {
	case err != nil:
		verdict = Verdict{Reason: ContentDiffers, Message: text.Plain(err.Error(), maxMessage)}
	case digest != r.Content:
		verdict = Verdict{Reason: ContentDiffers, Message: fmt.Sprintf("OperatorVersion %s/%s has content %s, and the Instance wants %s "+
			"(annotation %s): install the package that has this content, or, if the Instance is a dependency, the version of its parent that "+
			"is locked to what is installed", r.Version.Namespace, r.Version.Name, digest, text.Plain(r.Content, len(digest)),
			v1beta1.VersionContentAnnotation)}
	}
	g.remember(key, verdict)
	return verdict
}

// recall returns a verdict that was remembered.
func (g *Guard) recall(key [sha256.Size]byte) (Verdict, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	verdict, found := g.verdicts[key]
	return verdict, found
}

// remember keeps a verdict.
func (g *Guard) remember(key [sha256.Size]byte, verdict Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.verdicts == nil || len(g.verdicts) >= maxVerdicts {
		g.verdicts = map[[sha256.Size]byte]Verdict{}
	}
	g.verdicts[key] = verdict
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
func (r Request) key(policies []configv1alpha1.PackagePolicy, parents []v1beta1.OperatorVersion, namespace labels.Set,
	required bool) (key [sha256.Size]byte) {
	parts := make([]string, len(policies))
	for i, p := range policies {
		parts[i] = fmt.Sprintf("%q %q %d", p.Name, p.UID, p.Generation)
	}
	for _, ov := range parents {
		parts = append(parts, fmt.Sprintf("parent %q %d", ov.UID, ov.Generation))
	}
	slices.Sort(parts)
	tarball := Tarball{}
	if r.Tarball != nil {
		tarball = *r.Tarball
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q %t", parts, r.Identity, namespace.String(), r.Signatures,
		r.Manifest, tarball, r.UnpinnedTarball, required))
}
