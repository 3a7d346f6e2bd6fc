package kudoinit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const managerField = `.spec.template.spec.containers[name="manager"]`

// applies returns a client that finds one object only, and passes each apply to a function. The fake client would read the managed fields
// that a test makes up.
func applies(live *unstructured.Unstructured, apply func(config runtime.ApplyConfiguration, opts []client.ApplyOption) error) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			into.(*unstructured.Unstructured).Object = live.DeepCopy().Object
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return apply(config, opts)
		},
	}).Build()
}

// contested answers each apply with a conflict about those of the fields that the object still has, and counts the applies that are
// no dry run.
func contested(t *testing.T, live *unstructured.Unstructured, fields ...string) (client.Client, *int) {
	t.Helper()
	writes := 0
	return applies(live, func(config runtime.ApplyConfiguration, opts []client.ApplyOption) error {
		options := (&client.ApplyOptions{}).ApplyOptions(opts)
		if len(options.DryRun) == 0 {
			writes++
			return nil
		}
		if ptr.Deref(options.Force, false) || options.FieldManager != manager {
			t.Errorf("the dry run is by %q, force %v", options.FieldManager, options.Force)
		}
		sent, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
		if err != nil {
			return err
		}
		var causes []metav1.StatusCause
		for _, field := range fields {
			if fieldAt(sent, parsePath(field)) != nil {
				causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: `conflict with "kubectl-edit" using apps/v1`})
			}
		}
		if len(causes) == 0 {
			return nil
		}
		return apierrors.NewApplyConflict(causes, "Apply failed")
	}), &writes
}

// applied marks an object as one that init and another field manager have written.
func applied(obj *unstructured.Unstructured) *unstructured.Unstructured {
	live := obj.DeepCopy()
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}, {Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate},
	})
	return live
}

// set sets a field of an object at a path without list elements.
func set(t *testing.T, obj *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// TestCompareConflicts has fields that another client has set to another value: init leaves out those of autoscalers, names the others
// with both values and the remedy, and does neither for what the Values set or force takes.
func TestCompareConflicts(t *testing.T) {
	replicas, cpu, image, priority := ".spec.replicas", managerField+".resources.requests.cpu", managerField+".image", ".spec.template.spec.priorityClassName"
	const edit = `Deployment kudo-system/kudo-controller-manager: %s is %s, set by kubectl-edit; init would set %s.%s Take it: --force-conflicts`
	for name, tc := range map[string]struct {
		reason  string
		fields  []string
		values  Values
		force   bool
		left    []string // what is left out of what init applies
		want    []string
		unforce bool // the apply is without force
	}{
		"None":      {"all fields are as init would set them", nil, Values{}, false, nil, nil, true},
		"Scaler":    {"an autoscaler has set the replicas", []string{replicas}, Values{}, false, []string{replicas}, nil, true},
		"Resources": {"and another the resources", []string{replicas, cpu}, Values{}, false, []string{replicas, cpu}, nil, true},
		"Values":    {"the Values set the replicas, too", []string{replicas}, Values{Replicas: ptr.To[int32](2)}, false, nil, []string{fmt.Sprintf(edit, "spec.replicas", "7", "1", " Keep it: --set replicas=7.")}, true},
		"Others":    {"Values for other fields do not", []string{replicas}, Values{PriorityClassName: "x"}, false, []string{replicas}, nil, true},
		"Image":     {"a flag keeps the image", []string{image}, Values{}, false, nil, []string{fmt.Sprintf(edit, image[1:], "theirs:1", "ours:1", " Keep it: --set image=theirs:1.")}, true},
		"Strategy":  {"no flag keeps other fields", []string{".spec.strategy.type"}, Values{}, false, nil, []string{fmt.Sprintf(edit, "spec.strategy.type", "Recreate", "RollingUpdate", "")}, true},
		"Several": {"all are named, and what autoscalers set is not", []string{image, replicas, priority}, Values{}, false, []string{replicas}, []string{
			fmt.Sprintf(edit, image[1:], "theirs:1", "ours:1", " Keep it: --set image=theirs:1."), fmt.Sprintf(edit, priority[1:], "high", "low", " Keep it: --set priorityClassName=high.")}, true},
		"Arguments": {"arguments were decided upon before", []string{argsField}, Values{}, false, nil, nil, false},
		"Force":     {"the user takes all", []string{image, replicas}, Values{}, true, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := find(t, Options{Image: "ours:1", Replicas: 1}, "Deployment")
			set(t, obj, "RollingUpdate", "spec", "strategy", "type")
			set(t, obj, "low", "spec", "template", "spec", "priorityClassName")
			live := applied(obj)
			set(t, live, int64(7), "spec", "replicas")
			set(t, live, "Recreate", "spec", "strategy", "type")
			set(t, live, "high", "spec", "template", "spec", "priorityClassName")
			fieldAt(live.Object, parsePath(managerField)).(map[string]any)["image"] = "theirs:1"
			c, writes := contested(t, live, tc.fields...)
			before := obj.DeepCopy()
			change, err := (&InstalledState{}).Compare(t.Context(), c, []*unstructured.Unstructured{obj}, tc.values, tc.force)
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), strings.TrimPrefix(fmt.Sprint(err), "<nil>")); diff != "" {
				t.Errorf("%s: the error (-want +got):\n%s", tc.reason, diff)
			}
			var conflict *Conflict
			if errors.As(err, &conflict) != (len(tc.want) > 0) {
				t.Errorf("%s: the error is a %T", tc.reason, err)
			}
			want := before.DeepCopy()
			for _, path := range tc.left {
				removeField(want.Object, parsePath(path))
			}
			if diff := cmp.Diff(want.Object, change.Objects[0].Object); diff != "" {
				t.Errorf("%s: what is applied (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, obj); diff != "" || *writes > 0 {
				t.Errorf("%s: the object was changed, or %d were written:\n%s", tc.reason, *writes, diff)
			}
			if change.shared[change.Objects[0]] != tc.unforce {
				t.Errorf("%s: without force: %v", tc.reason, !tc.unforce)
			}
		})
	}
}

