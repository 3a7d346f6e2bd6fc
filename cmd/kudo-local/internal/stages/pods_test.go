package stages

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsBehaveAsTheirSpecSays(t *testing.T) {
	const never, onFailure = "restartPolicy: Never\n", "restartPolicy: OnFailure\n"
	tests := []struct {
		reason, owner, spec string
		// stages are the first ones, at most three; fewer when nothing more
		// happens.
		stages []string
		phase  corev1.PodPhase
		ready  corev1.ConditionStatus
	}{
		{"a server gets ready and stays so", "ReplicaSet", `containers: [{name: c, image: nginx}]`,
			[]string{"pod-ready"}, "Running", "True"},
		{"a readinessProbe is not asked", "StatefulSet", `containers: [{name: c, image: nginx, readinessProbe: {httpGet: {port: 80}}}]`,
			[]string{"pod-ready"}, "Running", "True"},
		{"a server that sleeps a little is not restarted", "ReplicaSet", `containers: [{name: c, image: x, command: [sleep, "5"]}]`,
			[]string{"pod-ready"}, "Running", "True"},
		{"a server that fails never becomes ready", "ReplicaSet", `containers: [{name: c, image: x, command: ["false"]}]`,
			[]string{"pod-crash", "pod-crash", "pod-crash"}, "Running", "False"},
		{"a Job's pod completes", "Job", never + `containers: [{name: c, image: x}]`,
			[]string{"pod-ready", "pod-complete"}, "Succeeded", "False"},
		{"a Job's pod that sleeps runs until it has slept", "Job", never + `containers: [{name: c, image: x, command: [sh, -c, sleep 5]}]`,
			[]string{"pod-ready", "pod-complete"}, "Succeeded", "False"},
		{"a Job's pod that sleeps forever runs on", "Job", never + `containers: [{name: c, image: x, command: [sh, -c, sleep infinity]}]`,
			[]string{"pod-ready"}, "Running", "True"},
		{"a Job's pod that fails, never to be restarted", "Job", never + `containers: [{name: c, image: x, command: [/bin/sh, -c, "false"]}]`,
			[]string{"pod-failed"}, "Failed", "False"},
		{"a Job's pod that fails is restarted", "Job", onFailure + `containers: [{name: c, image: x, args: ["false"]}]`,
			[]string{"pod-crash", "pod-crash", "pod-crash"}, "Running", "False"},
		{"it works before it fails", "Job", never + `containers: [{name: c, image: x, command: [sh, -c, "sleep 2; exit 1"]}]`,
			[]string{"pod-ready", "pod-failed"}, "Failed", "False"},
		{"a pod without an owner that ends, ends", "", never + `containers: [{name: c, image: x, command: [echo, hi]}]`,
			[]string{"pod-ready", "pod-complete"}, "Succeeded", "False"},
		{"a pod without an owner that does not say what it does runs on", "", never + `containers: [{name: c, image: x}]`,
			[]string{"pod-ready"}, "Running", "True"},
		{"a pod with one container that waits runs on", "", onFailure + `
initContainers: [{name: i, image: x, command: [generate]}]
containers: [{name: waiter, image: busybox, command: [/bin/sh, -c, sleep infinity]}]`,
			[]string{"pod-ready"}, "Running", "True"},
		{"an image that says that it does not exist", "ReplicaSet", `containers: [{name: c, image: "nginx:does-not-exist"}]`,
			[]string{"pod-pull"}, "Pending", "False"},
		{"also of a Job", "Job", never + `containers: [{name: c, image: "nonexisting/x", command: ["false"]}]`,
			[]string{"pod-pull"}, "Pending", "False"},
		{"also of an init container", "ReplicaSet", "initContainers: [{name: i, image: invalid}]\ncontainers: [{name: c, image: x}]",
			[]string{"pod-pull"}, "Pending", "False"},
		{"an init container that fails is tried again", "ReplicaSet", "initContainers: [{name: i, image: x, command: [\"false\"]}]\ncontainers: [{name: c, image: x}]",
			[]string{"pod-init-crash", "pod-init-crash", "pod-init-crash"}, "Pending", "False"},
		{"or is the end", "Job", never + "initContainers: [{name: i, image: x, command: [\"false\"]}]\ncontainers: [{name: c, image: x}]",
			[]string{"pod-init-failed"}, "Failed", "False"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			player, p := newPlayer(t), pod(t, tc.spec, tc.owner)
			var stages []string
			for range 3 {
				name, _ := player.play(t, p)
				if name == "" {
					break
				}
				stages = append(stages, name)
			}
			if !slices.Equal(stages, tc.stages) {
				t.Errorf("stages %v, want %v", stages, tc.stages)
			}
			if p.Status.Phase != tc.phase || condition(p, corev1.PodReady) != tc.ready || condition(p, corev1.ContainersReady) != tc.ready {
				t.Errorf("phase %s, ready %s, want %s, %s", p.Status.Phase, condition(p, corev1.PodReady), tc.phase, tc.ready)
			}
		})
	}
}

