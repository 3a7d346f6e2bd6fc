package preview

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// compareCapacity compares how much of pods, requests and storage a plan was said to change with what its objects declare before and after
// it (P12). It leaves out upgrades of several plans, and those of which
// not all is known.
func (o outcome) compareCapacity(t *testing.T) {
	t.Helper()
	runs := slices.DeleteFunc(slices.Clone(o.preview.Runs), func(r preview.Run) bool { return r.Of != "" })
	if len(runs) != 1 || o.preview.Unknown() > 0 {
		return
	}
	before, after := declared{}, declared{}
	for _, object := range o.preview.Objects {
		if object.Effect != preview.Delete && !appliedIn(object, runs[0].Plan) || object.Namespace != o.ns {
			continue
		}
		if object.Effect != preview.Adopt {
			before.add(t, o.before[object.ID()])
		}
		after.add(t, o.after[object.ID()])
	}
	happened := map[string][2]string{}
	for name := range after {
		before.times(name, resource.Quantity{}, 0)
	}
	for name, was := range before {
		if is := after[name]; was.Cmp(is) != 0 {
			happened[string(name)] = [2]string{was.String(), is.String()}
		}
	}
	said := map[string][2]string{}
	for _, c := range runs[0].Capacity {
		said[c.Resource] = [2]string{c.Before.String(), c.After.String()}
	}
	results.addCapacities(len(said))
	if diff := cmp.Diff(said, happened); diff != "" {
		t.Errorf("other amounts of resources are declared (-said +happened): %s\n%s", diff, o.texts)
	}
}

// declared is how much objects declare, by the names of ResourceQuotas.
type declared corev1.ResourceList

// workload has the fields of workloads, pods and claims that say how much they declare.
type workload struct {
	Kind string
	Spec struct {
		corev1.PodSpec
		Replicas, Parallelism, Completions *int64
		Template                           struct{ Spec corev1.PodSpec }
		VolumeClaimTemplates               []corev1.PersistentVolumeClaim
		Resources                          corev1.VolumeResourceRequirements `json:"resources"` // hides that of the PodSpec
	}
}

// add adds what an object declares; nothing if there is none.
func (d declared) add(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	if obj == nil {
		return
	}
	text, err := json.Marshal(obj)
	env.Must(t, err)
	w := workload{}
	switch obj.GetKind() {
	case "Deployment", "StatefulSet", "Job", "Pod", "PersistentVolumeClaim":
		env.Must(t, json.Unmarshal(text, &w))
	default:
		return
	}
	count, spec := int64(1), w.Spec.Template.Spec
	switch {
	case w.Kind == "PersistentVolumeClaim":
		d.times(corev1.ResourceRequestsStorage, w.Spec.Resources.Requests[corev1.ResourceStorage], 1)
		return
	case w.Kind == "Pod":
		spec = w.Spec.PodSpec
	case w.Spec.Replicas != nil:
		count = *w.Spec.Replicas
	case w.Spec.Parallelism != nil:
		count = *w.Spec.Parallelism
		if w.Spec.Completions != nil {
			count = min(count, *w.Spec.Completions)
		}
	}
	d.times(corev1.ResourcePods, *resource.NewQuantity(1, resource.DecimalSI), count)
	for _, container := range spec.Containers {
		for name, quantity := range container.Resources.Requests {
			d.times("requests."+name, quantity, count)
		}
	}
	for _, claim := range w.Spec.VolumeClaimTemplates {
		d.times(corev1.ResourceRequestsStorage, claim.Spec.Resources.Requests[corev1.ResourceStorage], count)
	}
}

func (d declared) times(name corev1.ResourceName, quantity resource.Quantity, count int64) {
	total := quantity.DeepCopy()
	total.Mul(count)
	total.Add(d[name])
	d[name] = total
}
