// Package runner runs the tasks of a plan: it renders, enhances, applies or deletes, looks at health, and hands
// outcomes back to the pure engine in plans. One file a task kind.
package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// Subject is the object whose plan runs: an Instance or an OperatorVersion.
type Subject struct {
	Kind, Namespace, Name string
	UID                   types.UID
	Annotations           map[string]string
	// Owners of the object: an Instance that another one made has that one among them.
	Owners []metav1.OwnerReference
}

// Run is what the tasks of one run share. A controller sets its fields before the first task. At each reconcile, the
// controller of Instances sets Subject.Annotations and Keys again, and the controller of OperatorVersions sets Held.
type Run struct {
	Subject Subject
	Version *ParsedVersion
	// Source names the OperatorVersion, for people.
	Source string
	Plan   string
	UID    types.UID
	// Parameters are the parameters that the run was started with.
	Parameters map[string]string
	// Sensitive are the names of those whose values are not to be seen.
	Sensitive []string
	// Upgrade is set if the run takes the Instance from another OperatorVersion.
	Upgrade bool
	// From is the version that the last complete run of plan deploy, update or upgrade before this run had; empty before the first.
	From v1beta1.PackageVersion
	// Account with whose rights the run reads and writes.
	Account apply.Account
	// Privileged is set if the Account is kudo's own, since the Instance names none and its namespace is privileged.
	Privileged bool
	// Keys of the digests of Secrets.
	Keys *keyring.Ring
	// Suspend sets the replicas of all objects to none.
	Suspend bool
	// Instances reads the Instances that others name as their owners.
	Instances client.Reader
	// Installation is set for an install plan: its objects are shared, and this Installation holds them.
	Installation *v1beta1.Installation
	// Policy says what the install plan may change.
	Policy share.Policy
	// Held is the inventory of Installation.
	Held share.Inventory
	// Cause says why the run was started.
	Cause string

	values, defaults params.Values
	pipes            map[string]string
	// observed holds the first observation of each object that is not healthy. A Run that is built anew has none.
	observed map[apply.ID]observation
	// searches is how many culprits this Execute has looked for.
	searches int
	// unset lists the required parameters for which an install plan has no value.
	unset  []string
	hidden *params.Mask
	// budget is that of one Execute: a Run may be kept for several.
	budget *render.Budget
	// quotasJudged is set once the run was held against the quotas of its namespace. A Run that is built anew has it unset.
	quotasJudged bool
	// explored are the kinds of the objects that were rendered since the begin of the last Execute: a step that waits before its first
	// write has them in no inventory. Only a Runner writes it.
	explored sync.Map
	// rulesChanged is set if what objects depend on is to be asked anew.
	rulesChanged atomic.Bool
	depends      dependencies
}

// begin prepares a Run for one Execute.
func (run *Run) begin(clock clock.PassiveClock) {
	run.budget, run.searches = &render.Budget{}, 0
	run.explored.Clear()
	run.depends.begin(run.rulesChanged.Swap(false), clock, run.mask)
}

// Runner runs tasks.
type Runner struct {
	engine   *apply.Engine
	kinds    *apply.Kinds
	mirror   apply.View
	share    *share.Engine
	accounts Accounts
	// all asks every layer, external all but kudo's own rules.
	all, external Interpreter
	exec          Executor
	// pipeImage is the image of the container that the files of Pipe tasks are read from: it holds the manager's program.
	pipeImage string
	metrics   *metrics.Runs
	// quotas reads the ResourceQuotas that a run is held against; nil if none are.
	quotas QuotaReader
	// judge decides the final outcome of a task; nil if outcomes count as they are.
	judge Judge
	// searchResults are those of the last searches for culprits, by searchKey: a controller may build the Run of a run anew for each
	// reconcile.
	searchResults *lru.Cache
	// pipeRefusal is why no Pipe task runs, or nil if they do.
	pipeRefusal error
}

// RefusePipes fails all Pipe tasks with an error, which says what to do. It is called before the first run.
func (r *Runner) RefusePipes(err error) { r.pipeRefusal = err }

// Accounts makes the engines that runs read and write with. *apply.Accounts is one.
type Accounts interface {
	// Engine returns an engine with the rights of the account, and no others.
	Engine(account apply.Account) (*apply.Engine, error)
}

// Options are the parts that a Runner works with.
type Options struct {
	// Engine reads; a run writes with the engine of its account, which Accounts makes.
	Engine   *apply.Engine
	Accounts Accounts
	Kinds    *apply.Kinds
	Mirror   apply.View
	Share    *share.Engine
	// All asks every layer, External all but kudo's own rules.
	All, External Interpreter
	// Executor reads the files of Pipe tasks, whose helper containers run PipeImage.
	Executor  Executor
	PipeImage string
	// Metrics counts the errors of tasks.
	Metrics *metrics.Runs
	// Quotas reads the ResourceQuotas that runs are held against when they start; nil if they are not.
	Quotas QuotaReader
	// Judge has the last word on the outcomes of tasks; nil if they count as they are.
	Judge Judge
}

// Judge returns the outcome that counts of a task that was done. A preview regards as ready what it has not really written.
type Judge func(w *PreparedTask, outcome plans.Outcome, effects Effects) plans.Outcome

