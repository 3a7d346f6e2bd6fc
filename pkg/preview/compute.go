package preview

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	versioncontent "kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// Options are the clients that questions are asked with, all of one user.
type Options struct {
	// Client reads kudo's own kinds. A command that reads with it before wraps it by RecordReads first, so that Basis names these reads.
	Client    client.Client
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
	Discovery discovery.DiscoveryInterface
	// All asks all explore layers, External all but kudo's own rules.
	All, External runner.Interpreter
	// Incomplete says which explore layers cannot be asked from here, so that the manager may get other answers.
	Incomplete []string
	// Tarballs fetches the CRD tarballs of Instances; nil if the edit installs none.
	Tarballs Tarballs
	// DefaultAccount is the ServiceAccount with whose rights the plans of an Instance run if its spec names none; empty if it is not known.
	DefaultAccount types.NamespacedName
	// DefaultPrivileged is set if these are the rights of kudo.
	DefaultPrivileged bool
	// As names the user, for people.
	As string
	// Local is set if the cluster is only read: no dry run is sent.
	Local bool
	Clock clock.PassiveClock
}

// Edit is a change of an Instance, or its creation.
type Edit struct {
	// Verb is the command that would edit.
	Verb string
	// Before is the Instance as the cluster has it; nil if the edit creates it. After is the Instance as it would be.
	Before, After *v1beta1.Instance
	// Version is the OperatorVersion that After names; the cluster need not have it. Old is that which Before names, or nil if it is the same
	// or does not exist.
	Version, Old *v1beta1.OperatorVersion
	// Versions are the OperatorVersions that come with the edit, each after those that it depends on.
	Versions []*v1beta1.OperatorVersion
	// KeepsVersions is set if those that exist are used as they are, and not replaced.
	KeepsVersions bool
	// Retry is the run that failed and is to run again; nil if there is none. A change of spec comes before it.
	Retry *trigger.Request
	// GivesRights is set if the command gives the account of the Instance the rights that the plans need.
	GivesRights bool
}

// NotAsked is what is not known of an edit without dry runs.
const NotAsked = "what the API server and its webhooks would refuse, and which fields they would set: they were not asked"

// maxRuns is how many plans a preview follows: more than packages have.
const maxRuns = 32

// Compute returns what an edit would do. It changes nothing. An error says that nothing could be computed.
func Compute(ctx context.Context, o Options, edit Edit) (*Preview, error) {
	c := newComputation(o, edit)
	if err := c.compute(ctx); err != nil {
		return nil, err
	}
	return c.result(ctx)
}

func newComputation(o Options, edit Edit) *computation {
	basis := recordReads(o.Client)
	o.Client = basis
	cluster := dryrun.New(o.Dynamic, o.Client.RESTMapper())
	if o.Local {
		cluster = dryrun.NewLocal(o.Dynamic, o.Client.RESTMapper(), apply.NewKinds(o.Client.RESTMapper(), o.Discovery, o.Dynamic))
	}
	c := newComputationOn(cluster, o, edit)
	c.basis = basis
	if o.Local {
		c.unknown(NotAsked)
	}
	return c
}

// newComputationOn returns the computation of an edit of a cluster as other writes have left it.
func newComputationOn(cluster *dryrun.Cluster, o Options, edit Edit) *computation {
	out := &Preview{APIVersion: Version, Verb: edit.Verb, As: o.As,
		Subject: fmt.Sprintf("Instance %s/%s", edit.After.Namespace, edit.After.Name), Account: edit.After.Spec.ServiceAccountName}
	if edit.Version != nil {
		out.Content = contentDigest(edit.Version)
	}
	c := &computation{
		Options: o, edit: edit, kinds: apply.NewKinds(cluster.Mapper(), o.Discovery, o.Dynamic), deleted: map[types.UID]string{},
		definitions: newDefinitionComparer(o), objects: map[apply.ID]Object{}, listed: map[types.UID]bool{},
		touches: &touches{notes: &notes{out: out}, cluster: cluster, mapper: o.Client.RESTMapper(), touched: map[apply.ID]*touch{}},
	}
	if edit.Before != nil {
		c.ownedBefore = runner.InventoryOf(edit.Before)
	}
	for _, reason := range o.Incomplete {
		c.warn("%s", reason)
	}
	return c
}

// contentDigest returns the digest of what a run reads of an OperatorVersion, also of plans that do not run now. One that has no canonical
// form never runs; its name stands for it.
func contentDigest(version *v1beta1.OperatorVersion) string {
	digest, err := versioncontent.Digest(version)
	if err != nil {
		return version.Name
	}
	return digest
}

