// Package preview computes what an edit of an Instance would do, by the engine that runs plans over a cluster whose writes are dry runs.
// Nothing is changed. Text, JSON, YAML and Markdown show the same value.
package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/text"
)

// Version is the version of the form in which previews are printed as JSON and YAML.
const Version = "preview.kudo.dev/v1alpha3"

// Effect is what would become of an object.
type Effect string

const (
	// Unchanged objects stay as they are.
	Unchanged Effect = "unchanged"
	// Create is for objects that do not exist.
	Create Effect = "create"
	// Modify is for objects of which fields would change.
	Modify Effect = "change"
	// Recreate is for objects that would be deleted and created again.
	Recreate Effect = "recreate"
	// Delete is for objects that would be deleted.
	Delete Effect = "delete"
	// Keep is for objects that are no longer part of the package, and would stay.
	Keep Effect = "keep"
	// Join is for objects of install plans that others hold already, of which an OperatorVersion would become one more holder.
	Join Effect = "join"
	// Adopt is for existing objects that the Instance would take over.
	Adopt Effect = "adopt"
	// Refused is for objects that the API server, or kudo, would refuse to write.
	Refused Effect = "refused"
	// Unknown is for objects of which it is not known what would become of them.
	Unknown Effect = "unknown"
)

// effects lists all effects in the order in which a text counts them.
var effects = []Effect{Create, Modify, Recreate, Join, Adopt, Delete, Keep, Unchanged, Refused, Unknown}

// Preview is what an edit would do. It is sorted, and holds no times, so that equal previews are equal texts.
type Preview struct {
	APIVersion string `json:"apiVersion"`
	// Verb is the command that would edit, and Subject the object that it edits.
	Verb    string `json:"verb"`
	Subject string `json:"subject"`
	// As names the user with whose rights the questions were asked; empty if that is not known.
	As string `json:"as,omitempty"`
	// Refused says why the edit itself would be refused; the preview then has no runs and no objects.
	Refused []string `json:"refused,omitempty"`
	// Runs are the plans that would run, in their order.
	Runs []Run `json:"runs,omitempty"`
	// Placement is what changes about the clusters of an Instance of a hub; nil for other Instances.
	Placement *Placement `json:"placement,omitempty"`
	// Objects of these runs, in the order in which they are written or deleted first.
	Objects []Object `json:"objects,omitempty"`
	// Definitions are the CustomResourceDefinitions that would change, or whose change would be refused, in the order of names.
	Definitions []Definition `json:"definitions,omitempty"`
	// Shared lists the objects that several OperatorVersions or CRD tarballs hold, and what becomes of the hold of this one.
	Shared []Share `json:"shared,omitempty"`
	// Rights are those that the plans need; nil where that was not asked for.
	Rights *Rights `json:"rights,omitempty"`
	// Children are the previews of Instances that the runs would create or change.
	Children []*Preview `json:"children,omitempty"`
	// Stays lists what would stay after an uninstall, and why.
	Stays []Stay `json:"stays,omitempty"`
	// Warnings say what a user should check.
	Warnings []string `json:"warnings,omitempty"`
	// UnknownReasons say what is not known besides objects.
	UnknownReasons []string `json:"unknown,omitempty"`
	// Basis lists objects that it was decided from: those of kudo and of plans, and sources of parameters.
	Basis []Basis `json:"basis,omitempty"`
	// Digest is equal for previews of the same runs, objects and values, of an OperatorVersion of the same content, whoever asks.
	Digest string `json:"digest"`

	// Content is the content digest of the OperatorVersion that the Instance would have, and Account the ServiceAccount that it would name.
	// Digest covers them.
	Content, Account string `json:"-"`
}

// Run is a plan that would run.
type Run struct {
	Plan  string `json:"plan"`
	Cause string `json:"cause"`
	Steps int    `json:"steps"`
	// Of names the OperatorVersion whose install plan it is, or is empty for a plan of the Instance.
	Of string `json:"of,omitempty"`
	// Capacity lists the resources, such as memory, whose amounts in the objects of the plan the run would change.
	Capacity []Capacity `json:"capacity,omitempty"`
	// Failure says where and why the run would fail; nil if it would not, as far as is known.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is where a run would fail, as `phase/step`, and why.
type Failure struct {
	Step    string `json:"step,omitempty"`
	Message string `json:"message"`
}

// Object is what would become of an object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Effect     Effect `json:"effect"`
	// Places are the tasks that write or delete it, as `plan/phase/step/task`.
	Places []string `json:"places,omitempty"`
	// Fields that would change, sorted by path. Labels and annotations of kudo itself are only counted, in Metadata.
	Fields   []Field `json:"fields,omitempty"`
	Metadata int     `json:"metadata,omitempty"`
	// Restart is set if pods of the object would be replaced.
	Restart *Restart `json:"restart,omitempty"`
	// Why explains the effect, where it does not speak for itself.
	Why string `json:"why,omitempty"`
	// Lost is set if data goes with the object: objects of a definition, content of a namespace, what a claim holds, claims of a StatefulSet.
	Lost bool `json:"lost,omitempty"`
	// Blame says in which fields and templates of a refused object parameters of the edit stand.
	Blame []runner.Blame `json:"blame,omitempty"`
	// content is what would be written of a new object, without sensitive values.
	content string
}

