package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository"
)

// Exit codes.
const (
	ExitError   = 1 // something went wrong
	ExitUsage   = 2 // the command was called in a wrong way
	ExitFailed  = 3 // a plan that was waited for failed, --dry-run shows a failure or a refusal, or a package is not signed as it must be
	ExitTimeout = 4 // the wait took too long
)

// CodeError is an error with the exit code that the command ends with.
type CodeError struct {
	Code int
	error
}

// Unwrap returns the cause.
func (e *CodeError) Unwrap() error { return e.error }

// WithCode returns the error with an exit code.
func WithCode(code int, err error) error { return &CodeError{code, err} }

// errSilent is the error of a command that has said all there is to say.
var errSilent = errors.New("silent")

// ExitWith returns an error that is not printed, and ends the command with a code.
func ExitWith(code int) error { return WithCode(code, errSilent) }

// UsageError returns an error with ExitUsage.
func UsageError(format string, args ...any) error {
	return WithCode(ExitUsage, fmt.Errorf(format, args...))
}

// ReportError prints an error, and returns the exit code that it stands for.
func (env *Env) ReportError(err error) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, errSilent) {
		_, _ = fmt.Fprintln(env.messages(), "Error: "+explainError(err))
	}
	var coded *CodeError
	if errors.As(err, &coded) {
		return coded.Code
	}
	return ExitError
}

// errNoCluster is the error of a command line without a flag, kubeconfig or environment variable that names a cluster.
var errNoCluster = clientcmd.ErrEmptyConfig

// explainError returns the text of an error, with the remedy if the cause is outside of kudo.
func explainError(err error) string {
	text := err.Error()
	var fetch *repository.FetchError
	var interrupted *interruptedError
	switch {
	case errors.As(err, &interrupted):
		return interrupted.Error()
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &fetch):
		return text // its server may refuse connections, too
	case meta.IsNoMatchError(err) && strings.Contains(text, v1beta1.GroupVersion.Group):
		return "kudo is not installed on this cluster (its CustomResourceDefinitions are missing): run kubectl kudo init. (" + text + ")"
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err):
		return "the cluster cannot be reached: " + text + ". Is it running? kubectl cluster-info tells which one is configured"
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured: set --kubeconfig or KUBECONFIG; a local one is started by kudo-local up"
	}
	return text
}
