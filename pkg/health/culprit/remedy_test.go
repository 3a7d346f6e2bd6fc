package culprit

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestRemedy (P22): each cause has its own remedy, and what is not known has none.
func TestRemedy(t *testing.T) {
	const noNode = "let a node take the pod: "
	exit := func(code int32, c v1beta1.Culprit) v1beta1.Culprit {
		c.Container, c.ExitCode = "app", ptr.To(code)
		return c
	}
	for _, tc := range []struct {
		reason string
		c      v1beta1.Culprit
		image  string
		want   string
	}{
		{"an image that cannot be had", v1beta1.Culprit{Container: "app", Reason: "ImagePullBackOff"}, "nginx:none", "correct image nginx:none, or let the nodes pull it"},
		{"the same in the words of the first attempt", v1beta1.Culprit{Container: "app", Reason: "ErrImagePull"}, "nginx:none", "correct image nginx:none, or let the nodes pull it"},
		{"an image that is not known", v1beta1.Culprit{Container: "app", Reason: "ImagePullBackOff"}, "", "correct the image of container app, or"},
		{"nor the container", v1beta1.Culprit{Reason: "ImagePullBackOff"}, "", "correct the image of the container, or"},
		{"an image that reads like a placeholder", v1beta1.Culprit{Container: "app", Reason: "InvalidImageName"}, "{container}", "correct the name of image {container}"},
		{"a container that ends", exit(7, v1beta1.Culprit{}), "", "correct what made container app end with exit code 7"},
		{"over and over", exit(7, v1beta1.Culprit{Reason: "CrashLoopBackOff"}), "", "correct what made container app end with exit code 7"},
		{"without an end that is known", v1beta1.Culprit{Container: "app", Reason: "CrashLoopBackOff"}, "", "correct what makes container app end"},
		{"a program that is not there", exit(127, v1beta1.Culprit{Reason: "CrashLoopBackOff"}), "", "correct the command or the image of container app"},
		{"a kill", exit(137, v1beta1.Culprit{}), "", "find out who has killed container app"},
		{"a kill by a probe", exit(137, v1beta1.Culprit{Reason: "CrashLoopBackOff", Message: "Liveness probe failed: HTTP 503"}), "", "let container app pass its probe"},
		{"a kill for memory", exit(137, v1beta1.Culprit{Reason: "OOMKilled"}), "", "raise the memory limit of container app"},
		{"a command that cannot be started", exit(128, v1beta1.Culprit{Reason: "StartError", Message: "exec: not found"}), "", "correct the command or the mounts of container app"},
		{"a probe", v1beta1.Culprit{Container: "app", Reason: "Unhealthy", Message: "Readiness probe failed"}, "", "let container app pass its probe"},
		{"a Secret that is missing", v1beta1.Culprit{Container: "app", Reason: "CreateContainerConfigError", Message: `secret "x" not found`}, "", "create the Secret, ConfigMap or key"},
		{"root", v1beta1.Culprit{Container: "app", Reason: "CreateContainerConfigError", Message: "container has runAsNonRoot and image will run as root"}, "",
			"run container app as another user than root"},
		{"a volume that cannot be mounted", v1beta1.Culprit{Reason: "FailedMount", Message: `configmap "x" not found`}, "", "create the Secret, ConfigMap or claim"},
		{"no node is large enough", v1beta1.Culprit{Reason: "Unschedulable", Message: "0/3 nodes are available: Insufficient memory"}, "", noNode + "request less or add nodes"},
		{"nodes differ", v1beta1.Culprit{Reason: "Unschedulable", Message: "0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 node(s) didn't match Pod's node affinity/selector"}, "",
			noNode + "tolerate the taint; match the labels of a node (nodeSelector, affinity)"},
		{"no volume", v1beta1.Culprit{Reason: "Unschedulable", Message: "pod has unbound immediate PersistentVolumeClaims"}, "", noNode + storage},
		{"a volume elsewhere", v1beta1.Culprit{Reason: "Unschedulable", Message: "1 node(s) had volume node affinity conflict"}, "", noNode + "use a node that its volume is at"},
		{"the event of another scheduler", v1beta1.Culprit{Reason: "FailedScheduling", Message: "no"}, "", noNode + "resources, taints, selectors and volumes decide"},
		{"a quota", v1beta1.Culprit{Reason: "FailedCreate", Message: "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2"}, "", "raise the quota"},
		{"Pod Security", v1beta1.Culprit{Reason: "FailedCreate", Message: `violates PodSecurity "restricted:latest": allowPrivilegeEscalation`}, "", "meet the Pod Security level"},
		{"an account of pods that is missing", v1beta1.Culprit{Reason: "FailedCreate", Message: `error looking up service account lab/x: serviceaccount "x" not found`}, "", "create the ServiceAccount"},
		{"a claim", v1beta1.Culprit{Kind: "PersistentVolumeClaim", Reason: "ProvisioningFailed", Message: `storageclass "x" not found`}, "", storage},
		{"a claim that only waits", v1beta1.Culprit{Kind: "PersistentVolumeClaim"}, "", storage},
		{"a Job whose pods were deleted", v1beta1.Culprit{Kind: "Job", Reason: "BackoffLimitExceeded"}, "", "correct what the Job runs"},
		{"a Job that takes too long", v1beta1.Culprit{Kind: "Job", Reason: "DeadlineExceeded"}, "", "let the Job end sooner"},
		{"a Deployment that takes too long", v1beta1.Culprit{Kind: "Deployment", Reason: "ProgressDeadlineExceeded"}, "", "correct what keeps the pods from being ready"},
		{"a claim that cannot grow", v1beta1.Culprit{Reason: "Forbidden", Message: `persistentvolumeclaims "x" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`}, "", "leave the size of the claim as it is"},
		{"a right", v1beta1.Culprit{Reason: "Forbidden", Message: `services "x" is forbidden: User "ann" cannot create`}, "", "give the account of the run the right"},
		{"the right to use the account", v1beta1.Culprit{Reason: "Forbidden", Message: "cannot impersonate resource"}, "", "let the manager use the account"},
		{"a webhook", v1beta1.Culprit{Reason: "Forbidden", Message: `admission webhook "x" denied the request: no`}, "", "meet what the admission policy asks for"},
		{"fields", v1beta1.Culprit{Reason: "Invalid", Message: "spec.replicas: Invalid value"}, "", "correct the fields that the message names"},
		{"an object of another owner", v1beta1.Culprit{Message: "Service lab/x exists already and belongs to Installation y"}, "", "delete or rename one of the two objects"},
		{"one that may be adopted", v1beta1.Culprit{Message: "X exists already and belongs to y: it was not changed. Delete or rename one of the two, or adopt it by the annotation kudo.dev/adopt=true"}, "",
			"delete or rename one of the two objects, or let the Instance adopt it"},
		{"fields of others", v1beta1.Culprit{Message: "other field managers manage fields that the package sets: .spec.x"}, "", "let the other field managers give up"},
		{"a pod that ends", v1beta1.Culprit{Pod: "p", Reason: "Terminating"}, "", "let the pod end"},
		{"an object that is to be deleted", v1beta1.Culprit{Message: "Service lab/x is being deleted (finalizers [a])"}, "", "let the controllers of the finalizers"},
		{"a namespace that is", v1beta1.Culprit{Kind: "Namespace", Reason: "SomeFinalizersRemain"}, "", "remove the objects and finalizers"},
		{"what the account may not read", v1beta1.Culprit{Reason: v1beta1.CulpritUnread}, "", "let the account of the run list pods and events"},
		{"a reason of another kind", v1beta1.Culprit{Kind: "Widget", Reason: "Q", Message: "m"}, "", ""},
		{"nothing", v1beta1.Culprit{}, "", ""},
	} {
		f := Finding{Culprit: tc.c, Image: tc.image}
		got := f.Remedy()
		if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestImage: the image is that of the container that is named, as its pod asks for it.
func TestImage(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: lab}, spec: {initContainers: [{name: init, image: 'busybox:1'}], containers: [{name: app, image: 'nginx:none'}]},
		status: {phase: Pending, STATUS: [{name: NAME, state: {waiting: {reason: ImagePullBackOff, message: m}}}]}}`
	for _, tc := range []struct{ status, name, want string }{
		{"containerStatuses", "app", "nginx:none"}, {"initContainerStatuses", "init", "busybox:1"}, {"containerStatuses", "gone", ""},
	} {
		f, err := Search(t.Context(), &fake{t: t}, object(t, strings.NewReplacer("STATUS", tc.status, "NAME", tc.name).Replace(pod)), Options{})
		if err != nil || f.Image != tc.want || f.Container != tc.name {
			t.Errorf("container %s: %+v, %v", tc.name, f, err)
		}
	}
}
