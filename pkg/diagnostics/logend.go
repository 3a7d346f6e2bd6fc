package diagnostics

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/pkg/history"
)

// The bounds of what is shown of the log of a container that has failed, and of the time that it may take to read it.
const (
	endLines int64 = 20
	endBytes int64 = 4 << 10
	endTime        = 5 * time.Second
	// endRead is how many bytes are read: the API server cuts the end of what is longer.
	endRead = logFactor * endBytes
)

// LogEnd is the end of a log, as it is shown beside what has failed.
type LogEnd struct {
	// Lines are the last ones, without empty ones and without what is secret. They may have control characters.
	Lines []string
	// Note says why there are no lines, or no more; empty if nothing is to be said.
	Note string
}

// ReadLogEnd reads the last lines that the container of a finding has written: those of its run before if it was started again. It takes
// five seconds at most. The finding must have a log. redact takes out what is secret, of all lines at once.
func ReadLogEnd(ctx context.Context, set kubernetes.Interface, f culprit.Finding, redact func(string) string) LogEnd {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	stream, err := set.CoreV1().Pods(f.Namespace).GetLogs(f.Pod, &corev1.PodLogOptions{Container: f.Container, Previous: f.Restarted,
		TailLines: ptr.To(endLines), LimitBytes: ptr.To(endRead)}).Stream(ctx)
	if err != nil {
		return LogEnd{Note: "the log cannot be read: " + err.Error()}
	}
	defer func() { _ = stream.Close() }()
	read, cut, err := Tail(io.LimitReader(stream, endRead), endBytes)
	end := wholeEnd(read, endBytes)
	out := LogEnd{Lines: lastLines(redact(string(end)))}
	switch {
	case err != nil:
		out.Note = "the log broke off: " + err.Error()
	case len(out.Lines) > 0:
	case cut || len(end) < len(read):
		out.Note = fmt.Sprintf("the last line of the log is longer than the %d KiB that are shown here", endBytes>>10)
	default:
		out.Note = "the container has written nothing"
	}
	return out
}

// wholeEnd drops the last line if the log may have been cut within it: a part of a secret would not be found.
func wholeEnd(read []byte, limit int64) []byte {
	if len(read) == 0 || int64(len(read)) < limit/2 || read[len(read)-1] == '\n' {
		return read
	}
	return read[:bytes.LastIndexByte(read, '\n')+1]
}

// lastLines returns the last lines of a text that are not empty.
func lastLines(text string) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-int(endLines)):]
}

// HideInstance takes what must not be shown of the logs of an Instance: the values of its sensitive parameters, now and in its recorded
// runs, since a log may be older than the spec; and, as far as the client may read them, the Secrets that its plans have made and those
// that its parameters come from. What was sensitive in a run counts as sensitive; its value in the record is sealed, and not known.
func (r *Redactor) HideInstance(ctx context.Context, c client.Client, i *v1beta1.Instance, ov *v1beta1.OperatorVersion,
	runs []history.Entry) {
	for _, run := range runs {
		for _, name := range run.Sensitive {
			r.Name(name)
		}
	}
	r.HideParameters(ov.Spec.Parameters, i.Spec.Parameters)
	for _, run := range runs {
		for name, value := range run.Parameters {
			if r.Sensitive(name) && !slices.Contains(run.Sensitive, name) {
				r.Hide(value)
			}
		}
	}
	list := &corev1.SecretList{}
	if c.List(ctx, list, client.InNamespace(i.Namespace), client.MatchingLabels{v1beta1.InstanceLabel: i.Name}, client.Limit(100)) != nil {
		list.Items = nil
	}
	for _, from := range i.Spec.ParametersFrom {
		secret := corev1.Secret{}
		if from.Kind == "Secret" && c.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: from.Name}, &secret) == nil {
			list.Items = append(list.Items, secret)
		}
	}
	for _, secret := range list.Items {
		for _, value := range secret.Data {
			r.Hide(string(value))
		}
	}
}

// HideParameters takes the values of parameters that are sensitive by their definition or by their name.
func (r *Redactor) HideParameters(defs []v1beta1.Parameter, values map[string]string) {
	for _, def := range defs {
		if def.Sensitive {
			r.Name(def.Name)
		}
		if def.Default != nil && (def.Sensitive || r.Sensitive(def.Name)) {
			r.Hide(*def.Default)
		}
	}
	for name, value := range values {
		if r.Sensitive(name) {
			r.Hide(value)
		}
	}
}