// computation is one call of Compute or Uninstall.
type computation struct {
	Options
	*touches
	edit Edit
	// kinds are those that are served, and those that the runs define.
	kinds *apply.Kinds
	// basis is set for the Instance of the edit. Children read with the same Client.
	basis *basisClient
	// objects are what would become of those that tasks have written or deleted.
	objects map[apply.ID]Object
	// listed are the objects that several deleted Instances hold, and that one of them lists: those of parents and children, too.
	listed map[types.UID]bool
	// children are the computations of Instances that the runs create, change or delete.
	children []*computation
	// depth is 0 for the Instance of the edit, 1 for its children, 2 for theirs.
	depth int
	// coming are the OperatorVersions that the edit creates, and changing those whose install parameters it changes.
	coming, changing []*v1beta1.OperatorVersion
	// former are those that exist, as they are.
	former []*v1beta1.OperatorVersion
	// leftovers is the Installation of the Instance with the definitions that it is going to release; nil if they are not known.
	leftovers *v1beta1.Installation
	// keepsClaims is set if an uninstall keeps all claims.
	keepsClaims bool
	// releasedUIDs are those of the objects that are deleted with the Instance, and held are those that stay and that others may hold.
	releasedUIDs []types.UID
	held         []heldObject
	// deleted are the Instances that are deleted, with their field managers: those of parents and children, too.
	deleted map[types.UID]string
	engine  *apply.Engine
	runner  *runner.Runner
	share   *share.Engine
	// definitions checks changes of CustomResourceDefinitions.
	definitions *definitionComparer
	version     *runner.ParsedVersion
	// run is the one that is previewed.
	run  *runner.Run
	keys *keyring.Ring
	// instance is After as the runs that have been previewed would leave it.
	instance  *v1beta1.Instance
	inventory runner.Inventory
	// ownedBefore is the inventory of Before: reading it for each object would take longer than all else.
	ownedBefore runner.Inventory
	// given are the values of parameters that spec gives, and before those that the spec of Before gave.
	given, before map[string]string
}

