package preview

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/test/env"
)

// auditEvent is a request in the audit log.
type auditEvent struct {
	Stage, Verb, RequestURI string
	User, ImpersonatedUser  struct{ Username string }
	ObjectRef               struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus          struct{ Code int }
}

// account is with whose rights the request was done.
func (e auditEvent) account() string {
	if e.ImpersonatedUser.Username != "" {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// object names the object of the request as objectKey does.
func (e auditEvent) object() string {
	return e.ObjectRef.Resource + "." + e.ObjectRef.APIGroup + " " + e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
}

// objectKey names an object of a preview by its resource, as the audit log does.
func objectKey(o preview.Object) string {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	return resource.Resource + "." + resource.Group + " " + o.Namespace + "/" + o.Name
}

// auditWrites are the objects that the plans of an Instance have created, changed and deleted, as the audit log has it. Removed are those that
// were deleted by any account, such as the garbage collector. Sequence has those that the plans have written, in the order of the first write.
type auditWrites struct{ created, changed, deleted, removed, sequence []string }

// readAuditWrites reads what the plans of Instance i have written since the offset. A plan writes by server-side apply with a field manager of
// its own: what is new is answered with 201. It deletes as the account that has applied.
func readAuditWrites(t *testing.T, ns string, since int64) auditWrites {
	t.Helper()
	file, err := os.Open(suite.AuditLog())
	env.Must(t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(since, io.SeekStart)
	env.Must(t, err)
	text, err := io.ReadAll(file)
	env.Must(t, err)
	var out auditWrites
	var deletions []auditEvent
	accounts, manager := map[string]bool{}, runner.Manager(ns, "i")
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(ns)) {
			continue
		}
		event := auditEvent{}
		if json.Unmarshal(line, &event) != nil { // the last line may be written now
			continue
		}
		address, err := url.Parse(event.RequestURI)
		env.Must(t, err)
		query := address.Query()
		if event.Stage != "ResponseComplete" || event.ResponseStatus.Code >= http.StatusMultipleChoices || query.Has("dryRun") {
			continue
		}
		switch {
		case event.Verb == "delete":
			deletions = append(deletions, event)
			out.sequence = append(out.sequence, event.object())
		case event.Verb == "patch" && query.Get("fieldManager") == manager && event.ObjectRef.Subresource == "":
			accounts[event.account()] = true
			out.sequence = append(out.sequence, event.object())
			if event.ResponseStatus.Code == http.StatusCreated {
				out.created = append(out.created, event.object())
			} else {
				out.changed = append(out.changed, event.object())
			}
		}
	}
	for _, event := range deletions {
		out.removed = append(out.removed, event.object())
		if accounts[event.account()] && event.ObjectRef.Resource != "controllerrevisions" { // the history is no object of the plans
			out.deleted = append(out.deleted, event.object())
		}
	}
	out.keepFirstWrites()
	return out
}

// keepFirstWrites leaves only the first write of each object in the sequence, and no deletion by others.
func (w *auditWrites) keepFirstWrites() {
	done, seen := slices.Concat(w.created, w.changed, w.deleted), map[string]bool{}
	w.sequence = slices.DeleteFunc(w.sequence, func(key string) bool {
		again := seen[key]
		seen[key] = true
		return again || !slices.Contains(done, key)
	})
}

// compareWritten compares the effects that the preview named with the writes of the upgrade in the audit log:
//
//	create     it is applied, as new
//	recreate   it is deleted, and applied as new
//	modify     it is applied, and not as new
//	delete     it is deleted, by the plan or the garbage collector
//	else       it is neither applied as new nor deleted, or both by the same run; an apply may say again what is there
//
// It is an error if the plans write an object that the preview does not name. A run that has stopped may not have reached an object.
// Objects of install plans, which have other field managers, are compared by their state.
func (o outcome) compareWritten(t *testing.T, ended bool) {
	t.Helper()
	if !suite.IsDisposable() {
		return
	}
	done := readAuditWrites(t, o.ns, o.since)
	named := map[string]bool{}
	for _, said := range o.preview.Objects {
		key := objectKey(said)
		named[key] = true
		if said.Kind == "Instance" { // kudo writes children by other requests
			continue
		}
		ofInstance := ended && said.Namespace == o.ns && slices.ContainsFunc(o.preview.Runs, func(r preview.Run) bool { return r.Of == "" && appliedIn(said, r.Plan) })
		created, changed, deleted := slices.Contains(done.created, key), slices.Contains(done.changed, key), slices.Contains(done.deleted, key)
		wrong := false
		switch said.Effect {
		case preview.Create:
			wrong = ofInstance && !created
		case preview.Recreate:
			wrong = ofInstance && (!created || !deleted)
		case preview.Modify:
			wrong = ofInstance && !changed || created || deleted
		case preview.Delete:
			wrong = created || ended && !slices.Contains(done.removed, key)
		case preview.Unknown:
		default:
			wrong = created != deleted && (ended || !o.isTemporary(said))
		}
		if wrong {
			t.Errorf("%s: said %s, and the audit log has: created %t, changed %t, deleted %t\n%s", said.ID(), said.Effect, created, changed, deleted, o.texts)
		}
	}
	for _, key := range slices.Concat(done.created, done.changed, done.deleted) {
		if !named[key] {
			t.Errorf("the audit log has a write of %s, which the preview does not name\n%s", key, o.texts)
		}
	}
	o.compareOrder(t, done.sequence)
}

// compareOrder compares the order in which the plans have written objects first with that of the preview, part by part of the plans: the objects
// of a task, and the parts that a plan runs in parallel, have no order. It leaves out objects with several places: a write that changes nothing
// may not be asked for, so that the first one in the log may be that of a later place.
func (o outcome) compareOrder(t *testing.T, written []string) {
	t.Helper()
	version := o.version(t)
	if version == nil {
		return
	}
	parts := map[string]string{}
	var said []string
	for _, object := range o.preview.Objects {
		if key := objectKey(object); len(object.Places) == 1 && slices.Contains(written, key) {
			parts[key] = partOf(version, object.Places[0])
			said = append(said, parts[key])
		}
	}
	var happened []string
	for _, key := range written {
		if part, named := parts[key]; named {
			happened = append(happened, part)
		}
	}
	if diff := cmp.Diff(slices.Compact(said), slices.Compact(happened)); diff != "" {
		t.Errorf("the objects were written in another order (-said +happened): %s\n%s", diff, o.texts)
	}
}

// version reads the OperatorVersion of the Instance; nil if there is none, such as after an uninstallation.
func (o outcome) version(t *testing.T) *v1beta1.OperatorVersion {
	t.Helper()
	i := &v1beta1.Instance{}
	err := suite.Get(t.Context(), types.NamespacedName{Namespace: o.ns, Name: "i"}, i)
	if apierrors.IsNotFound(err) {
		return nil
	}
	env.Must(t, err)
	key := i.OperatorVersionKey()
	return env.Read(t, suite, &v1beta1.OperatorVersion{}, key.Namespace, key.Name)
}

// partOf cuts a place, as plan/phase/step/task, before what a plan does in parallel.
func partOf(version *v1beta1.OperatorVersion, place string) string {
	names := strings.Split(place, "/")
	plan, known := version.Spec.Plans[names[0]]
	if !known || len(names) < 4 {
		return place
	}
	if plan.Strategy == v1beta1.Parallel {
		return names[0]
	}
	for _, phase := range plan.Phases {
		if phase.Name == names[1] && phase.Strategy == v1beta1.Parallel {
			return names[0] + "/" + names[1]
		}
	}
	return place
}

// appliedIn reports whether a plan writes an object, by the places that the preview names.
func appliedIn(o preview.Object, plan string) bool {
	return slices.ContainsFunc(o.Places, func(place string) bool { return len(place) > len(plan) && place[:len(plan)+1] == plan+"/" })
}
