package restore

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans/trigger"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// requirement is what a package of the catalog needs to be installed with its defaults, and what a user makes with it.
type requirement struct {
	// parameters are the values of those without a default.
	parameters []string
	// install are further arguments of the installation.
	install []string
	// prepare creates what must be in the namespace before the package is installed. It may be nil.
	prepare func(t testing.TB, folder, ns string)
	// resource is a custom resource of one of the package's kinds, which no plan makes. It may be nil.
	resource *unstructured.Unstructured
}

// requirements are those of all packages of the catalog, by the names of their folders.
var requirements = map[string]requirement{
	"etcd": {install: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"}, parameters: []string{"PASSWORD=correct-horse",
		"BACKUP_USER=team", "BACKUP_PASSWORD=battery-staple", "BACKUP_KEY=battery-staple", "BACKUP_CA=c", "IMAGE_REGISTRY=localhost/catalog", "STORAGE_SIZE=1Gi"}},
	"etcd-definition": {resource: custom("operator.etcd.io/v1alpha1", "EtcdCluster", map[string]any{"size": int64(1), "version": "v3.5.21"})},
	"guestbook":       {},
	"hello":           {},
	"imageswitch":     {},
	"mariadb": {install: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"}, parameters: []string{"PASSWORD=correct-horse",
		"BACKUP_USER=team", "BACKUP_PASSWORD=battery-staple", "BACKUP_KEY=battery-staple", "BACKUP_CA=c", "IMAGE_REGISTRY=localhost/catalog", "STORAGE_SIZE=1Gi"}},
	"noticeboard": {parameters: []string{"AUTHORS=[alice]"}, resource: custom("noticeboard.example.com/v1", "Notice", map[string]any{"text": "closed"})},
	"postgres": {parameters: []string{"PASSWORD=correct-horse", "BACKUP_KEY=battery-staple", "IMAGE_REGISTRY=localhost/catalog",
		"STORAGE_SIZE=1Gi"}}, // as the claim template of the StatefulSet, which may be restored before the claims
	"rabbitmq": {install: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"}, parameters: []string{"PASSWORD=correct-horse",
		"BACKUP_USER=team", "BACKUP_PASSWORD=battery-staple", "BACKUP_KEY=battery-staple", "BACKUP_CA=c", "IMAGE_REGISTRY=localhost/catalog", "STORAGE_SIZE=1Gi"}},
	"redis":     {install: []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog"}, parameters: []string{"PASSWORD=correct-horse", "BACKUP_STORE=none", "IMAGE_REGISTRY=localhost/catalog", "STORAGE_SIZE=1Gi"}},
	"printshop": {prepare: publish, resource: custom("printshop.example.com/v1", "Print", map[string]any{"text": "a poster"})},
}

// custom is a custom resource as a user makes it.
func custom(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
	obj := object(apiVersion, kind, "", "kept")
	obj.Object["spec"] = spec
	return obj
}

// publish makes the ConfigMap with the CustomResourceDefinitions of the printshop.
func publish(t testing.TB, folder, ns string) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(folder, "tarballs", "1.5.0.tar.gz"))
	env.Must(t, err)
	env.Must(t, source.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "printshop-crds-1.5.0"), BinaryData: map[string][]byte{"crds.tar.gz": packed}}))
}

// Each package has two Instances: for one, plan deploy runs again; the other is annotated as restored, and is taken over. These are the
// ends of their names.
const (
	deployed  = "-deployed"
	takenOver = "-taken-over"
)

// catalogCase is a restore of packages of the catalog, with a manager that is killed.
type catalogCase struct {
	// packages are the folders; all of the catalog if there is none.
	packages []string
	// most bounds the random numbers of writes after which the manager is killed; 1 kills it at each write.
	most int
}

// killedAtEachWrite returns a case for each package whose restore is killed at each write: one package, or all if KUDO_FAULTS is "all", as
// in make faults.
func killedAtEachWrite() []TableEntry {
	packages := []string{"hello"}
	if os.Getenv("KUDO_FAULTS") == "all" {
		packages = slices.Sorted(maps.Keys(requirements))
	}
	var entries []TableEntry
	for _, name := range packages {
		entries = append(entries, Entry("at each write: "+name, catalogCase{packages: []string{name}, most: 1}))
	}
	return entries
}

