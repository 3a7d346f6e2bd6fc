package preview

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	versioncontent "kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// settleVersions finds out which of the OperatorVersions that come with the edit exist. Where the command uses these as they are, their
// content counts, and not that of the package: another user may have made them.
func (c *computation) settleVersions(ctx context.Context) error {
	if c.depth > 0 {
		return nil // the edit of the parent has settled them
	}
	versions := slices.Clone(c.edit.Versions)
	for i, version := range versions {
		there := &v1beta1.OperatorVersion{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(version), there)
		switch {
		case err == nil:
			c.former = append(c.former, there.DeepCopy())
			if c.edit.KeepsVersions {
				versions[i] = c.keepVersion(there, version)
			} else {
				versions[i] = c.replaceVersion(there, version)
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case !apierror.IsObjectNotFound(err):
			c.unknown("whether OperatorVersion %s/%s exists: %s", version.Namespace, version.Name, err)
		default:
			coming := version.DeepCopy()
			coming.UID = types.UID(uuid.NewString()) // it is not created yet
			versions[i] = coming
			c.coming = append(c.coming, coming)
		}
		if client.ObjectKeyFromObject(c.edit.Version) == client.ObjectKeyFromObject(version) {
			c.edit.Version = versions[i]
		}
	}
	c.edit.Versions = versions
	return nil
}

// keepVersion returns an OperatorVersion that exists as the command leaves it: with other parameters of its install plan, if any are given.
func (c *computation) keepVersion(there, version *v1beta1.OperatorVersion) *v1beta1.OperatorVersion {
	c.warnOfContent(there, version)
	if given := version.Spec.InstallParameters; len(given) > 0 && !maps.Equal(given, there.Spec.InstallParameters) {
		there.Spec.InstallParameters = given
		c.changing = append(c.changing, there)
	}
	return there
}

// replaceVersion returns an OperatorVersion as the edit changes it. Its install plan runs again if its name or its
// parameters change, or if it has not succeeded.
func (c *computation) replaceVersion(there, version *v1beta1.OperatorVersion) *v1beta1.OperatorVersion {
	out := version.DeepCopy()
	out.UID, out.Status = there.UID, there.Status
	same, err := versioncontent.Same(there, version)
	sameInput := version.Spec.InstallPlan == there.Spec.InstallPlan &&
		maps.Equal(version.Spec.InstallParameters, there.Spec.InstallParameters)
	if !sameInput || (err != nil || !same) && !hasSucceeded(there) {
		c.changing = append(c.changing, out)
	}
	return out
}

// warnOfContent warns of an OperatorVersion that is used as it is, and that is not what the package holds.
func (c *computation) warnOfContent(there, version *v1beta1.OperatorVersion) {
	if same, err := versioncontent.Same(there, version); err == nil && same {
		return
	}
	c.warn("OperatorVersion %s/%s exists, and its content differs from that of the package: it is used as it is, and this preview is of it",
		there.Namespace, there.Name)
}

// installVersions previews the install plans of the OperatorVersions that the edit creates, or whose install parameters it changes, and
// reports whether all of them would end well: the Instance waits for them.
func (c *computation) installVersions(ctx context.Context) (bool, error) {
	for _, version := range c.edit.Versions {
		installation, cause := newInstallation(version), trigger.CauseVersionCreated
		if slices.Contains(c.changing, version) {
			if cause = trigger.CauseInstallChanged; !hasSucceeded(version) {
				cause = trigger.CauseVersionChanged
			}
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(installation), installation)
			if err != nil && !apierror.IsObjectNotFound(err) {
				c.unknown("what OperatorVersion %s/%s holds, and would do with it: %s", version.Namespace, version.Name, err)
				continue
			}
		} else if !slices.Contains(c.coming, version) {
			continue
		}
		if version.Spec.InstallPlan == "" {
			continue
		}
		if installed, err := c.install(ctx, version, installation, cause); err != nil || !installed {
			return false, err
		}
	}
	return true, nil
}

// hasSucceeded reports whether the last run of an install plan is complete.
func hasSucceeded(version *v1beta1.OperatorVersion) bool {
	_, last := plans.LatestRun(version.Status.PlanStatus)
	return last.Status == v1beta1.Complete
}

// newInstallation returns the Installation that kudo would make for an OperatorVersion.
func newInstallation(version *v1beta1.OperatorVersion) *v1beta1.Installation {
	out := &v1beta1.Installation{}
	out.Name, out.UID = version.InstallationName(), types.UID(uuid.NewString())
	out.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: version.Namespace, Name: version.Name, UID: version.UID}
	return out
}

// install previews the install plan of an OperatorVersion, and reports whether it would end well.
func (c *computation) install(ctx context.Context, version *v1beta1.OperatorVersion, installation *v1beta1.Installation,
	cause string) (bool, error) {
	parsed, err := runner.NewVersions().ForSpec(&version.Spec)
	if err != nil {
		return false, err
	}
	policy := share.Policy{}
	if given := version.Spec.InstallPolicy; given != nil {
		policy.SameOperator = given.SharedUpdates == v1beta1.SameOperatorUpdates
	}
	st, err := c.execute(ctx, &runner.Run{
		Subject: runner.Subject{Kind: "OperatorVersion", Namespace: version.Namespace, Name: version.Name, UID: version.UID},
		Source:  version.Namespace + "/" + version.Name, Version: parsed, Plan: version.Spec.InstallPlan, Cause: cause,
		UID: "preview", Parameters: version.Spec.InstallParameters, Account: apply.Account{Namespace: version.Namespace},
		Installation: installation, Held: installation.Status.Resources, Policy: policy, Keys: c.keys, Sensitive: c.sensitive,
	}, runner.Inventory{})
	if err != nil || st.Status == v1beta1.FatalError {
		return false, err
	}
	return true, c.releaseUnnamed(ctx, installation)
}

// releaseUnnamed previews what becomes of the objects that an install plan has installed before, and does not name any more.
func (c *computation) releaseUnnamed(ctx context.Context, installation *v1beta1.Installation) error {
	left := installation.DeepCopy()
	left.Status.Resources = slices.DeleteFunc(left.Status.Resources, func(r v1beta1.HeldResource) bool {
		_, named := c.touched[share.IDOf(r)]
		return named
	})
	if len(left.Status.Resources) == 0 {
		return nil
	}
	return c.out.release(ctx, c.share, left, false)
}

// holderReader reads the OperatorVersions that come with an edit as if they existed.
type holderReader struct {
	client.Reader
	versions []*v1beta1.OperatorVersion
}

// Get implements client.Reader.
func (r holderReader) Get(ctx context.Context, at client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if version, ok := into.(*v1beta1.OperatorVersion); ok {
		for _, coming := range r.versions {
			if client.ObjectKeyFromObject(coming) == at {
				coming.DeepCopyInto(version)
				return nil
			}
		}
	}
	return r.Reader.Get(ctx, at, into, o...)
}
