package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository"
)

// TestReportError checks the text and the exit code of each kind of error.
func TestReportError(t *testing.T) {
	refused := fmt.Errorf("get pods: %w", syscall.ECONNREFUSED)
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Instance"}, SearchedVersions: []string{"v1beta1"}}
	otherKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Spark"}, SearchedVersions: []string{"v1"}}
	for name, tc := range map[string]struct {
		reason string
		err    error
		code   int
		want   string
	}{
		"None":           {"no error is no text", nil, 0, ""},
		"Plain":          {"an error without a code", errors.New("it failed"), ExitError, "Error: it failed\n"},
		"Usage":          {"wrong usage", UsageError("--wait %d: no", 3), ExitUsage, "Error: --wait 3: no\n"},
		"Failed":         {"a plan failed", WithCode(ExitFailed, errors.New("plan deploy failed")), ExitFailed, "Error: plan deploy failed\n"},
		"Wrapped":        {"a code is found below other errors", fmt.Errorf("instance x: %w", WithCode(ExitTimeout, io.EOF)), ExitTimeout, "Error: instance x: EOF\n"},
		"Joined":         {"and among others", errors.Join(io.EOF, WithCode(ExitFailed, io.ErrClosedPipe)), ExitFailed, "Error: EOF\nio: read/write on closed pipe\n"},
		"OuterCode":      {"the outer code wins", WithCode(ExitTimeout, UsageError("x")), ExitTimeout, "Error: x\n"},
		"Interrupted":    {"the user ended the command", fmt.Errorf("watch: %w", context.Canceled), ExitError, "Error: interrupted\n"},
		"NoCluster":      {"nothing names a cluster", errNoCluster, ExitError, "Error: no cluster is configured: set --kubeconfig or KUBECONFIG"},
		"NoClusterBelow": {"nor below other errors", fmt.Errorf("connect: %w", clientcmd.ErrEmptyConfig), ExitError, "Error: "},
		"Refused":        {"no API server listens", refused, ExitError, "Error: the cluster cannot be reached: get pods: connection refused. Is it running?"},
		"Reset":          {"a connection was cut", fmt.Errorf("get pods: %w", syscall.ECONNRESET), ExitError, "Error: the cluster cannot be reached: "},
		"Repository":     {"a repository that refuses connections is no cluster", fmt.Errorf("search: %w", &repository.FetchError{Err: refused}), ExitError, "Error: search: "},
		"NotInstalled":   {"kudo's kinds are missing", noKind, ExitError, "Error: kudo is not installed on this cluster (its CustomResourceDefinitions are missing): run kubectl kudo init. ("},
		"OtherKind":      {"another kind that is missing is not kudo's", otherKind, ExitError, `Error: no matches for kind "Spark" in version "example.org/v1"` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := NewEnv(nil, &out, &errs).ReportError(tc.err)
			if code != tc.code || !strings.HasPrefix(errs.String(), tc.want) || tc.want == "" && errs.Len() > 0 {
				t.Errorf("%s: exit code %d, want %d, and\n%s", tc.reason, code, tc.code, errs.String())
			}
			if out.Len() > 0 {
				t.Errorf("%s: an error is no output: %s", tc.reason, out.String())
			}
			if name == "Repository" && strings.Contains(errs.String(), "the cluster cannot be reached") {
				t.Errorf("%s: %s", tc.reason, errs.String())
			}
		})
	}
}

// TestCodeErrorCause checks that the cause of an error with a code is found.
func TestCodeErrorCause(t *testing.T) {
	err := UsageError("-p %s: %w", "A", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "-p A: unexpected EOF" {
		t.Errorf("got %v", err)
	}
	if !errors.Is(ErrNoInstance, ErrNoInstance) || !strings.Contains(ErrNoInstance.Error(), "kubectl kudo get instances") {
		t.Errorf("the remedy is missing: %v", ErrNoInstance)
	}
}
