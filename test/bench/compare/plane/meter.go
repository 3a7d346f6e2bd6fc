package plane

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"kudo.dev/kudo/test/env"
)

// ticks is the unit of CPU times in /proc on Linux, whatever the kernel's own is (proc(5), USER_HZ).
const ticks = 100

// CPU is the CPU time that a process has used, in seconds. It is what process_cpu_seconds_total says, but reading it
// costs the process nothing.
func CPU(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name may hold blanks
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is malformed: %s", pid, text)
	}
	var sum float64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat is malformed: %w", pid, err)
		}
		sum += n
	}
	return sum / ticks, nil
}

// RSS is the resident memory of a process, in bytes.
func RSS(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm is malformed: %s", pid, text)
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err
}

// Meter counts what something costs, from its start on.
type Meter struct {
	plane           *Plane
	server, manager int // processes
	before          env.Requests
	cpu             [2]float64
}

// Cost is what a Meter has counted.
type Cost struct {
	// Requests at the apiserver, but for watches, leases, discovery and reviews of rights.
	Requests env.Requests
	// Server and Manager are CPU seconds of kube-apiserver and kudo's manager.
	Server, Manager float64
}

// Meter starts to count, once the control plane is idle.
func (p *Plane) Meter(ctx context.Context) (*Meter, error) {
	m := &Meter{plane: p}
	var err error
	if m.server, err = p.PID("kube-apiserver"); err != nil {
		return nil, err
	}
	if m.manager, err = p.PID("manager"); err != nil {
		return nil, err
	}
	if m.before, err = p.rest(ctx); err != nil {
		return nil, err
	}
	m.cpu, err = m.read()
	return m, err
}

// Stop counts until the control plane is idle: events, for example, are sent after the fact.
func (m *Meter) Stop(ctx context.Context) (Cost, error) {
	now, err := m.plane.rest(ctx)
	if err != nil {
		return Cost{}, err
	}
	cpu, err := m.read()
	if err != nil {
		return Cost{}, err
	}
	return Cost{Requests: now.Since(m.before), Server: cpu[0] - m.cpu[0], Manager: cpu[1] - m.cpu[1]}, nil
}

func (m *Meter) read() (out [2]float64, err error) {
	if out[0], err = CPU(m.server); err != nil {
		return out, err
	}
	out[1], err = CPU(m.manager)
	return out, err
}

// rest waits until no request has come for a moment, and returns how many came so far.
func (p *Plane) rest(ctx context.Context) (env.Requests, error) {
	last, err := p.Requests(ctx)
	if err != nil {
		return nil, err
	}
	for range 50 {
		if err := Pause(ctx, 300*time.Millisecond); err != nil {
			return nil, err
		}
		now, err := p.Requests(ctx)
		if err != nil {
			return nil, err
		}
		if maps.Equal(now, last) {
			return now, nil
		}
		last = now
	}
	return last, nil // some client never stops; its requests are counted
}
