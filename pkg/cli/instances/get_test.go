package instances

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestGetUsage checks that a kind or a format that does not exist is wrong usage without a cluster, too.
func TestGetUsage(t *testing.T) {
	noCluster(t)
	for line, want := range map[string]string{
		"get pods":                    `unknown kind "pods": use instances, operators, operatorversions, shared or all`,
		"get Instances":               `unknown kind "Instances"`,
		"get pods -o wide":            `unknown kind "pods"`,
		"get instances -o jsonpath":   `invalid output format "jsonpath": use yaml, json, wide or name`,
		"get shared -o name":          "get shared prints a table, yaml or json",
		"get":                         "takes one of instances, operators, operatorversions, shared and all",
		"get all db":                  "get all takes no names, and got db",
		"get shared db":               "get shared takes no names, and got db",
		"get instances db -A":         "--all-namespaces cannot be used with a name",
		"get instances --namespaces":  "unknown flag: --namespaces",
		"get instances -A=everywhere": "invalid argument",
	} {
		out, errs := commandtest.Expect(t, NewGet, command.ExitUsage, "", strings.Fields(line)...)
		if out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: no %q in\n%s%s", line, want, out, errs)
		}
	}
}

// TestGetKinds checks which objects the words of users list.
func TestGetKinds(t *testing.T) {
	version := web("1.0.0")
	onServer(t, version, site(version), &v1beta1.Operator{ObjectMeta: gen.Meta("lab", "web")}, gen.Instance("other", gen.Version("elsewhere", "web-1.27-1.0.0"), nil))
	const operator, ov, own, other = "operator.kudo.dev/web\n", "operatorversion.kudo.dev/web-1.27-1.0.0\n", "instance.kudo.dev/site\n", "instance.kudo.dev/other\n"
	for line, want := range map[string]string{
		"get instances -o name":             own,
		"get instance -o name":              own,
		"get operator -o name":              operator,
		"get operatorversion -o name":       ov,
		"get all -o name":                   operator + ov + own,
		"get instances -A -o name":          other + own,
		"get instances -n elsewhere -oname": other,
		"get all -n empty -o name":          "",
	} {
		if out, errs := commandtest.Expect(t, NewGet, 0, "", strings.Fields(line)...); out != want || errs != "" {
			t.Errorf("%s: got\n%s%swant\n%s", line, out, errs, want)
		}
	}
}

// TestGetForPrograms checks the objects that a program reads.
func TestGetForPrograms(t *testing.T) {
	version := web("1.0.0")
	instance := site(version)
	instance.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kudo", Operation: metav1.ManagedFieldsOperationApply}}
	onServer(t, version, instance)
	out, _ := commandtest.Expect(t, NewGet, 0, "", "get", "all", "-o", "json")
	var list struct {
		Kind  string
		Items []struct {
			APIVersion, Kind string
			Metadata         map[string]any
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range list.Items {
		got = append(got, item.APIVersion+" "+item.Kind)
		if _, there := item.Metadata["managedFields"]; there {
			t.Errorf("%s has managedFields", item.Kind)
		}
	}
	want := []string{"kudo.dev/v1beta1 OperatorVersion", "kudo.dev/v1beta1 Instance"}
	if diff := cmp.Diff(want, got); diff != "" || list.Kind != "List" {
		t.Errorf("each object has its kind, in a list of kind %q: -want +got:\n%s", list.Kind, diff)
	}
}

// TestGetColumns checks what the columns of Instances say.
func TestGetColumns(t *testing.T) {
	version := web("1.0.0")
	waiting := gen.Instance("waiting", version, nil)
	waiting.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, ActivePlanName: "deploy", Message: "Secret db\ndoes not exist\x1b[2J"}
	waiting.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse}}
	waiting.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "page"}}
	onServer(t, version, site(version), waiting)
	out, _ := commandtest.Expect(t, NewGet, 0, "", "get", "instances")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if len(rows) != 3 {
		t.Fatalf("a header and two rows:\n%s", out)
	}
	if got := strings.Fields(rows[2]); !cmp.Equal(got[:6], []string{"waiting", "web-1.27-1.0.0", "False", "1", "PENDING", "deploy"}) {
		t.Errorf("the row of an Instance that waits: %v", got)
	}
	for i, column := range []string{"NAME", "OPERATOR-VERSION", "READY", "STATUS", "AGE"} {
		at := strings.Index(rows[0], column)
		if at < 0 || at > 0 && rows[1][at-1] != ' ' {
			t.Errorf("column %d, %s, does not stand below its header:\n%s", i, column, out)
		}
	}
	if strings.Contains(out, "Secret db") {
		t.Errorf("messages are for -o wide:\n%s", out)
	}
}

