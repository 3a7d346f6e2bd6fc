package restore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	records "kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// world is what a case has in the source, and restores to the target.
type world struct {
	// word makes the names of cluster-scoped objects.
	word string
	ns   string
	*backup
	options
}

// newWorld makes a namespace in the source. The order of the restore is seeded by the seed of the suite.
func newWorld(t testing.TB) *world {
	t.Helper()
	seed := uint64(GinkgoRandomSeed())
	GinkgoWriter.Printf("the order of the restore is seeded with %d: ginkgo --seed\n", seed)
	return &world{word: "w" + utilrand.String(6), ns: source.NewNamespace(t),
		options: options{random: rand.New(rand.NewPCG(seed, uint64(len(CurrentSpecReport().LeafNodeText))))}}
}

// web is an OperatorVersion without install plan: ConfigMaps, a Secret, a claim and a Deployment.
func web(ns string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	all := []gen.VersionMod{
		gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 2),
		gen.Template("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}-login\nstringData:\n  password: {{ .Params.VALUE | quote }}\n"),
		gen.Template("claim.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {{ .Name }}-data\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n"),
		gen.Template("server.yaml", serverYAML+"        envFrom: [{secretRef: {name: \"{{ .Name }}-login\"}}]\n"),
		gen.Apply("data", "secret.yaml", "claim.yaml"), gen.Apply("server", "server.yaml"), gen.Serial("deploy", "cm", "data", "server"),
	}
	return gen.Version(ns, "web-1", append(all, mods...)...)
}

// once adds what a plan does once: a Job, and an object that it deletes.
func once() gen.VersionMod {
	job := "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Name }}-init\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      " +
		"containers:\n      - name: init\n        image: busybox\n"
	gone := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-scratch\ndata: {a: b}\n"
	return func(ov *v1beta1.OperatorVersion) {
		for _, mod := range []gen.VersionMod{
			gen.Template("job.yaml", job), gen.Template("scratch.yaml", gone), gen.Apply("init", "job.yaml"), gen.Apply("scratch", "scratch.yaml"),
			gen.Task("tidy", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"scratch.yaml"}}),
			gen.Serial("deploy", "scratch", "cm", "data", "init", "server", "tidy"),
		} {
			mod(ov)
		}
	}
}

