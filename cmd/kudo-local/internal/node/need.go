package node

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// cniDir is where Debian's package containernetworking-plugins puts its programs.
const cniDir = "/usr/lib/cni"

// programs are what a node runs beside kudo's own, with Debian's package of each.
var programs = []struct{ name, debian string }{
	{"containerd", "containerd"}, {"ctr", "containerd"}, {"runc", "runc"}, {filepath.Join(cniDir, "bridge"), "containernetworking-plugins"},
	{"iptables", "iptables"}, {"nft", "nftables"}, {"ip", "iproute2"},
}

// Check returns an error that names all that this machine lacks to run a real node, with what to do about it.
func Check() error {
	if runtime.GOOS != "linux" {
		return errors.New("--nodes real runs on Linux only: use --nodes fake")
	}
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("--nodes real needs root for mounts, network namespaces and cgroups: use sudo, or --nodes fake"))
	}
	var missing, packages []string
	for _, p := range programs {
		if _, err := exec.LookPath(p.name); err != nil {
			missing = append(missing, filepath.Base(p.name))
			if !slices.Contains(packages, p.debian) {
				packages = append(packages, p.debian)
			}
		}
	}
	if len(missing) > 0 {
		errs = append(errs, errors.New("--nodes real needs "+strings.Join(missing, ", ")+": apt-get install "+strings.Join(packages, " ")))
	}
	return errors.Join(errs...)
}