func (c catalogCase) run(t testing.TB, m *manager) {
	t.Helper()
	packages := c.packages
	if len(packages) == 0 {
		packages = listPackages(t)
	}
	w := newWorld(t)
	By("the packages are installed in the source")
	w.saveCatalog(t, packages)
	By("they are restored to the target, but for an object of each Instance that is to be taken over")
	withheld := w.withhold()
	w.bring(t)
	before := w.uids(t)
	next := func() int { return 1 + w.random.IntN(c.most) }
	By("an object that is missing is named")
	kills := m.runKilled(t, next, func() string { return w.unnamed(t, withheld) })
	(&backup{slices.Collect(maps.Values(withheld))}).restore(t, target.Cluster, w.options)
	w.objects = append(w.objects, slices.Collect(maps.Values(withheld))...)

	By("all Instances are Ready by one run each, and no object is lost or made anew")
	kills += m.runKilled(t, next, func() string { return w.pending(t) })
	GinkgoWriter.Printf("%d objects, %d kills\n", len(w.objects), kills)
	m.start(t)
	w.arrive(t)
	w.holds(t)
	after := w.uids(t)
	for key, uid := range before {
		if after[key] != uid {
			t.Errorf("%s was made anew: its uid is %s and was %s", key, after[key], uid)
		}
	}
	w.checkCauses(t)
	w.ownAccount(t, packages[0]+deployed)
	again(t, m)
	w.clear(t)
}

// listPackages lists the folders of the catalog. Each must have its requirement.
func listPackages(t testing.TB) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(sourcetree.Root(), "operators", "catalog", "*", "operator"))
	env.Must(t, err)
	var names []string
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		names = append(names, name)
		if _, has := requirements[name]; !has {
			t.Fatalf("package %s of the catalog has no requirement: add one of this name to requirements in test/restore/catalog_test.go, "+
				"with the parameters that have no default, what must be in the namespace before, and a custom resource of its kinds", name)
		}
	}
	if len(names) != len(requirements) {
		t.Fatalf("there are requirements for %v, and the packages %v: delete those without a package", slices.Sorted(maps.Keys(requirements)), names)
	}
	return names
}

// saveCatalog installs packages in the source, with two Instances each, and exports all that has been made.
func (w *world) saveCatalog(t testing.TB, packages []string) {
	t.Helper()
	everything := func(*unstructured.Unstructured) bool { return true }
	known := map[types.UID]bool{}
	for _, obj := range export(t, source.Cluster, nil, everything).objects {
		known[obj.GetUID()] = true
	}
	group := errgroup.Group{}
	for _, name := range packages {
		need, folder := requirements[name], filepath.Join(sourcetree.Root(), "operators", "catalog", name)
		if need.prepare != nil {
			need.prepare(t, folder, w.ns)
		}
		args := []string{"install", filepath.Join(folder, "operator"), "-n", w.ns, "--create-service-account", "-y", "--wait", "--wait-time", "300"}
		args = append(args, need.install...)
		for _, p := range need.parameters {
			args = append(args, "-p", p)
		}
		group.Go(func() error {
			for _, end := range []string{deployed, takenOver} {
				if out, code := source.Kudo(append(slices.Clone(args), "--instance", name+end)...); code != 0 {
					return fmt.Errorf("install package %s: %s", name, out)
				}
			}
			return nil
		})
	}
	env.Must(t, group.Wait())
	for _, name := range packages {
		if resource := requirements[name].resource; resource != nil {
			resource = resource.DeepCopy()
			resource.SetNamespace(w.ns)
			env.Must(t, source.Create(ctx, resource))
		}
	}
	namespaces := []string{w.ns}
	isNew := func(obj *unstructured.Unstructured) bool { return !known[obj.GetUID()] }
	for _, obj := range export(t, source.Cluster, nil, isNew).objects {
		if obj.GetKind() == "Namespace" {
			namespaces = append(namespaces, obj.GetName())
		}
	}
	w.saveAll(t, false, namespaces, func(obj *unstructured.Unstructured) bool { return obj.GetKind() != "Namespace" && isNew(obj) })
}

