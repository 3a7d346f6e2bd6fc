package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/quota"
	"kudo.dev/kudo/plans"
)

// declaring answers what objects declare by their fields: spec.replicas, spec.cpu of each, and spec.workers, which are a component.
type declaring struct{ asked []string }

// Explore implements Interpreter.
func (d *declaring) Explore(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	d.asked = append(d.asked, string(r.Operation)+" "+r.Object.GetName())
	replicas, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "replicas")
	cpu, requests, _ := unstructured.NestedString(r.Object.Object, "spec", "cpu")
	workers, parted, _ := unstructured.NestedInt64(r.Object.Object, "spec", "workers")
	var needs *v1alpha1.ReplicaRequirements
	if requests {
		needs = &v1alpha1.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	switch {
	case r.Object.GetName() == "broken":
		return explore.Answer{}, false, errors.New("not known")
	case r.Operation == explore.Components && parted:
		return explore.Answer{Components: []v1alpha1.Component{{Name: "w", Replicas: int32(workers), ReplicaRequirements: needs}}}, true, nil
	case r.Operation == explore.Replica && replicas > 0:
		return explore.Answer{Replicas: int32(replicas), Requirements: needs}, true, nil
	case r.Operation == explore.ReplicaRevising:
		revised := r.Object.DeepCopy()
		unstructured.RemoveNestedField(revised.Object, "spec")
		return explore.Answer{Object: revised}, true, nil
	}
	return explore.Answer{}, false, nil
}

// workload is a Deployment, as declaring reads it.
func workload(name, spec string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

// quotaKinds are the kinds of the templates here.
func quotaKinds() *apply.Kinds {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return apply.NewKinds(mapper, nil, nil)
}

// quotaRun is a run of plan deploy, which applies a template by each of several steps.
func quotaRun(t *testing.T, templates ...string) *Run {
	t.Helper()
	u, texts := run(nil), map[string]string{}
	var tasks []v1beta1.Task
	for i, text := range templates {
		name := fmt.Sprintf("t%d", i)
		texts[name+".yaml"] = text
		tasks = append(tasks, v1beta1.Task{Name: name, Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{name + ".yaml"}}})
	}
	u.Version, u.Plan, u.Account = version(t, texts, tasks...), "deploy", apply.Account{Namespace: "ns", Name: "sa"}
	return u
}

// limited is a ResourceQuota of which nothing is used.
func limited(namespace, name, hard string, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes}}
	q.Status.Hard, q.Status.Used = corev1.ResourceList{}, corev1.ResourceList{}
	for _, pair := range strings.Fields(hard) {
		key, quantity, _ := strings.Cut(pair, "=")
		q.Status.Hard[corev1.ResourceName(key)], q.Status.Used[corev1.ResourceName(key)] = resource.MustParse(quantity), resource.MustParse("0")
	}
	return q
}

