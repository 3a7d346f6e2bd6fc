package plane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Manager is what the manager says of itself.
type Manager struct {
	// Sent are the requests it has sent since its start, watches and leases among them, by HTTP method.
	Sent map[string]int
	// Reconciled is how often it has looked at an Instance, and Waiting how many wait to be looked at.
	Reconciled, Waiting int
	// Live is the memory in bytes that the last garbage collection left.
	Live float64
}

// ManagerMetrics reads the manager's metrics.
func (p *Plane) ManagerMetrics(ctx context.Context) (Manager, error) {
	address, err := p.managerMetrics()
	if err != nil {
		return Manager{}, err
	}
	return ReadMetrics(ctx, address)
}

// ReadMetrics reads the metrics that a manager serves at an address.
func ReadMetrics(ctx context.Context, address string) (Manager, error) {
	m := Manager{Sent: map[string]int{}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return m, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return m, fmt.Errorf("read the manager's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	return m, m.parse(answer.Body)
}

func (m *Manager) parse(text io.Reader) error {
	return readSamples(text, func(line string, value float64) {
		switch {
		case strings.HasPrefix(line, "rest_client_requests_total{"):
			m.Sent[label(line, "method")] += int(value)
		case strings.HasPrefix(line, "controller_runtime_reconcile_total{") && label(line, "controller") == "instance":
			m.Reconciled += int(value)
		case strings.HasPrefix(line, "workqueue_depth{") && label(line, "controller") == "instance":
			m.Waiting += int(value)
		case strings.HasPrefix(line, "go_gc_heap_live_bytes "):
			m.Live = value
		}
	})
}

// readSamples calls use with each sample of metrics: its line, and its value.
func readSamples(metrics io.Reader, use func(line string, value float64)) error {
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return fmt.Errorf("the metrics are malformed: %q: %w", line, err)
		}
		use(line, value)
	}
	return lines.Err()
}

func label(line, name string) string {
	_, rest, _ := strings.Cut(line, name+"=\"")
	value, _, _ := strings.Cut(rest, "\"")
	return value
}

// managerMetrics is the address of the manager's metrics, which stands among its arguments.
func (p *Plane) managerMetrics() (string, error) {
	pid, err := p.PID("manager")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", fmt.Errorf("read the manager's arguments: %w", err)
	}
	_, rest, found := strings.Cut(string(text), "--metrics-bind-address\x00")
	address, _, _ := strings.Cut(rest, "\x00")
	if !found {
		return "", fmt.Errorf("the manager serves no metrics: %q", text)
	}
	return address, nil
}

// StopManager stops the manager as a rollout does, so that it gives its lease back.
func (p *Plane) StopManager(ctx context.Context) error {
	pid, err := p.PID("manager")
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the manager: %w", err)
	}
	return Poll(ctx, time.Minute, "the end of the manager", func() (bool, error) {
		fields, err := p.row("manager")
		return err == nil && fields[1] == "-", err
	})
}

// KillManager kills the manager, which keeps its lease.
func (p *Plane) KillManager() error {
	if out, err := p.Local("kill", "manager"); err != nil {
		return fmt.Errorf("kill the manager: %w\n%s", err, out)
	}
	return nil
}

// StartManager starts the manager, and waits until it serves.
func (p *Plane) StartManager() error {
	if out, err := p.Local("start", "manager"); err != nil {
		return fmt.Errorf("start the manager: %w\n%s", err, out)
	}
	return nil
}
