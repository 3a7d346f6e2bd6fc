package storedversions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/text"
)

const (
	// DefaultRate is how many objects a manager rewrites in a second.
	DefaultRate = 50
	// writers is how many objects are rewritten at a time.
	writers = 8
	// stepTimeout bounds a step: a list, pageTime, the writes that have begun by then, and the trim.
	stepTimeout = 4 * time.Minute
	// requestTimeout bounds the listing of a page, and the rewriting of one object, which webhooks may delay.
	requestTimeout = time.Minute
	// maxRefused is how many objects of one attempt may be refused before it ends: what refuses so many refuses all.
	maxRefused = 100
	// maxMessage bounds what others say in a message, in bytes.
	maxMessage = 1024
	// manager is the field manager of writes that change nothing.
	manager = "kudo/migration"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Migrator migrates definitions, with the rights of its clients.
type Migrator struct {
	dynamic dynamic.Interface
	// objects is the client for the custom resources. It receives their metadata only.
	objects metadata.Interface
	mapper  meta.RESTMapper
	clock   clock.PassiveClock
	limiter flowcontrol.RateLimiter
}

// Options are the parts that a Migrator works with.
type Options struct {
	// Config connects the Migrator to the cluster.
	Config *rest.Config
	Mapper meta.RESTMapper
	Clock  clock.PassiveClock
	// Rate bounds how many objects are rewritten in a second; 0 for no bound.
	Rate int
}

// New returns a Migrator. It reads no answer of the API server that is larger than 8 MiB.
func New(o Options) (*Migrator, error) {
	config := rest.CopyConfig(o.Config)
	config.Wrap(boundAnswers)
	m := &Migrator{mapper: o.Mapper, clock: o.Clock}
	var err error
	if m.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if m.objects, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	if o.Rate > 0 {
		m.limiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.Rate), o.Rate)
	}
	return m, nil
}

// Get reads a definition live.
func (m *Migrator) Get(ctx context.Context, name string) (Definition, error) {
	crd, err := m.dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Definition{}, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	return Parse(crd)
}

// Result says what follows a step.
type Result struct {
	// Action that was taken.
	Action Action
	// Finished is set if the older versions have left status.storedVersions, or never were there.
	Finished bool
	// After is the time after which the next step is due.
	After time.Duration
}

// Step takes the next step of a migration, and changes its state. The caller writes the state down before the next step; if that is
// lost, the step is taken again, which changes nothing. An owner, which may be nil, owns what is created.
//
// The next attempt may succeed after an error. The state is as before then. A nil error with a RetryTime in the state says that objects
// are refused: the next attempt is due then.
func (m *Migrator) Step(ctx context.Context, d Definition, state *v1beta1.StoredVersionMigration,
	owner *metav1.OwnerReference) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	action, after := Next(d, state, m.clock.Now())
	result := Result{Action: action, After: after}
	var err error
	switch action {
	case Finish:
		result.Finished = true
		err = m.removeNative(ctx, state.StorageVersionMigration)
	case Begin:
		result.After = settleTime
		var live Definition
		if live, err = m.Get(ctx, d.Name); err != nil {
			break
		}
		if result.Finished = len(live.Old()) == 0; result.Finished { // a cache does not show yet that a migration has ended
			err = m.removeNative(ctx, state.StorageVersionMigration)
			break
		}
		err = m.begin(ctx, live, state, owner)
	case Probe:
		result.After = settleTime
		err = m.probe(ctx, d, state, owner)
	case Rewrite:
		if state.StorageVersionMigration != "" {
			return m.stepNative(ctx, d, state, owner)
		}
		return m.rewritePage(ctx, d, state)
	}
	return result, err
}

// begin makes the state that of a new migration, by the cluster itself where it can. A migration that would remove fields from objects does
// not begin before the definition changes: another client may have changed the storage version without a check of the fields.
func (m *Migrator) begin(ctx context.Context, d Definition, state *v1beta1.StoredVersionMigration, owner *metav1.OwnerReference) error {
	if err := m.removeNative(ctx, state.StorageVersionMigration); err != nil {
		return err
	}
	next := Start(d, state, m.clock.Now())
	if d.Loss != nil {
		deferRetry(&next, fmt.Sprintf("the objects of CustomResourceDefinition %s are not rewritten: %s", d.Name, d.Loss), m.clock.Now())
		*state = next
		return nil
	}
	native, err := m.nativeMapping()
	if err != nil {
		return err
	}
	gaveUp := next.Attempts > 0 && state.StorageVersionMigration == "" // kudo has rewritten the objects itself before
	if native != nil && !gaveUp {
		next.StorageVersionMigration = nativeName(d, owner)
	}
	*state = next
	return nil
}

