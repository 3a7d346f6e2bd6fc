package preview

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
// were deleted by any account, such as the garbage collector.
type auditWrites struct{ created, changed, deleted, removed []string }

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
	var deletions []auditEvent
	var out auditWrites
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
		case event.Verb == "patch" && query.Get("fieldManager") == manager && event.ObjectRef.Subresource == "":
			accounts[event.account()] = true
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
	return out
}

// compareWritten compares the effects that the preview named with the writes of the upgrade in the audit log:
//
//	create     it is applied, as new
//	recreate   it is deleted, and applied as new
//	modify     it is applied, and not as new
//	delete     it is deleted, by the plan or the garbage collector
//	else       it is neither applied as new nor deleted, or both by the same run; an apply may say again what is there
//
// What the plans write and the preview does not name is an error. A run that has stopped may not have come to an object yet. Objects of install
// plans, with other field managers, are compared by what becomes of them.
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
			wrong = created != deleted
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
}

// appliedIn reports whether a plan writes an object, by the places that the preview names.
func appliedIn(o preview.Object, plan string) bool {
	return slices.ContainsFunc(o.Places, func(place string) bool { return len(place) > len(plan) && place[:len(plan)+1] == plan+"/" })
}
