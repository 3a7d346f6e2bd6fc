package suites

import (
	"fmt"
	"os"
	"os/exec"
	"sync"

	"kudo.dev/kudo/pkg/processgroup"
)

// managerProcess is kudo's manager as a child of this program.
type managerProcess struct {
	program string
	args    []string
	// log is the file of its output.
	log string
	// failed is called if it ends without having been killed.
	failed func(error)

	mu      sync.Mutex
	running *exec.Cmd
	// ended is closed when the running process has ended.
	ended chan struct{}
}

// start implements process.
func (p *managerProcess) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.program, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	processgroup.Set(cmd) // Ctrl-C is for this program, which stops the manager
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	ended := make(chan struct{})
	p.running, p.ended = cmd, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.running == cmd {
			p.running = nil
			p.failed(fmt.Errorf("the manager has ended by itself: %s", cmd.ProcessState))
		}
	}()
	return nil
}

// kill implements process.
func (p *managerProcess) kill() error {
	p.mu.Lock()
	cmd, ended := p.running, p.ended
	p.running = nil
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the manager: %w", err)
	}
	<-ended
	return nil
}
