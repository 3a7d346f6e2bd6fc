package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// server is a program that the first process of a node runs.
type server struct {
	name string
	args []string
	// pid of the process; 0 if it has ended.
	pid int
}

// Init is the first process of a node. It sets the namespaces up, starts the node's servers, and reaps every process whose parent has
// ended. It returns only if something fails.
func Init(path string) error {
	c, err := Read(path)
	if err != nil {
		return err
	}
	for _, setup := range []func() error{mount, hideState, c.network, c.kernel} {
		if err := setup(); err != nil {
			return err
		}
	}
	containerd := &server{name: "containerd", args: []string{"containerd", "--config", c.Path("containerd.toml")}}
	if err := containerd.start(c); err != nil {
		return err
	}
	if err := c.importPause(); err != nil {
		return err
	}
	servers := []*server{
		containerd,
		{name: "kubelet", args: []string{c.Program, "kubelet", "--config", c.Path("kubelet.yaml"), "--kubeconfig", c.Kubeconfigs[KubeletClient],
			"--hostname-override", Name, "--node-ip", c.NodeIP, "--root-dir", c.Path("kubelet"), "--cert-dir", c.Path("pki")}},
		{name: "kube-proxy", args: []string{c.Program, "kube-proxy", "--config", c.Path("proxy.yaml")}},
		{name: "dns", args: []string{c.DNSProgram, "-conf", c.Path("Corefile")}},
	}
	for _, s := range servers[1:] {
		if err := s.start(c); err != nil {
			return err
		}
	}
	return supervise(c, servers)
}

// supervise reaps processes, and starts servers again that have ended when it gets SIGHUP.
func supervise(c *Config, servers []*server) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGHUP)
	for s := range signals {
		reap(servers)
		if s != syscall.SIGHUP {
			continue
		}
		if err := startEnded(c, servers); err != nil {
			return err
		}
	}
	return nil
}

// reap reaps every process that has ended, and records and reports which servers are among them.
func reap(servers []*server) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
		for _, s := range servers {
			if s.pid == pid {
				fmt.Fprintf(os.Stderr, "%s has ended: exit status %d, signal %d\n", s.name, status.ExitStatus(), status.Signal())
				s.pid = 0
			}
		}
	}
}

// startEnded starts the servers that have ended.
func startEnded(c *Config, servers []*server) error {
	for _, s := range servers {
		if s.pid != 0 {
			continue
		}
		if err := s.start(c); err != nil {
			return err
		}
	}
	return nil
}

// start starts a server, whose output goes to a log of its own.
func (s *server) start(c *Config) error {
	log, err := os.OpenFile(filepath.Join(c.Logs, "node", s.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", s.name, err)
	}
	defer log.Close()
	program := s.args[0]
	if !filepath.IsAbs(program) {
		if program, err = lookPath(program); err != nil {
			return err
		}
	}
	process, err := os.StartProcess(program, s.args, &os.ProcAttr{Dir: c.Dir, Files: []*os.File{nil, log, log}, Env: os.Environ()})
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	s.pid = process.Pid
	return process.Release()
}

func lookPath(program string) (string, error) {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if info, err := os.Stat(filepath.Join(dir, program)); err == nil && !info.IsDir() {
			return filepath.Join(dir, program), nil
		}
	}
	return "", fmt.Errorf("there is no program %s", program)
}

// mount gives the node mounts that the host does not see, and the view of its own processes. The kubelet shares mounts with containers.
func mount() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"none", "/", "", syscall.MS_REC | syscall.MS_SHARED},
		{"proc", "/proc", "proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"tmpfs", "/run", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	return nil
}

// hideState keeps what the kubelet writes to its usual folder, whatever its flags say, from the host and from other nodes.
func hideState() error {
	upper, work := "/run/var-lib/upper", "/run/var-lib/work"
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("hiding the folder of the kubelet: %w", err)
		}
	}
	if err := syscall.Mount("overlay", "/var/lib", "overlay", 0, "lowerdir=/var/lib,upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("hiding the folder of the kubelet: %w", err)
	}
	return nil
}

// network waits for the link to the host, and sets it up.
func (c *Config) network() error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := net.InterfaceByName("eth0"); err == nil {
			break
		} else if time.Now().After(deadline) {
			return fmt.Errorf("the link to the host is not there: %w", err)
		}
	}
	for _, args := range []string{
		"link set lo up",
		"addr add " + c.NodeIP + "/30 dev eth0",
		"link set eth0 up",
		"route add default via " + c.HostIP,
	} {
		if err := ip(args); err != nil {
			return err
		}
	}
	return nil
}

// kernel lets the node forward packets between pods, and show those of bridges to kube-proxy.
func (c *Config) kernel() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("letting the node forward packets: %w", err)
	}
	// Without the kernel's module there is no such setting, and only a pod that reaches itself by its Service notices.
	_ = os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0o644)
	return nil
}

// importPause waits for containerd, and gives it the image that every pod needs.
func (c *Config) importPause() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		if err = run("ctr", "--address", c.Socket(), "--namespace", "k8s.io", "images", "import", c.PauseImage); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("containerd does not take images: %w", err)
}
