package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

// The names of kudo's own programs, which lie beside this one or in the folder
// that --bin-dir names.
const (
	kudoProgram    = "kubectl-kudo"
	managerProgram = "manager"
	kudoNamespace  = "kudo-system"
)

// loopback is the address that the manager's webhooks listen on: without one it would be every address of the machine.
const loopback = "127.0.0.1"

// pipeImage is the image in the pods of Pipe tasks. The nodes pull none.
const pipeImage = "kudo-manager:dev"

// initLimit is how long 'kubectl kudo init' may take.
const initLimit = 2 * time.Minute

// binDir is the folder of kudo's own programs.
func (p *Plane) binDir() string {
	if p.Settings.BinDir == "" {
		return filepath.Dir(p.executable)
	}
	return p.Settings.BinDir
}

func (p *Plane) binary(name string) string { return filepath.Join(p.binDir(), name) }

func (p *Plane) managerProgram() string { return p.binary(managerProgram) }

func (p *Plane) managerArgs() []string {
	return append([]string{
		"--kubeconfig", p.ManagerKubeconfig(),
		"--webhook-bind-address", loopback,
		"--webhook-port", fmt.Sprint(p.Ports[managerWebhook]),
		"--webhook-cert-dir", p.Path("manager-certs"),
		"--cache-dir", p.Path("manager-cache"),
		"--metrics-bind-address", p.address(managerMetrics),
		"--health-probe-bind-address", p.address(Manager),
		"--namespace", kudoNamespace,
		"--pipe-image", pipeImage, "--allow-unpinned-pipe-image",
	}, p.Settings.ManagerArgs...)
}

// CheckPrograms returns an error when a program of kudo, or of another
// Kubernetes, is missing, before anything is started.
func (p *Plane) CheckPrograms() error {
	if dir := p.Settings.KubernetesDir; dir != "" {
		remedy := "make kubernetes-servers VERSION=1.30 builds it, and prints its folder"
		if err := checkPrograms(dir, components.Kubernetes, "--kubernetes-dir", remedy); err != nil {
			return err
		}
	}
	if !p.Settings.WithKudo {
		return nil
	}
	remedy := "build kudo, or name the folder of its programs with --bin-dir"
	return checkPrograms(p.binDir(), []string{kudoProgram, managerProgram}, "--with-kudo", remedy)
}

// checkPrograms returns an error, with a remedy, if a folder lacks a program that a flag needs.
func checkPrograms(dir string, names []string, flag, remedy string) error {
	for _, name := range names {
		if err := checkProgram(filepath.Join(dir, name), flag, remedy); err != nil {
			return err
		}
	}
	return nil
}

// checkProgram returns an error, with a remedy, if a path that a flag needs is no program.
func checkProgram(path, flag, remedy string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s needs the program %s, which is not there: %s", flag, path, remedy)
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", path, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s cannot be run: it is no executable file", path)
	}
	return nil
}

// installKudo installs kudo's definitions, roles and webhooks, and gets the
// kubeconfig of the manager. It is skipped while a manager runs that the same
// program has installed on the same server; else it is done again, also because
// the token in that kubeconfig may have expired.
func (p *Plane) installKudo(ctx context.Context) error {
	digest, err := p.digest(component{
		name:    kudoProgram,
		args:    func(p *Plane) []string { return append(p.initArgs(), p.Server()) },
		program: func(p *Plane) string { return p.binary(kudoProgram) },
	})
	if err != nil {
		return err
	}
	done, err := os.ReadFile(p.initRecord())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading what kudo was installed with: %w", err)
	}
	if string(done) == digest && p.alive(Manager) {
		return nil
	}
	begin := time.Now()
	p.say("installing kudo… ")
	if err := p.runInit(ctx); err != nil {
		p.say("failed\n")
		return err
	}
	p.say("%s\n", seconds(begin))
	return instance.WriteFile(p.initRecord(), []byte(digest))
}

// initRecord holds the digest of the program and arguments of the last init.
func (p *Plane) initRecord() string { return p.Path("run", "init.digest") }

func (p *Plane) initArgs() []string {
	args := []string{
		"init", "--external-manager",
		"--webhook-url", "https://" + p.address(managerWebhook),
		"--manager-kubeconfig", p.ManagerKubeconfig(),
		"--wait",
		// A plane may run for weeks, and no process renews its token.
		"--token-duration", "8760h",
	}
	switch privileged := p.Settings.Privileged; {
	case privileged == nil: // what the cluster has stays
	case *privileged:
		args = append(args, "--privileged")
	default:
		args = append(args, "--strict")
	}
	return append(args, p.Settings.InitArgs...)
}

func (p *Plane) runInit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, initLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary(kudoProgram), p.initArgs()...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig())
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("installing kudo with %s: %w. It said:\n%s", cmd, err, indent(output.String()))
	}
	if _, err := os.Stat(p.ManagerKubeconfig()); err != nil {
		return fmt.Errorf("%s ended well, but has not written the kubeconfig of the manager: %w", cmd, err)
	}
	return os.MkdirAll(p.Path("manager-certs"), 0o700)
}
