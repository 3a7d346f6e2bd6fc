package preview

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/pkg/runner"
)

// touches are what the tasks of the preview do to objects.
type touches struct {
	*notes
	cluster *dryrun.Cluster
	mapper  meta.RESTMapper
	// touched are the objects that tasks have written or deleted, by ID; order lists them.
	touched map[apply.ID]*touch
	order   []apply.ID
	// newNamespace is set if the namespace of the Instance does not exist yet.
	newNamespace bool
	// tarballUnknown is set if the definitions of the tarball of the Instance are not known.
	tarballUnknown bool
}

// touch is what the tasks of the preview do to an object.
type touch struct {
	places []string
	// refused is why a write would be refused, and unknown why its result is not known.
	refused, unknown string
	// blame says where parameters of the edit stand in an object whose write would be refused.
	blame []runner.Blame
	// kept is why an object that the version does not name would stay.
	kept string
	// shared is set if an install plan writes the object.
	shared bool
	// released is set if the object is deleted with the Instance.
	released bool
	// sameHash is set if nothing that the pods of the object depend on has changed when it is written last, and uncertain says why that is
	// not known.
	sameHash  bool
	uncertain string
	// written are the steps that write the object, and deleted those that delete it.
	written, deleted []doer
}

// doer is a step of a run.
type doer struct {
	run         *runner.Run
	phase, step int
}

// follows reports whether one of two steps waits for the other to end.
func (d doer) follows(other doer) bool {
	if d.run != other.run {
		return true
	}
	plan := d.run.Version.Spec.Plans[d.run.Plan]
	if d.phase != other.phase {
		return plan.Strategy == v1beta1.Serial
	}
	return d.step != other.step && plan.Phases[d.phase].Strategy == v1beta1.Serial
}

// compete marks an object as unknown if steps write and delete it in parallel: a step repeats its write until the object is ready, and may
// do so after the deletion.
func (t *touch) compete() {
	for _, writes := range t.written {
		if slices.ContainsFunc(t.deleted, func(deletes doer) bool { return !writes.follows(deletes) }) {
			t.unknown = "it is written and deleted by tasks that do not wait for each other"
		}
	}
}

// at returns the touch of an object, and adds a place to it unless the place is empty.
func (s *touches) at(id apply.ID, place string) *touch {
	t := s.touched[id]
	if t == nil {
		t = &touch{}
		s.touched[id] = t
		s.order = append(s.order, id)
	}
	if place != "" && !slices.Contains(t.places, place) {
		t.places = append(t.places, place)
	}
	return t
}

// blame notes where the parameters of the edit stand in objects that would be refused.
func (s *touches) blame(w *runner.PreparedTask, failed []apply.Change, changed []string) {
	for _, change := range failed {
		if t := s.touched[change.ID]; t.refused != "" {
			t.blame = slices.DeleteFunc(w.Blame(change, func(name string) bool { return slices.Contains(changed, name) }),
				func(b runner.Blame) bool { return len(b.Parameters) == 0 })
		}
	}
}

// noteRest notes the objects of a task that were not tried, since those before them are not known.
func (s *touches) noteRest(w *runner.PreparedTask, place string) {
	for _, obj := range w.Rendered() {
		id := apply.IDOf(obj)
		if _, tried := s.touched[id]; !tried {
			s.at(id, place).unknown = "it is written after objects that are not known"
		}
	}
}

// noteNewKinds reports whether the kind of an object of a task is defined in the same run, and notes that its objects are not known then.
func (s *touches) noteNewKinds(w *runner.PreparedTask, place, namespace string) bool {
	objs := w.Rendered()
	isUnknown := func(obj *unstructured.Unstructured) bool {
		return !s.cluster.IsDefined(apply.IDOf(obj)) && s.definesKind(apply.IDOf(obj))
	}
	if !slices.ContainsFunc(objs, isUnknown) {
		return false
	}
	for _, obj := range objs {
		id := apply.IDOf(obj)
		if id.Namespace == "" {
			id.Namespace = namespace
		}
		s.at(id, place).unknown = "its kind, or that of an object beside it, is defined or changed in the same run"
	}
	return true
}