// TestExceededQuotas (C64) sums up what the objects of a plan will use more than now.
func TestExceededQuotas(t *testing.T) {
	const all = "pods=0 requests.cpu=0 count/deployments.apps=0 count/configmaps=0 limits.cpu=0 limits.memory=0 requests.storage=0 count/persistentvolumeclaims=0 " +
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims=0"
	made := func(name, uid, spec string) *unstructured.Unstructured {
		text, err := yaml.YAMLToJSON([]byte(workload(name, spec)))
		obj := &unstructured.Unstructured{}
		if err := errors.Join(err, obj.UnmarshalJSON(text)); err != nil {
			t.Fatal(err)
		}
		obj.SetNamespace("ns")
		obj.SetUID(types.UID(uid))
		return obj
	}
	for _, tc := range []struct {
		reason    string
		templates []string
		suspend   bool
		live      []*unstructured.Unstructured
		want      string
	}{
		{"new objects", []string{workload("a", "replicas: 3, cpu: 500m") + workload("b", "replicas: 1")}, false, nil, "count/deployments.apps 2, pods 4, requests.cpu 1500m"},
		{"components instead of replicas", []string{workload("a", "replicas: 9, workers: 2, cpu: '1'")}, false, nil, "count/deployments.apps 1, pods 2, requests.cpu 2"},
		{"all steps of the plan", []string{workload("a", "replicas: 1"), workload("b", "replicas: 2")}, false, nil, "count/deployments.apps 2, pods 3"},
		{"an object that several steps apply counts once, as it is applied last", []string{workload("a", "replicas: 1"), workload("a", "replicas: 4")}, false, nil, "count/deployments.apps 1, pods 4"},
		{"what the Instance has already is not needed twice", []string{workload("a", "replicas: 5, cpu: 100m")}, false, []*unstructured.Unstructured{made("a", "mine", "replicas: 3, cpu: 100m")}, "pods 2, requests.cpu 200m"},
		{"an object of another owner is none of the Instance's", []string{workload("a", "replicas: 5")}, false, []*unstructured.Unstructured{made("a", "theirs", "replicas: 3")}, "count/deployments.apps 1, pods 5"},
		{"objects without pods count by kind", []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"}, false, nil, "count/configmaps 1"},
		{"objects of the cluster or another namespace count elsewhere", []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: c}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: other}\n"}, false, nil, ""},
		{"what is not known of one object counts nothing", []string{workload("broken", "replicas: 5") + workload("a", "replicas: 1")}, false, nil, "count/deployments.apps 1, pods 1"},
		{"a suspended Instance runs no pods", []string{workload("a", "replicas: 5")}, true, nil, "count/deployments.apps 1"},
		{"limits of the pod templates", []string{workload("a", "replicas: 3, template: {spec: {containers: [{name: a, resources: {limits: {cpu: 200m, memory: 1Gi}}}]}}")}, false, nil,
			"count/deployments.apps 1, limits.cpu 600m, limits.memory 3Gi, pods 3"},
		{"claims of the pods", []string{"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 2, volumeClaimTemplates: [{spec: {storageClassName: gold, resources: {requests: {storage: 1Gi}}}}]}\n"}, false, nil,
			"count/persistentvolumeclaims 2, gold.storageclass.storage.k8s.io/persistentvolumeclaims 2, pods 2, requests.storage 2Gi"},
		{"a claim", []string{"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: s}\nspec: {resources: {requests: {storage: 1Gi}}}\n"}, false, nil, "count/persistentvolumeclaims 1, requests.storage 1Gi"},
		{"a quantity that takes minutes to read counts nothing, as does its object", []string{workload("a", "replicas: 3, template: {spec: {containers: [{resources: {limits: {cpu: '1e-2147483647'}}}]}}")}, false, nil, ""},
		{"a kind that is not served yet has pods all the same", []string{"apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: o}\nspec: {replicas: 2}\n"}, false, nil, "pods 2"},
	} {
		u := quotaRun(t, tc.templates...)
		u.Suspend = tc.suspend
		c := fakeCluster(t, interceptor.Funcs{}, limited("ns", "q", all), limited("other", "foreign", all))
		inventory := Inventory{}
		for _, obj := range tc.live {
			id := apply.IDOf(obj)
			id.Version = "v1beta9" // the Instance has written it in an older one
			inventory[id] = apply.Record{UID: "mine"}
		}
		r := New(Options{All: &declaring{}, Kinds: quotaKinds()})
		quotas, err := u.quotas(t.Context(), quotasOf(c))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.exceededQuotas(t.Context(), u, inventory, quotas, func(_ context.Context, id apply.ID) (*unstructured.Unstructured, error) {
			for _, obj := range tc.live {
				if apply.IDOf(obj) == id {
					return obj, nil
				}
			}
			return nil, nil
		})
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		var found []string
		for _, e := range got {
			found = append(found, fmt.Sprintf("%s %s", e.Resource, e.Needed.String()))
		}
		if text := strings.Join(found, ", "); text != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, text, tc.want)
		}
	}
}

