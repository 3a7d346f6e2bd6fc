package workload

import (
	"context"
	"fmt"

	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
)

func memory() Workload {
	return Workload{
		Name: "memory", Title: "Memory of the manager",
		About: `Resident memory of the manager with idle Instances of four objects: right after it has installed them, and some time
after a restart, which leaves no garbage of the installation. *Live* is the heap that its last garbage collection has
left. The memory of an Instance is the difference to none, after a restart: what the first ones load once (watches of their
kinds, schemas) counts in full, which few of them share. For scale: 0.2 to 0.36 MiB for a release is published for Flux's
helm-controller.`,
		Run: runMemory,
	}
}

func runMemory(ctx context.Context, b *Bench, s *report.Section) error {
	return b.on("full", func(p *plane.Plane) error {
		c, err := b.crowd(ctx, p, 16)
		if err != nil {
			return err
		}
		have, none := 0, 0.0
		var each []float64
		for _, n := range b.Sizes.Memory {
			b.Say("memory with %d Instances", n)
			if n > have {
				if _, _, err := c.come(ctx, have, n); err != nil {
					return err
				}
			}
			worked, _, err := resident(ctx, p)
			if err != nil {
				return err
			}
			rested, live, err := b.restarted(ctx, p, n)
			if err != nil {
				return err
			}
			s.Figures = append(s.Figures, report.Told(fmt.Sprintf("%d Instances: after the work, after a restart, live", n), "%.1f MiB, %.1f MiB, %.1f MiB", worked/mib, rested/mib, live/mib))
			if have = n; n == 0 {
				none = rested
				continue
			}
			each = append(each, (rested-none)/float64(n)/1024)
			s.Figures = append(s.Figures, report.AtMost(fmt.Sprintf("%d Instances: for each", n), each[len(each)-1], 60, "%.1f KiB"))
		}
		if last := len(each) - 1; last > 0 {
			s.Figures = append(s.Figures, report.AtMost("for each of the most, times that of the next fewer", each[last]/each[last-1], maxCostGrowth, "%.2f"))
		}
		return nil
	})
}

const mib = 1 << 20

// restarted is the memory of a manager that has installed nothing.
func (b *Bench) restarted(ctx context.Context, p *plane.Plane, n int) (rss, live float64, err error) {
	if err := p.StopManager(ctx); err != nil {
		return 0, 0, err
	}
	if _, _, err := comeBack(ctx, p, n); err != nil {
		return 0, 0, err
	}
	if err := plane.Pause(ctx, b.Sizes.Settle); err != nil {
		return 0, 0, err
	}
	return resident(ctx, p)
}

func resident(ctx context.Context, p *plane.Plane) (rss, live float64, err error) {
	pid, err := p.PID("manager")
	if err != nil {
		return 0, 0, err
	}
	m, err := p.ManagerMetrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	rss, err = plane.RSS(pid)
	return rss, m.Live, err
}
