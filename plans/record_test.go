package plans

import (
	"fmt"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// serialSteps is a serial plan of so many steps of one task.
func serialSteps(n int) v1beta1.Plan {
	p := phase("main", v1beta1.Serial)
	for i := range n {
		p.Steps = append(p.Steps, step(fmt.Sprint("step-", i), "a"))
	}
	return v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{p}}
}

// runSerial records that the tasks of serial steps are done.
func runSerial(plan v1beta1.Plan, st *v1beta1.PlanStatus) {
	for j := range plan.Phases[0].Steps {
		at := Place{Step: j}
		MarkStepStarted(st, at, epoch)
		Record(plan, st, at, Outcome{State: Done, Ready: 1, Total: 1}, epoch)
	}
}

// TestRecordAllocations: what an outcome costs does not grow with the number of steps that are done.
func TestRecordAllocations(t *testing.T) {
	cost := func(steps int) float64 {
		plan := serialSteps(steps)
		st := Start("deploy", plan, "run", 1, epoch)
		for j := range steps - 1 {
			Record(plan, &st, Place{Step: j}, Outcome{State: Done}, epoch)
		}
		return testing.AllocsPerRun(10, func() {
			Record(plan, &st, Place{Step: steps - 1}, Outcome{State: Waiting, Message: "Deployment web"}, epoch)
		})
	}
	if few, many := cost(10), cost(500); many > few {
		t.Errorf("an outcome takes %g allocations after 10 steps, and %g after 500", few, many)
	}
}

// BenchmarkSerialSteps records the outcomes of the steps of a plan, one after the other.
func BenchmarkSerialSteps(b *testing.B) {
	for _, n := range []int{5, 50, 500} {
		plan := serialSteps(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				st := Start("deploy", plan, "run", 1, epoch)
				runSerial(plan, &st)
			}
		})
	}
}