func TestContainerStatuses(t *testing.T) {
	player := newPlayer(t)

	p := pod(t, "restartPolicy: Never\ninitContainers: [{name: i, image: x}, {name: side, image: x, restartPolicy: Always}]\ncontainers: [{name: a, image: x}, {name: b, image: x, command: [sh, -c, sleep 1; exit 42]}]", "Job")
	player.play(t, p)
	if i := p.Status.InitContainerStatuses; i[0].State.Terminated == nil || i[1].State.Running == nil {
		t.Errorf("when ready, an init container has completed and a sidecar runs: %+v", i)
	}
	player.play(t, p)
	if c := p.Status.ContainerStatuses; c[0].State.Terminated.ExitCode != 0 || c[1].State.Terminated.ExitCode != 42 {
		t.Errorf("exit codes: %+v", c)
	}
	if i := p.Status.InitContainerStatuses; i[1].State.Terminated == nil {
		t.Errorf("a sidecar outlives its pod: %+v", i[1])
	}

	p = pod(t, "initContainers: [{name: i, image: x}]\ncontainers: [{name: a, image: x:invalid}, {name: b, image: x}]", "ReplicaSet")
	player.play(t, p)
	if c := p.Status.ContainerStatuses; c[0].State.Waiting.Reason != "ImagePullBackOff" || c[1].State.Running == nil {
		t.Errorf("one image is missing: %+v", c)
	}
	p.Spec.Containers[0].Image = "x:good"
	if name, _ := player.play(t, p); name != "pod-ready" {
		t.Errorf("with a good image comes %s", name)
	}

	p = pod(t, "containers: [{name: a, image: x, command: [\"false\"]}, {name: b, image: x}]", "ReplicaSet")
	for range 3 {
		player.play(t, p)
	}
	if c := p.Status.ContainerStatuses; c[0].RestartCount != 3 || c[0].State.Waiting.Reason != "CrashLoopBackOff" || c[0].LastTerminationState.Terminated.ExitCode != 1 || c[1].RestartCount != 0 {
		t.Errorf("after three crashes: %+v", c)
	}
}

func TestTimes(t *testing.T) {
	tests := []struct {
		reason, owner, spec string
		first, second       time.Duration
	}{
		{"a Job's pod ends at once when it has run", "Job", "restartPolicy: Never\ncontainers: [{name: c, image: x}]", readyDelay, 0},
		{"the longest sleep counts", "Job", "restartPolicy: Never\ncontainers: [{name: c, image: x, command: [sleep, \"90\"]}, {name: d, image: x, command: [sh, -c, sleep 1m; sleep 60s]}]", readyDelay, 120 * time.Second},
		{"a Job's container is restarted soon", "Job", "restartPolicy: OnFailure\ncontainers: [{name: c, image: x, command: [\"false\"]}]", readyDelay, time.Second},
		{"a server's takes longer", "ReplicaSet", "containers: [{name: c, image: x, command: [\"false\"]}]", readyDelay, 5 * time.Second},
	}
	for _, tc := range tests {
		player, p := newPlayer(t), pod(t, tc.spec, tc.owner)
		_, first := player.play(t, p)
		_, second := player.play(t, p)
		// Points in time have a precision of a second.
		if first != tc.first || second < tc.second-100*time.Millisecond || second > tc.second+1500*time.Millisecond {
			t.Errorf("%s: takes %s and %s, want %s and %s", tc.reason, first, second, tc.first, tc.second)
		}
	}
}

func TestDeletion(t *testing.T) {
	player := newPlayer(t)
	grace := int64(30)
	tests := []struct {
		reason, owner string
		want          []string
	}{
		{"a server is deleted at once", "ReplicaSet", []string{"pod-delete"}},
		{"a Job counts its pod as failed first", "Job", []string{"pod-kill", "pod-delete"}},
	}
	for _, tc := range tests {
		policy := ""
		if tc.owner == "Job" {
			policy = "restartPolicy: Never\n"
		}
		p := pod(t, policy+"containers: [{name: c, image: x, command: [sleep, infinity]}]", tc.owner)
		player.play(t, p)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &grace
		for _, want := range tc.want {
			if got, delay := player.play(t, p); got != want || delay != 0 {
				t.Errorf("%s: %s after %s, want %s", tc.reason, got, delay, want)
			}
		}
		none := int64(0)
		p.DeletionGracePeriodSeconds = &none
		if got, _ := player.play(t, p); got != "" {
			t.Errorf("%s: %s while finalizers hold it", tc.reason, got)
		}
	}
}
