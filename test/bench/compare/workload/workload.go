// Package workload holds what is measured, a file each.
package workload

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/bench/compare/tools"
)

// Workload is one measurement.
type Workload struct {
	// Name is that of the flag -only; Title and About explain the section.
	Name, Title, About string
	// Run measures.
	Run func(ctx context.Context, b *Bench, s *report.Section) error
}

// All are the workloads, in their order.
func All() []Workload {
	return []Workload{render(), install(), controllers(), fleet(), memory(), steps(), storm(), hub(), growth(), parts(), profiles()}
}

// Bench is what workloads run with.
type Bench struct {
	Programs tools.Programs
	// Build builds a program of a package, in a module below that of this command; "." is that of this command.
	Build func(module, out, pkg string) error
	Sizes Sizes
	// Dir is a folder for files, Home one for what tools keep for themselves.
	Dir, Home string
	// Say tells of progress.
	Say func(format string, args ...any)
}

// Sizes are how much is measured.
type Sizes struct {
	// Rounds of each pair.
	Rounds int
	// Counts of objects and templates.
	Counts []int
	// Migrated is how many custom resources are rewritten in another storage version.
	Migrated int
	// Fleets are numbers of Instances, the smallest first, and Idle how long they are watched while idle.
	Fleets []int
	Idle   time.Duration
	// Memory are the numbers of Instances at which memory is measured, Settle how long after a restart: Go collects garbage
	// after two minutes at the latest.
	Memory []int
	Settle time.Duration
	// Burst is how many Instances come at once.
	Burst int
	// Placed is a number of Instances that a hub places on clusters, and Clusters how many of these there are.
	Placed, Clusters int
	// Growth is at how many sizes each thing that grows is measured.
	Growth int
	// Storm is how long a foreign writer writes.
	Storm time.Duration
}

// Full sizes are those of the aims.
func Full() Sizes {
	return Sizes{Rounds: 10, Counts: []int{10, 100, 1000}, Migrated: 100_000, Fleets: []int{1000, 10_000}, Idle: 5 * time.Minute, Memory: []int{0, 100, 1000, 10_000}, Settle: 150 * time.Second, Burst: 200, Placed: 1000, Clusters: 100, Growth: 4, Storm: time.Minute}
}

// Quick sizes are for a try.
func Quick() Sizes {
	return Sizes{Rounds: 3, Counts: []int{10, 100, 1000}, Migrated: 2000, Fleets: []int{200}, Idle: time.Minute, Memory: []int{0, 100, 400}, Settle: 20 * time.Second, Burst: 50, Placed: 100, Clusters: 20, Growth: 3, Storm: 15 * time.Second}
}

// on runs a workload's part on a control plane, and stops it after that.
func (b *Bench) on(profile string, run func(p *plane.Plane) error) error {
	b.Say("starting a control plane, profile %s", profile)
	p, err := plane.Start(profile)
	if err != nil {
		return err
	}
	defer p.Stop()
	return run(p)
}

// measure runs one command, and counts what it costs. kind is the resource of the objects.
func (b *Bench) measure(ctx context.Context, p *plane.Plane, command []string, kind string) (report.Sample, error) {
	meter, err := p.Meter(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	took, err := tools.Run(ctx, p.Kubeconfig, b.Home, command)
	if err != nil {
		return report.Sample{}, err
	}
	cost, err := meter.Stop(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	sample := report.Sample{
		Seconds: took.Wall.Seconds(), Requests: cost.Requests.Total(), Writes: cost.Requests.Writes(), Objects: cost.Requests.Of(kind),
		ToolCPU: took.CPU, ServerCPU: cost.Server,
	}
	if command[0] == b.Programs.Kudo {
		sample.ToolCPU += cost.Manager
	}
	return sample, nil
}

func (b *Bench) folder(name string, n int) string {
	return filepath.Join(b.Dir, fmt.Sprintf("%s-%d", name, n))
}

// table collects samples of contestants by case.
type table struct{ section *report.Section }

// add adds a sample; the first of a case opens it.
func (t table) add(name string, size int, subject string, sample report.Sample) {
	for i := range t.section.Series {
		if s := &t.section.Series[i]; s.Case == name && s.Size == size && s.Subject == subject {
			s.Samples = append(s.Samples, sample)
			return
		}
	}
	t.section.Series = append(t.section.Series, report.Series{Case: name, Size: size, Subject: subject, Samples: []report.Sample{sample}})
}

// of finds a series; it returns nil if there is none.
func (t table) of(name string, size int, subject string) *report.Series {
	for i := range t.section.Series {
		if s := &t.section.Series[i]; s.Case == name && s.Size == size && s.Subject == subject {
			return s
		}
	}
	return nil
}