// New returns a runner.
func New(o Options) *Runner {
	return &Runner{
		engine: o.Engine, kinds: o.Kinds, mirror: o.Mirror, share: o.Share, accounts: o.Accounts,
		all: o.All, external: o.External, exec: o.Executor, pipeImage: o.PipeImage, metrics: o.Metrics,
		quotas: o.Quotas, judge: o.Judge, searchResults: lru.New(maxSearchResults),
	}
}

// PreparedTask is a task at a place of a plan, rendered and ready to be done.
type PreparedTask struct {
	Place plans.Place
	// Name of the task.
	Name string
	run  *Run
	// inventory is what the Instance has.
	inventory Inventory
	task      task.Task
	writer    writer
	objects   []*unstructured.Unstructured
	// rendered are the objects before it is known whether they can be written, and templates the template of each.
	rendered  []*unstructured.Unstructured
	templates []string
	deletes   bool
	// deleteLast is deleted when all other deleted objects no longer exist.
	deleteLast []*unstructured.Unstructured
	// piping is set for Pipe tasks.
	piping *pipeRun
	// staleStatus returns why the status of an object is older than the last write of its spec, or "" if the status is current.
	staleStatus func(live *unstructured.Unstructured) string
	// started is when the step began, and now the time of this call: see failure.go.
	started, now time.Time
	// needs names the missing dependencies of the objects, if the task writes the objects nevertheless.
	needs string
	// suspect is the first object that is awaited or has failed, or nil if there is none.
	suspect *suspect
	// outcome is set if preparing has decided already.
	outcome *plans.Outcome
	effects Effects
}

// Effects are what a task did besides its outcome.
type Effects struct {
	// Written objects, for the inventory.
	Written []apply.Change
	// Deleted objects leave the inventory.
	Deleted []apply.ID
	// Events to record: reason and message.
	Events [][2]string
	// Readopted is the message of an event that names the objects that were taken over again; empty if none was.
	Readopted string
	// Failed objects could not be written.
	Failed []apply.Change
	// Recheck is set if the health of an object may change without an event.
	Recheck bool
	// NamespaceTerminating is set if the namespace is terminating: the run ends.
	NamespaceTerminating bool
}

// Prepare renders a task, without changing the cluster.
func (r *Runner) Prepare(ctx context.Context, run *Run, inventory Inventory, at plans.Place) *PreparedTask {
	plan := run.Version.Spec.Plans[run.Plan]
	phase := plan.Phases[at.Phase]
	step := phase.Steps[at.Step]
	w := &PreparedTask{Place: at, Name: step.Tasks[at.Task], run: run, inventory: inventory}
	var err error
	if w.writer, err = r.writer(run, inventory); err != nil {
		return w.failed(err)
	}
	def, ok := run.Version.Task(w.Name)
	if !ok {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q is not defined in OperatorVersion %s", w.Name, run.Source))
	}
	if w.task, err = task.New(def); err != nil {
		return w.decide(plans.Fatal, err.Error())
	}
	if err := run.resolve(); err != nil {
		return w.decide(plans.Fatal, err.Error())
	}
	variables := run.variables(phase.Name, step.Name)
	switch t := w.task.(type) {
	case task.Dummy:
		return w.dummy(t)
	case task.Pipe:
		return r.preparePipe(ctx, run, w, t, variables)
	case task.Apply:
		return r.prepareApply(ctx, run, w, t.Resources, variables)
	case task.Delete:
		return r.prepareDelete(run, w, t.Resources, variables)
	case task.Toggle:
		return r.prepareToggle(ctx, run, w, t, variables)
	case task.KudoOperator:
		return r.prepareOperator(ctx, run, inventory, w, t, variables)
	}
	return w.decide(plans.Fatal, fmt.Sprintf("task %q: there is no task kind %q", w.Name, def.Kind))
}

// Needs names the missing dependencies of the objects, if the task writes the objects nevertheless; empty if there are none.
func (w *PreparedTask) Needs() string { return w.needs }

// Do does what was prepared.
func (r *Runner) Do(ctx context.Context, run *Run, w *PreparedTask) (plans.Outcome, Effects) {
	switch {
	case w.outcome != nil:
		return *w.outcome, w.effects
	case w.deletes:
		return r.delete(ctx, w)
	case w.piping != nil:
		return r.pipe(ctx, run, w)
	}
	return r.apply(ctx, w)
}

func (w *PreparedTask) decide(state plans.State, message string) *PreparedTask {
	w.outcome = &plans.Outcome{State: state, Message: message}
	return w
}

// failed turns an error into an outcome: fatal if every attempt would meet it.
func (w *PreparedTask) failed(err error) *PreparedTask {
	var ended *apply.NamespaceTerminatingError
	if errors.As(err, &ended) && ended.Namespace == w.run.Subject.Namespace {
		w.effects.NamespaceTerminating = true
		return w.decide(plans.Fatal, err.Error())
	}
	if isFatal(err) {
		return w.decide(plans.Fatal, err.Error())
	}
	return w.decide(plans.Transient, err.Error()+w.rightsHint(err))
}

func isFatal(err error) bool {
	var template *render.Error
	var malformed *enhance.MalformedError
	return apply.IsFatal(err) || errors.As(err, &template) || errors.As(err, &malformed)
}
