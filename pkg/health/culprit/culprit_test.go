package culprit

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// objects of the tests, with the least that the API server would have.
const (
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: hello, namespace: lab, uid: d}, spec: {selector: {matchLabels: {app: hello}}}, status: STATUS}`
	stateful   = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: pg, namespace: lab, uid: s}, spec: {selector: {matchLabels: {app: pg}}}, status: STATUS}`
	daemons    = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: lab, uid: ds}, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [agent]}]}}}`
	job        = `{apiVersion: batch/v1, kind: Job, metadata: {name: report, namespace: lab, uid: j}, status: STATUS}`
	claim      = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: lab, uid: c}, status: {phase: Pending}}`
)

// ofHello begins a pod of the Deployment.
const ofHello = `{name: hello-85-tc58s, namespace: lab, uid: p, creationTimestamp: '2026-01-01T00:00:00Z', labels: {app: hello, pod-template-hash: '85'}, ` +
	`ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: hello-85, uid: r, controller: true}]}`

// owned begins a pod with a name that another object controls.
func owned(name, uid string) string {
	return `{name: ` + name + `, namespace: lab, uid: ` + name + `, creationTimestamp: '2026-01-01T00:00:00Z', ` +
		`ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: ` + uid + `, controller: true}]}`
}

func parse[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: parse[map[string]any](t, text)}
}

// fake answers lists, and counts them.
type fake struct {
	t            *testing.T
	pods, events string
	denied       string
	asked        []string
}

var errDenied = errors.New("denied")

func (f *fake) Pods(_ context.Context, namespace, labels string) ([]corev1.Pod, error) {
	f.asked = append(f.asked, "pods "+namespace+" "+labels)
	if f.denied == "pods" {
		return nil, errDenied
	}
	return parse[[]corev1.Pod](f.t, "["+f.pods+"]"), nil
}

func (f *fake) Events(_ context.Context, namespace, fields string) ([]corev1.Event, error) {
	f.asked = append(f.asked, "events "+namespace+" "+fields)
	if f.denied == "events" {
		return nil, errDenied
	}
	return parse[[]corev1.Event](f.t, "["+f.events+"]"), nil
}

func event(reason, at, message string) string {
	return `{metadata: {name: ` + strings.ToLower(reason) + `}, type: Warning, reason: ` + reason + `, lastTimestamp: '` + at + `', message: '` + message + `'}`
}

