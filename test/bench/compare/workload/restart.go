package workload

import (
	"context"
	"fmt"
	"time"

	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/env"
)

// sent counts the requests of the manager.
type sent struct {
	plane       *plane.Plane
	began       time.Time
	before, now plane.Manager
	asked       env.Requests
}

func sentBy(ctx context.Context, p *plane.Plane) (*sent, error) {
	asked, err := p.Requests(ctx)
	if err != nil {
		return nil, err
	}
	m, err := p.ManagerMetrics(ctx)
	return &sent{plane: p, began: time.Now(), before: m, asked: asked}, err
}

// writes are those since the beginning, but for the renewals of the lease, and dry runs, which only kudo asks for.
func (s *sent) writes(ctx context.Context) (int, error) {
	asked, err := s.plane.Requests(ctx)
	if err != nil {
		return 0, err
	}
	if s.now, err = s.plane.ManagerMetrics(ctx); err != nil {
		return 0, err
	}
	n := -int(time.Since(s.began)/leasePeriod) - 1
	n += s.now.Sent["PUT"] - s.before.Sent["PUT"]
	n = max(n, 0) // a renewal may just not have come
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		n += s.now.Sent[method] - s.before.Sent[method]
	}
	return max(n-asked.Since(s.asked).DryRuns(), 0), nil
}

// restart starts the manager anew amid its fleet: as a rollout does, and after it was killed.
func (f *instances) restart(ctx context.Context, b *Bench) ([]report.Figure, error) {
	n, p := f.size, f.plane
	b.Say("restart with %d Instances", n)
	if err := p.StopManager(ctx); err != nil {
		return nil, err
	}
	before, err := p.Requests(ctx)
	if err != nil {
		return nil, err
	}
	ready, m, err := comeBack(ctx, p, n)
	if err != nil {
		return nil, err
	}
	now, err := p.Requests(ctx)
	if err != nil {
		return nil, err
	}
	asked := now.Since(before)
	writes := asked.Writes() - asked["POST events"] // that it leads now, as part of the lease
	figures := []report.Figure{
		report.AtMost(fmt.Sprintf("restart with %d Instances: until each was looked at", n), ready.Seconds(), 10*float64(n)/1000, "%.1f s"),
		report.AtMost("restart: writes but the lease and the event of the election", float64(writes), 0, "%.0f"),
		report.Told("restart: requests at the apiserver, of anybody, but watches (which bring the lists, too) and leases", "%s", listed(asked)),
		report.Told("restart: GETs of the manager (watches, discovery)", "%d", m.Sent["GET"]),
	}
	f.addCost("restart", ready.Seconds())
	if err := p.KillManager(); err != nil {
		return nil, err
	}
	if ready, _, err = comeBack(ctx, p, n); err != nil {
		return nil, err
	}
	return append(figures, report.Told("the same after it was killed (its lease lasts 15 s)", "%.1f s", ready.Seconds())), nil
}

// comeBack starts the manager, and waits until it has looked at n Instances.
func comeBack(ctx context.Context, p *plane.Plane, n int) (time.Duration, plane.Manager, error) {
	began := time.Now()
	if err := p.StartManager(); err != nil {
		return 0, plane.Manager{}, err
	}
	var m plane.Manager
	err := plane.Poll(ctx, 2*time.Minute, "the manager to look at all Instances", func() (bool, error) {
		var err error
		m, err = p.ManagerMetrics(ctx)
		return m.Reconciled >= n && m.Waiting == 0, err
	})
	return time.Since(began), m, err
}
