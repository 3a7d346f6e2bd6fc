package native

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestRetainServiceTypes checks what changes of type, family and policy of a Service keep.
func TestRetainServiceTypes(t *testing.T) {
	retains(t, "apiVersion: v1\nkind: Service", []retention{
		{"a type that is left out stays: its node ports do, too", "spec: {ports: [{port: 80}]}", "spec: {type: NodePort, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30001}]}",
			"spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30001}]}"},
		{"a type that is left out stays: an ExternalName has no address", "spec: {externalName: a.b}", "spec: {type: ExternalName, clusterIP: 10.0.0.1}", "spec: {externalName: a.b}"},
		{"a balancer keeps node ports", "spec: {type: LoadBalancer, ports: [{port: 80}]}", "spec: {ports: [{port: 80, nodePort: 30001}]}", "spec: {type: LoadBalancer, ports: [{port: 80, nodePort: 30001}]}"},
		{"a policy that is left out stays", "spec: {type: LoadBalancer}", "spec: {externalTrafficPolicy: Local, healthCheckNodePort: 31234}", "spec: {type: LoadBalancer, healthCheckNodePort: 31234}"},
		{"a NodePort service has no health check port", "spec: {type: NodePort, externalTrafficPolicy: Local}", "spec: {healthCheckNodePort: 31234}", "spec: {type: NodePort, externalTrafficPolicy: Local}"},
		{"an address for a service that was headless is for the API server to judge", "spec: {clusterIP: 10.0.0.9}", "spec: {clusterIP: None, clusterIPs: [None]}", "spec: {clusterIP: 10.0.0.9}"},
		{"an address that is not allocated yet", "spec: {type: ClusterIP}", "spec: {clusterIPs: [10.0.0.1]}", "spec: {type: ClusterIP}"},
		{"the number of a port outweighs its name", "spec: {type: NodePort, ports: [{name: a, port: 81}, {name: b, port: 80}]}",
			"spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 30001}]}", "spec: {type: NodePort, ports: [{name: a, port: 81}, {name: b, port: 80, nodePort: 30001}]}"},
		{"ports without names and with other numbers are others", "spec: {type: NodePort, ports: [{port: 81}]}", "spec: {type: NodePort, ports: [{port: 80, nodePort: 30001}]}", "spec: {type: NodePort, ports: [{port: 81}]}"},
		{"TCP is the default", "spec: {type: NodePort, ports: [{port: 80, protocol: TCP}]}", "spec: {type: NodePort, ports: [{port: 80, nodePort: 30001}]}", "spec: {type: NodePort, ports: [{port: 80, protocol: TCP, nodePort: 30001}]}"},
		{"a protocol that changes is another port", "spec: {type: NodePort, ports: [{port: 80, protocol: UDP}]}", "spec: {type: NodePort, ports: [{port: 80, nodePort: 30001}]}", "spec: {type: NodePort, ports: [{port: 80, protocol: UDP}]}"},
	})
}

// TestRetainPodFields checks what the desired side of a Pod decides, and what admission does.
func TestRetainPodFields(t *testing.T) {
	retains(t, "apiVersion: v1\nkind: Pod", []retention{
		{"a node of the author's gives way: it cannot be changed", "spec: {nodeName: n2}", "spec: {nodeName: n1}", "spec: {nodeName: n1}"},
		{"priority and policy of admission", "spec: {}", "spec: {priority: 100, preemptionPolicy: Never}", "spec: {priority: 100, preemptionPolicy: Never}"},
		{"mounts of init containers", "spec: {initContainers: [{name: i}]}", "spec: {initContainers: [{name: i, volumeMounts: [{mountPath: /t}]}], containers: [{name: i, volumeMounts: [{mountPath: /no}]}]}",
			"spec: {initContainers: [{name: i, volumeMounts: [{mountPath: /t}]}]}"},
		{"a container that admission injected is no mount", "spec: {containers: [{name: a}]}", "spec: {containers: [{name: a}, {name: proxy, volumeMounts: [{mountPath: /p}]}]}", "spec: {containers: [{name: a}]}"},
		{"a mount of the author's at the same path", "spec: {containers: [{name: a, volumeMounts: [{mountPath: /t, name: own}]}]}", "spec: {containers: [{name: a, volumeMounts: [{mountPath: /t, name: token}]}]}",
			"spec: {containers: [{name: a, volumeMounts: [{mountPath: /t, name: own}]}]}"},
		{"tolerations that differ in seconds are two", "spec: {tolerations: [{key: a, tolerationSeconds: 5}]}", "spec: {tolerations: [{key: a, tolerationSeconds: 300}]}",
			"spec: {tolerations: [{key: a, tolerationSeconds: 5}, {key: a, tolerationSeconds: 300}]}"},
		{"a live gate that the author does not name is not added", "spec: {schedulingGates: [{name: a}]}", "spec: {schedulingGates: [{name: b}, {name: a}]}", "spec: {schedulingGates: [{name: a}]}"},
		{"gates of admission alone stay with server-side apply", "spec: {}", "spec: {schedulingGates: [{name: b}]}", "spec: {}"},
	})
}

