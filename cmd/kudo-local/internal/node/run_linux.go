package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/cmd/kudo-local/internal/volumes"
)

// Run runs the node of a configuration file until ctx ends or the node does. If this process is killed, the kernel kills the node.
func Run(ctx context.Context, path string) error {
	c, err := Read(path)
	if err != nil {
		return err
	}
	if err := c.Clean(); err != nil { // of a run that was killed
		return err
	}
	if err := c.WriteFiles(); err != nil {
		return err
	}
	if err := c.makeCgroups(); err != nil {
		return err
	}
	err = c.run(ctx, path)
	return errors.Join(err, c.Clean())
}

func (c *Config) run(ctx context.Context, path string) error {
	runtime.LockOSThread() // the signal comes when the thread ends that has started the node
	defer runtime.UnlockOSThread()
	first := exec.Command(c.Program, "init", path)
	first.Stdout, first.Stderr = os.Stdout, os.Stderr
	first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := first.Start(); err != nil {
		return fmt.Errorf("starting the node's namespaces: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(fmt.Errorf("the node has ended: %w", first.Wait())) }()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	if err := c.connect(first.Process.Pid); err != nil {
		_ = first.Process.Kill()
		return err
	}
	go func() { cancel(c.provideVolumes(ctx)) }()
	for {
		select {
		case <-again: // what has died is started again
			_ = first.Process.Signal(syscall.SIGHUP)
		case <-ctx.Done():
			_ = first.Process.Kill()
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		}
	}
}

// connect joins the network namespace of the node to that of the host.
func (c *Config) connect(pid int) error {
	for _, args := range []string{
		"link add " + c.Interface + " type veth peer name eth0 netns " + strconv.Itoa(pid),
		"addr add " + c.HostIP + "/30 dev " + c.Interface,
		"link set " + c.Interface + " up",
		"route replace " + c.PodSubnet + " via " + c.NodeIP,
	} {
		if err := ip(args); err != nil {
			return err
		}
	}
	return nil
}

func ip(args string) error { return run("ip", strings.Fields(args)...) }

func run(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (c *Config) provideVolumes(ctx context.Context) error {
	rest, err := clientcmd.BuildConfigFromFlags("", c.VolumesKubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the volumes: %w", err)
	}
	return volumes.Run(ctx, rest, volumes.Local{Dir: c.Path("volumes"), Node: Name})
}

// Clean removes what a node leaves behind that was killed: its end of the link, and its cgroups. It refuses while mounts lie in its folder,
// since a deletion of the folder would go through them.
func (c *Config) Clean() error {
	if _, err := net.InterfaceByName(c.Interface); err == nil {
		if err := ip("link del " + c.Interface); err != nil {
			return err
		}
	}
	if err := c.removeCgroups(); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("looking for mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], c.Dir+"/") {
			return fmt.Errorf("%s is still mounted: unmount it (umount %s), then repeat the command", fields[1], fields[1])
		}
	}
	return nil
}
