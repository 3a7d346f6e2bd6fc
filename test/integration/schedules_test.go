package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// eachMinute runs the plan backup at each minute.
var eachMinute = v1beta1.Schedule{Name: "minutely", Plan: "backup", Cron: "* * * * *"}

// isScheduled reports whether the Instance has a schedule that waits for a time.
func isScheduled(i *v1beta1.Instance) bool {
	return len(i.Status.Schedules) > 0 && i.Status.Schedules[0].Next != nil
}

// hasRunScheduled reports whether a run of the schedule has ended.
func hasRunScheduled(i *v1beta1.Instance) bool {
	return len(i.Status.Schedules) > 0 && i.Status.Schedules[0].LastResult.IsTerminal()
}

var _ = Describe("Schedules", Label("schedules"), func() {
	ctx := context.Background()

	It("run a plan in time, whose failure is not that of the Instance", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "saved", gen.ConfigMaps("cm", 1), gen.Param("VALUE", "1", ""), gen.Template("bad.yaml", "{{ fail \"no space left\" }}"),
			gen.Apply("bad", "bad.yaml"), gen.Serial(v1beta1.DeployPlan, "cm"), gen.Serial("backup", "bad"), gen.Serial("check", "cm"))
		env.Must(t, cluster.Create(ctx, ov))
		i := gen.Instance("i", ov, nil)
		i.Spec.Schedules = []v1beta1.Schedule{{Name: "good", Plan: "check", Cron: "* * * * *"}, eachMinute}
		env.Must(t, clientOf(t, "ann").Create(ctx, i))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		await(t, ns, "i", isScheduled)
		for _, tc := range []struct{ why, plan, cron, want string }{
			{"a wrong cron", "backup", "* * * *", "expected exactly 5 fields"},
			{"no such plan", "gone", "* * * * *", `plan "gone" does not exist`},
			{"deploy", "deploy", "* * * * *", `plan "deploy" cannot be scheduled`},
		} {
			edited := get(t, &v1beta1.Instance{}, ns, "i")
			patch := client.MergeFrom(edited.DeepCopy())
			edited.Spec.Schedules = append(edited.Spec.Schedules, v1beta1.Schedule{Name: "x", Plan: tc.plan, Cron: tc.cron})
			if err := cluster.Patch(ctx, edited, patch); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
			}
		}
		twice := get(t, &v1beta1.Instance{}, ns, "i")
		patch := client.MergeFrom(twice.DeepCopy())
		twice.Spec.Schedules = append(twice.Spec.Schedules, eachMinute)
		if err := cluster.Patch(ctx, twice, patch); err == nil || !strings.Contains(err.Error(), "Duplicate value") {
			t.Errorf("a name that is there twice: %v", err)
		}
		awaitMinute(t, ns, func(i *v1beta1.Instance) bool {
			return hasRunScheduled(i) && meta.IsStatusConditionTrue(i.Status.Conditions, v1beta1.ScheduleFailedCondition)
		})
		now := get(t, &v1beta1.Instance{}, ns, "i")
		if !meta.IsStatusConditionTrue(now.Status.Conditions, v1beta1.ReadyCondition) || now.Status.AggregatedStatus.Status != v1beta1.Complete {
			t.Errorf("the Instance is %+v, %+v", now.Status.AggregatedStatus, now.Status.Conditions)
		}
		history := kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns)
		contains(t, history, "schedule good\n", "schedule minutely\n", "instance created; by ann")
		contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), "Schedule good: plan check, last run", "no space left")
		kudo(t, 0, "update", "--instance", "i", "-n", ns, "--unschedule", "minutely", "--unschedule", "good")
		await(t, ns, "i", func(i *v1beta1.Instance) bool {
			return len(i.Status.Schedules) == 0 && meta.FindStatusCondition(i.Status.Conditions, v1beta1.ScheduleFailedCondition) == nil
		})
	})

	It("do not run a plan more often since their status is forged", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "saved", gen.ConfigMaps("cm", 1), gen.Param("VALUE", "1", ""), gen.Serial(v1beta1.DeployPlan, "cm"), gen.Serial("backup", "cm"))
		env.Must(t, cluster.Create(ctx, ov))
		i := gen.Instance("i", ov, nil)
		env.Must(t, cluster.Create(ctx, i))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1)) // nothing is due before
		daily := eachMinute
		daily.Cron = time.Now().UTC().Add(2*time.Minute).Format("4 15") + " * * *" // at least a minute from now
		patchAs(t, "ann", ns, "i", func(i *v1beta1.Instance) { i.Spec.Schedules = []v1beta1.Schedule{daily} })
		awaitMinute(t, ns, hasRunScheduled)
		before := get(t, &v1beta1.Instance{}, ns, "i")
		for _, back := range []time.Duration{0, 24 * time.Hour} {
			forged := get(t, &v1beta1.Instance{}, ns, "i")
			patch := client.MergeFrom(forged.DeepCopy())
			due := metav1.NewTime(before.Status.Schedules[0].Last.Add(-back))
			forged.Status.Schedules[0].Last, forged.Status.Schedules[0].Next = nil, &due
			env.Must(t, cluster.Status().Patch(ctx, forged, patch))
			patchAs(t, "ann", ns, "i", func(i *v1beta1.Instance) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, "touched", back.String()) })
			await(t, ns, "i", func(i *v1beta1.Instance) bool { return isScheduled(i) && i.Status.Schedules[0].Next.After(due.Time) })
		}
		if now := get(t, &v1beta1.Instance{}, ns, "i"); now.Status.Baseline.Revision != before.Status.Baseline.Revision {
			t.Errorf("there are %d runs, want %d", now.Status.Baseline.Revision, before.Status.Baseline.Revision)
		}
	})
})

// awaitMinute waits until a condition holds, for at least the time between two runs of a schedule of each minute.
func awaitMinute(t testing.TB, ns string, holds func(*v1beta1.Instance) bool) {
	t.Helper()
	if _, err := cluster.Await(context.Background(), ns, "i", 5*time.Minute, holds); err != nil {
		t.Fatal(err)
	}
}