// TestRetainTokensAndVolumes checks whose Secret, claim and volume is whose.
func TestRetainTokensAndVolumes(t *testing.T) {
	const token = "type: kubernetes.io/service-account-token"
	retains(t, "apiVersion: v1\nkind: Secret", []retention{
		{"a type that is left out is that of the live Secret", "{data: {own: eA==}}", "{" + token + ", data: {token: eA==, namespace: bnM=}}", "{data: {own: eA==, token: eA==, namespace: bnM=}}"},
		{"a Secret that was another type before", "{" + token + "}", "{type: Opaque, data: {token: eA==}}", ""},
		{"an author who wants another type", "{type: Opaque}", "{" + token + ", data: {token: eA==}}", ""},
		{"a token that is not made yet", "{" + token + ", data: {own: eA==}}", "{" + token + "}", "{" + token + ", data: {own: eA==}}"},
	})
	retains(t, "apiVersion: v1\nkind: PersistentVolume", []retention{
		{"a claim of the same name in another namespace", "spec: {claimRef: {namespace: a, name: c}}", "spec: {claimRef: {namespace: b, name: c, uid: u}}", "spec: {claimRef: {namespace: a, name: c}}"},
		{"a volume that names no claim", "spec: {}", "spec: {claimRef: {namespace: a, name: c, uid: u}}", "spec: {claimRef: {namespace: a, name: c, uid: u}}"},
		{"a volume that is not bound yet", "spec: {claimRef: {namespace: a, name: c}}", "spec: {}", "spec: {claimRef: {namespace: a, name: c}}"},
	})
	retains(t, "apiVersion: v1\nkind: PersistentVolumeClaim", []retention{
		{"a claim that is bound to another volume than it asks for", "spec: {volumeName: mine}", "spec: {volumeName: pv-1}", "spec: {volumeName: pv-1}"},
	})
	retains(t, "apiVersion: v1\nkind: ServiceAccount", []retention{
		{"an account without secrets", "automountServiceAccountToken: false", "{}", "automountServiceAccountToken: false"},
	})
}

// TestRetainBundleEdges checks which caBundle is an injector's.
func TestRetainBundleEdges(t *testing.T) {
	retains(t, "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration", []retention{
		{"a webhook that is new", "webhooks: [{name: new, clientConfig: {}}]", "webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]", "webhooks: [{name: new, clientConfig: {}}]"},
		{"a webhook without a client", "webhooks: [{name: a}]", "webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]", "webhooks: [{name: a}]"},
		{"a bundle that is not injected yet", "webhooks: [{name: a, clientConfig: {caBundle: Cg==}}]", "webhooks: [{name: a, clientConfig: {}}]", "webhooks: [{name: a, clientConfig: {caBundle: Cg==}}]"},
		{"an annotation of OpenShift", "{metadata: {annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]}",
			"webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}]",
			"{metadata: {annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}]}"},
		{"an annotation without a value asks for nothing", "{metadata: {annotations: {cert-manager.io/inject-ca-from: ''}}, webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]}",
			"webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}]",
			"{metadata: {annotations: {cert-manager.io/inject-ca-from: ''}}, webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]}"},
	})
	retains(t, "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition", []retention{
		{"the client of v1beta1", "spec: {conversion: {strategy: Webhook, webhookClientConfig: {url: u}}}", "spec: {conversion: {strategy: Webhook, webhookClientConfig: {url: u, caBundle: QUI=}}}",
			"spec: {conversion: {strategy: Webhook, webhookClientConfig: {url: u, caBundle: QUI=}}}"},
		{"a bundle of the author's", "spec: {conversion: {strategy: Webhook, webhookClientConfig: {caBundle: Q0Q=}}}", "spec: {conversion: {strategy: Webhook, webhookClientConfig: {caBundle: QUI=}}}",
			"spec: {conversion: {strategy: Webhook, webhookClientConfig: {caBundle: Q0Q=}}}"},
	})
}

