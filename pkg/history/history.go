// Package history keeps the runs of an Instance or an OperatorVersion, with their parameters and the OperatorVersion that they use, as
// ControllerRevisions.
package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/keyring"
)

// Run is what a run was started with. It does not change.
type Run struct {
	Plan  string `json:"plan"`
	Cause string `json:"cause,omitempty"`
	// RequestedBy is the user who asked for the run, and the client by its own account, as in `ann with kubectl kudo update`; empty if the
	// user is not known, or if no write of the Instance asked for it.
	RequestedBy string `json:"requestedBy,omitempty"`
	// UID of the run.
	UID types.UID `json:"uid"`
	// OperatorVersion is `<namespace>/<name>`.
	OperatorVersion string `json:"operatorVersion"`
	// Snapshot names the ControllerRevision that holds the OperatorVersion's spec: the run's own, or that of an earlier run.
	Snapshot string `json:"snapshot"`
	// Spec of the OperatorVersion, as Pack returns it, if the run's own ControllerRevision holds it.
	Spec []byte `json:"spec,omitempty"`
	// Upgrade is set if the run took the Instance from another OperatorVersion.
	Upgrade bool `json:"upgrade,omitempty"`
	// From is the version that the last complete run of plan deploy, update or upgrade before this run had; empty before the first.
	From v1beta1.PackageVersion `json:"from,omitzero"`
	// Suspend is spec.suspend of the Instance.
	Suspend bool `json:"suspend,omitempty"`
	// ServiceAccount of the Instance's namespace with whose rights the run writes.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Privileged is set if the run writes with the rights of kudo's own account, since its namespace was privileged.
	Privileged bool `json:"privileged,omitempty"`
	// Parameters as the Instance gave them. In a ControllerRevision, sensitive ones are sealed.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Sensitive are the names of those parameters whose values are not to be seen.
	Sensitive []string `json:"sensitive,omitempty"`
	// Started is when the run was asked for.
	Started metav1.MicroTime `json:"started"`
	// Key is the id of the key that the record is sealed with. Set by Read.
	Key string `json:"-"`
}

// Limit is how many runs of an owner are kept. An older one may be there for the OperatorVersion that it holds, and is no
// part of the history any more.
const Limit = 10

// Store reads and writes ControllerRevisions. Reads are live: they happen once a run in the life of a manager.
type Store struct {
	client client.Client
	reader client.Reader
	keys   Keys
}

// Keys give the keys that records are sealed with.
type Keys interface {
	// Ring returns the keys. The error is a *KeyMissingError if there are none.
	Ring(ctx context.Context) (*keyring.Ring, error)
}

// New returns a store that writes with the client and reads with the reader.
func New(c client.Client, reader client.Reader, keys Keys) *Store {
	return &Store{client: c, reader: reader, keys: keys}
}

// RunUID is the uid of an Instance's run: the same for the same number, so that a crash cannot double a run.
func RunUID(instance types.UID, revision int64) types.UID {
	space, err := uuid.Parse(string(instance))
	if err != nil {
		space = uuid.NewSHA1(uuid.NameSpaceOID, []byte(instance))
	}
	return types.UID(uuid.NewSHA1(space, fmt.Appendf(nil, "kudo.dev/run/%d", revision)).String())
}

// Name of the ControllerRevision of an Instance's run.
func Name(instance string, revision int64) string { return fmt.Sprintf("%s-%d", instance, revision) }

// NameFor is the name of the ControllerRevision of a run of the owner, an Instance or an OperatorVersion: these may have
// the same name.
func NameFor(owner client.Object, revision int64) string {
	if _, installs := owner.(*v1beta1.OperatorVersion); installs {
		return Name(owner.GetName()+"-install", revision)
	}
	return Name(owner.GetName(), revision)
}

// labels of all ControllerRevisions of an owner.
func labels(owner client.Object) map[string]string {
	out := map[string]string{v1beta1.HistoryLabel: string(owner.GetUID())}
	if _, runs := owner.(*v1beta1.Instance); runs {
		out[v1beta1.InstanceLabel] = owner.GetName()
	}
	if operator := owner.GetLabels()[v1beta1.OperatorLabel]; operator != "" {
		out[v1beta1.OperatorLabel] = operator
	}
	return out
}