// fleet is an OperatorVersion whose install plan shares a definition and a ClusterRole with all others of the world, and has a ConfigMap
// of its own. Its Instances have a custom resource, a ConfigMap and a claim.
func (w *world) fleet(name string) *v1beta1.OperatorVersion {
	group := w.word + ".example.com"
	return gen.Version(w.ns, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.InstallPlan("install"),
		gen.Template("crd.yaml", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ships.`+group+`
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Ship, plural: ships, singular: ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
`),
		gen.Template("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: "+w.word+"\nrules:\n- apiGroups: ["+group+"]\n  resources: [ships]\n  verbs: [get]\n"),
		gen.Template("own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "+name+"-installed\ndata: {a: b}\n"),
		gen.Template("ship.yaml", "apiVersion: "+group+"/v1\nkind: Ship\nmetadata:\n  name: {{ .Name }}\nspec:\n  size: 3\n"),
		gen.Template("claim.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {{ .Name }}-data\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n"),
		gen.Apply("shared", "crd.yaml", "role.yaml", "own.yaml"), gen.Apply("ship", "ship.yaml", "claim.yaml"),
		gen.Serial("install", "shared"), gen.Serial("deploy", "cm", "ship"), gen.Serial("backup", "cm"),
	)
}

// ready creates Instances in the source and waits until they are Ready.
func ready(t testing.TB, instances ...*v1beta1.Instance) {
	t.Helper()
	for _, i := range instances {
		env.Must(t, source.Create(ctx, i))
	}
	for _, i := range instances {
		_, err := source.Await(ctx, i.Namespace, i.Name, env.DefaultTimeout, isReady)
		env.Must(t, err)
	}
}

func isReady(i *v1beta1.Instance) bool {
	if i == nil {
		return false
	}
	ready := condition(i, v1beta1.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == i.Generation
}

func condition(i *v1beta1.Instance, kind string) *metav1.Condition {
	at := slices.IndexFunc(i.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &i.Status.Conditions[at]
}

// save exports the world. Records of runs are left out, if the case does not restore the history.
func (w *world) save(t testing.TB, history bool) {
	t.Helper()
	w.saveAll(t, history, []string{w.ns}, func(obj *unstructured.Unstructured) bool { return strings.Contains(obj.GetName(), w.word) })
}

// saveAll exports namespaces, and the cluster-scoped objects that a function selects.
func (w *world) saveAll(t testing.TB, history bool, namespaces []string, clusterScoped func(*unstructured.Unstructured) bool) {
	t.Helper()
	w.backup = export(t, source.Cluster, namespaces, clusterScoped)
	w.objects = slices.DeleteFunc(w.objects, func(obj *unstructured.Unstructured) bool {
		job := obj.GetKind() == "Job" // as Velero does with one that is complete
		return job || obj.GetKind() == "ControllerRevision" && !history
	})
	t.Cleanup(func() {
		_ = target.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", w.place())})
	})
}

// place is the namespace in the target.
func (w *world) place() string {
	if to, moved := w.to[w.ns]; moved {
		return to
	}
	return w.ns
}

func (w *world) bring(t testing.TB) {
	t.Helper()
	w.restore(t, target.Cluster, w.options)
}

// instances reads the Instances of the target.
func (w *world) instances(t testing.TB) map[string]*v1beta1.Instance {
	t.Helper()
	found := &v1beta1.InstanceList{}
	env.Must(t, target.List(ctx, found, client.InNamespace(w.place())))
	out := map[string]*v1beta1.Instance{}
	for i := range found.Items {
		out[found.Items[i].Name] = &found.Items[i]
	}
	return out
}

// arrive waits until nothing is pending.
func (w *world) arrive(t testing.TB) {
	t.Helper()
	env.Within(t, 2*env.DefaultTimeout, "a target where all is restored", func() string { return w.pending(t) })
}

// pending returns a text about an Instance of the target that is not Ready, or an install plan that is not complete, by a status of its
// own: one that was restored says so, too. It is empty if there is neither.
func (w *world) pending(t testing.TB) string {
	t.Helper()
	for name, i := range w.instances(t) {
		if !isReady(i) || records.IsForeign(i.UID, i.Status.PlanStatus) {
			return fmt.Sprintf("condition Ready of Instance %s is %v", name, condition(i, v1beta1.ReadyCondition))
		}
	}
	found := &v1beta1.OperatorVersionList{}
	env.Must(t, target.List(ctx, found, client.InNamespace(w.place())))
	for _, ov := range found.Items {
		if !ov.Installed() || records.IsForeign(ov.UID, ov.Status.PlanStatus) || plans.Running(ov.Status.PlanStatus) != "" {
			return fmt.Sprintf("the install plan of OperatorVersion %s is not complete", ov.Name)
		}
	}
	return ""
}

// holds checks what must be true after a restore (R34): nothing is lost or changed, each object has the owners that it should have, and
// no plan has run but deploy and install, once.
func (w *world) holds(t testing.TB) {
	t.Helper()
	uids := map[types.UID]string{}
	for name, i := range w.instances(t) {
		uids[i.UID] = name
		w.ranOnce(t, i)
	}
	shared := 0
	for _, obj := range w.objects {
		live := find(t, target.Cluster, obj, w.options)
		if live == nil {
			t.Errorf("%s %s/%s is lost", obj.GetKind(), obj.GetNamespace(), obj.GetName())
			continue
		}
		if !apiequality.Semantic.DeepEqual(content(restored(obj, w.options)), content(live)) && !isAPIObject(obj) {
			t.Errorf("%s %s was changed:\n%v\n%v", obj.GetKind(), obj.GetName(), content(obj), content(live))
		}
		labels := obj.GetLabels()
		if labels[v1beta1.HeritageLabel] != v1beta1.Heritage {
			continue
		}
		if name := labels[v1beta1.InstanceLabel]; name != "" {
			if len(obj.GetOwnerReferences()) == 0 { // as the claims of a StatefulSet
				continue
			}
			if owners := live.GetOwnerReferences(); len(owners) != 1 || uids[owners[0].UID] != name {
				t.Errorf("%s %s is owned by %v, not by Instance %s alone", obj.GetKind(), obj.GetName(), owners, name)
			}
			continue
		}
		shared++
		if is, were := holders(live), holders(obj); len(is) != len(were) {
			t.Errorf("%s %s is held by %v, and was by %v", obj.GetKind(), obj.GetName(), is, were)
		}
	}
	GinkgoWriter.Printf("%d objects, %d of them shared\n", len(w.objects), shared)
}

// isAPIObject reports whether an object is changed by controllers after its creation, or holds what only its cluster has.
func isAPIObject(obj *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Namespace", "Service", "PersistentVolumeClaim", "Secret", "CustomResourceDefinition", "RoleBinding"}, obj.GetKind()) &&
		obj.GetLabels()[v1beta1.InstanceLabel] == "" || obj.GetKind() == "PersistentVolumeClaim" || obj.GetKind() == "Instance"
}

// holders are the Installations that hold an object.
func holders(obj *unstructured.Unstructured) []string {
	var out []string
	for _, o := range obj.GetOwnerReferences() {
		if v1beta1.OwnedBy(o, "Installation") {
			out = append(out, o.Name)
		}
	}
	return out
}

// content is what must not change of an object. A Service gets an address of the cluster that it is in.
func content(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy().Object
	delete(out, "metadata")
	delete(out, "status")
	if obj.GetKind() == "Service" {
		unstructured.RemoveNestedField(out, "spec", "clusterIP")
		unstructured.RemoveNestedField(out, "spec", "clusterIPs")
	}
	return out
}

// ranOnce checks that deploy has run once and nothing else did.
func (w *world) ranOnce(t testing.TB, i *v1beta1.Instance) {
	t.Helper()
	for plan, st := range i.Status.PlanStatus {
		want := v1beta1.NeverRun
		if plan == v1beta1.DeployPlan {
			want = v1beta1.Complete
		}
		if st.Status != want {
			t.Errorf("plan %s of Instance %s is %s: %s", plan, i.Name, st.Status, st.Message)
		}
	}
	if len(i.Status.Queue) != 0 {
		t.Errorf("Instance %s has the queue %v", i.Name, i.Status.Queue)
	}
}

// again checks that a second manager writes nothing.
func again(t testing.TB, m *manager) {
	t.Helper()
	m.settle(t)
	m.stop()
	m.count(0)
	m.start(t)
	m.settle(t)
	if wrote := m.count(0); len(wrote) != 0 {
		t.Errorf("a second manager has written %v", list(wrote))
	}
}

// event waits for an event of an Instance in the target.
func event(t testing.TB, i *v1beta1.Instance, reason string, texts ...string) {
	t.Helper()
	env.Eventually(t, "the event "+reason, func() string {
		found := &corev1.EventList{}
		env.Must(t, target.List(ctx, found, client.InNamespace(i.Namespace), client.MatchingFields{"involvedObject.name": i.Name, "reason": reason}))
		for _, e := range found.Items {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Message, text) }) {
				return ""
			}
		}
		return fmt.Sprintf("%d events of the reason", len(found.Items))
	})
}