// TestReflectStatusOfOthers checks what is reflected of a status, and of which kinds.
func TestReflectStatusOfOthers(t *testing.T) {
	for _, row := range []struct{ reason, object, want string }{
		{"fields without a rule alone are no status", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {collisionCount: 4}}", "null"},
		{"null is no value", "{apiVersion: apps/v1, kind: Deployment, status: {replicas: null, readyReplicas: 0}}", `{"readyReplicas":0}`},
		{"an object without a generation", "{apiVersion: apps/v1, kind: StatefulSet, status: {currentRevision: a-1}}", `{"currentRevision":"a-1"}`},
		{"a Job has no observed generation", "{apiVersion: batch/v1, kind: Job, metadata: {generation: 2}, status: {succeeded: 1, observedGeneration: 2}}", `{"succeeded":1}`},
		{"a Pod", "{apiVersion: v1, kind: Pod, status: {phase: Running, podIP: 10.0.0.1, qosClass: Burstable}}", `{"phase":"Running","podIP":"10.0.0.1"}`},
	} {
		got, known, err := layer().Explore(t.Context(), explore.Request{Operation: explore.Status, Object: parse(t, row.object)})
		if err != nil || !known {
			t.Fatalf("%s: known %v, error %v", row.reason, known, err)
		}
		if diff := cmp.Diff(row.want, compact(t, exploretest.Text(t, got.Status))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
	}
	for _, operation := range []explore.Operation{explore.Status, explore.StatusAggregating, explore.Dependencies, explore.Replica, explore.ReplicaRevising} {
		if _, known, err := layer().Explore(t.Context(), explore.Request{Operation: operation, Object: parse(t, "{apiVersion: v1, kind: ConfigMap, status: {replicas: 1}}")}); known || err != nil {
			t.Errorf("%s of a kind without a rule: known %v, error %v", operation, known, err)
		}
	}
}

// TestAggregateErrorsNameTheCluster checks that an error about a copy says which, and what is expected.
func TestAggregateErrorsNameTheCluster(t *testing.T) {
	for _, row := range []struct{ reason, kind, status, want string }{
		{"a number that is half", "apps/v1, kind: Deployment", `{"replicas":1.5}`, `replicas of the copy in cluster "east" is 1.5: want a whole number`},
		{"no JSON", "apps/v1, kind: Deployment", `{`, `the status of the copy in cluster "east" is malformed: `},
		{"a list that is text", "v1, kind: Service", `{"loadBalancer":{"ingress":"a"}}`, `loadBalancer.ingress of the copy in cluster "east" is a string, not a list`},
		{"conditions that are text", "apps/v1, kind: Deployment", `{"conditions":"a"}`, `conditions of the copy in cluster "east": [conditions] is a string, not a list`},
	} {
		r := explore.Request{Operation: explore.StatusAggregating, Object: parse(t, "{apiVersion: "+row.kind+"}"), Items: exploretest.Items([]string{"west", "east"}, "{}", row.status)}
		_, known, err := layer().Explore(t.Context(), r)
		if known || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: known %v, got %v, want %q", row.reason, known, err, row.want)
		}
	}
}

