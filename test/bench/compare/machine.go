package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/bench/compare/tools"
)

// machine says where this runs: nothing that names it, and what cannot be read is empty.
func machine() report.Machine {
	m := report.Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPU: field("/proc/cpuinfo", "model name")}
	if size, _, ok := strings.Cut(field("/proc/meminfo", "MemTotal"), " "); ok {
		kib, _ := strconv.ParseFloat(size, 64)
		m.Memory = kib / (1 << 20)
	}
	return m
}

// field is the value of the first line "name: value" of a file.
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// load is the machine's load average of the last minute; 0 where that is not known.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	value, _ := strconv.ParseFloat(first, 64)
	return value
}

// versions are those of all that takes part.
func versions(ctx context.Context, p tools.Programs) (map[string]string, error) {
	out := map[string]string{"Go": runtime.Version()}
	for name, of := range map[string][2]string{"Helm": {p.Helm, "helm.sh/helm/v4"}, "fluxcd/pkg/ssa": {p.SSA, "github.com/fluxcd/pkg/ssa"}} {
		info, err := buildinfo.ReadFile(of[0])
		if err != nil {
			return nil, fmt.Errorf("read the version of %s: %w", name, err)
		}
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == of[1] {
				out[name] = m.Version
			}
		}
	}
	for name, command := range map[string][]string{
		"kudo":                   {p.Kudo, "version"},
		"kubectl, control plane": {p.Kubectl, "version", "--client"},
	} {
		text, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%v: %w\n%s", command, err, text)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		out[name] = strings.TrimPrefix(strings.TrimPrefix(first, "Client Version: "), "kudo ")
	}
	return out, nil
}
