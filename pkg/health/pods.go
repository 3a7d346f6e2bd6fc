package health

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

type job struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Completions *int32 `json:"completions"`
		Parallelism *int32 `json:"parallelism"`
		Suspend     bool   `json:"suspend"`
	} `json:"spec"`
	Status struct {
		Succeeded  int32      `json:"succeeded"`
		Failed     int32      `json:"failed"`
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

// checkJob:
//
//	condition Failed                        Failed, with its reason
//	condition Complete                      Ready
//	suspended                               Progressing
//	no pods, as its Instance is suspended   Ready
//	completions given, or defaulted to 1    Ready once that many pods succeeded
//	parallelism only (a work queue)         Progressing: only the condition tells when the queue is empty
//
// The condition FailureTarget is not final: pods still end.
func checkJob(j *job) Result {
	status := j.Status
	if c, found := status.Conditions.with(string(batchv1.JobFailed), corev1.ConditionTrue); found {
		return failed("%s", c)
	}
	if status.Conditions.isTrue(string(batchv1.JobComplete)) {
		return ready()
	}
	if j.Spec.Suspend {
		return progressing("is suspended")
	}
	if j.Metadata.Annotations[v1beta1.SuspendedAnnotation] == "true" && j.Spec.Parallelism != nil && *j.Spec.Parallelism == 0 {
		return ready() // spec.suspend of its Instance: it runs when that is taken back
	}
	failures := ""
	if status.Failed > 0 {
		failures = fmt.Sprintf(", %d failed", status.Failed)
	}
	if workQueue := j.Spec.Completions == nil && j.Spec.Parallelism != nil; workQueue {
		return progressing("waits for the Job to be complete: %d succeeded%s", status.Succeeded, failures)
	}
	want := orOne(j.Spec.Completions)
	if status.Succeeded >= want {
		return ready()
	}
	return progressing("%d of %d completions%s", status.Succeeded, want, failures)
}

type pod struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Containers []struct{} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      corev1.PodPhase   `json:"phase"`
		Reason     string            `json:"reason"`
		Message    string            `json:"message"`
		Conditions conditions        `json:"conditions"`
		Init       []containerStatus `json:"initContainerStatuses"`
		Containers []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type containerStatus struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	State struct {
		Waiting struct {
			Reason string `json:"reason"`
		} `json:"waiting"`
	} `json:"state"`
}

// checkPod: Running and Ready, or Succeeded (which KUDO never took for healthy). The phase Failed is final, whatever
// the restartPolicy: with Always it comes from an eviction. Only a controller can make up for it, and the Instance
// that controls the pods of templates does not.
func checkPod(p *pod) Result {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return ready()
	case corev1.PodFailed:
		reason := explain(p.Status.Reason, p.Status.Message, "a container ended with an error")
		if p.isReplaced() {
			return progressing("has failed and waits to be replaced: %s", reason)
		}
		return failed("has failed: %s", reason)
	case corev1.PodRunning:
		if p.Status.Conditions.isTrue(string(corev1.PodReady)) {
			return ready()
		}
	}
	if c, found := p.Status.Conditions.with(string(corev1.PodScheduled), corev1.ConditionFalse); found &&
		c.Reason == corev1.PodReasonUnschedulable {
		return progressing("waits for a node that it fits on")
	}
	if name, found := p.pulling(); found {
		return progressing("waits for the image of container %s", name)
	}
	count := 0
	for _, c := range p.Status.Containers {
		if c.Ready {
			count++
		}
	}
	return progressing("%d of %d containers ready", count, len(p.Spec.Containers))
}

// pulling returns the first container whose image cannot be had. Both reasons count: the kubelet goes to and fro
// between them.
func (p *pod) pulling() (string, bool) {
	for _, list := range [][]containerStatus{p.Status.Init, p.Status.Containers} {
		for _, c := range list {
			switch c.State.Waiting.Reason {
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
				return c.Name, true
			}
		}
	}
	return "", false
}

// isReplaced reports whether a controller other than an Instance has the pod.
func (p *pod) isReplaced() bool {
	for _, o := range p.Metadata.OwnerReferences {
		if !o.Controller {
			continue
		}
		version, err := schema.ParseGroupVersion(o.APIVersion)
		return err != nil || version.Group != v1beta1.GroupVersion.Group || o.Kind != "Instance"
	}
	return false
}