func kind(owner client.Object) string {
	if _, installs := owner.(*v1beta1.OperatorVersion); installs {
		return "OperatorVersion"
	}
	return "Instance"
}

// RecordStart writes down a run that is about to be started. A revision of the number that was never committed, because of a
// crash or because spec changed in between, is replaced. The error is a *FormatError if the revision has an unknown format, and a
// *FormerError if the first run of an Instance meets records from before a restore.
func (s *Store) RecordStart(ctx context.Context, owner client.Object, revision int64, run Run) error {
	ring, err := s.keys.Ring(ctx)
	if err != nil {
		return err
	}
	object, err := seal(ring, owner, revision, run)
	if err != nil {
		return err
	}
	err = s.client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		if recorded, err := s.removeUncommitted(ctx, ring, owner, revision, object.Name, run); recorded || err != nil {
			return err
		}
		err = s.client.Create(ctx, object)
	}
	if err != nil {
		what := "with its parameters"
		if len(run.Spec) > 0 {
			what += " and its OperatorVersion"
		}
		return fmt.Errorf("record run %d of %s %s/%s, %s, in a ControllerRevision: %w", revision, kind(owner), owner.GetNamespace(),
			owner.GetName(), what, err)
	}
	return nil
}

// removeUncommitted deletes the record that has the name of that of a run, if it is of a start that was not committed. It reports whether
// the record is that of the run already.
func (s *Store) removeUncommitted(ctx context.Context, ring *keyring.Ring, owner client.Object, revision int64, name string,
	run Run) (recorded bool, err error) {
	left, foreign := s.readOwned(ctx, owner, name)
	if foreign != nil {
		return false, foreign
	}
	if _, runs := owner.(*v1beta1.Instance); runs && revision == 1 && IsFormer(left, owner) {
		return false, &FormerError{Namespace: left.Namespace, Name: left.Name}
	}
	if same, err := isSameRun(ring, owner, revision, left, run); same || err != nil {
		return same, err
	}
	if err := s.checkUncommitted(ctx, owner, revision); err != nil {
		return false, err
	}
	if err := s.client.Delete(ctx, left, client.Preconditions{UID: &left.UID}); err != nil {
		return false, fmt.Errorf("replace ControllerRevision %s/%s: %w", left.Namespace, left.Name, err)
	}
	return false, nil
}

// isSameRun reports whether a revision of ours says the same as a run, but for the time: a crash came between writing it down
// and the commit. The error is a *FormatError.
func isSameRun(ring *keyring.Ring, owner client.Object, revision int64, left *appsv1.ControllerRevision, run Run) (bool, error) {
	old, err := open(ring, owner, revision, left)
	if Unusable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old.Started, old.Key = run.Started, run.Key
	return equality.Semantic.DeepEqual(*old, run), nil
}

// checkUncommitted fails if the number of a run has been committed: who wants to write it down again has an old Instance in
// hand, and must be read again.
func (s *Store) checkUncommitted(ctx context.Context, owner client.Object, revision int64) error {
	now := owner.DeepCopyObject().(client.Object)
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(owner), now); err != nil {
		return err
	}
	if Newest(now) >= revision {
		return apierrors.NewConflict(v1beta1.Resource(kind(owner)), owner.GetName(), fmt.Errorf("run %d was started concurrently", revision))
	}
	return nil
}

// Newest is the number of the newest run that the owner's status knows of; 0 for none.
func Newest(owner client.Object) int64 {
	switch o := owner.(type) {
	case *v1beta1.OperatorVersion:
		return o.Status.Revision
	case *v1beta1.Instance:
		if o.Status.Baseline != nil {
			return o.Status.Baseline.Revision
		}
	}
	return 0
}

// Read returns a run of the owner, as it was recorded by RecordStart. The error is an *UnusableError if it was not, or is not
// there, and a *FormatError if a newer version of kudo has written it.
func (s *Store) Read(ctx context.Context, owner client.Object, revision int64) (*Run, error) {
	ring, err := s.keys.Ring(ctx)
	if err != nil {
		return nil, err
	}
	name := NameFor(owner, revision)
	object := &appsv1.ControllerRevision{}
	err = s.reader.Get(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name}, object)
	switch {
	case apierror.IsObjectNotFound(err):
		return nil, &UnusableError{Namespace: owner.GetNamespace(), Name: name, Missing: true}
	case err != nil:
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", owner.GetNamespace(), name, err)
	}
	return open(ring, owner, revision, object)
}

