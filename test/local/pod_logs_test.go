package local

import (
	"context"
	"io"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kudo.dev/kudo/test/env"
)

const chatty = `
metadata: {name: chatty}
spec:
  backoffLimit: 100
  template:
    metadata: {annotations: {log.local.kudo.dev/main: "connecting\nno such database\n", log.local.kudo.dev/prepare: prepared}}
    spec:
      restartPolicy: OnFailure
      initContainers: [{name: prepare, image: busybox}]
      containers: [{name: main, image: busybox, command: [sh, -c, exit 7]}, {name: silent, image: busybox}]`

// checkLogs: the logs of a pod are what its annotations say, whatever became of kwok in the meantime.
func checkLogs(t testing.TB, l *instance, ns string) {
	client := l.client()
	must(client.BatchV1().Jobs(ns).Create(t.Context(), parse[batchv1.Job](t, chatty), metav1.CreateOptions{}))(t)
	pod := ""
	env.Eventually(t, "a container that was restarted", func() string {
		list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=chatty"})
		if err != nil {
			return err.Error()
		}
		for _, p := range list.Items {
			for _, s := range p.Status.ContainerStatuses {
				if pod = p.Name; s.RestartCount > 0 {
					return ""
				}
			}
		}
		return "no container was restarted"
	})
	tests := []struct {
		reason  string
		options corev1.PodLogOptions
		want    string
	}{
		{"all of it", corev1.PodLogOptions{Container: "main"}, "connecting\nno such database\n"},
		{"the run before", corev1.PodLogOptions{Container: "main", Previous: true, TailLines: new(int64(1))}, "no such database\n"},
		{"the first bytes", corev1.PodLogOptions{Container: "main", LimitBytes: new(int64(7))}, "connect"},
		{"an init container", corev1.PodLogOptions{Container: "prepare", Follow: true}, "prepared\n"},
		{"no annotation", corev1.PodLogOptions{Container: "silent"}, ""},
	}
	for _, tc := range tests {
		if got, err := readLog(t.Context(), client, ns, pod, &tc.options); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.reason, got, err, tc.want)
		}
	}
	_, err := readLog(t.Context(), client, ns, pod, &corev1.PodLogOptions{Container: "prepare", Previous: true})
	if err == nil || !strings.Contains(err.Error(), "previous terminated container") {
		t.Errorf("the log of a run that never was: %v", err)
	}
	former := nodeLeases(t, client)
	l.run("kill", "kwok")
	l.run("start", "kwok")
	for node, uid := range nodeLeases(t, client) { // by a lease of the killed process, no pod of the node would be played for 40 seconds
		if former[node] == uid {
			t.Errorf("after kwok was killed and started, node %s has the lease of the former process", node)
		}
	}
	if got, err := readLog(t.Context(), client, ns, pod, &corev1.PodLogOptions{Container: "prepare"}); err != nil || got != "prepared\n" {
		t.Errorf("after kwok was killed: %q, %v", got, err)
	}
}

// nodeLeases returns the uids of the leases of the nodes.
func nodeLeases(t testing.TB, client kubernetes.Interface) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, lease := range must(client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{}))(t).Items {
		out[lease.Name] = lease.UID
	}
	return out
}

func readLog(ctx context.Context, client kubernetes.Interface, ns, pod string, o *corev1.PodLogOptions) (string, error) {
	stream, err := client.CoreV1().Pods(ns).GetLogs(pod, o).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}