// TestAggregateTimesAndPhases checks which copy's time and phase is taken.
func TestAggregateTimesAndPhases(t *testing.T) {
	for _, row := range []struct {
		reason, object string
		items          []string
		want           string
	}{
		{"the earliest start, in any time zone", "{apiVersion: batch/v1, kind: Job}", []string{`{"startTime":"2026-01-01T10:00:00Z"}`, `{"startTime":"2026-01-01T11:30:00+02:00"}`}, `{"startTime":"2026-01-01T11:30:00+02:00"}`},
		{"a time that is none is left out", "{apiVersion: batch/v1, kind: Job}", []string{`{"startTime":"soon"}`, `{"startTime":5}`}, `null`},
		{"a time of before does not stay", "{apiVersion: batch/v1, kind: Job, status: {startTime: '2026-01-01T10:00:00Z'}}", []string{`{}`}, `{}`},
		{"a copy of which nothing is known has not completed", "{apiVersion: batch/v1, kind: Job}", []string{`{"completionTime":"2026-01-01T10:00:00Z"}`, ""}, `null`},
		{"the latest schedule of some copies is known", "{apiVersion: batch/v1, kind: CronJob}", []string{`{"lastScheduleTime":"2026-01-01T10:00:00Z"}`, ""}, `{"lastScheduleTime":"2026-01-01T10:00:00Z"}`},
		{"Failed is worse than Pending", "{apiVersion: v1, kind: Pod}", []string{`{"phase":"Pending"}`, `{"phase":"Failed"}`}, `{"phase":"Failed"}`},
		{"a Pod that runs has not succeeded", "{apiVersion: v1, kind: Pod}", []string{`{"phase":"Succeeded"}`, `{"phase":"Running"}`}, `{"phase":"Running"}`},
		{"a phase that is not known is left out", "{apiVersion: v1, kind: Pod, status: {phase: Running}}", []string{`{"phase":"Resting"}`}, `{}`},
		{"conditions without a type are left out", "{apiVersion: v1, kind: Pod}", []string{`{"conditions":[{"status":"True"}]}`}, `null`},
		{"a copy without conditions takes those of before away", "{apiVersion: v1, kind: Pod, status: {conditions: [{type: Ready, status: 'True'}]}}", []string{`{}`}, `{}`},
		{"types are sorted", "{apiVersion: v1, kind: Pod}", []string{`{"conditions":[{"type":"B","status":"True"},{"type":"A","status":"False"}]}`}, `{"conditions":[{"status":"False","type":"A"},{"status":"True","type":"B"}]}`},
		{"a failure that no copy has", "{apiVersion: batch/v1, kind: Job}", []string{`{"conditions":[{"type":"Failed","status":"False","message":"x"}]}`, `{}`}, `{"conditions":[{"message":"x","status":"False","type":"Failed"}]}`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			r := explore.Request{Operation: explore.StatusAggregating, Object: parse(t, row.object), Items: exploretest.Items([]string{"a", "b"}, row.items...)}
			before := r.Object.DeepCopy()
			got, known, err := layer().Explore(t.Context(), r)
			if err != nil || !known {
				t.Fatalf("known %v, error %v", known, err)
			}
			if diff := cmp.Diff(row.want, compact(t, exploretest.Text(t, got.Object.Object["status"]))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, r.Object.Object); diff != "" {
				t.Errorf("the request was changed:\n%s", diff)
			}
		})
	}
}

// TestReplicaEdges checks the bounds of the number of pods, and what is not counted.
func TestReplicaEdges(t *testing.T) {
	for _, row := range []struct {
		reason, object string
		want           int32
		wrong          string
	}{
		{"the largest number", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2147483647}}", 2147483647, ""},
		{"one more", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2147483648}}", 0, "[spec replicas] is 2147483648: want a whole number from 0 to 2147483647"},
		{"null is the default", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: null}}", 1, ""},
		{"a Job of none at a time", "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 0, completions: 3}}", 0, ""},
		{"a Job with completions alone", "{apiVersion: batch/v1, kind: Job, spec: {completions: 3}}", 1, ""},
		{"completions that are no number", "{apiVersion: batch/v1, kind: Job, spec: {completions: all}}", 0, "[spec completions] is all: want a whole number"},
		{"a suspended CronJob with a malformed number", "{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true, jobTemplate: {spec: {parallelism: -1}}}}", 0, "is -1: want a whole number"},
		{"a template that is text", "{apiVersion: v1, kind: Pod, spec: text}", 0, "[spec] is a string, not a map"},
	} {
		got, known, err := layer().Explore(t.Context(), explore.Request{Operation: explore.Replica, Object: parse(t, row.object)})
		if row.wrong == "" && (err != nil || !known || got.Replicas != row.want) {
			t.Errorf("%s: got %d (known %v, error %v)", row.reason, got.Replicas, known, err)
		}
		if row.wrong != "" && (err == nil || known || !strings.Contains(err.Error(), row.wrong)) {
			t.Errorf("%s: got %v, want %q", row.reason, err, row.wrong)
		}
	}
}
