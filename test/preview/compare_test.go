package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// historyRun is a run as plan history lists it.
type historyRun struct {
	Revision            int64
	Plan, Cause, Status string
}

// history reads the runs of an Instance, or of an OperatorVersion.
func history(t *testing.T, args ...string) []historyRun {
	t.Helper()
	text := suite.MustKudo(t, 0, append([]string{"plan", "history", "-o", "json"}, args...)...)
	var out []historyRun
	if begin := strings.Index(text, "["); begin >= 0 {
		env.Must(t, json.Unmarshal([]byte(text[begin:]), &out))
	}
	return out
}

// outcome is the preview of an upgrade, and what the upgrade did.
type outcome struct {
	ns            string
	preview       *preview.Preview
	before, after snapshot
	// earlier is how many runs the Instance had before.
	earlier int
	// since is where the audit log of the upgrade begins.
	since int64
	// texts are the preview and the output of the upgrade, for messages of the test.
	texts string
}

// compare compares the whole preview with what the upgrade did.
func (o outcome) compare(t *testing.T) {
	t.Helper()
	o.leaveClaims()
	o.compareGiven(t)
	o.compareRuns(t)
	o.compareObjects(t)
	o.compareDefinitions(t)
	o.compareCapacity(t)
	o.compareWritten(t, true)
}

// objects returns what the preview and those of its children say of objects.
func (o outcome) objects() []preview.Object {
	var out []preview.Object
	for _, one := range append(childPreviews(o.preview), o.preview) {
		out = append(out, one.Objects...)
	}
	return out
}

// childPreviews returns the previews of the Instances that the runs of a preview make, change or delete, and those of their children.
func childPreviews(p *preview.Preview) []*preview.Preview {
	var out []*preview.Preview
	for _, child := range p.Children {
		out = append(append(out, child), childPreviews(child)...)
	}
	return out
}

// compareObjects compares the effects that the preview named with what happened, and checks that no other object has changed.
func (o outcome) compareObjects(t *testing.T) {
	t.Helper()
	for _, object := range o.objects() {
		id := object.ID()
		if problem := compareObject(object, o.before[id], o.after[id]); problem != "" {
			t.Errorf("%s: said %s, but %s\n%s", id, object.Effect, problem, o.texts)
		}
	}
	o.compareOthers(t)
}

// leaveClaims leaves out what the controller of StatefulSets makes for those that were there, or are.
func (o outcome) leaveClaims() {
	before := maps.Clone(o.before)
	o.before.leaveClaims(before, o.after)
	o.after.leaveClaims(before, o.after)
}

// compareRuns compares the plans, their order and causes, and where and why one fails.
func (o outcome) compareRuns(t *testing.T) {
	t.Helper()
	i := env.Read(t, suite, &v1beta1.Instance{}, o.ns, "i")
	var said, happened []string
	for _, run := range o.preview.Runs {
		status := i.Status.PlanStatus
		if _, version, ofVersion := strings.Cut(run.Of, "/"); ofVersion {
			status = env.Read(t, suite, &v1beta1.OperatorVersion{}, o.ns, version).Status.PlanStatus
			for _, r := range history(t, "--operator-version", version, "-n", o.ns) {
				happened = append(happened, r.Plan+": "+r.Cause)
			}
		}
		said = append(said, run.Plan+": "+run.Cause)
		if problem := compareFailure(run, status[run.Plan]); problem != "" {
			t.Errorf("plan %s: %s\n%s", run.Plan, problem, o.texts)
		}
		if steps := countSteps(status[run.Plan]); run.Failure == nil && run.Steps != steps {
			t.Errorf("plan %s: said %d steps, and %d have run\n%s", run.Plan, run.Steps, steps, o.texts)
		}
	}
	for _, r := range history(t, "i", "-n", o.ns)[o.earlier:] {
		happened = append(happened, r.Plan+": "+r.Cause)
	}
	if diff := cmp.Diff(said, happened); diff != "" {
		t.Errorf("other plans have run (-said +happened): %s\n%s", diff, o.texts)
	}
}

// blamed is what a run adds to the reason of a refusal: fields, templates and parameters (P8).
var blamed = regexp.MustCompile(`; ([^;]+: )?template \S+ (uses|makes) [^\n]*`)