// probe tries the object that was refused, and begins another attempt if it is refused no more.
func (m *Migrator) probe(ctx context.Context, d Definition, state *v1beta1.StoredVersionMigration, owner *metav1.OwnerReference) error {
	if state.Blocked != nil {
		refusal, err := m.rewrite(ctx, d, state.Blocked.Namespace, state.Blocked.Name)
		if err != nil {
			return err
		}
		if refusal != nil {
			state.Blocked.Message = blockedMessage(d, *state.Blocked, refusal)
			deferRetry(state, state.Blocked.Message, m.clock.Now())
			return nil
		}
	}
	return m.begin(ctx, d, state, owner)
}

// blockedMessage names the object that was refused, and who refuses it.
func blockedMessage(d Definition, blocked v1beta1.RefusedObject, refusal error) string {
	name := blocked.Name
	if blocked.Namespace != "" {
		name = blocked.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s cannot be rewritten in version %s: %s: correct the object, or what refuses it", d.Kind, name, d.Storage,
		text.Plain(refusal.Error(), maxMessage))
}

// rewrite has the API server write an object as it is. A patch that changes nothing is written if the stored bytes are those of another
// version, and costs no write if they are not. It returns why the API server refuses the object, or nil if it does not.
func (m *Migrator) rewrite(ctx context.Context, d Definition, namespace, name string) (refusal, err error) {
	if m.limiter != nil {
		if err := m.limiter.Wait(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var resource metadata.ResourceInterface = m.objects.Resource(d.Resource)
	if namespace != "" {
		resource = m.objects.Resource(d.Resource).Namespace(namespace)
	}
	_, err = resource.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: manager})
	switch {
	case err == nil:
		return nil, nil
	case isRefusal(err):
		return err, nil
	case apierror.IsObjectNotFound(err), apierrors.IsConflict(err): // another client has deleted or rewritten it
		return nil, nil
	}
	return nil, fmt.Errorf("rewrite %s %s of CustomResourceDefinition %s: %w", d.Kind, name, d.Name, err)
}

// isRefusal reports whether an answer is about the object, and not about the server or a change in between. A webhook may choose any
// code for a denial.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	text, code := status.Status().Message, status.Status().Code
	if strings.HasPrefix(text, "admission webhook ") || strings.Contains(text, "ValidatingAdmissionPolicy '") {
		return true
	}
	if code < http.StatusBadRequest || code >= http.StatusInternalServerError {
		return false
	}
	switch code {
	case http.StatusNotFound, http.StatusConflict, http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return true
}

// trimAttempts bounds how often a definition is read again that has changed in the meantime.
const trimAttempts = 5

// trim takes the older versions out of status.storedVersions, if the definition is the one that the migration was begun for. It
// reports whether they are out. The patch is bound to the resourceVersion: the storage version cannot change in between.
func (m *Migrator) trim(ctx context.Context, state *v1beta1.StoredVersionMigration) (bool, error) {
	for range trimAttempts {
		d, err := m.Get(ctx, state.Definition)
		if err != nil {
			return false, err
		}
		if action, _ := Next(d, state, m.clock.Now()); action == Finish || action == Begin {
			return action == Finish, nil
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": d.UID, "resourceVersion": d.ResourceVersion},
			"status":   map[string]any{"storedVersions": []string{state.To}},
		})
		if err != nil {
			return false, err
		}
		_, err = m.objects.Resource(definitions).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager},
			"status")
		if err == nil {
			return true, nil
		}
		if !apierrors.IsConflict(err) {
			return false, fmt.Errorf("take %v out of status.storedVersions of CustomResourceDefinition %s: %w", d.Old(), d.Name, err)
		}
	}
	return false, fmt.Errorf("CustomResourceDefinition %s changes all the time, so that its status.storedVersions cannot be written",
		state.Definition)
}
