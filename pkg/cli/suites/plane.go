package suites

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
)

// The kinds of nodes.
const fakeNodes, realNodes = "fake", "real"

// localPlane is a control plane that kudo-local runs; without a name there is none.
type localPlane struct {
	program, name, state string
	privileged           bool
	nodes                string
	// breaking lets one fault happen at a time.
	breaking sync.Mutex
}

// startPlane returns the kubeconfig of the tests. It starts a control plane if a flag says so, or if there is no kubeconfig.
func (o *testOptions) startPlane(ctx context.Context) (*localPlane, string, error) {
	local := o.local || o.suite.StartControlPlane
	if !local {
		_, _, _, err := o.env.Connect()
		if err == nil {
			return givenPlane(o.env)
		}
		if !clientcmd.IsEmptyConfig(err) {
			return nil, "", err
		}
		o.env.Printf("no cluster is configured: a local one is started (--local)")
	}
	program, err := findProgram("kudo-local")
	if err != nil {
		return nil, "", err
	}
	state, err := os.MkdirTemp("", "kudo-test-")
	if err != nil {
		return nil, "", err
	}
	p := &localPlane{program: program, name: "test", state: state, privileged: o.privileged, nodes: cmp.Or(o.nodes, fakeNodes)}
	o.env.Printf("starting a control plane with kudo…")
	if out, err := p.run(ctx, p.upArgs()...); err != nil {
		p.stop()
		return nil, "", fmt.Errorf("start a control plane: %w\n%s", err, out)
	}
	for _, image := range o.images {
		o.env.Progressf("loading %s", image)
		if out, err := p.run(ctx, "load", image); err != nil {
			p.stop()
			return nil, "", fmt.Errorf("load the images of %s: %w\n%s", image, err, out)
		}
	}
	out, err := p.run(ctx, "kubeconfig")
	if err != nil {
		p.stop()
		return nil, "", err
	}
	return p, strings.TrimSpace(out), nil
}

// upArgs start the control plane, or what of it does not run.
func (p *localPlane) upArgs() []string {
	return []string{"up", "--with-kudo", fmt.Sprintf("--privileged=%t", p.privileged), "--nodes", p.nodes}
}

// givenPlane writes the kubeconfig of the flags to a file for commands.
func givenPlane(env *command.Env) (*localPlane, string, error) {
	config, err := env.Flags.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := env.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	text, err := kudoinit.KubeconfigOf(config, namespace)
	if err != nil {
		return nil, "", err
	}
	state, err := os.MkdirTemp("", "kudo-test-")
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(state, "kubeconfig")
	return &localPlane{state: state}, path, clientcmd.WriteToFile(*text, path)
}

// findProgram finds one of kudo's programs: beside this one, or in PATH.
func findProgram(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside kubectl-kudo nor in PATH: build it with make build, or configure a cluster", name)
	}
	return path, nil
}

func (p *localPlane) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.program, append(args, "--name", p.name, "--state", p.state)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// stop stops the control plane, and deletes what was written for the run.
func (p *localPlane) stop() {
	if p.name != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if out, err := p.run(ctx, "down", "--delete"); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "the control plane in %s could not be stopped: %v\n%s", p.state, err, out)
			return
		}
	}
	_ = os.RemoveAll(p.state)
}

// injectFault kills a component at a random moment of the next second, starts it again, and keeps the control plane up
// until the context ends.
func (p *localPlane) injectFault(ctx context.Context, fault string, log func(name, format string, args ...any)) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Duration(rand.IntN(1000)) * time.Millisecond):
	}
	component := fault
	if fault == "apiserver" {
		component = "kube-apiserver"
	}
	p.breaking.Lock()
	log("fault", "killing %s", component)
	out, err := p.bounded("kill", component)
	p.breaking.Unlock()
	for err == nil {
		// up also starts what has ended, at once or a while later, for want of an API server.
		p.breaking.Lock()
		out, err = p.bounded(p.upArgs()...)
		p.breaking.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
	}
	log("fault", "%s could not be started again: %s\n%s", component, err, out)
}

// bounded runs kudo-local to its end, whatever becomes of the test meanwhile, but not for ever.
func (p *localPlane) bounded(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.run(ctx, args...)
}
