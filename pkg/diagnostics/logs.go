package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// pod is a pod whose logs are collected.
type pod struct {
	corev1.Pod
	folder string
}

// pod collects a pod.
func (c *Collector) pod(folder string, raw *unstructured.Unstructured) *pod {
	p := &pod{folder: path.Join(folder, "pod_"+safe(raw.GetName()))}
	c.object(path.Join(p.folder, safe(raw.GetName())+".yaml"), raw)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, &p.Pod); err != nil {
		c.fail("pod "+raw.GetName(), err)
		return nil
	}
	return p
}

// failureRank ranks pods: those that fail first.
func (p *pod) failureRank() int {
	if p.Status.Phase == corev1.PodFailed {
		return 3
	}
	restarts, waits := false, false
	for _, s := range p.statuses() {
		restarts = restarts || s.RestartCount > 0
		waits = waits || !s.Ready
	}
	switch {
	case restarts:
		return 2
	case waits:
		return 1
	}
	return 0
}

func (p *pod) statuses() []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses,
		p.Status.EphemeralContainerStatuses} {
		out = append(out, list...)
	}
	return out
}

// parallel is how many logs are read at a time.
const parallel = 8

// logs collects the logs of all containers that have been started, and of their runs before.
func (c *Collector) logs(ctx context.Context, pods []*pod) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, parallel)
	read := func(p *pod, container string, previous bool) {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() == nil {
				c.log(ctx, p, container, previous)
			}
		})
	}
	for _, p := range pods {
		c.Progress("logs of pod " + p.Namespace + "/" + p.Name)
		for _, s := range p.statuses() {
			if s.State.Waiting == nil || s.RestartCount > 0 {
				read(p, s.Name, false)
			}
			if s.RestartCount > 0 || s.LastTerminationState.Terminated != nil {
				read(p, s.Name, true)
			}
		}
	}
	wait.Wait()
}

// log collects the end of a log.
func (c *Collector) log(ctx context.Context, p *pod, container string, previous bool) {
	name := path.Join(p.folder, safe(container)+".log")
	if previous {
		name = path.Join(p.folder, safe(container)+".previous.log")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limits.LogTime)
	defer cancel()
	options := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true, TailLines: &c.Limits.LogLines,
		LimitBytes: ptr.To(logFactor * c.Limits.LogBytes)}
	if c.Since > 0 {
		options.SinceSeconds = ptr.To(max(1, int64(c.Since.Seconds())))
	}
	stream, err := c.Set.CoreV1().Pods(p.Namespace).GetLogs(p.Name, options).Stream(ctx)
	if err != nil {
		c.fail(name, err)
		return
	}
	text, cut, err := Tail(stream, c.Limits.LogBytes)
	err = errors.Join(err, stream.Close())
	if err != nil {
		c.fail(name, fmt.Errorf("the log broke off: %w", err))
	}
	if cut {
		c.fail(name, fmt.Errorf("it is longer than %d bytes, and the end was collected", c.Limits.LogBytes))
	}
	if len(text) > 0 {
		c.fail(name, c.folder.Write(name, []byte(c.redact.Text(string(text)))))
	}
}

// logFactor is how many times more is read of a log than is kept: the server cuts the end of what it was asked for.
const logFactor = 16

// Tail reads to the end, and returns the last bytes, from the beginning of a line; cut is set if there were more.
func Tail(r io.Reader, limit int64) (end []byte, cut bool, err error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		end = append(end, buffer[:n]...)
		if int64(len(end)) > 2*limit {
			end, cut = append(end[:0:0], end[int64(len(end))-limit:]...), true
		}
		if err == nil {
			continue
		}
		if err == io.EOF {
			err = nil
		}
		if int64(len(end)) > limit {
			end, cut = end[int64(len(end))-limit:], true
		}
		return wholeLines(end, cut), cut, err
	}
}

// wholeLines drops the rest of a line at the beginning: a secret that is cut in two would not be found.
func wholeLines(end []byte, cut bool) []byte {
	if !cut {
		return end
	}
	for n, b := range end {
		if b == '\n' {
			return end[n+1:]
		}
	}
	return nil
}