// withhold annotates the Instances that are to be taken over, and takes an object of each out of the backup. It returns these by the
// names of the Instances.
func (w *world) withhold() map[string]*unstructured.Unstructured {
	owned := map[string][]*unstructured.Unstructured{}
	for _, obj := range w.objects {
		if obj.GetKind() == "Instance" && strings.HasSuffix(obj.GetName(), takenOver) {
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1beta1.RestoredAnnotation] = "true"
			obj.SetAnnotations(annotations)
		}
		labels := obj.GetLabels()
		if name := labels[v1beta1.InstanceLabel]; strings.HasSuffix(name, takenOver) && labels[v1beta1.HeritageLabel] == v1beta1.Heritage &&
			len(obj.GetOwnerReferences()) > 0 {
			owned[name] = append(owned[name], obj)
		}
	}
	out := map[string]*unstructured.Unstructured{}
	for name, objects := range env.Sorted(owned) {
		obj := objects[w.random.IntN(len(objects))]
		GinkgoWriter.Printf("%s %s is restored later\n", obj.GetKind(), obj.GetName())
		out[name] = obj
		w.objects = slices.DeleteFunc(w.objects, func(o *unstructured.Unstructured) bool { return o == obj })
	}
	return out
}

// unnamed returns a text about an Instance whose condition does not name its withheld object; empty if there is none.
func (w *world) unnamed(t testing.TB, withheld map[string]*unstructured.Unstructured) string {
	t.Helper()
	instances := w.instances(t)
	for name, obj := range withheld {
		want := fmt.Sprintf("as the plan makes them: %s %s/%s does not exist. Restore them", obj.GetKind(), w.ns, obj.GetName())
		if c := condition(instances[name], v1beta1.ReadyCondition); c == nil || !strings.Contains(c.Message, want) {
			return fmt.Sprintf("condition Ready of Instance %s is %v, without %q", name, c, want)
		}
	}
	return ""
}

// uids reads the uids of what was restored, by kind and name.
func (w *world) uids(t testing.TB) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, obj := range w.objects {
		if live := find(t, target.Cluster, obj, w.options); live != nil {
			out[obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName()] = live.GetUID()
		}
	}
	return out
}

// checkCauses checks that each Instance has one run, and why.
func (w *world) checkCauses(t testing.TB) {
	t.Helper()
	records := &appsv1.ControllerRevisionList{}
	env.Must(t, target.List(ctx, records, client.InNamespace(w.place()), client.HasLabels{v1beta1.HistoryLabel, v1beta1.InstanceLabel}))
	causes := map[string][]string{}
	for _, r := range records.Items {
		run := struct{ Plan, Cause string }{}
		env.Must(t, json.Unmarshal(r.Data.Raw, &run))
		name := r.Labels[v1beta1.InstanceLabel]
		causes[name] = append(causes[name], run.Plan+": "+run.Cause)
	}
	for name := range w.instances(t) {
		want := v1beta1.DeployPlan + ": " + trigger.CauseCreated
		if strings.HasSuffix(name, takenOver) {
			want = v1beta1.DeployPlan + ": " + trigger.CauseRestored
		}
		if got := causes[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("the runs of Instance %s are %q, not %q", name, got, want)
		}
	}
}

// ownAccount has the command line make an Instance the owner of its account, which no plan writes.
func (w *world) ownAccount(t testing.TB, instance string) {
	t.Helper()
	env.Contains(t, target.MustKudo(t, 0, "account", "create", "--instance", instance, "-n", w.place(), "-y"), "has the rights that the plans need")
	account := env.Read(t, target.Cluster, &corev1.ServiceAccount{}, w.place(), instance+"-kudo")
	if owners := account.OwnerReferences; len(owners) != 1 || owners[0].UID != w.instances(t)[instance].UID {
		t.Errorf("ServiceAccount %s is owned by %v", account.Name, owners)
	}
}

// clear deletes the namespaces in both clusters, and waits until the managers have released all that the install plans have made: the next
// case exports what is new in the source.
func (w *world) clear(t testing.TB) {
	t.Helper()
	for _, cluster := range []*env.Cluster{target.Cluster, source.Cluster} {
		for _, obj := range w.objects {
			if obj.GetKind() == "Namespace" {
				env.Must(t, client.IgnoreNotFound(cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", obj.GetName())})))
			}
		}
		env.Eventually(t, "the deletion of all that was restored", func() string {
			for _, obj := range w.objects {
				if find(t, cluster, obj, w.options) != nil {
					return fmt.Sprintf("%s %s/%s exists", obj.GetKind(), obj.GetNamespace(), obj.GetName())
				}
			}
			return ""
		})
	}
}