// TestGetFails checks that an error of the API server is an error of the command, with no half of a table.
func TestGetFails(t *testing.T) {
	server := onServer(t)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "list" && r.Kind == "Instance" {
			return nil, errors.New("etcd is full")
		}
		return nil, nil
	})
	if out, errs := commandtest.Expect(t, NewGet, command.ExitError, "", "get", "instances"); out != "" || !strings.HasPrefix(errs, "Error: ") {
		t.Errorf("%s%s", out, errs)
	}
}

// installation is the inventory of a subject.
func installation(name, kind, subject string, resources ...v1beta1.HeldResource) *v1beta1.Installation {
	i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	i.Spec.Subject.Kind, i.Spec.Subject.Namespace, i.Spec.Subject.Name = kind, "lab", subject
	i.Status.Resources = resources
	return i
}

// TestGetShared checks what is said of objects that OperatorVersions hold.
func TestGetShared(t *testing.T) {
	held := func(name string, state v1beta1.HoldState, message string) v1beta1.HeldResource {
		return v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name, State: state, Message: message}
	}
	role := func(name string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}
		obj.SetName(name)
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Installation", Name: "i-" + name, UID: types.UID("u-" + name)}})
		return obj
	}
	onServer(t,
		installation("b", "OperatorVersion", "web-2", held("reader", v1beta1.HoldMismatch, "the rules differ")),
		installation("a", "OperatorVersion", "web-1", held("reader", "Held", ""), held("absent", "Held", "")),
		role("reader"))
	out, _ := commandtest.Expect(t, NewGet, 0, "", "get", "shared", "-o", "json")
	var found []share.SharedObject
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	want := []share.SharedObject{
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "absent", State: string(v1beta1.HoldMissing), HeldBy: []string{"OperatorVersion lab/web-1 (Held)"}},
		{
			APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader", State: string(v1beta1.HoldMismatch), Message: "the rules differ",
			HeldBy: []string{"OperatorVersion lab/web-1 (Held)", "OperatorVersion lab/web-2 (" + string(v1beta1.HoldMismatch) + ")"}, Owners: []string{"Installation i-reader"},
		},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	table, _ := commandtest.Expect(t, NewGet, 0, "", "get", "shared")
	if !strings.HasPrefix(table, "OBJECT ") || strings.Contains(table, "MESSAGE") || strings.Index(table, "ClusterRole absent") > strings.Index(table, "ClusterRole reader") {
		t.Errorf("a table in the order of the names, without messages:\n%s", table)
	}
	wide, _ := commandtest.Expect(t, NewGet, 0, "", "get", "shared", "-o", "wide")
	if !strings.Contains(wide, "the rules differ") || !strings.Contains(wide, "Installation i-reader") {
		t.Errorf("-o wide has owners and messages:\n%s", wide)
	}
}

// TestDeclaredColumns checks how declared resources are shown.
func TestDeclaredColumns(t *testing.T) {
	requests := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	for _, tc := range []struct {
		reason string
		sum    *declaredResources
		want   []string
	}{
		{"no object declares replicas", &declaredResources{}, []string{"", ""}},
		{"it is not known whether one does", &declaredResources{unknown: true}, []string{"?", "?"}},
		{"replicas without requests", &declaredResources{found: true, Declared: explore.Declared{Replicas: 3}}, []string{"3", ""}},
		{"none is a number", &declaredResources{found: true}, []string{"0", ""}},
		{"requests in the order of their names", &declaredResources{found: true, Declared: explore.Declared{Replicas: 2, Requests: requests("memory", "1Gi", "cpu", "300m")}}, []string{"2", "cpu=300m,memory=1Gi"}},
		{"requests of nothing are left out", &declaredResources{found: true, Declared: explore.Declared{Replicas: 2, Requests: requests("memory", "0", "cpu", "1")}}, []string{"2", "cpu=1"}},
		{"a sum may be more", &declaredResources{found: true, unknown: true, Declared: explore.Declared{Replicas: 2, Requests: requests("cpu", "1")}}, []string{"2?", "cpu=1?"}},
	} {
		if diff := cmp.Diff(tc.want, tc.sum.columns()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestGetNames (P29) checks that get lists the objects that are named, in the order of the names, and reads no others.
func TestGetNames(t *testing.T) {
	version := gen.Version("lab", "web-1.0", gen.Template("a.yaml", "kind: X"))
	server := onServer(t, version, gen.Instance("one", version, nil), gen.Instance("two", version, nil), gen.Instance("three", version, nil))
	server.Requests()
	out, _ := commandtest.Expect(t, NewGet, 0, "", "get", "instances", "two", "one", "-o", "name")
	if want := "instance.kudo.dev/two\ninstance.kudo.dev/one\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, "list") {
			t.Errorf("%s: who may get an Instance may not be allowed to list all", request)
		}
	}
	if _, errs := commandtest.Expect(t, NewGet, command.ExitError, "", "get", "instances", "one", "four"); !strings.Contains(errs, "instance lab/four does not exist: kubectl kudo get instances -n lab lists them") {
		t.Error(errs)
	}
}