// TestSearch (P21) goes through what keeps objects from being ready, as a cluster reports it.
func TestSearch(t *testing.T) {
	const (
		running  = `conditions: [{type: PodScheduled, status: 'True'}], phase: Running`
		starting = `conditions: [{type: PodScheduled, status: 'True'}], phase: Pending`
	)
	pod := func(status string) string { return `{metadata: ` + ofHello + `, status: {` + status + `}}` }
	for name, tc := range map[string]struct {
		reason, object, status, pods, events string
		want                                 string
		// lists is how many lists are made.
		lists int
	}{
		"ImagePull": {reason: "while the kubelet pulls", object: deployment, lists: 1,
			pods: pod(starting + `, containerStatuses: [{name: page, state: {waiting: {reason: ErrImagePull, message: 'rpc error: not found'}}}]`),
			want: "container page of pod hello-85-tc58s: ImagePullBackOff: rpc error: not found"},
		"ImageBackOff": {reason: "while it waits, the words are the same", object: deployment, lists: 1,
			pods: pod(starting + `, containerStatuses: [{name: page, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x:1": ErrImagePull: rpc error: not found'}}}]`),
			want: "container page of pod hello-85-tc58s: ImagePullBackOff: rpc error: not found"},
		"OldKubelet": {reason: "a kubelet that does not say why: the event does", object: deployment, lists: 2,
			pods:   pod(starting + `, containerStatuses: [{name: page, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x:1"'}}}]`),
			events: event("Failed", "2026-01-01T00:00:10Z", "Failed to pull image") + "," + `{metadata: {name: z}, type: Warning, reason: Failed, lastTimestamp: '2026-01-01T00:00:20Z', message: 'Error: ErrImagePull'}`,
			want:   "container page of pod hello-85-tc58s: ImagePullBackOff: Failed to pull image"},
		"NoSecret": {reason: "a container that cannot be created", object: deployment, lists: 1,
			pods: pod(starting + `, containerStatuses: [{name: page, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "x" not found'}}}]`),
			want: `container page of pod hello-85-tc58s: CreateContainerConfigError: secret "x" not found`},
		"CrashLoop": {reason: "a container that waits for its next start; its own message may be of its log", object: deployment, lists: 2,
			pods: pod(running + `, containerStatuses: [{name: page, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff, message: 'back-off 40s restarting'}},
				lastState: {terminated: {exitCode: 7, reason: Error, message: 'hunter2', startedAt: '2026-01-01T00:00:01Z', finishedAt: '2026-01-01T00:00:03Z'}}}]`),
			events: event("BackOff", "2026-01-01T00:00:10Z", "Back-off restarting failed container"),
			want:   "container page of pod hello-85-tc58s ended with exit code 7 (CrashLoopBackOff)"},
		"CrashRunning": {reason: "the same between two ends", object: deployment, lists: 2,
			pods: pod(running + `, containerStatuses: [{name: page, ready: false, restartCount: 3, state: {running: {}}, lastState: {terminated: {exitCode: 7, reason: Error}}}]`),
			want: "container page of pod hello-85-tc58s ended with exit code 7 (CrashLoopBackOff)"},
		"Liveness": {reason: "a probe that ends a container", object: deployment, lists: 2,
			pods:   pod(running + `, containerStatuses: [{name: page, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: Error}}}]`),
			events: event("Unhealthy", "2026-01-01T00:00:10Z", "Liveness probe failed: HTTP 503") + "," + event("BackOff", "2026-01-01T00:00:20Z", "Back-off"),
			want:   "container page of pod hello-85-tc58s ended with exit code 137 (CrashLoopBackOff): Liveness probe failed: HTTP 503"},
		"OOM": {reason: "no memory", object: deployment, lists: 1,
			pods: pod(running + `, containerStatuses: [{name: page, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]`),
			want: "container page of pod hello-85-tc58s ended with exit code 137 (OOMKilled)"},
		"StartError": {reason: "a command that does not exist, in the words of the runtime", object: deployment, lists: 2,
			pods: pod(running + `, containerStatuses: [{name: page, state: {terminated: {exitCode: 128, reason: StartError, message: 'exec: not found'}}}]`),
			want: "container page of pod hello-85-tc58s ended with exit code 128 (StartError): exec: not found"},
		"Readiness": {reason: "a probe that fails", object: deployment, lists: 2,
			pods:   pod(running + `, containerStatuses: [{name: page, ready: false, state: {running: {startedAt: '2026-01-01T00:00:00Z'}}}]`),
			events: event("Unhealthy", "2026-01-01T00:00:10Z", "Readiness probe failed"),
			want:   "container page of pod hello-85-tc58s: Unhealthy: Readiness probe failed"},
		"Init": {reason: "the init container that has failed, and not those that wait for it", object: deployment, lists: 2,
			pods: pod(starting + `, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1, reason: Error}}}], containerStatuses: [{name: page, state: {waiting: {reason: PodInitializing}}}]`),
			want: "container i of pod hello-85-tc58s ended with exit code 1"},
		"InitRuns": {reason: "an init container that runs is not ready, and need not be", object: deployment, lists: 2,
			pods: pod(starting + `, initContainerStatuses: [{name: i, ready: false, state: {running: {}}}], containerStatuses: [{name: page, state: {waiting: {reason: PodInitializing}}}]`),
			want: "container page of pod hello-85-tc58s: PodInitializing"},
		"Mount": {reason: "a volume that cannot be mounted", object: deployment, lists: 2,
			pods:   pod(starting + `, containerStatuses: [{name: page, state: {waiting: {reason: ContainerCreating}}}]`),
			events: event("FailedMount", "2026-01-01T00:00:10Z", `configmap "x" not found`),
			want:   `container page of pod hello-85-tc58s: FailedMount: configmap "x" not found`},
		"Unschedulable": {reason: "no node is large enough", object: deployment, lists: 1,
			pods: pod(`phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/3 nodes are available: Insufficient memory'}]`),
			want: "pod hello-85-tc58s: Unschedulable: 0/3 nodes are available: Insufficient memory"},
		"Claim": {reason: "a claim that gets no volume", object: stateful, lists: 2,
			pods: `{metadata: ` + owned("pg-0", "s") + `, spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data-pg-0}}]}, status: {phase: Pending,
				conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 'pod has unbound immediate PersistentVolumeClaims'}]}}`,
			events: event("ProvisioningFailed", "2026-01-01T00:00:10Z", `storageclass "fast" not found`),
			want: `pod pg-0: Unschedulable: pod has unbound immediate PersistentVolumeClaims; PersistentVolumeClaim data-pg-0: ProvisioningFailed: ` +
				`storageclass "fast" not found`},
		"Evicted": {reason: "a pod that the node has given up", object: daemons, lists: 1,
			pods: `{metadata: ` + owned("agent-x", "ds") + `, status: {phase: Failed, reason: Evicted, message: 'The node was low on resource: memory'}}`,
			want: "pod agent-x: Evicted: The node was low on resource: memory"},
		"HookOutput": {reason: "what a hook has written is not for those who may not read the log", object: deployment, lists: 1,
			pods: pod(`phase: Pending, containerStatuses: [{name: page, state: {waiting: {reason: PostStartHookError, message: "Exec lifecycle hook ([cat /token]) failed, message: 's3cret'"}}}]`),
			want: "container page of pod hello-85-tc58s: PostStartHookError"},
		"ProbeOutput": {reason: "nor is what the command of a probe has written", object: deployment, lists: 2,
			pods: `{metadata: ` + ofHello + `, spec: {containers: [{name: page, readinessProbe: {exec: {command: [check]}}}]}, status: {` + running +
				`, containerStatuses: [{name: page, state: {running: {}}}]}}`,
			events: event("Unhealthy", "2026-01-01T00:00:10Z", "Readiness probe failed: password: s3cret"),
			want:   "container page of pod hello-85-tc58s: Unhealthy: Readiness probe failed"},
		"ProbeByHTTP": {reason: "the words of the kubelet are", object: deployment, lists: 2,
			pods: `{metadata: ` + ofHello + `, spec: {containers: [{name: page, readinessProbe: {httpGet: {port: 80}}}]}, status: {` + running +
				`, containerStatuses: [{name: page, state: {running: {}}}]}}`,
			events: event("Unhealthy", "2026-01-01T00:00:10Z", "Readiness probe failed: HTTP probe failed with statuscode: 503"),
			want:   "container page of pod hello-85-tc58s: Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503"},
		"Quota": {reason: "the name of the pod differs with each attempt, and is left out; some pods are fine", object: deployment, lists: 1,
			status: `{conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'pods "hello-85-abcde" is forbidden: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2'}]}`,
			pods:   pod(running + `, containerStatuses: [{name: page, ready: true, state: {running: {}}}]`),
			want:   "FailedCreate: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2"},
		"QuotaOfSet": {reason: "a StatefulSet has no condition for this: its event counts", object: stateful, lists: 2,
			events: event("FailedCreate", "2026-01-01T00:00:10Z", `create Pod pg-0 in StatefulSet pg failed error: pods "pg-0" is forbidden: exceeded quota: two`),
			want:   "FailedCreate: exceeded quota: two"},
		"Denied": {reason: "an admission webhook refuses the pods", object: stateful, lists: 2,
			events: event("FailedCreate", "2026-01-01T00:00:10Z", `create Pod pg-0 in StatefulSet pg failed error: admission webhook "no.example.com" denied the request: latest`),
			want:   `FailedCreate: admission webhook "no.example.com" denied the request: latest`},
		"OldEvent": {reason: "an event from before the step is of another cause", object: stateful, lists: 2,
			events: event("FailedCreate", "2025-12-31T23:59:00Z", `exceeded quota`)},
		"Job": {reason: "a Job whose pod has failed", object: job, lists: 2,
			status: `{conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: 'Job has reached the specified backoff limit'}]}`,
			pods:   `{metadata: ` + owned("report-g5mk5", "j") + `, status: {phase: Failed, containerStatuses: [{name: report, state: {terminated: {exitCode: 7, reason: Error}}}]}}`,
			want:   "container report of pod report-g5mk5 ended with exit code 7"},
		"JobWithoutPods": {reason: "a Job whose pods were deleted says no more than its condition", object: job, lists: 2,
			status: `{conditions: [{type: Failed, status: 'True', reason: DeadlineExceeded, message: 'Job was active longer than specified deadline'}]}`,
			events: event("BackoffLimitExceeded", "2026-01-01T00:00:10Z", "Job has reached the limit"),
			want:   "DeadlineExceeded: Job was active longer than specified deadline"},
		"LonelyClaim": {reason: "an object without pods", object: claim, lists: 1,
			events: event("ProvisioningFailed", "2026-01-01T00:00:10Z", "no such class"), want: "ProvisioningFailed: no such class"},
		"Terminating": {reason: "pods that are to end", object: deployment, lists: 2,
			pods: `{metadata: {name: hello-84-x, namespace: lab, uid: q, deletionTimestamp: '2026-01-01T00:00:00Z', labels: {pod-template-hash: '84'}, ownerReferences: [{kind: ReplicaSet, name: hello-84, uid: r, controller: true}]}}`,
			want: "pod hello-84-x: Terminating"},
		"Foreign": {reason: "pods that the labels choose, and that belong to others", object: deployment, lists: 2,
			pods: `{metadata: {name: other, namespace: lab, labels: {app: hello}}, status: {phase: Failed}}, {metadata: ` + owned("hello-85-x", "z") + `, status: {phase: Failed}}`},
		"Fine": {reason: "nothing is wrong", object: deployment, lists: 2, pods: pod(running + `, containerStatuses: [{name: page, ready: true, state: {running: {}}}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			status := tc.status
			if status == "" {
				status = "{}"
			}
			r := &fake{t: t, pods: tc.pods, events: tc.events}
			f, err := Search(t.Context(), r, object(t, strings.ReplaceAll(tc.object, "STATUS", status)), Options{Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
			if err != nil {
				t.Fatal(err)
			}
			if got := plans.DescribeCulprit(f.Culprit); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
			if len(r.asked) != tc.lists {
				t.Errorf("%s: lists %q, want %d", tc.reason, r.asked, tc.lists)
			}
			if owner := f.Owner; f.Kind == "Deployment" && f.Pod == "hello-85-tc58s" && owner != "ReplicaSet hello-85" || f.Kind == "Job" && owner != "X x" && f.Pod != "" {
				t.Errorf("the owner is %q", owner)
			}
			if f.Kind == "" || f.Namespace != "lab" || f.Name == "" {
				t.Errorf("the object is %s %s/%s", f.Kind, f.Namespace, f.Name)
			}
		})
	}
}

// TestSearchDenied: what cannot be listed comes as an error, with what is known without it.
func TestSearchDenied(t *testing.T) {
	r := &fake{t: t, denied: "pods"}
	f, err := Search(t.Context(), r, object(t, strings.ReplaceAll(deployment, "STATUS", "{}")), Options{})
	if !errors.Is(err, errDenied) || f.Name != "hello" || f.PodsRead {
		t.Errorf("without pods: %+v, %v", f, err)
	}
	r = &fake{t: t, denied: "events", pods: `{metadata: ` + ofHello + `, status: {phase: Running, containerStatuses: [{name: page, state: {running: {}}}]}}`}
	f, err = Search(t.Context(), r, object(t, strings.ReplaceAll(deployment, "STATUS", "{}")), Options{})
	if !errors.Is(err, errDenied) || f.Container != "page" || !f.PodsRead {
		t.Errorf("without events: %+v, %v", f, err)
	}
}

// TestSelector: the labels of the pods of each kind, and none for what is malformed.
func TestSelector(t *testing.T) {
	for _, tc := range []struct{ reason, object, want string }{
		{"a Deployment", deployment, "app=hello"},
		{"expressions", daemons, "app in (agent)"},
		{"a Job, by its uid", job, "batch.kubernetes.io/controller-uid=j"},
		{"a ReplicationController", "{apiVersion: v1, kind: ReplicationController, spec: {selector: {app: x}}}", "app=x"},
		{"a kind without pods", claim, ""},
		{"a kind of the same name in another group", "{apiVersion: example.com/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}}}", ""},
		{"an empty selector would choose all pods", "{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {}}}}", ""},
		{"a selector that is none", "{apiVersion: apps/v1, kind: Deployment, spec: {selector: x}}", ""},
		{"an operator that is none", "{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchExpressions: [{key: a, operator: Is}]}}}", ""},
		{"a Job without a uid", "{apiVersion: batch/v1, kind: Job}", ""},
	} {
		if got, found := Selector(object(t, strings.ReplaceAll(tc.object, "STATUS", "{}"))); found != (tc.want != "") || found && got != tc.want {
			t.Errorf("%s: %q, %t", tc.reason, got, found)
		}
	}
}

// TestFindStays: of equal pods, the one that was named before stays, else the last one counts.
func TestFindStays(t *testing.T) {
	failed := func(name, at string) corev1.Pod {
		p := parse[corev1.Pod](t, `{metadata: `+owned(name, "j")+`, status: {phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 1}}}]}}`)
		p.CreationTimestamp = metav1.NewTime(parse[metav1.Time](t, "'"+at+"'").Time)
		return p
	}
	pods := []corev1.Pod{failed("b", "2026-01-01T00:00:00Z"), failed("a", "2026-01-02T00:00:00Z"), failed("c", "2026-01-02T00:00:00Z")}
	for _, tc := range []struct{ known, want string }{{"", "a"}, {"b", "b"}, {"z", "a"}} {
		if got := Find(object(t, strings.ReplaceAll(job, "STATUS", "{}")), pods, tc.known); got.Pod != tc.want {
			t.Errorf("after %q: pod %s, want %s", tc.known, got.Pod, tc.want)
		}
	}
}

// TestChild: the culprit of an Instance that a plan has made is that of its own plan.
func TestChild(t *testing.T) {
	child := object(t, `{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: db, namespace: lab}, status: {planStatus: {deploy: {name: deploy, status: IN_PROGRESS,
		phases: [{name: p, steps: [{name: s, tasks: [{name: t, status: IN_PROGRESS, culprit: {kind: StatefulSet, name: pg, pod: pg-0, reason: Unschedulable}}]}]}]}}}}`)
	f, err := Search(t.Context(), &fake{t: t}, child, Options{})
	if err != nil || f.Kind != "Instance" || f.Name != "db" || f.Pod != "pg-0" || f.Reason != "Unschedulable" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestKeep: the time stays as long as the cause does.
func TestKeep(t *testing.T) {
	old, now := &metav1.Time{Time: time.Unix(1, 0)}, &metav1.Time{Time: time.Unix(9, 0)}
	before := v1beta1.Culprit{Kind: "Job", Name: "j", Pod: "p", Container: "c", Reason: "Error", ExitCode: ptr.To[int32](7), Since: old}
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.Culprit)
		want   *metav1.Time
	}{
		{"the same", func(*v1beta1.Culprit) {}, old},
		{"another message", func(c *v1beta1.Culprit) { c.Message = "m" }, old},
		{"another pod", func(c *v1beta1.Culprit) { c.Pod = "q" }, now},
		{"another exit code", func(c *v1beta1.Culprit) { c.ExitCode = ptr.To[int32](8) }, now},
		{"no exit code", func(c *v1beta1.Culprit) { c.ExitCode = nil }, now},
	} {
		c := before
		c.Since = now
		tc.change(&c)
		if got := Keep(c, &before); got.Since != tc.want {
			t.Errorf("%s: %v", tc.reason, got.Since)
		}
	}
	if got := Keep(before, nil); got.Since != old {
		t.Errorf("without one before: %v", got.Since)
	}
}

// hide is a mask for the tests.
func hide(s string) string { return strings.ReplaceAll(s, "hunter2", "****") }

// checkBounded checks what holds of each culprit that leaves the package.
func checkBounded(t *testing.T, c v1beta1.Culprit) {
	t.Helper()
	encoded, err := json.Marshal(c)
	if err != nil || len(encoded) > v1beta1.MaxCulprit {
		t.Errorf("%d bytes, %v", len(encoded), err)
	}
	for _, text := range []string{c.APIVersion, c.Kind, c.Namespace, c.Name, c.Owner, c.Pod, c.Container, c.Reason, c.Message} {
		if strings.ContainsAny(text, "\n\r\x00\x1b\u202e") || strings.Contains(text, "hunter2") {
			t.Errorf("unsafe text %q", text)
		}
	}
}

// TestBounded (P21): a culprit is small, on one line, and without sensitive values, whatever a status holds.
func TestBounded(t *testing.T) {
	long := strings.Repeat("<\"é", 20_000)
	for _, tc := range []struct {
		reason string
		c      v1beta1.Culprit
		want   string
	}{
		{"a value is masked", v1beta1.Culprit{Message: "no user hunter2"}, "no user ****"},
		{"a value that is put together by what is removed", v1beta1.Culprit{Message: "hun\x00ter2"}, "****"},
		{"a value that a cut would have left in part", v1beta1.Culprit{Message: strings.Repeat("hunter2", 2000) + " the end"}, "****"},
		{"lines and terminal sequences", v1beta1.Culprit{Message: "a\nb\x1b[31mc\u202e"}, "a b[31mc"},
		{"all is long", v1beta1.Culprit{APIVersion: long, Kind: long, Namespace: long, Name: long, Owner: long, Pod: long, Container: long, Reason: long, Message: long}, ""},
		{"names are as long as they can be: the message gives way", v1beta1.Culprit{Kind: "Deployment", Name: strings.Repeat("n", 253), Pod: strings.Repeat("p", 253),
			Message: strings.Repeat("m", 511)}, strings.Repeat("m", 300)},
		{"bytes that are no text", v1beta1.Culprit{Pod: "p\xff", Message: "x\xffy"}, "xy"},
	} {
		got := Bounded(tc.c, hide)
		checkBounded(t, got)
		if !strings.Contains(got.Message, tc.want) {
			t.Errorf("%s: %q", tc.reason, got.Message)
		}
		if tc.c.Name != "" && len(tc.c.Name) <= 253 && got.Name != tc.c.Name {
			t.Errorf("%s: the name is %q", tc.reason, got.Name)
		}
	}
}

// TestLongValue: a value that is longer than a message is found before anything is cut, however often it stands there.
func TestLongValue(t *testing.T) {
	value := strings.Repeat("0123456789abcdef", 600)
	mask := func(s string) string { return strings.ReplaceAll(s, value, "****") }
	got := Bounded(v1beta1.Culprit{Message: `a "` + value + `" is too long, b "` + value + `" is no label`}, mask)
	if want := `a "****" is too long, b "****" is no label`; got.Message != want {
		t.Errorf("got %q", got.Message)
	}
}

// FuzzSearch: statuses are written by others.
func FuzzSearch(f *testing.F) {
	f.Add([]byte(`{"conditions":[{"type":"ReplicaFailure","status":"True","message":"pods \"x\" is forbidden: hunter2"}]}`),
		[]byte(`[{"status":{"phase":"Failed","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":7,"reason":"hunter2"}}}]}}]`),
		[]byte(`[{"type":"Warning","reason":"Unhealthy","message":"hunter2\u0000"}]`))
	f.Add([]byte(`{}`), []byte(`[{"status":{"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}]`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, status, pods, events []byte) {
		var fields map[string]any
		if json.Unmarshal(status, &fields) != nil {
			return
		}
		obj := object(t, strings.ReplaceAll(stateful, "STATUS", "{}"))
		obj.Object["status"] = fields
		var list []corev1.Pod
		var of []corev1.Event
		if json.Unmarshal(pods, &list) != nil || json.Unmarshal(events, &of) != nil {
			return
		}
		for i := range list {
			list[i].OwnerReferences = []metav1.OwnerReference{{UID: "s", Controller: ptr.To(true)}}
		}
		found, err := Search(t.Context(), &given{list, of}, obj, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkBounded(t, Bounded(found.Culprit, hide))
	})
}

// given answers with what it has.
type given struct {
	pods   []corev1.Pod
	events []corev1.Event
}

func (g *given) Pods(context.Context, string, string) ([]corev1.Pod, error)     { return g.pods, nil }
func (g *given) Events(context.Context, string, string) ([]corev1.Event, error) { return g.events, nil }
