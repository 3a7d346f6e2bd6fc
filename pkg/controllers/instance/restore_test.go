package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans/trigger"
	"kudo.dev/kudo/test/gen"
)

// restoredConfigMap is the object of plan deploy, as a restore creates it: without an owner.
func restoredConfigMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0"), Data: map[string]string{"key": "1"}}
	cm.UID = "restored"
	cm.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "web", v1beta1.OperatorLabel: "web"}
	cm.Annotations = map[string]string{v1beta1.PlanAnnotation: "deploy", v1beta1.PhaseAnnotation: "main", v1beta1.StepAnnotation: "step-0",
		v1beta1.PlanUIDAnnotation: "before"}
	change(cm)
	return cm
}

func annotateRestored(i *v1beta1.Instance) {
	i.Annotations = map[string]string{v1beta1.RestoredAnnotation: "true"}
}

// TestRestored: R32: an annotated Instance takes over objects that are all there and equal, and runs nothing; else it names them and
// writes nothing.
func TestRestored(t *testing.T) {
	for _, tc := range []struct {
		reason string
		object *corev1.ConfigMap
		// message is in the condition; empty if the Instance is taken over.
		message string
	}{
		{"it is there and equal", restoredConfigMap(func(*corev1.ConfigMap) {}), ""},
		{"it does not exist", nil, "ConfigMap ns/web-app-0 does not exist"},
		{"it differs", restoredConfigMap(func(cm *corev1.ConfigMap) { cm.Data["key"] = "2" }), "ConfigMap ns/web-app-0 differs in .data.key"},
		{"another Instance's labels", restoredConfigMap(func(cm *corev1.ConfigMap) { cm.Labels[v1beta1.InstanceLabel] = "other" }),
			"ConfigMap ns/web-app-0 exists already and belongs to Instance ns/other"},
		{"another controller", restoredConfigMap(func(cm *corev1.ConfigMap) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "set"}}
			cm.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		}), "ConfigMap ns/web-app-0 exists already and belongs to StatefulSet ns/db"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			if tc.object != nil {
				f.Put(tc.object)
			}
			f.change(annotateRestored)
			f.writes()
			f.settle(t)
			i, wrote := f.instance(), f.writes()
			if tc.message != "" {
				if !strings.Contains(f.ready(), tc.message) || !strings.Contains(f.ready(), v1beta1.ReasonObjectsNotRestored) {
					t.Errorf("Ready is %s", f.ready())
				}
				if len(wrote) > 0 || i.Status.Baseline != nil {
					t.Errorf("it writes %q, and has the baseline %+v", wrote, i.Status.Baseline)
				}
				return
			}
			if diff := cmp.Diff([]string{"create ControllerRevision ns/", "apply ConfigMap ns/web-app-0"}, wrote); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			st := i.Status.PlanStatus["deploy"]
			if st.Status != v1beta1.Complete || st.Revision != 1 || st.UID != history.RunUID(i.UID, 1) || st.Phases[0].Steps[0].Tasks[0].Status != v1beta1.Complete {
				t.Errorf("deploy is %+v", st)
			}
			record, err := f.r.History.Read(t.Context(), i, 1)
			if err != nil || record.Cause != trigger.CauseRestored || record.ServiceAccount != "kudo" {
				t.Errorf("the record is %+v: %v", record, err)
			}
			if owned := f.applied(); !metav1.IsControlledBy(owned, i) || len(i.Status.Resources) != 1 || i.Status.Resources[0].UID != owned.UID {
				t.Errorf("the object is %+v, the inventory %+v", owned.ObjectMeta, i.Status.Resources)
			}
		})
	}
}

// TestRestoredLater: R32: the annotation means nothing once a run is recorded, and until then all that holds up a run holds it up.
func TestRestoredLater(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	f.recorded()
	f.change(func(i *v1beta1.Instance) {
		annotateRestored(i)
		i.Spec.Parameters = map[string]string{"VALUE": "2"}
	})
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; st.Revision != 2 || f.applied().Data["key"] != "2" {
		t.Errorf("deploy is %+v", st)
	}

	f = newFixture(t, gen.InstallPlan("install"), gen.Serial("install", "app"))
	f.Put(restoredConfigMap(func(*corev1.ConfigMap) {}))
	f.change(annotateRestored)
	f.writes()
	f.settle(t)
	if got := f.writes(); len(got) > 0 || !strings.Contains(f.ready(), v1beta1.ReasonWaitingForInstallPlan) {
		t.Errorf("before the install plan, it writes %q and Ready is %s", got, f.ready())
	}
}

// TestStatusOfAnother: R32: the status of an Instance with another uid is reset, and the Instance starts anew.
func TestStatusOfAnother(t *testing.T) {
	f := newFixture(t)
	f.Put(restoredConfigMap(func(*corev1.ConfigMap) {}))
	before := types.UID("5c8c4ff1-0000-4000-8000-000000000009")
	f.change(func(i *v1beta1.Instance) {
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.InProgress, Revision: 7, UID: history.RunUID(before, 7)}}
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "ns/web-1.0", Revision: 7, RunAs: "ns/other"}
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "web-app-0", UID: "before"}}
	})
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete || st.Revision != 1 {
		t.Errorf("deploy is %+v", st)
	}
	if events := strings.Join(f.recorded(), "\n"); !strings.Contains(events, v1beta1.EventStatusReset) {
		t.Errorf("the events are %s", events)
	}
}

// applied reads the object of plan deploy.
func (f *fixture) applied() *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0")}
	f.Read(cm)
	return cm
}