// TestExceededQuotasBounds (C64) checks what a plan of many objects, and one that cannot be rendered, cost.
func TestExceededQuotasBounds(t *testing.T) {
	var many strings.Builder
	for i := range maxQuotaObjects + 50 {
		many.WriteString(workload(fmt.Sprintf("a%d", i), "replicas: 1"))
	}
	asked := &declaring{}
	r := New(Options{All: asked, Kinds: quotaKinds()})
	none := func(context.Context, apply.ID) (*unstructured.Unstructured, error) { return nil, nil }
	u := quotaRun(t, many.String())
	if err := u.resolve(); err != nil {
		t.Fatal(err)
	}
	got, err := r.exceededQuotas(t.Context(), u, nil, []corev1.ResourceQuota{*limited("ns", "q", "pods=10")}, none)
	if want := "ResourceQuota q: pods: needed 256, left 10"; err != nil || quota.Describe(got) != want || len(asked.asked) > 3*maxQuotaObjects {
		t.Errorf("%s, %d questions (%v), want %s", quota.Describe(got), len(asked.asked), err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.exceededQuotas(ended, u, nil, []corev1.ResourceQuota{*limited("ns", "q", "pods=10")}, none); err == nil {
		t.Errorf("after its time: %v", got)
	}
	failing := quotaRun(t, "{{ fail `no` }}")
	if err := failing.resolve(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.exceededQuotas(t.Context(), failing, nil, nil, none); err == nil || !strings.Contains(err.Error(), "task t0 of plan deploy: ") {
		t.Errorf("a template that fails: %v", err)
	}
}

// quotasAs returns a reader of quotas on a fake cluster, for the account of quotaRun only.
func quotasAs(t *testing.T, c client.Client) QuotaReader {
	return func(ctx context.Context, account apply.Account, namespace string) ([]corev1.ResourceQuota, error) {
		if account != quotaRun(t, "").Account {
			t.Errorf("quotas are read as %s", account)
		}
		return quotasOf(c)(ctx, namespace)
	}
}

// TestWarnOfQuotas (C64) counts the events and requests of a run that starts.
func TestWarnOfQuotas(t *testing.T) {
	big, started := workload("a", "replicas: 3, cpu: 500m"), metav1.NewMicroTime(time.Unix(1, 0))
	for _, tc := range []struct {
		reason   string
		quotas   []client.Object
		template string
		change   func(*Run, *v1beta1.PlanStatus)
		fail     error
		lists    int
		asked    bool
		want     string
	}{
		{"without a quota, one LIST and no question", nil, big, nil, nil, 1, false, ""},
		{"a quota of another namespace", []client.Object{limited("other", "q", "pods=1")}, big, nil, nil, 1, false, ""},
		{"a quota with a scope that cannot be judged", []client.Object{limited("ns", "q", "pods=1", corev1.ResourceQuotaScopeCrossNamespacePodAffinity)}, big, nil, nil, 1, false, ""},
		{"pods of which the template is not known are in no scope", []client.Object{limited("ns", "q", "pods=1", corev1.ResourceQuotaScopeBestEffort)}, big, nil, nil, 1, true, ""},
		{"room", []client.Object{limited("ns", "q", "pods=3 cpu=2")}, big, nil, nil, 1, true, ""},
		{"too little", []client.Object{limited("ns", "q", "pods=2 cpu=1")}, big, nil, nil, 1, true,
			"Plan deploy was started, and needs more than is left in namespace ns: ResourceQuota q: cpu: needed 1500m, left 1, ResourceQuota q: pods: needed 3, left 2. " +
				"Kubernetes refuses what exceeds a quota: raise the quota, or lower the replicas or requests"},
		{"quotas that cannot be read are no error", []client.Object{limited("ns", "q", "pods=1")}, big, nil, errors.New("refused"), 1, false, ""},
		{"a template that fails is the step's to report", []client.Object{limited("ns", "q", "pods=1")}, "{{ fail `no` }}", nil, nil, 1, false, ""},
		{"a run that has begun was judged before", []client.Object{limited("ns", "q", "pods=1")}, big, func(_ *Run, st *v1beta1.PlanStatus) { st.Phases[0].Steps[0].StartedTimestamp = &started }, nil, 0, false, ""},
		{"an install plan writes into any namespace", []client.Object{limited("ns", "q", "pods=1")}, big, func(u *Run, _ *v1beta1.PlanStatus) { u.Installation = &v1beta1.Installation{} }, nil, 0, false, ""},
		{"a plan that applies nothing", []client.Object{limited("ns", "q", "pods=1")}, big, func(u *Run, _ *v1beta1.PlanStatus) { u.Version.Spec.Tasks[0].Kind = v1beta1.DeleteTask }, nil, 0, false, ""},
	} {
		lists := 0
		c := fakeCluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			var o client.ListOptions
			o.ApplyOptions(options)
			if o.Namespace != "ns" || o.Limit != maxQuotas {
				t.Errorf("%s: lists %+v", tc.reason, o)
			}
			if tc.fail != nil {
				return tc.fail
			}
			return c.List(ctx, list, options...)
		}}, tc.quotas...)
		kinds, asked, hooks := quotaKinds(), &declaring{}, &recorder{}
		r := New(Options{All: asked, Kinds: kinds, Accounts: apply.NewAccounts(&rest.Config{Host: "http://127.0.0.1:1"}, nil, kinds, nil, nil), Quotas: quotasAs(t, c)})
		u := quotaRun(t, tc.template)
		st := plans.Start("deploy", u.Version.Spec.Plans["deploy"], "run", 1, time.Unix(1, 0))
		if tc.change != nil {
			tc.change(u, &st)
		}
		for range 3 { // reconciles
			r.warnOfQuotas(t.Context(), u, nil, st, hooks)
		}
		var want [][2]string
		if tc.want != "" {
			want = [][2]string{{v1beta1.EventQuotaWouldExceed, tc.want}}
		}
		if diff := cmp.Diff(want, hooks.events); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", tc.reason, diff)
		}
		if lists != tc.lists || len(asked.asked) > 0 != tc.asked {
			t.Errorf("%s: %d LISTs, questions %q", tc.reason, lists, asked.asked)
		}
	}
}

// TestWarnOfQuotasMasks (C64, engine: sensitive values) checks that a number that is a secret is not told.
func TestWarnOfQuotasMasks(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{}, limited("ns", "q", "pods=2"))
	kinds, hooks := quotaKinds(), &recorder{}
	r := New(Options{All: &declaring{}, Kinds: kinds, Accounts: apply.NewAccounts(&rest.Config{Host: "http://127.0.0.1:1"}, nil, kinds, nil, nil), Quotas: quotasAs(t, c)})
	u := quotaRun(t, workload("a", "replicas: 77345"))
	u.Parameters, u.Sensitive = map[string]string{"PIN": "77345"}, []string{"PIN"}
	r.warnOfQuotas(t.Context(), u, nil, plans.Start("deploy", u.Version.Spec.Plans["deploy"], "run", 1, time.Unix(1, 0)), hooks)
	if len(hooks.events) != 1 || strings.Contains(hooks.events[0][1], "77345") {
		t.Errorf("events %q", hooks.events)
	}
}

// quotasOf returns a reader with the rights of a client.
func quotasOf(c client.Reader) quotaReader {
	return func(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
		list := &corev1.ResourceQuotaList{}
		err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(maxQuotas))
		return list.Items, err
	}
}

// fakeCluster returns a client of a fake cluster.
func fakeCluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}