// compareFailure returns how the end of a plan differs from the previewed one; empty if it does not.
func compareFailure(run preview.Run, st v1beta1.PlanStatus) string {
	failed := st.Status == v1beta1.FatalError
	switch {
	case failed != (run.Failure != nil):
		return fmt.Sprintf("it has ended with %s: %s", st.Status, st.Message)
	case !failed:
		return ""
	}
	step := stepIn(st, v1beta1.FatalError)
	if step != run.Failure.Step {
		return fmt.Sprintf("it was said to fail at %s, and failed at %s", run.Failure.Step, step)
	}
	reason := blamed.ReplaceAllString(st.Message, "") // the preview names templates and parameters with the object
	if diff := cmp.Diff(sortedLines(run.Failure.Message), sortedLines(reason)); diff != "" {
		return "it has failed for another reason (-said +happened): " + diff
	}
	return ""
}

// sortedLines are the lines of a message, sorted, as the API server lists errors of fields in any order.
func sortedLines(message string) []string {
	return slices.Sorted(strings.Lines(message + "\n"))
}

// stepIn names the last step of a plan that has a status; empty if none has.
func stepIn(st v1beta1.PlanStatus, status v1beta1.ExecutionStatus) string {
	step := ""
	for _, phase := range st.Phases {
		for _, s := range phase.Steps {
			if s.Status == status {
				step = phase.Name + "/" + s.Name
			}
		}
	}
	return step
}

// countSteps returns how many steps of a plan are complete.
func countSteps(st v1beta1.PlanStatus) int {
	n := 0
	for _, phase := range st.Phases {
		for _, s := range phase.Steps {
			if s.Status == v1beta1.Complete {
				n++
			}
		}
	}
	return n
}

// compareObject returns how the effect on an object differs from the previewed one; empty if it does not.
func compareObject(o preview.Object, before, after *unstructured.Unstructured) string {
	there, stays := before != nil, after != nil
	switch o.Effect {
	case preview.Create:
		if !there && !stays && o.Kind == "Pod" && strings.HasSuffix(o.Name, "."+operators.PodSuffix) {
			return "" // the Pipe task has deleted its pod
		}
		if there || !stays {
			return "it was not created"
		}
		return comparePlace(o, after)
	case preview.Delete:
		if !there || stays {
			return "it was not deleted"
		}
	case preview.Recreate:
		if !there || !stays || before.GetUID() == after.GetUID() {
			return "it was not replaced"
		}
		return comparePlace(o, after)
	case preview.Unknown:
		if o.Why == "" {
			return "no reason was given"
		}
	case preview.Modify, preview.Adopt:
		if problem := compareFields(o, before, after); problem != "" {
			return problem
		}
		return comparePlace(o, after)
	default:
		return compareFields(o, before, after)
	}
	return ""
}

// comparePlace compares the step that has written an object last with those that were said.
func comparePlace(o preview.Object, after *unstructured.Unstructured) string {
	at := after.GetAnnotations()
	if at[v1beta1.PlanAnnotation] == "" { // objects of install plans do not name it
		return ""
	}
	place := strings.Join([]string{at[v1beta1.PlanAnnotation], at[v1beta1.PhaseAnnotation], at[v1beta1.StepAnnotation]}, "/") + "/"
	if !slices.ContainsFunc(o.Places, func(said string) bool { return strings.HasPrefix(said, place) }) {
		return fmt.Sprintf("%s has written it, and not %s", place, strings.Join(o.Places, ", "))
	}
	return ""
}

func compareFields(o preview.Object, before, after *unstructured.Unstructured) string {
	if before == nil || after == nil {
		if before == nil && after == nil {
			return ""
		}
		return "it was created or deleted"
	}
	if before.GetUID() != after.GetUID() {
		return "it was replaced"
	}
	changes := o.Effect == preview.Modify || o.Effect == preview.Adopt
	var said []string
	if changes {
		for _, f := range o.Fields {
			said = append(said, f.String())
		}
	}
	if diff := cmp.Diff(said, changed(before, after)); diff != "" {
		return "other fields have changed (-said +happened): " + diff
	}
	uncertain := o.Restart != nil && o.Restart.Uncertain
	if n := changedMetadata(before, after); (changes || o.Effect == preview.Unchanged) && !uncertain && n != o.Metadata {
		return fmt.Sprintf("%d labels and annotations of kudo itself have changed, and not %d", n, o.Metadata)
	}
	replicas, set, _ := unstructured.NestedInt64(before.Object, "spec", "replicas")
	if restarted := template(before) != template(after) && (!set || replicas > 0); changes && !uncertain && (o.Restart != nil) != restarted {
		return fmt.Sprintf("restart: said %t, and the pod template of pods has changed: %t", o.Restart != nil, restarted)
	}
	return ""
}