// ID is how people read the name of the object.
func (o Object) ID() string {
	return text.Plain(o.Kind+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"), maxPath)
}

// Field is a field that would change. From or To is empty if the field is not there before or after.
type Field struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Masked is set if the values are not shown, since they are or may be secret.
	Masked bool `json:"masked,omitempty"`
	// whole is both values uncut, without sensitive ones.
	whole string
}

// Restart says which pods would be replaced, and how.
type Restart struct {
	// Pods is how many there are.
	Pods int64 `json:"pods"`
	// Strategy is rolling, recreate, or `on delete`.
	Strategy string `json:"strategy"`
	Why      string `json:"why"`
	// Uncertain is set if it is not known whether the pods would be replaced.
	Uncertain bool `json:"uncertain,omitempty"`
}

// Stay is an object that would stay, and why.
type Stay struct {
	Object string `json:"object"`
	Why    string `json:"why"`
	// Holders are those who hold the object, too.
	Holders []string `json:"holders,omitempty"`
}

// The concerns: what a preview may have that a user wants to forbid.
const (
	concernRights  = "rights"
	concernRestart = "restart"
	concernDelete  = "delete"
	concernData    = "data"
	// ConcernUnknown is that not all is known.
	ConcernUnknown = "unknown"
)

// Concerns lists what Raises knows.
func Concerns() []string {
	return []string{concernRights, concernRestart, concernDelete, concernData, ConcernUnknown}
}

// Raises reports whether a preview has, or may have:
//
//	rights     rules that the plans need newly, or that their account lacks
//	restart    pods that are replaced
//	delete     objects that are deleted, or deleted and created again
//	data       PersistentVolumeClaims among these, or objects with which data goes, or Instances in clusters that are deleted
//	unknown    anything that is not known
func (p *Preview) Raises(concern string) bool {
	for _, child := range p.Children {
		if child.Raises(concern) {
			return true
		}
	}
	switch concern {
	case concernRights:
		return !p.Rights.isHarmless()
	case concernRestart:
		return slices.ContainsFunc(p.Objects, func(o Object) bool { return o.Restart != nil })
	case concernDelete:
		return p.Placement.deletes() || slices.ContainsFunc(p.Objects, Object.isDeleted)
	case concernData:
		return p.Placement.deletes() || slices.ContainsFunc(p.Objects, Object.losesData)
	case ConcernUnknown:
		return p.Unknown() > 0
	}
	return false
}

// isDeleted reports whether an object would be deleted, even if it is created again.
func (o Object) isDeleted() bool { return o.Effect == Delete || o.Effect == Recreate }

// isLostClaim reports whether an object is a PersistentVolumeClaim that would be deleted.
func (o Object) isLostClaim() bool { return o.Kind == claims.Kind && o.isDeleted() }

// losesData reports whether data goes with an object.
func (o Object) losesData() bool { return o.Lost || o.isLostClaim() }

// lost counts the objects with which data goes.
func (p *Preview) lost() (n struct{ claims, sets, others int }) {
	for _, one := range p.withChildren() {
		for _, o := range one.Objects {
			switch {
			case o.isLostClaim():
				n.claims++
			case o.Lost && o.Kind == statefulSets.Kind:
				n.sets++
			case o.Lost:
				n.others++
			}
		}
	}
	return n
}

// IsChange reports whether the edit would change anything.
func (p *Preview) IsChange() bool {
	return slices.ContainsFunc(p.Objects, func(o Object) bool { return o.Effect != Unchanged && o.Effect != Keep }) ||
		slices.ContainsFunc(p.Children, (*Preview).IsChange)
}

// Fails reports whether the edit would be refused, or a run of it would fail.
func (p *Preview) Fails() bool {
	return len(p.Refused) > 0 || slices.ContainsFunc(p.Runs, func(r Run) bool { return r.Failure != nil }) ||
		slices.ContainsFunc(p.Children, (*Preview).Fails)
}

// Unknown is how much is not known, of children, too.
func (p *Preview) Unknown() int {
	n := p.Count(Unknown) + len(p.UnknownReasons)
	for _, child := range p.Children {
		n += child.Unknown()
	}
	return n
}

// Count is how many objects there are of an effect.
func (p *Preview) Count(effect Effect) int {
	n := 0
	for _, o := range p.Objects {
		if o.Effect == effect {
			n++
		}
	}
	return n
}

// seal sets the digest.
func (p *Preview) seal() error {
	text, err := json.Marshal(struct {
		Verb, Subject string
		Refused       []string
		Runs          []Run
		Placement     *Placement `json:",omitempty"`
		Objects       []Object
		Stays         []Stay
		Unknown       []string
		Children      []string
		Content       []string

		Version, Account string
	}{p.Verb, p.Subject, p.Refused, p.Runs, p.Placement, p.Objects, p.Stays, p.UnknownReasons, digestsOf(p.Children), p.wholeContent(),
		p.Content, p.Account})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	p.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return nil
}

// wholeContent is what the fields of objects cut or leave out.
func (p *Preview) wholeContent() []string {
	var out []string
	for _, o := range p.Objects {
		out = append(out, o.content)
		for _, f := range o.Fields {
			out = append(out, f.whole)
		}
	}
	return out
}

func digestsOf(previews []*Preview) []string {
	var out []string
	for _, p := range previews {
		out = append(out, p.Digest)
	}
	return out
}

func newObject(id apply.ID) Object {
	apiVersion, kind := id.ToAPIVersionAndKind()
	return Object{APIVersion: apiVersion, Kind: kind, Namespace: id.Namespace, Name: id.Name}
}
