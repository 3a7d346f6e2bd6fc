package diagnostics

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// answering answers requests for logs.
type answering func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// endless is a log that does not end.
type endless struct{ read int }

// Read implements io.Reader.
func (e *endless) Read(into []byte) (int, error) {
	e.read += len(into)
	return copy(into, bytes.Repeat([]byte("again\n"), len(into)/6+1)), nil
}

// broken is a log whose connection is lost after some lines.
type broken struct{ text io.Reader }

// Read implements io.Reader.
func (b broken) Read(into []byte) (int, error) {
	n, err := b.text.Read(into)
	if errors.Is(err, io.EOF) {
		err = errors.New("lost")
	}
	return n, err
}

// TestReadLogEnd (P22): whatever a container writes, and however it comes, the last lines are shown within the bounds, and no part of a secret.
func TestReadLogEnd(t *testing.T) {
	const secret = "correct-horse-battery"
	forever := &endless{}
	for _, tc := range []struct {
		reason   string
		log      io.Reader
		restarts bool
		lines    []string
		note     string
	}{
		{"some lines", strings.NewReader("one\n\ntwo " + secret + "\n"), false, []string{"one", "two REDACTED"}, ""},
		{"a container that was started again", strings.NewReader("one\n"), true, []string{"one"}, ""},
		{"no line", strings.NewReader(""), false, nil, "the container has written nothing"},
		{"megabytes on one line", strings.NewReader(strings.Repeat("x", 8<<20)), false, nil, "the last line of the log is longer than the 4 KiB that are shown here"},
		{"a long line before the last one", strings.NewReader(strings.Repeat("x", 9<<10) + secret + "\nlast\n"), false, []string{"last"}, ""},
		{"a log that does not end", forever, false, slices.Repeat([]string{"again"}, 20), ""},
		{"a connection that is lost", broken{strings.NewReader("one " + secret + "\n")}, false, []string{"one REDACTED"}, "the log broke off: lost"},
		{"a value with several lines", strings.NewReader("a\nBEGIN-of-a-value\nEND-of-a-value\nb\n"), false, []string{"a", "REDACTED", "b"}, ""},
		{"the end of such a value", strings.NewReader("END-of-a-value\nb\n"), false, []string{"REDACTED", "b"}, ""},
		{"bytes that are no text", strings.NewReader("\xff\xfe" + secret + "\x80\n"), false, []string{"\xff\xfeREDACTED\x80"}, ""},
	} {
		var asked *http.Request
		set, err := kubernetes.NewForConfig(&rest.Config{Host: "http://cluster", QPS: -1, Transport: answering(func(r *http.Request) (*http.Response, error) {
			asked = r
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(tc.log), Request: r}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		redact := &Redactor{}
		redact.Hide(secret)
		redact.Hide("BEGIN-of-a-value\nEND-of-a-value")
		got := ReadLogEnd(t.Context(), set, ofReport(tc.restarts), redact.Text)
		if !slices.Equal(got.Lines, tc.lines) || got.Note != tc.note {
			t.Errorf("%s: %q, want %q and %q", tc.reason, got, tc.lines, tc.note)
		}
		want := "/api/v1/namespaces/lab/pods/report-x/log?container=report&limitBytes=65536"
		if tc.restarts {
			want += "&previous=true"
		}
		if asked.URL.RequestURI() != want+"&tailLines=20" {
			t.Errorf("%s: asked for %s, want %s", tc.reason, asked.URL.RequestURI(), want)
		}
		if deadline, set := asked.Context().Deadline(); !set || time.Until(deadline) > 5*time.Second {
			t.Errorf("%s: the request ends at %v", tc.reason, deadline)
		}
	}
	if forever.read > 2*64<<10 {
		t.Errorf("%d bytes are read of a log that does not end", forever.read)
	}
}

// ofReport is a container that has failed.
func ofReport(restarted bool) culprit.Finding {
	return culprit.Finding{Culprit: v1beta1.Culprit{Namespace: "lab", Pod: "report-x", Container: "report", ExitCode: ptr.To[int32](7)}, Restarted: restarted}
}

// TestLogHangs (P22): a log whose server does not answer ends with the context.
func TestLogHangs(t *testing.T) {
	set, err := kubernetes.NewForConfig(&rest.Config{Host: "http://cluster", QPS: -1, Transport: answering(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	got := ReadLogEnd(ctx, set, ofReport(false), strings.ToUpper)
	if len(got.Lines) > 0 || !strings.HasPrefix(got.Note, "the log cannot be read: ") || !strings.HasSuffix(got.Note, "context deadline exceeded") {
		t.Errorf("%q", got)
	}
}

// TestHideInstance (P22): the values of the Secrets that an Instance has written, or takes parameters from, are left out; those of others are not.
// Neither are values of parameters that were sensitive in a run, or are now and were given in a run before.
func TestHideInstance(t *testing.T) {
	secret := func(name, instance string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: gen.Meta("lab", name), Data: map[string][]byte{"k": []byte("value-of-" + name)}}
		s.Labels = map[string]string{v1beta1.InstanceLabel: instance}
		return s
	}
	i := gen.Instance("site", gen.Version("lab", "web-1.0"), map[string]string{"PASSWORD": "value-of-parameter"})
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "source"}, {Kind: "Secret", Name: "absent"}, {Kind: "ConfigMap", Name: "other"}}
	c := apitest.Start(t, secret("written", "site"), secret("source", ""), secret("other", "another")).Client()
	r := &Redactor{}
	i.Spec.Parameters["USER"] = "was-sensitive"
	runs := []history.Entry{{Parameters: map[string]string{"PASSWORD": "value-before", "SIZE": "value-of-size"}}, {Parameters: map[string]string{"USER": "sealed-text"}, Sensitive: []string{"USER"}}}
	r.HideInstance(t.Context(), c, i, &v1beta1.OperatorVersion{}, runs)
	got := r.Text("value-of-written value-of-source value-of-parameter value-of-other value-before was-sensitive value-of-size")
	if want := "REDACTED REDACTED REDACTED value-of-other REDACTED REDACTED value-of-size"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLastLines: of a log, the last lines that have text are shown.
func TestLastLines(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"nothing was written", "", ""},
		{"empty lines are left out", "one\n\ntwo\n\n", "one|two"},
		{"lines of Windows", "one\r\ntwo\r\n", "one|two"},
		{"tabs and other letters stay", "a\tb ü\n", "a\tb ü"},
		{"a server that sends more than it was asked for", strings.Repeat("x\n", 50) + "last", strings.Repeat("x|", 19) + "last"},
	} {
		if got := strings.Join(lastLines(tc.text), "|"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestWholeEnd: a line that may have been cut is left out, since a part of a secret would not be found.
func TestWholeEnd(t *testing.T) {
	for _, tc := range []struct{ reason, read, want string }{
		{"a short log whose last line has no end", "one\ntwo", "one\ntwo"},
		{"a long one", strings.Repeat("a", 80) + "\nhalf", strings.Repeat("a", 80) + "\n"},
		{"a long one with an end", strings.Repeat("a", 80) + "\n", strings.Repeat("a", 80) + "\n"},
		{"one long line", strings.Repeat("a", 80), ""},
		{"nothing", "", ""},
	} {
		if got := string(wholeEnd([]byte(tc.read), 100)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestHideParameters: values are left out of logs by their definition and by their name.
func TestHideParameters(t *testing.T) {
	r := &Redactor{}
	r.HideParameters([]v1beta1.Parameter{{Name: "SEED", Sensitive: true, Default: ptr.To("default-of-seed")}, {Name: "MODE", Default: ptr.To("production")}},
		map[string]string{"SEED": "value-of-seed", "DB_PASSWORD": "hunter22", "MODE": "staging-two"})
	text := r.Text("default-of-seed value-of-seed hunter22 production staging-two")
	if want := "REDACTED REDACTED REDACTED production staging-two"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
