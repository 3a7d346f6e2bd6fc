package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// read reads a file, in which words are replaced by pairs.
func read(t testing.TB, file string, pairs ...string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	env.Must(t, err)
	return strings.NewReplacer(pairs...).Replace(string(text))
}

// parse reads YAML documents.
func parse(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		env.Must(t, err)
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// create creates objects, which go after the test.
func create(t testing.TB, text string) {
	t.Helper()
	for _, o := range parse(t, text) {
		env.Eventually(t, "creation of "+o.GetName(), func() string {
			err := suite.Create(ctx, o.DeepCopy())
			if meta.IsNoMatchError(err) {
				return err.Error() // its definition is not served yet
			}
			env.Must(t, err)
			return ""
		})
		t.Cleanup(func() { _ = suite.Delete(context.Background(), o) })
	}
}

// define creates definitions, unless they are there: they stay for other tests.
func define(t testing.TB, text string) {
	t.Helper()
	for _, o := range parse(t, text) {
		if err := suite.Create(ctx, o); !apierrors.IsAlreadyExists(err) {
			env.Must(t, err)
		}
	}
}

// configure creates configuration, and waits until the manager goes by it.
func configure(t testing.TB, text string) {
	t.Helper()
	create(t, text)
	for _, o := range parse(t, text) {
		ready(t, o, "True")
	}
}

// ready waits for a condition Ready that speaks of the newest generation, and returns its message.
func ready(t testing.TB, o *unstructured.Unstructured, want string) string {
	t.Helper()
	message := ""
	env.Eventually(t, o.GetName()+" with Ready="+want, func() string {
		now := object(o.GetAPIVersion(), o.GetKind())
		env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(o), now))
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, c := range conditions {
			c := c.(map[string]any)
			if c["type"] == "Ready" && c["status"] == want && c["observedGeneration"] == now.GetGeneration() {
				message, _ = c["message"].(string)
				return ""
			}
		}
		return fmt.Sprint(conditions)
	})
	return message
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	return o
}

// live reads an object when it is there.
func live(t testing.TB, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	env.Eventually(t, "the "+kind+" "+name, func() string { // a step names an object also before it writes the object
		if err := suite.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object(apiVersion, kind)); err != nil {
			return err.Error()
		}
		return ""
	})
	return env.Read(t, suite, object(apiVersion, kind), namespace, name)
}

// field is the value at a path with dots, as text.
func field(o *unstructured.Unstructured, path string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	return fmt.Sprint(value)
}

// merge patches an object, or its status.
func merge(t testing.TB, o client.Object, patch string, status bool) {
	t.Helper()
	p := client.RawPatch(types.MergePatchType, []byte(patch))
	if status {
		env.Must(t, suite.Status().Patch(ctx, o, p))
		return
	}
	env.Must(t, suite.Patch(ctx, o, p))
}

// operator is an OperatorVersion with a step for each template, in their order: each is a name and a text.
func operator(namespace string, templates [][2]string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	var names []string
	for _, template := range templates {
		mods = append(mods, gen.Template(template[0]+".yaml", template[1]), gen.Apply(template[0], template[0]+".yaml"))
		names = append(names, template[0])
	}
	return gen.Version(namespace, "explored", append(mods, gen.Serial(v1beta1.DeployPlan, names...))...)
}

// install creates an OperatorVersion and an Instance i of it.
func install(t testing.TB, ov *v1beta1.OperatorVersion, parameters map[string]string) *v1beta1.Instance {
	t.Helper()
	env.Must(t, suite.Create(ctx, ov))
	i := gen.Instance("i", ov, parameters)
	env.Must(t, suite.Create(ctx, i))
	return i
}

// set changes a parameter, or any field of spec.
func set(t testing.TB, i *v1beta1.Instance, spec string) {
	t.Helper()
	merge(t, i, `{"spec":`+spec+`}`, false)
}

// complete waits for the end of a run of deploy, which must have succeeded.
func complete(t testing.TB, i *v1beta1.Instance, atLeast int64) *v1beta1.Instance {
	t.Helper()
	now, err := suite.Await(ctx, i.Namespace, i.Name, env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, atLeast))
	env.Must(t, err)
	if st := now.Status.PlanStatus[v1beta1.DeployPlan]; st.Status != v1beta1.Complete {
		t.Fatalf("deploy ended with %s: %s", st.Status, st.Message)
	}
	return now
}

// says waits until a step of deploy that is not done has texts in its message, and returns the status of the step.
func says(t testing.TB, i *v1beta1.Instance, texts ...string) v1beta1.ExecutionStatus {
	t.Helper()
	status := v1beta1.ExecutionStatus("")
	last := ""
	_, err := suite.Await(ctx, i.Namespace, i.Name, env.DefaultTimeout, func(now *v1beta1.Instance) bool {
		if now == nil {
			return false
		}
		for _, phase := range now.Status.PlanStatus[v1beta1.DeployPlan].Phases {
			for _, step := range phase.Steps {
				if step.Status == v1beta1.Complete || step.Status == v1beta1.Pending {
					continue
				}
				status, last = step.Status, step.Message
				if all(step.Message, texts) {
					return true
				}
			}
		}
		return false
	})
	if err != nil {
		t.Fatalf("no step says %q; the last said %q: %v", texts, last, err)
	}
	return status
}

func all(text string, wanted []string) bool {
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