// TestCompareNotContested has objects for which init asks nothing, and takes over as a whole.
func TestCompareNotContested(t *testing.T) {
	deployment, service := find(t, Options{}, "Deployment"), find(t, Options{}, "Service")
	binding := find(t, Options{}, "ClusterRoleBinding")
	by := func(obj *unstructured.Unstructured, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
		live := obj.DeepCopy()
		live.SetManagedFields(entries)
		return live
	}
	own := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}
	theirs := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply}
	for name, tc := range map[string]struct {
		reason string
		obj    *unstructured.Unstructured
		live   *unstructured.Unstructured
		asked  bool
	}{
		"Own":     {"only init has set fields", deployment, by(deployment, own), false},
		"Unknown": {"init has never applied it", deployment, by(deployment, theirs), false},
		"Update":  {"init has only updated it", deployment, by(deployment, theirs, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}), false},
		"Status":  {"others have set the status only", deployment, by(deployment, own, metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"}), false},
		"Scale":   {"an autoscaler has set the replicas", deployment, by(deployment, own, metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale"}), true},
		"Binding": {"a binding decides what is safe, and is reset", binding, by(binding, own, theirs), false},
		"Tuned":   {"others have set fields", deployment, by(deployment, own, theirs), true},
		"Service": {"of a Service, too", service, by(service, theirs, own), true},
	} {
		asked := 0
		c := applies(tc.live, func(runtime.ApplyConfiguration, []client.ApplyOption) error {
			asked++
			return nil
		})
		change, err := (&InstalledState{}).Compare(t.Context(), c, []*unstructured.Unstructured{tc.obj}, Values{}, false)
		if err != nil || asked > 0 != tc.asked || change.shared[change.Objects[0]] != tc.asked {
			t.Errorf("%s: %s: %d dry runs, error %v", name, tc.reason, asked, err)
		}
	}
}

// TestCompareEnds checks that a server that names a field again, after init has left it out, gets no more questions.
func TestCompareEnds(t *testing.T) {
	obj, asked := find(t, Options{Replicas: 1}, "Deployment"), 0
	c := applies(applied(obj), func(runtime.ApplyConfiguration, []client.ApplyOption) error {
		if asked++; asked > 10 {
			return errors.New("there is no end of dry runs")
		}
		cause := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "scaler"`}
		return apierrors.NewApplyConflict([]metav1.StatusCause{cause}, "Apply failed")
	})
	_, err := (&InstalledState{}).Compare(t.Context(), c, []*unstructured.Unstructured{obj}, Values{}, false)
	var conflict *Conflict
	if !errors.As(err, &conflict) || conflict.Field != "spec.replicas" || conflict.By != "scaler" || asked != 2 {
		t.Errorf("after %d dry runs: %v", asked, err)
	}
}

// TestConflictOrder checks that the same conflicts are listed in the same order, whatever the order of the API server's answer is.
func TestConflictOrder(t *testing.T) {
	obj := find(t, Options{}, "Deployment")
	first, second := ".spec.template.spec.priorityClassName", ".spec.template.spec.terminationGracePeriodSeconds"
	var errs []string
	for _, fields := range [][]string{{first, second}, {second, first}} {
		c, _ := contested(t, applied(obj), fields...)
		_, err := (&InstalledState{}).Compare(t.Context(), c, []*unstructured.Unstructured{obj.DeepCopy()}, Values{}, false)
		errs = append(errs, fmt.Sprint(err))
	}
	if diff := cmp.Diff(errs[0], errs[1]); diff != "" || strings.Count(errs[0], "init would set") != 2 {
		t.Errorf("-one order +the other:\n%s\n%s", diff, errs[0])
	}
}

// TestDryRunErrors checks that only a conflict about fields is one, and that an error names the object.
func TestDryRunErrors(t *testing.T) {
	live := applied(find(t, Options{}, "Deployment"))
	gr := corev1.Resource("deployments")
	for name, tc := range map[string]struct {
		reason string
		answer error
		want   func(error) bool
	}{
		"Forbidden": {"the user may not", apierrors.NewForbidden(gr, "x", errors.New("no")), apierrors.IsForbidden},
		"Conflict":  {"a conflict of versions has no fields", apierrors.NewConflict(gr, "x", errors.New("changed")), apierrors.IsConflict},
		"NoCauses":  {"a conflict without causes", apierrors.NewApplyConflict(nil, "?"), apierrors.IsConflict},
		"Other":     {"causes of another type", apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: ".spec.replicas"}}, "?"), apierrors.IsConflict},
		"Plain":     {"an error that is no status", context.DeadlineExceeded, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		c := applies(live, func(runtime.ApplyConfiguration, []client.ApplyOption) error { return tc.answer })
		change, err := (&InstalledState{}).Compare(t.Context(), c, []*unstructured.Unstructured{live.DeepCopy()}, Values{}, false)
		if !tc.want(err) || change != nil || !strings.HasPrefix(err.Error(), "Deployment kudo-controller-manager: ") {
			t.Errorf("%s: %s: %v, %v", name, tc.reason, change, err)
		}
	}
}

// TestNewConflict has values that are hard to show in a line.
func TestNewConflict(t *testing.T) {
	long := "registry.example.org/" + strings.Repeat("x/", 150) + "manager:1"
	deployment := func(image any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": "ns",
			"labels": map[string]any{"app.kubernetes.io/name": image, "plain": "x"}},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "image": image}}}}}}}
	}
	space := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": "n", "labels": map[string]any{"pod-security.kubernetes.io/enforce": value}}}}
	}
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Field: field, Message: message}
	}
	for name, tc := range map[string]struct {
		reason    string
		obj, live *unstructured.Unstructured
		cause     metav1.StatusCause
		want      Conflict
	}{
		"Label": {
			"the dots of a label's key belong to the key", space("baseline"), space("privileged"), cause(".metadata.labels.pod-security.kubernetes.io/enforce", `conflict with "a b" using v1`),
			Conflict{"Namespace n", "metadata.labels.pod-security.kubernetes.io/enforce", "privileged", "baseline", "a b", ""},
		},
		"Image": {
			"the flag has the value in full", deployment("ours"), deployment(long), cause(managerField+".image", "conflict"),
			Conflict{"Deployment ns/d", managerField[1:] + ".image", long[:200] + "…", "ours", "another field manager", "--set image=" + long},
		},
		"Absent": {
			"a value that was removed meanwhile cannot be kept", deployment("ours"), deployment(nil), cause(managerField+".image", `conflict with ""`),
			Conflict{"Deployment ns/d", managerField[1:] + ".image", "not set", "ours", "", ""},
		},
		"Kind": {
			"a flag is for the Deployment only", func() *unstructured.Unstructured { o := deployment("a"); o.SetKind("Service"); return o }(), deployment("b"), cause(managerField+".image", `with "x" and "y"`),
			Conflict{"Service ns/d", managerField[1:] + ".image", "b", "a", "x", ""},
		},
	} {
		if diff := cmp.Diff(tc.want, *newConflict(tc.obj, tc.live, tc.cause)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestOneLine shows values in a line of a limited length.
func TestOneLine(t *testing.T) {
	for reason, tc := range map[string]struct {
		value any
		want  string
	}{
		"none":                     {nil, "not set"},
		"an empty text":            {"", `""`},
		"a number in a text":       {"1", `"1"`},
		"a number":                 {int64(1), "1"},
		"a word that YAML reads":   {"true", `"true"`},
		"lines":                    {"a\nb\nc\n", "| a b c"},
		"exactly the limit":        {strings.Repeat("x", 200), strings.Repeat("x", 200)},
		"one more":                 {strings.Repeat("x", 201), strings.Repeat("x", 200) + "…"},
		"a letter at the limit":    {strings.Repeat("x", 199) + "é", strings.Repeat("x", 199) + "…"},
		"a list":                   {[]any{"a", int64(2)}, "- a - 2"},
		"what YAML does not write": {make(chan int), ""},
	} {
		got := oneLine(tc.value)
		if tc.want != "" && got != tc.want || strings.ContainsAny(got, "\n\t") || len(got) > 203 {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}

// TestParsePath has paths as the API server writes them, and some that it never would.
func TestParsePath(t *testing.T) {
	at := func(names ...string) (out []pathElement) {
		for _, name := range names {
			out = append(out, pathElement{field: name})
		}
		return out
	}
	by := func(keys map[string]string) pathElement { return pathElement{keys: keys} }
	for path, want := range map[string][]pathElement{
		"":                               nil,
		"spec":                           nil,
		"..":                             nil,
		".a.b":                           at("a", "b"),
		`.a[k="v"].b`:                    {{field: "a"}, by(map[string]string{"k": "v"}), {field: "b"}},
		`.a[k="x.y",p=1]`:                {{field: "a"}, by(map[string]string{"k": "x.y", "p": "1"})},
		`.a[k="x]y"].b`:                  {{field: "a"}, by(map[string]string{"k": "x]y"}), {field: "b"}},
		`.a[="v"]`:                       {{field: "a"}, by(map[string]string{"": "v"})},
		`.a[0]`:                          {{field: "a"}, by(map[string]string{"0": ""})},
		`.a[k="x`:                        at("a"),
		".a[]":                           {{field: "a"}, by(map[string]string{"": ""})},
		"." + strings.Repeat("x", 10000): at(strings.Repeat("x", 10000)),
	} {
		if diff := cmp.Diff(want, parsePath(path), cmp.AllowUnexported(pathElement{})); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", path, diff)
		}
	}
}

// TestFieldAtKeysWithDots checks that a key with dots is found, and that a field takes precedence over such a key.
func TestFieldAtKeysWithDots(t *testing.T) {
	obj := map[string]any{"labels": map[string]any{"a.b/c": "1", "a.b.c.d": "2", "e": map[string]any{"f": "3"}, "e.f": "4", "null": nil}, "list": []any{map[string]any{"k.l": "x", "m": "5"}}}
	for path, want := range map[string]any{
		".labels.a.b/c": "1", ".labels.a.b.c.d": "2", ".labels.e.f": "3", ".labels.a": nil, ".labels.a.b": nil, ".labels.a.b.c": nil, ".labels.a.b.c.d.e": nil,
		".labels.null": nil, ".labels.null.a": nil, `.list[k.l="x"].m`: "5", ".labels.a[b=1].c": nil, ".labels.a.b[c=1]": nil,
	} {
		if got := fieldAt(obj, parsePath(path)); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

// TestValuesHas checks which keys the Values set: a zero that was left out is none.
func TestValuesHas(t *testing.T) {
	values := Values{Replicas: ptr.To[int32](1), Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}, NodeSelector: map[string]string{}}
	has := sets.New("replicas", "resources", "resources.requests", "resources.requests.cpu")
	for _, key := range append(has.UnsortedList(), "", "image", "nodeSelector", "resources.limits", "resources.limits.cpu", "resources.requests.memory", "replicas.x", "resources.requests.cpu.x") {
		if got := values.has(key); got != has.Has(key) {
			t.Errorf("has %q: %v", key, got)
		}
	}
	for _, keys := range []map[string]string{yielded, keys} {
		for field, key := range keys {
			if path := parsePath(field); len(path) < 2 || path[0].field != "spec" {
				t.Errorf("%s is read as %v", field, path)
			}
			if _, err := (Values{}).Set([]string{key + "=1"}); err != nil && strings.Contains(err.Error(), "unknown field") {
				t.Errorf("the flag for %s cannot be given: %v", field, err)
			}
		}
	}
}
