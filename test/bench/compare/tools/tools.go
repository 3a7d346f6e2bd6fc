// Package tools are the contestants: each installs the objects of package fixture in its own way.
package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Tool installs an application, applies it again, and changes one of its objects.
type Tool interface {
	// Name says what is run.
	Name() string
	// Commands are the three commands, for a release in a namespace.
	Commands(namespace string) Commands
}

// Commands of a tool. Each ends when what it does is done.
type Commands struct {
	Install, Again, Change []string
	// Remove takes what the tool keeps beside the objects off the cluster, before the namespace is deleted; may be empty.
	Remove []string
}

// Result is what one command took.
type Result struct {
	Wall time.Duration
	// CPU seconds of the command and its children.
	CPU float64
}

// Run runs a command against a cluster.
func Run(ctx context.Context, kubeconfig, home string, command []string) (Result, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home, "XDG_CACHE_HOME="+home+"/cache", "XDG_CONFIG_HOME="+home+"/config", "XDG_DATA_HOME="+home+"/data")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return Result{}, fmt.Errorf("%v: %w\n%s", command, err, tail(out.Bytes()))
	}
	state := cmd.ProcessState
	return Result{Wall: took, CPU: (state.UserTime() + state.SystemTime()).Seconds()}, nil
}

func tail(out []byte) []byte {
	const most = 2000
	if len(out) > most {
		return out[len(out)-most:]
	}
	return out
}

// Release is the name of what each tool installs.
const Release = "bench"
