package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Kill ends a server of the node whose launcher has a process id, as a crash would.
func Kill(launcher int, name string) error {
	for _, first := range children(launcher) {
		for _, pid := range children(first) {
			if serverOf(pid) == name {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					return fmt.Errorf("killing %s: %w", name, err)
				}
				return nil
			}
		}
	}
	return fmt.Errorf("%s does not run", name)
}

// Restart starts the servers of a node that have ended.
func Restart(launcher int) error {
	if err := syscall.Kill(launcher, syscall.SIGHUP); err != nil {
		return fmt.Errorf("starting what has ended: %w", err)
	}
	return nil
}

// children are the processes that a process has started and that run.
func children(parent int) []int {
	var out []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name of the program, in brackets, may hold blanks and brackets.
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// serverOf returns the name of the server that a process is; empty if it is none.
func serverOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(data), "\x00")
	program := filepath.Base(args[0])
	switch {
	case program == "kudo-dns":
		return "dns"
	case program == "kudo-node" && len(args) > 1 && slices.Contains(Servers, args[1]):
		return args[1]
	case slices.Contains(Servers, program):
		return program
	}
	return ""
}
