package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

type procInfo struct {
	born   string
	zombie bool
}

// inspect reads what is known of a process: from /proc where there is one, else from
// ps, else only whether it takes signals.
func inspect(pid int) (procInfo, bool) {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return parseStat(string(stat))
	} else if _, err := os.Stat("/proc/self/stat"); err == nil {
		return procInfo{}, false // there is a /proc, and pid is not in it
	}
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err == nil {
		state, born, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		return procInfo{born: strings.TrimSpace(born), zombie: strings.HasPrefix(state, "Z")}, state != ""
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return procInfo{}, false
	}
	return procInfo{}, syscall.Kill(pid, 0) == nil
}

// parseStat reads proc(5)'s stat line. The second field, the name in
// parentheses, may hold spaces and parentheses itself, so counting starts
// after the last one: state is the first field there, num_threads the 18th,
// starttime the 20th. While other threads of a killed process are still
// ending, its first is a zombie already, but its ports are not free yet: so it
// counts as one only when it is the last.
func parseStat(stat string) (procInfo, bool) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return procInfo{}, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 20 {
		return procInfo{}, false
	}
	return procInfo{born: fields[19], zombie: fields[0] == "X" || fields[0] == "Z" && fields[17] == "1"}, true
}
