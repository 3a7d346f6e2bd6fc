package podlogs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// A Pipe task of kudo reads the files of its pod by this command, which the name of a file follows, in this container.
var pipeCommand = []string{"/manager", "pipe", "read"}

const pipeContainer = "waiter"

// isPipe reports whether a request to run a command is that of a Pipe task.
func isPipe(r *http.Request) bool {
	command, n := r.URL.Query()["command"], len(pipeCommand)
	return r.PathValue("container") == pipeContainer && len(command) > n && slices.Equal(command[:n], pipeCommand)
}

// servePipe answers with the content of a file that no container has made.
func servePipe(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, playedFile{}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], options,
		requestTime, requestTime, remotecommand.SupportedStreamingProtocols)
}

// playedFile is the program that prints a file.
type playedFile struct{}

// ExecInContainer implements remotecommand.Executor. The content can stand for any file, and for one of environment variables, too.
//
//nolint:revive // the interface has these arguments
func (playedFile) ExecInContainer(_ context.Context, _, _, _ string, command []string, _ io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	_, err := fmt.Fprintf(out, "PLAYED=%s\n", command[len(pipeCommand)])
	return err
}
