package podexec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// container is what a command in a container prints, and how it ends.
type container struct {
	stdout, stderr string
	code           int
}

func (c container) status() []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if c.code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "command terminated",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: "7"}}}}
	}
	text, _ := json.Marshal(status)
	return text
}

// webSocket serves the command as the apiserver does: one channel a stream, its number before each message.
func (c container) webSocket(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	send := func(channel byte, data []byte) {
		for len(data) > 0 {
			n := min(len(data), 32<<10)
			_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, data[:n]...))
			data = data[n:]
		}
	}
	send(1, []byte(c.stdout))
	send(2, []byte(c.stderr))
	send(3, c.status())
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
}

// spdy serves the command over SPDY, as older apiservers do.
func (c container) spdy(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 3)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	text := map[string][]byte{"stdout": []byte(c.stdout), "stderr": []byte(c.stderr), "error": c.status()}
	open := map[string]httpstream.Stream{}
	for len(open) < 3 {
		s := <-streams
		open[s.Headers().Get("streamType")] = s
	}
	for _, name := range []string{"stdout", "stderr", "error"} {
		_, _ = open[name].Write(text[name])
		_ = open[name].Close()
	}
	<-conn.CloseChan()
}

func TestOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		container
		want, fail string
		large      bool
		reason     string
	}{
		"Output":   {container{stdout: "hello"}, "hello", "", false, "what a command prints"},
		"Much":     {container{stdout: strings.Repeat("x", 1000)}, strings.Repeat("x", 1000), "", false, "up to the limit"},
		"TooMuch":  {container{stdout: strings.Repeat("x", 200_000)}, "", "", true, "and not a byte more is kept"},
		"Failing":  {container{stdout: "half", stderr: "no such file", code: 7}, "", "ended with exit code 7: no such file", false, "a failed command is known as such"},
		"ManyErrs": {container{stderr: strings.Repeat("e", 10_000), code: 7}, "", "ended with exit code 7: eee", false, "error output is cut"},
	} {
		for _, protocol := range []string{"websocket", "spdy"} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				var asked string
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked = r.URL.String()
					switch {
					case protocol == "websocket":
						tc.webSocket(w, r)
					case r.Method == http.MethodGet:
						http.Error(w, "no websockets here", http.StatusBadRequest)
					default:
						tc.spdy(w, r)
					}
				}))
				defer server.Close()
				e, err := New(&rest.Config{Host: server.URL})
				if err != nil {
					t.Fatal(err)
				}
				out, err := e.Output(context.Background(), "system:serviceaccount:ns:worker", Container{"ns", "pod", "waiter"}, []string{"cat", "--", "/a b"}, 1000)
				var large *TooLargeError
				var failed *CommandError
				switch {
				case tc.large:
					if !errors.As(err, &large) || out != nil {
						t.Errorf("%s: got %d bytes, %v", tc.reason, len(out), err)
					}
				case tc.fail != "":
					if !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), tc.fail) {
						t.Errorf("%s: got %v", tc.reason, err)
					}
				case err != nil || !bytes.Equal(out, []byte(tc.want)):
					t.Errorf("%s: got %q, %v", tc.reason, out, err)
				}
				if len(errText(err)) > 5000 {
					t.Errorf("%s: the error has %d bytes", tc.reason, len(errText(err)))
				}
				if want := "/api/v1/namespaces/ns/pods/pod/exec?command=cat&command=--&command=%2Fa+b&container=waiter&stderr=true&stdout=true"; asked != want {
					t.Errorf("asked for %s, want %s", asked, want)
				}
			})
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestOutputOfNothing(t *testing.T) {
	e, err := New(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Output(context.Background(), "system:serviceaccount:ns:worker", Container{"ns", "pod", "waiter"}, []string{"true"}, 10)
	var failed *CommandError
	if err == nil || errors.As(err, &failed) {
		t.Errorf("a server that is not there is no failure of the command: %v", err)
	}
}
