package podlogs

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// TestPipe: the files of a Pipe task have a content, and no other command runs.
func TestPipe(t *testing.T) {
	server := httptest.NewServer(Handler(lab))
	defer server.Close()
	tests := []struct {
		reason, path, want string
	}{
		{"a file", "waiter?command=/manager&command=pipe&command=read&command=/out/tls.key&output=1", "PLAYED=/out/tls.key\n"},
		{"another container", "main?command=/manager&command=pipe&command=read&command=/out/tls.key&output=1", ""},
		{"another command", "waiter?command=cat&command=/out/tls.key&output=1", ""},
		{"no file", "waiter?command=/manager&command=pipe&command=read&output=1", ""},
	}
	for _, tc := range tests {
		target, err := url.Parse(server.URL + "/exec/lab/report/" + tc.path)
		if err != nil {
			t.Fatal(err)
		}
		executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, target)
		if err != nil {
			t.Fatal(err)
		}
		out := &bytes.Buffer{}
		err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: out})
		if out.String() != tc.want || (err == nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), "no container runs") {
			t.Errorf("%s: %q, %v; want %q", tc.reason, out, err, tc.want)
		}
	}
}
