package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// missingImage is an image whose pods do not become ready.
const missingImage = "does-not-exist:1"

// bound returns a change that sets one deadline of an Instance.
func bound(plan, step, after string, then v1beta1.DeadlineAction) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		i.Spec.Deadlines = []v1beta1.Deadline{{Plan: plan, Step: step, After: after, Then: then}}
	}
}

// isLate reports whether the message of the running deploy plan says that a deadline of the time has passed.
func isLate(after string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		st := i.Status.PlanStatus[v1beta1.DeployPlan]
		return st.Status == v1beta1.InProgress && strings.HasSuffix(st.Message, "(past the deadline of "+after+")")
	}
}

var _ = Describe("Deadlines", Label("deadlines", "P19"), func() {
	It("warn of a step, then fail it permanently, without starting a plan", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := web(ns)
		env.Must(t, cluster.Create(t.Context(), ov))
		i := gen.Instance("i", ov, map[string]string{"IMAGE": missingImage})
		bound("deploy", "main/step-0", "1s", v1beta1.DeadlineWarn)(i)
		env.Must(t, clientOf(t, "ann").Create(t.Context(), i))
		late := await(t, ns, "i", isLate("1s"))
		hasEvent(t, ns, "DeadlineExceeded: Plan deploy: past the deadline of 1s")
		contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), "(past the deadline of 1s)")

		patchAs(t, "ann", ns, "i", bound("deploy", "", "1h", v1beta1.DeadlineWarn))
		await(t, ns, "i", func(i *v1beta1.Instance) bool {
			st := i.Status.PlanStatus["deploy"]
			return st.Status == v1beta1.InProgress && !strings.Contains(st.Message, "deadline") && strings.Contains(st.Message, "Deployment")
		})
		patchAs(t, "ann", ns, "i", bound("deploy", "main/step-0", "2s", v1beta1.DeadlineFail))
		failed := await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status.IsTerminal() })
		status(t, failed, "deploy", v1beta1.FatalError, "step main/step-0 of plan deploy was not complete by its deadline of 2s", "Deployment "+ns+"/i")
		if step := failed.Status.PlanStatus["deploy"].Phases[0].Steps[0]; step.Status != v1beta1.FatalError || step.Late != "" {
			t.Errorf("the step is %+v", step)
		}
		if was, is := late.Status.Baseline.Revision, failed.Status.Baseline.Revision; was != is || is != 1 {
			t.Errorf("the edits have started runs: %d, then %d", was, is)
		}
	})

	It("cancel a run only when another plan waits behind it", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := web(ns, gen.Param("VALUE", "1", ""), gen.ConfigMaps("cm", 1), gen.Serial("backup", "cm"))
		env.Must(t, cluster.Create(t.Context(), ov))
		i := gen.Instance("i", ov, map[string]string{"IMAGE": missingImage})
		bound("deploy", "", "1s", v1beta1.DeadlineCancel)(i)
		env.Must(t, cluster.Create(t.Context(), i))
		await(t, ns, "i", isLate("1s"))
		patchAs(t, "ann", ns, "i", func(i *v1beta1.Instance) { i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "backup", UID: "1"} })
		done := await(t, ns, "i", env.PlanEnded("backup", 2))
		status(t, done, "deploy", v1beta1.FatalError, "cancelled")
		status(t, done, "backup", v1beta1.Complete)
		hasEvent(t, ns, "PlanCancelled: Execution of plan deploy was cancelled, since the run was past its deadline of 1s and plan backup waited for it")
		contains(t, words(kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns)), "1 deploy CANCELLED", "2 backup COMPLETE")
	})

	It("are not needed to say of a step that it takes longer than in the last runs", Label("slow"), func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		deploy(t, web(ns), "i", nil)
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"IMAGE": missingImage} }))
		late := await(t, ns, "i", func(i *v1beta1.Instance) bool {
			return strings.Contains(i.Status.PlanStatus["deploy"].Message, "longer than usual: at most ")
		})
		if st := late.Status.PlanStatus["deploy"]; st.Status != v1beta1.InProgress || !strings.HasPrefix(st.Phases[0].Steps[0].Late, "longer than usual") {
			t.Errorf("the run: %+v", st)
		}
		contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), "longer than usual: at most ")
	})

	It("fail a cleanup that keeps the Instance, and cannot give it up", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "bye", gen.Param("VALUE", "1", ""), gen.ConfigMaps("cm", 1), gen.Task("wait", v1beta1.DummyTask, v1beta1.TaskSpec{}),
			gen.Serial("deploy", "cm"), gen.Serial("cleanup", "wait"))
		i := deploy(t, ov, "i", nil)
		for _, tc := range []struct {
			reason string
			d      v1beta1.Deadline
			want   string
		}{
			{"cancel of cleanup", v1beta1.Deadline{Plan: "cleanup", After: "1s", Then: v1beta1.DeadlineCancel}, "spec.deadlines[0].then: plan cleanup cannot be ended"},
			{"no such plan", v1beta1.Deadline{Plan: "gone", After: "1s", Then: v1beta1.DeadlineWarn}, `spec.deadlines[0].plan: plan "gone" does not exist`},
			{"no such step", v1beta1.Deadline{Plan: "deploy", Step: "main", After: "1s", Then: v1beta1.DeadlineWarn}, `spec.deadlines[0].step: step "main" does not exist`},
			{"no duration", v1beta1.Deadline{Plan: "deploy", After: "soon", Then: v1beta1.DeadlineWarn}, `spec.deadlines[0].after: "soon" is no duration`},
			{"no such action", v1beta1.Deadline{Plan: "deploy", After: "1s", Then: "Delete"}, "Unsupported value"},
		} {
			err := edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Deadlines = []v1beta1.Deadline{tc.d} })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		}
		patchAs(t, "ann", ns, "i", bound("cleanup", "", "1s", v1beta1.DeadlineFail))
		env.Must(t, cluster.Delete(t.Context(), i))
		held := await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["cleanup"].Status.IsTerminal() })
		status(t, held, "cleanup", v1beta1.FatalError, "the run of plan cleanup was not complete by its deadline of 1s")
		if err := edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Deadlines = nil }); err == nil {
			t.Error("the deadlines of an Instance that is being deleted could be changed")
		}
		if now := get(t, &v1beta1.Instance{}, ns, "i"); len(now.Finalizers) == 0 {
			t.Error("the finalizer was removed though cleanup has failed")
		}
		kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
		env.Eventually(t, "the end of the Instance", env.Condition(func() bool {
			list := &v1beta1.InstanceList{}
			return cluster.List(t.Context(), list) == nil && !strings.Contains(strings.Join(namesIn(list, ns), " "), "i")
		}))
	})

	It("are counted on by a manager that was started later, and without the webhook only the invalid ones have no effect", Label("slow", "disruptive"), func() {
		t := GinkgoTB()
		m := newManaged(t)
		m.restart(t)
		ns := m.NewNamespace(t)
		ov := web(ns)
		env.Must(t, m.Create(t.Context(), ov))
		i := gen.Instance("i", ov, map[string]string{"IMAGE": missingImage})
		i.Spec.Deadlines = []v1beta1.Deadline{{Plan: "gone", After: "1s", Then: v1beta1.DeadlineFail}, {Plan: "deploy", After: "soon", Then: v1beta1.DeadlineFail},
			{Plan: "deploy", After: "20s", Then: v1beta1.DeadlineFail}}
		env.Must(t, m.Create(t.Context(), i))
		m.await(t, ns, "i", func(i *v1beta1.Instance) bool {
			c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.DeadlineIgnoredCondition)
			return i.Status.PlanStatus["deploy"].Status == v1beta1.InProgress && c != nil && strings.Contains(c.Message, `plan "gone" does not exist`) &&
				strings.Contains(c.Message, `"soon" is no duration`)
		})
		ignored := func() (times int) {
			list := &corev1.EventList{}
			env.Must(t, m.List(t.Context(), list, client.InNamespace(ns)))
			for _, e := range list.Items {
				if e.Reason == v1beta1.EventDeadlineIgnored {
					times += int(max(e.Count, 1))
				}
			}
			return times
		}
		env.Eventually(t, "a warning of invalid deadlines", env.Condition(func() bool { return ignored() > 0 })) // it is lost with its manager else
		m.restart(t)
		failed := m.await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status.IsTerminal() })
		st := failed.Status.PlanStatus["deploy"]
		contains(t, st.Message, "the run of plan deploy was not complete by its deadline of 20s")
		if took := st.FinishedTimestamp.Sub(st.StartedTimestamp.Time); took.Seconds() < 20 || st.Revision != 1 {
			t.Errorf("run %d was ended after %s", st.Revision, took)
		}
		if got := ignored(); got != 1 {
			t.Errorf("invalid deadlines were warned of %d times, want once", got)
		}
	})
})

// namesIn lists the Instances of a namespace.
func namesIn(list *v1beta1.InstanceList, ns string) (names []string) {
	for _, i := range list.Items {
		if i.Namespace == ns {
			names = append(names, i.Name)
		}
	}
	return names
}
