package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/live"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/plans/trigger"
)

// Previewer computes previews with the rights of a user.
type Previewer struct {
	// Config connects to the cluster as the user.
	Config *rest.Config
	// Client reads Instances and OperatorVersions.
	Client client.Client
	// IsLocal is set if the cluster is only read, without dry runs.
	IsLocal bool
	// Limit is the time in which the cluster must answer all questions of a preview. What it does not answer by then is not known.
	Limit time.Duration
	// Begin is called when a preview asks its first question, and returns how much of Limit is left. If it is nil, all of Limit is left.
	Begin func() time.Duration
	// Late is the error that is returned if the cluster answers nothing within Limit.
	Late error
}

// Edit asks the cluster what an edit would do.
func (p *Previewer) Edit(ctx context.Context, edit preview.Edit) (*preview.Preview, error) {
	return p.compute(ctx, func(ctx context.Context, o preview.Options) (*preview.Preview, error) {
		now, known := readSettings(ctx, &o, edit.After.Namespace)
		o.Tarballs = newTarballs(ctx, p.Client, now, known)
		return preview.Compute(ctx, o, edit)
	})
}

// Instance asks what a change of an Instance would do whose OperatorVersions are in the cluster.
func (p *Previewer) Instance(ctx context.Context, verb string, before *v1beta1.Instance,
	change func(*v1beta1.Instance)) (*preview.Preview, error) {
	e := preview.Edit{Verb: verb, Before: before, After: before.DeepCopy()}
	change(e.After)
	var err error
	if e.Version, err = FindVersion(ctx, p.Client, e.After); err != nil {
		return nil, err
	}
	if before.OperatorVersionKey() != e.After.OperatorVersionKey() {
		if e.Old, err = ReadVersion(ctx, p.Client, before); err != nil {
			return nil, err
		}
	}
	return p.Edit(ctx, e)
}

// Drift asks what plan deploy would set back of what others have changed.
func (p *Previewer) Drift(ctx context.Context, instance *v1beta1.Instance) (*preview.Preview, error) {
	return p.Instance(ctx, "deploy", instance, Trigger{Instance: instance, Plan: v1beta1.DeployPlan}.Apply)
}

// retry asks what another run of the plan that failed last would do.
func (p *Previewer) retry(ctx context.Context, i *v1beta1.Instance, plan string) (*preview.Preview, error) {
	if i.DeletionTimestamp != nil {
		return p.uninstall(ctx, i, false)
	}
	version, err := FindVersion(ctx, p.Client, i)
	if err != nil {
		return nil, err
	}
	run := &trigger.Request{Plan: plan, Cause: fmt.Sprintf("%s run %d", trigger.CauseRetry, i.Status.PlanStatus[plan].Revision),
		Upgrade: i.Status.Baseline != nil && i.Status.Baseline.UpgradeIncomplete}
	return p.Edit(ctx, preview.Edit{Verb: "retry", Before: i, After: i.DeepCopy(), Version: version, Retry: run})
}

// uninstall asks what the deletion of an Instance would do.
func (p *Previewer) uninstall(ctx context.Context, instance *v1beta1.Instance, keepsClaims bool) (*preview.Preview, error) {
	version, err := ReadVersion(ctx, p.Client, instance)
	if err != nil {
		return nil, err
	}
	return p.compute(ctx, func(ctx context.Context, o preview.Options) (*preview.Preview, error) {
		readSettings(ctx, &o, instance.Namespace)
		return preview.Uninstall(ctx, o, instance, version, keepsClaims)
	})
}

// readSettings reads the settings of kudo, and notes with whose rights Instances of the namespace run that name no account.
func readSettings(ctx context.Context, o *preview.Options, namespace string) (now settings.Settings, known bool) {
	now, known = kudoinit.ReadSettings(ctx, o.Client)
	account, privileged, sure := kudoinit.DefaultAccount(ctx, o.Client, now, namespace)
	if known && sure {
		o.DefaultAccount, o.DefaultPrivileged = account, privileged
	}
	return now, known
}

// Versions asks what the creation of OperatorVersions without an Instance would do. keeps is set if those that exist stay as they are.
func (p *Previewer) Versions(ctx context.Context, verb string, versions []*v1beta1.OperatorVersion, keeps bool) (*preview.Preview, error) {
	return p.compute(ctx, func(ctx context.Context, o preview.Options) (*preview.Preview, error) {
		return preview.ComputeVersions(ctx, o, verb, versions, keeps)
	})
}

// Release asks what the deletion of an OperatorVersion would do.
func (p *Previewer) Release(ctx context.Context, r preview.Release) (*preview.Preview, error) {
	return p.compute(ctx, func(ctx context.Context, o preview.Options) (*preview.Preview, error) {
		return preview.ComputeRelease(ctx, o, r)
	})
}

// compute computes a preview with the clients of the user. What is not answered in time is not known; an error says that nothing is.
func (p *Previewer) compute(ctx context.Context,
	compute func(context.Context, preview.Options) (*preview.Preview, error)) (*preview.Preview, error) {
	left := p.Limit
	if p.Begin != nil {
		left = p.Begin()
	}
	limit, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	ctx, cancelAll := context.WithTimeout(ctx, 2*p.Limit) // with what is not asked by these clients, such as webhooks
	defer cancelAll()
	o, err := p.options(ctx, limit)
	if err != nil {
		return nil, err
	}
	out, err := compute(ctx, o)
	if errors.Is(err, preview.ErrLate) || errors.Is(err, context.DeadlineExceeded) {
		return nil, p.Late
	}
	return out, err
}

// options are the clients of the user. Their requests end with limit.
func (p *Previewer) options(ctx, limit context.Context) (preview.Options, error) {
	config := rest.CopyConfig(p.Config)
	config.Wrap(LimitTransport(limit, preview.ErrLate))
	config.QPS = -1                           // the apiserver's priority and fairness decides, not the client
	config.WarningHandler = rest.NoWarnings{} // that a new OperatorVersion does not exist yet is not worth a warning
	o := preview.Options{Clock: clock.RealClock{}, Local: p.IsLocal}
	var err error
	if o.Client, err = client.New(config, client.Options{Scheme: p.Client.Scheme(), Mapper: p.Client.RESTMapper()}); err != nil {
		return o, err
	}
	o.Client = preview.RecordReads(o.Client)
	if o.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return o, err
	}
	if o.Metadata, err = metadata.NewForConfig(config); err != nil {
		return o, err
	}
	if o.Discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return o, err
	}
	layers, unreached, unknown, err := live.Layers(ctx, o.Client)
	if err != nil {
		return o, err
	}
	for _, hook := range unreached {
		o.Incomplete = append(o.Incomplete, hook.String())
	}
	if unknown {
		o.Incomplete = append(o.Incomplete, "you may not list the explore rules and webhooks of the cluster: kudo may get other answers")
	}
	if p.IsLocal { // a webhook is asked with what would be written
		before := len(layers)
		layers = slices.DeleteFunc(slices.Clone(layers), func(l explore.Explorer) bool { return l.Layer() == explore.Webhook })
		if len(layers) < before {
			o.Incomplete = append(o.Incomplete, "explore webhooks are not asked: kudo may get other answers")
		}
	}
	o.All = layers
	o.External = slices.DeleteFunc(slices.Clone(layers), func(l explore.Explorer) bool { return l.Layer() == explore.Native })
	o.As = WhoAmI(ctx, o.Client)
	return o, nil
}