func (c *computation) compute(ctx context.Context) error {
	if err := c.settleVersions(ctx); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil || len(c.out.Refused) > 0 {
		return err
	}
	if err := errors.Join(c.admitVersions(ctx), c.askAdmission(ctx)); err != nil || len(c.out.Refused) > 0 {
		return err
	}
	if c.depth == 0 && c.edit.After.IsTemplate() {
		return placeOnClusters(c)
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	if installed, err := c.installVersions(ctx); err != nil || !installed {
		return err
	}
	return c.followAll(ctx)
}

// followAll previews the runs that the edit starts, one after the other.
func (c *computation) followAll(ctx context.Context) error {
	for n := range maxRuns {
		decision, err := trigger.Decide(trigger.Input{Instance: c.instance, Given: c.given, Version: c.edit.Version.Spec, Old: c.oldSpec(),
			Digests: digests(c.before)})
		if err != nil {
			c.out.Refused = append(c.out.Refused, c.mask.Text(err.Error()))
			return nil
		}
		if decision.Start == nil && n == 0 {
			decision.Start = c.edit.Retry
		}
		if decision.Start == nil {
			c.compareRights(ctx)
			return errors.Join(c.releaseDefinitions(ctx), c.previewChildren(ctx))
		}
		if n == 0 { // the first run waits for the definitions, and there are none if nothing runs
			if installed, err := c.installDefinitions(ctx); err != nil || !installed {
				return err
			}
		}
		if err := c.follow(ctx, decision); err != nil {
			return err
		}
	}
	c.unknown("more plans would run than a preview follows (%d)", maxRuns)
	return nil
}

// prepare reads what decisions depend on.
func (c *computation) prepare(ctx context.Context) error {
	var err error
	c.instance = c.edit.After.DeepCopy()
	if c.version, err = runner.NewVersions().ForSpec(&c.edit.Version.Spec); err != nil {
		return err
	}
	if c.keys, err = newKeys(); err != nil {
		return err
	}
	given, err := c.readValues(ctx, c.cluster.Reader(c.Client), c.edit.After, c.edit.Version)
	if err != nil {
		return err
	}
	c.given = given.given
	old := cmp.Or(c.edit.Old, c.edit.Version)
	var before values
	if c.edit.Before != nil {
		if before, err = c.readValues(ctx, c.cluster.Before(c.Client), c.edit.Before, old); err != nil {
			return err
		}
		c.before = before.given
	}
	c.hide(append(c.installValues(), given, before)...)
	if given.missing != "" {
		c.out.Refused = append(c.out.Refused, "the plan would wait: "+c.mask.Text(given.missing))
	}
	if before.missing != "" {
		c.warn("what the parameters were is not known, so that each counts as changed: %s", before.missing)
	}
	for _, problem := range params.Validate(given.defs, c.runValues(nil)) {
		c.out.Refused = append(c.out.Refused, c.mask.Text(problem.Error()))
	}
	if c.edit.Before == nil {
		return nil
	}
	c.assumeEnd(old)
	if err := c.assumeBaseline(old); err != nil {
		return err
	}
	c.assumeCompleted(old)
	return nil
}

// newKeys returns keys in place of those of the cluster, which only kudo has.
func newKeys() (*keyring.Ring, error) {
	data, err := keyring.Rotate(nil, rand.Reader)
	if err != nil {
		return nil, err
	}
	return keyring.Parse(data)
}

// assumeBaseline gives an Instance that KUDO has made the baseline that the manager would give it before the edit.
func (c *computation) assumeBaseline(version *v1beta1.OperatorVersion) error {
	if c.instance.Status.Baseline != nil || len(c.instance.Status.PlanStatus) == 0 {
		return nil
	}
	decision, err := trigger.Decide(trigger.Input{Instance: c.edit.Before, Given: c.before, Version: version.Spec, Digests: digests(c.before)})
	c.instance.Status.Baseline = decision.Baseline
	return err
}

// assumeCompleted gives an Instance the version that was complete, as the manager would, if an earlier version of kudo or KUDO has run it.
func (c *computation) assumeCompleted(version *v1beta1.OperatorVersion) {
	if base := c.instance.Status.Baseline; plans.LacksVersion(base, c.instance.Status.PlanStatus) {
		base.Completed = new(v1beta1.NewPackageVersion(&version.Spec))
	}
}

// assumeEnd lets a plan of a version that runs count as complete: the runs of the edit begin after it.
func (c *computation) assumeEnd(version *v1beta1.OperatorVersion) {
	name := plans.Running(c.instance.Status.PlanStatus)
	if name == "" {
		return
	}
	st := c.instance.Status.PlanStatus[name]
	if uid := c.instance.Annotations[v1beta1.CancelAnnotation]; uid != "" && uid == string(st.UID) {
		c.unknown("what plan %s, which runs at the moment and would be cancelled, will have done by then", name)
	} else {
		c.warn("plan %s runs at the moment: the preview assumes that it completes", name)
		plans.CompleteVersion(c.instance.Status.Baseline, name, &version.Spec)
	}
	st.Status = v1beta1.Complete
	c.instance.Status.PlanStatus[name] = st
}

// load reads what the Instance has made, by one LIST for each kind, and makes the runner.
func (c *computation) load(ctx context.Context) error {
	c.inventory = runner.InventoryOf(c.instance)
	kinds := map[schema.GroupVersionKind]bool{}
	for id := range c.inventory {
		if id.Namespace == c.instance.Namespace {
			kinds[id.GroupVersionKind] = true
		}
	}
	for kind := range kinds {
		if err := c.cluster.Load(ctx, kind, c.instance.Namespace, c.ours()); err != nil && ctx.Err() != nil {
			return err // any other error occurs again when the object is read
		}
	}
	retain := runner.NewRetainer(c.All)
	c.engine = apply.New(c.cluster.Client(), c.cluster.Metadata(c.Metadata), c.kinds, c.cluster, retain)
	c.share = share.New(share.Options{
		Objects: c.engine, Kinds: c.kinds, Mirror: c.cluster, Reader: holderReader{c.Client, c.coming}, Retain: retain,
		Safety: c.definitions, Clock: clock.RealClock{},
	})
	c.runner = runner.New(runner.Options{
		Share: c.share, Engine: c.engine, Accounts: asCaller{c.engine}, Kinds: c.kinds, Mirror: c.cluster, All: c.All, External: c.External,
		Judge: c.judge, Executor: noExecutor{}, PipeImage: pipeImage,
		Quotas: runner.NewQuotaReader(asCaller{c.engine}, nil),
	})
	return nil
}

// pipeImage stands for the manager's image in the pods of Pipe tasks, which the preview does not know. The API server refuses a pod
// without one.
const pipeImage = "kudo-manager"

// ours selects the objects that plans of the Instance have written.
func (c *computation) ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: c.instance.Name})
}

// sortedIDs lists the objects of an inventory in the order of their names.
func sortedIDs(inventory runner.Inventory) []apply.ID {
	return slices.SortedFunc(maps.Keys(inventory), func(a, b apply.ID) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(a.Version, b.Version))
	})
}

// asCaller asks with the rights of the user, whatever the account of the run.
type asCaller struct{ engine *apply.Engine }

// Engine implements runner.Accounts.
func (a asCaller) Engine(apply.Account) (*apply.Engine, error) { return a.engine, nil }

// noExecutor reads no files of pods: none is made.
type noExecutor struct{}

var errNoPod = errors.New("the pod is not made by a preview")

// Output implements runner.Executor.
func (noExecutor) Output(context.Context, string, podexec.Container, []string, int) ([]byte, error) {
	return nil, errNoPod
}