// Pack returns the spec of an OperatorVersion as a run holds it: as JSON, compressed, since templates may have some 100 KB. Go's default
// level stores text such as base64 as it is.
func Pack(spec *v1beta1.OperatorVersionSpec) ([]byte, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// TakenError says that a ControllerRevision that kudo did not make, or the record of another owner, has the name that the record of a
// run would have.
type TakenError struct {
	Namespace, Name string
	// Owner is the kind and name of the object whose ControllerRevision it is; empty if it has none.
	Owner string
}

// Error implements error.
func (e *TakenError) Error() string {
	identity, remedy := "is no record of kudo", "it"
	if e.Owner != "" { // deleting the ControllerRevision alone would take the history from its owner
		identity, remedy = "belongs to "+e.Owner, e.Owner
	}
	return fmt.Sprintf("ControllerRevision %s/%s exists and %s, so that the run cannot be recorded under that name: it was not changed. "+
		"Delete %s",
		e.Namespace, e.Name, identity, remedy)
}

// FormerOwnerError says that the record of a former owner of the same name has the name that the record of a run would have. The garbage
// collector is about to delete it.
type FormerOwnerError struct {
	Namespace, Name string
	// Owner is the kind and name of the former owner.
	Owner string
}

// Error implements error.
func (e *FormerOwnerError) Error() string {
	return fmt.Sprintf("ControllerRevision %s/%s exists and belongs to a former %s: waiting for its deletion", e.Namespace, e.Name, e.Owner)
}

// readOwned reads a ControllerRevision of the owner. The error is a *TakenError if the ControllerRevision is not kudo's, or another
// owner's, and a *FormerOwnerError if it is that of a former owner of the name.
func (s *Store) readOwned(ctx context.Context, owner client.Object, name string) (*appsv1.ControllerRevision, error) {
	left := &appsv1.ControllerRevision{}
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name}, left); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", owner.GetNamespace(), name, err)
	}
	_, ours := left.Labels[v1beta1.HistoryLabel] // only kudo writes the label, whatever else is orphaned
	other := metav1.GetControllerOf(left)
	switch {
	case other != nil && (other.Kind != kind(owner) || other.Name != owner.GetName()):
		return nil, &TakenError{Namespace: left.Namespace, Name: left.Name, Owner: other.Kind + " " + other.Name}
	case !ours:
		return nil, &TakenError{Namespace: left.Namespace, Name: left.Name}
	case other == nil || other.UID == owner.GetUID():
		return left, nil
	}
	return nil, &FormerOwnerError{Namespace: left.Namespace, Name: left.Name, Owner: other.Kind + " " + other.Name}
}

// maxSpec bounds what a packed spec may unpack to, in bytes; an object of the API has at most some 1.5 MiB.
const maxSpec = 8 << 20

// ReadVersion returns the OperatorVersion's spec that a ControllerRevision of the owner holds, and errors as Read does.
func (s *Store) ReadVersion(ctx context.Context, owner client.Object, name string) (*v1beta1.OperatorVersionSpec, error) {
	revision, known := numberOf(owner, name)
	if !known {
		return nil, &UnusableError{Namespace: owner.GetNamespace(), Name: name}
	}
	run, err := s.Read(ctx, owner, revision)
	if err != nil {
		return nil, err
	}
	spec, err := unpack(run.Spec)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", owner.GetNamespace(), name, err)
	}
	return spec, nil
}

// numberOf returns the number of the run of the owner whose ControllerRevision has a name.
func numberOf(owner client.Object, name string) (int64, bool) {
	revision, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	return revision, err == nil && NameFor(owner, revision) == name
}

// unpack returns what Pack has packed.
func unpack(packed []byte) (*v1beta1.OperatorVersionSpec, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSpec))
	if err != nil {
		return nil, err
	}
	spec := &v1beta1.OperatorVersionSpec{}
	return spec, json.Unmarshal(text, spec)
}