// changed are the fields that differ, but for those that Kubernetes itself writes: a count of templates, where a claim was bound, and the version in
// which custom resources are read.
func changed(before, after *unstructured.Unstructured) []string {
	var out []string
	for _, f := range preview.Compare(before, after, params.NewMask([]string{password})) {
		bound := before.GetKind() == "PersistentVolumeClaim" && (f.Path == ".spec.volumeName" || strings.Contains(f.Path, "kubernetes.io/"))
		if !bound && f.Path != ".apiVersion" && !strings.Contains(f.Path, "deployment.kubernetes.io/revision") {
			out = append(out, f.String())
		}
	}
	return out
}

// changedMetadata counts the labels and annotations of kudo that differ, but for those that each run writes anew.
func changedMetadata(before, after *unstructured.Unstructured) int {
	was, is := map[string]string{}, map[string]string{}
	ownMetadata(was, "", before.Object)
	ownMetadata(is, "", after.Object)
	n := 0
	for key, value := range is {
		if other, had := was[key]; !had || other != value {
			n++
		}
		delete(was, key)
	}
	return n + len(was)
}

// ownMetadata collects the labels and annotations of kudo in an object, its pod template and its claim templates.
func ownMetadata(into map[string]string, path string, value any) {
	switch value := value.(type) {
	case []any:
		for n, item := range value {
			ownMetadata(into, fmt.Sprintf("%s[%d]", path, n), item)
		}
	case map[string]any:
		for key, item := range value {
			ownMetadata(into, path+"/"+key, item)
		}
	case string:
		parent, name, found := strings.Cut(path[max(0, strings.LastIndex(path, "/metadata/")):], "s/")
		own := found && (parent == "/metadata/label" || parent == "/metadata/annotation") &&
			(name == v1beta1.HeritageLabel || strings.HasPrefix(name, v1beta1.GroupVersion.Group+"/"))
		if own && !slices.Contains(ignoredAnnotations, name) {
			into[path] = value
		}
	}
}

// ignoredAnnotations are the annotations that each run writes anew, and one that is a field of its own.
var ignoredAnnotations = []string{v1beta1.PlanAnnotation, v1beta1.PhaseAnnotation, v1beta1.StepAnnotation, v1beta1.PlanUIDAnnotation, v1beta1.KeepAnnotation}

// template stands for the pod template of a workload; empty for other objects.
func template(obj *unstructured.Unstructured) string {
	template, found, _ := unstructured.NestedMap(obj.Object, "spec", "template")
	if !found || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, obj.GetKind()) {
		return ""
	}
	text, _ := json.Marshal(template)
	return string(text)
}

// compareOthers fails the test if an object has changed that the preview does not name.
func (o outcome) compareOthers(t *testing.T) {
	t.Helper()
	named := map[string]bool{}
	for _, object := range o.objects() {
		named[object.ID()] = true
	}
	all := maps.Clone(o.before)
	maps.Copy(all, o.after)
	for id := range all {
		if named[id] {
			continue
		}
		if problem := compareObject(preview.Object{Effect: preview.Keep}, o.before[id], o.after[id]); problem != "" {
			t.Errorf("%s: the preview does not name it, and %s\n%s", id, problem, o.texts)
		}
	}
}

// decode reads the preview of a text, behind which messages may stand.
func decode(t *testing.T, text string) *preview.Preview {
	t.Helper()
	begin := strings.Index(text, "{")
	if begin < 0 {
		t.Fatalf("no preview:\n%s", text)
	}
	p := &preview.Preview{}
	if err := json.NewDecoder(strings.NewReader(text[begin:])).Decode(p); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return p
}