// noteFailures notes objects that could not be written, and reports whether one of them would be refused in a real run, too.
func (s *touches) noteFailures(failed []apply.Change, place string) (refused bool) {
	for _, change := range failed {
		t := s.at(change.ID, place)
		if why := s.unknowable(change); why != "" {
			t.unknown = why
			continue
		}
		t.refused, refused = s.mask.Text(change.Err.Error()), true
		s.out.noteMismatch(change)
	}
	return refused
}

// unknowable says why an error of a dry run says nothing about a real run; empty if it does.
func (s *touches) unknowable(change apply.Change) string {
	err, text := change.Err, s.mask.Text(change.Err.Error())
	switch {
	case apierror.IsNamespaceNotFound(err) && (s.newNamespace || s.createsNamespace(change.ID.Namespace)):
		return "its namespace does not exist yet"
	case isLate(err):
		return "the API server did not answer in time"
	case isUnanswered(err):
		return "it could not be asked: " + text
	case (meta.IsNoMatchError(err) || apply.IsFatal(err)) && !s.cluster.IsDefined(change.ID) && s.definesKind(change.ID):
		return "its kind is defined or changed in the same run"
	}
	return ""
}

// createsNamespace reports whether the runs would create a Namespace.
func (s *touches) createsNamespace(name string) bool {
	id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}}
	id.Name = name
	change, _ := s.cluster.Find(id)
	return change.Before == nil && change.After != nil
}

// definesKind reports whether the runs write a definition of the kind of an object, or may do so by a tarball that is not known.
func (s *touches) definesKind(id apply.ID) bool {
	if _, err := s.mapper.RESTMapping(id.GroupKind(), id.Version); s.tarballUnknown && meta.IsNoMatchError(err) {
		return true
	}
	return s.cluster.Defines(id)
}

// settleHash decides whether the hash of what the pods of an object depend on stays the same, where it covers a Secret. Such a hash cannot
// be compared, since the cluster makes it with a key that a preview does not have. settleHash is called after the write of the object, and
// counts only what has changed by then: what the pods depend on may change again later in the run. If it is not known whether anything has
// changed, same is false, and uncertain says why.
func (s *touches) settleHash(id apply.ID) (same bool, uncertain string) {
	change, _ := s.cluster.Find(id)
	if change.Before == nil || change.After == nil {
		return false, ""
	}
	dependencies, err := enhance.Dependencies(change.After)
	if err != nil || !slices.ContainsFunc(dependencies, func(dep enhance.Dependency) bool { return dep.Kind == "Secret" }) {
		return false, "" // without a Secret there is no key
	}
	if !slices.Equal(namesOf(dependencies), s.dependenciesBefore(change)) {
		return false, ""
	}
	for _, dep := range dependencies {
		id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: dep.Kind}}
		id.Namespace, id.Name = change.ID.Namespace, dep.Name
		of, known := s.cluster.Find(id)
		switch {
		case !known || of.Before == nil && of.After == nil:
		case of.Before == nil:
			uncertain = fmt.Sprintf("%s %s does not exist, and may have when %s %s was written last", dep.Kind, dep.Name, change.ID.Kind,
				change.ID.Name)
		case changedSince(of.Before, change.Before):
			uncertain = fmt.Sprintf("%s %s was changed after %s %s was written last", dep.Kind, dep.Name, change.ID.Kind, change.ID.Name)
		case of.After == nil || !enhance.SameDependency(of.Before, of.After):
			return false, ""
		}
	}
	return uncertain == "", uncertain
}

func (s *touches) dependenciesBefore(change dryrun.Change) []string {
	before, err := enhance.Dependencies(change.Before)
	if err != nil {
		return nil
	}
	return namesOf(before)
}
