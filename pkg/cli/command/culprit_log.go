package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/health/culprit"
)

// The bounds of what is shown of a log, and of the time that it may take to read it.
const (
	logLines int64 = 20
	logBytes int64 = 4 << 10
	logTime        = 5 * time.Second
	// logRead is how many bytes are read: the API server cuts the end of what is longer.
	logRead = 16 * logBytes
)

// log returns the last lines that a container has written, each behind a bar: those of its run before if it was started again.
func (e *explainer) log(ctx context.Context, f culprit.Finding) string {
	if !hasLog(f) || e.set == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	stream, err := e.set.CoreV1().Pods(f.Namespace).GetLogs(f.Pod, &corev1.PodLogOptions{Container: f.Container, Previous: f.Restarted,
		TailLines: ptr.To(logLines), LimitBytes: ptr.To(logRead)}).Stream(ctx)
	if err != nil {
		return "  the log cannot be read: " + err.Error() + "\n"
	}
	defer func() { _ = stream.Close() }()
	read, cut, err := diagnostics.Tail(stream, logBytes)
	end := wholeEnd(read, logBytes)
	shown := barred(e.redact.Text(string(end)))
	switch {
	case err != nil:
		return shown + "  the log broke off: " + err.Error() + "\n"
	case shown == "" && (cut || len(end) < len(read)):
		return fmt.Sprintf("  the last line of the log is longer than the %d KiB that are shown here\n", logBytes>>10)
	case shown == "":
		return "  the container has written nothing\n"
	}
	return shown
}

// wholeEnd drops the last line if the log may have been cut within it: a part of a secret would not be found.
func wholeEnd(read []byte, limit int64) []byte {
	if len(read) == 0 || int64(len(read)) < limit/2 || read[len(read)-1] == '\n' {
		return read
	}
	return read[:bytes.LastIndexByte(read, '\n')+1]
}

// barred returns the lines of a log that are not empty, each behind a bar.
func barred(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			out.WriteString("  | " + line + "\n")
		}
	}
	return out.String()
}

// learnSecrets tells a redactor what must not be shown of the logs of an Instance: the values of its sensitive parameters and, as far as
// the user may read them, the Secrets that its plans have made and those that its parameters come from.
func learnSecrets(ctx context.Context, c client.Client, r *diagnostics.Redactor, i *v1beta1.Instance, ov *v1beta1.OperatorVersion) {
	learnParameters(r, ov.Spec.Parameters, i.Spec.Parameters)
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
			r.Learn(string(value))
		}
	}
}

// learnParameters tells a redactor the values of parameters that are sensitive by their definition or by their name.
func learnParameters(r *diagnostics.Redactor, defs []v1beta1.Parameter, values map[string]string) {
	for _, def := range defs {
		if def.Sensitive {
			r.Name(def.Name)
		}
		if def.Default != nil && (def.Sensitive || r.Sensitive(def.Name)) {
			r.Learn(*def.Default)
		}
	}
	for name, value := range values {
		if r.Sensitive(name) {
			r.Learn(value)
		}
	}
}
