package native

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// retention is a row: what is kept of the live object in the desired one. Without want, there is no opinion.
type retention struct{ reason, desired, live, want string }

// retains checks a table. The header stands before each object. Retaining twice must give the same as once.
func retains(t *testing.T, header string, rows []retention) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			r := explore.Request{Operation: explore.Retaining, Object: under(t, header, row.desired), Observed: under(t, header, row.live)}
			got, known, err := layer().Explore(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if row.want == "" {
				if known {
					t.Errorf("got an opinion: %v", got.Object)
				}
				return
			}
			if err := explore.Check(r, &got); !known || err != nil {
				t.Fatalf("known %v, check: %v", known, err)
			}
			want := under(t, header, row.want)
			if !explore.Equal(want.Object, got.Object.Object) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(exploretest.Text(t, want), exploretest.Text(t, got.Object)))
			}
			r.Object = got.Object
			if again, _, err := layer().Explore(t.Context(), r); err != nil || !explore.Equal(again.Object.Object, got.Object.Object) {
				t.Errorf("retaining the result changes it again (%v):\n%s", err, exploretest.Text(t, again.Object))
			}
		})
	}
}

// under puts fields, in either style of YAML, below the header.
func under(t *testing.T, header, fields string) *unstructured.Unstructured {
	t.Helper()
	object := parse(t, header)
	more := map[string]any{}
	if err := yaml.Unmarshal([]byte(fields), &more); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(more)
	if err != nil {
		t.Fatal(err)
	}
	if err := apijson.Unmarshal(text, &more); err != nil {
		t.Fatal(err)
	}
	maps.Copy(object.Object, more)
	return object
}

func TestRetainService(t *testing.T) {
	retains(t, "apiVersion: v1\nkind: Service", []retention{
		{"the cluster IP is the API server's", "spec: {ports: [{port: 80}]}", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: ClusterIP}",
			"spec: {ports: [{port: 80}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}"},
		{"another cluster IP gives way: it cannot be changed", "spec: {clusterIP: 10.0.0.9}", "spec: {clusterIP: 10.0.0.1}", "spec: {clusterIP: 10.0.0.1}"},
		{"headless is the author's choice", "spec: {clusterIP: None}", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}", "spec: {clusterIP: None}"},
		{"a headless service stays one", "spec: {}", "spec: {clusterIP: None, clusterIPs: [None]}", "spec: {clusterIP: None, clusterIPs: [None]}"},
		{"an ExternalName has no address", "spec: {type: ExternalName, externalName: a.b}", "spec: {clusterIP: 10.0.0.1, type: ClusterIP}", "spec: {type: ExternalName, externalName: a.b}"},
		{"both addresses of a dual stack", "spec: {ipFamilyPolicy: RequireDualStack}", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1']}",
			"spec: {ipFamilyPolicy: RequireDualStack, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1']}"},
		{"the second address is given back for a single stack", "spec: {ipFamilyPolicy: SingleStack}", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1']}",
			"spec: {ipFamilyPolicy: SingleStack, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}"},
		{"node ports go by protocol and port", "spec: {type: NodePort, ports: [{name: b, port: 53, protocol: UDP}, {name: a, port: 53}]}",
			"spec: {type: NodePort, ports: [{name: a, port: 53, protocol: TCP, nodePort: 30001}, {name: b, port: 53, protocol: UDP, nodePort: 30002}]}",
			"spec: {type: NodePort, ports: [{name: b, port: 53, protocol: UDP, nodePort: 30002}, {name: a, port: 53, nodePort: 30001}]}"},
		{"node ports go by name where the port is another", "spec: {type: NodePort, ports: [{name: web, port: 8080}]}", "spec: {type: NodePort, ports: [{name: web, port: 80, nodePort: 30001}]}",
			"spec: {type: NodePort, ports: [{name: web, port: 8080, nodePort: 30001}]}"},
		{"a node port that is asked for is the author's", "spec: {type: NodePort, ports: [{port: 80, nodePort: 31000}]}", "spec: {type: NodePort, ports: [{port: 80, nodePort: 30001}]}",
			"spec: {type: NodePort, ports: [{port: 80, nodePort: 31000}]}"},
		{"no node port is given twice", "spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 30001}, {name: b, port: 81}]}", "spec: {type: NodePort, ports: [{name: b, port: 81, nodePort: 30001}]}",
			"spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 30001}, {name: b, port: 81}]}"},
		{"one node port serves both protocols, as the API server allocates it", "spec: {type: NodePort, ports: [{name: t, port: 53}, {name: u, port: 53, protocol: UDP}]}",
			"spec: {type: NodePort, ports: [{name: t, port: 53, protocol: TCP, nodePort: 30053}, {name: u, port: 53, protocol: UDP, nodePort: 30053}]}",
			"spec: {type: NodePort, ports: [{name: t, port: 53, nodePort: 30053}, {name: u, port: 53, protocol: UDP, nodePort: 30053}]}"},
		{"a node port of the author's for TCP leaves that of UDP", "spec: {type: NodePort, ports: [{name: t, port: 53, nodePort: 30053}, {name: u, port: 53, protocol: UDP}]}",
			"spec: {type: NodePort, ports: [{name: u, port: 53, protocol: UDP, nodePort: 30053}]}",
			"spec: {type: NodePort, ports: [{name: t, port: 53, nodePort: 30053}, {name: u, port: 53, protocol: UDP, nodePort: 30053}]}"},
		{"a ClusterIP service has no node ports", "spec: {type: ClusterIP, ports: [{port: 80}]}", "spec: {type: NodePort, ports: [{port: 80, nodePort: 30001}]}", "spec: {type: ClusterIP, ports: [{port: 80}]}"},
		{"the health check port of a local balancer", "spec: {type: LoadBalancer, externalTrafficPolicy: Local}", "spec: {healthCheckNodePort: 31234}",
			"spec: {type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 31234}"},
		{"other balancers have no health check port", "spec: {type: LoadBalancer, externalTrafficPolicy: Cluster}", "spec: {healthCheckNodePort: 31234}", "spec: {type: LoadBalancer, externalTrafficPolicy: Cluster}"},
	})
	retains(t, "apiVersion: serving.knative.dev/v1\nkind: Service", []retention{
		{"rules go by group and kind", "spec: {a: b}", "spec: {clusterIP: 10.0.0.1}", ""},
	})
}

func TestRetainPod(t *testing.T) {
	retains(t, "apiVersion: v1\nkind: Pod", []retention{
		{"the node is the scheduler's", "spec: {containers: [{name: a}]}", "spec: {nodeName: n1}", "spec: {containers: [{name: a}], nodeName: n1}"},
		{"admission's account, volume and mount", "spec: {containers: [{name: a}, {name: b, volumeMounts: [{name: own, mountPath: /own}]}], volumes: [{name: own}]}",
			"spec: {serviceAccountName: default, volumes: [{name: own, emptyDir: {}}, {name: token}], containers: [{name: b, volumeMounts: [{name: token, mountPath: /t}]}]}",
			"spec: {serviceAccountName: default, volumes: [{name: own}, {name: token}], containers: [{name: a}, {name: b, volumeMounts: [{name: own, mountPath: /own}, {name: token, mountPath: /t}]}]}"},
		{"an account that is asked for is the author's", "spec: {serviceAccountName: mine}", "spec: {serviceAccountName: default}", "spec: {serviceAccountName: mine}"},
		{"tolerations are added to, once", "spec: {tolerations: [{key: a}]}", "spec: {tolerations: [{key: a}, {key: not-ready, tolerationSeconds: 300}]}",
			"spec: {tolerations: [{key: a}, {key: not-ready, tolerationSeconds: 300}]}"},
		{"gates that were removed do not come back", "spec: {schedulingGates: [{name: a}, {name: b}]}", "spec: {schedulingGates: [{name: b}]}", "spec: {schedulingGates: [{name: b}]}"},
		{"the last gate", "spec: {schedulingGates: [{name: a}]}", "spec: {nodeName: n1}", "spec: {nodeName: n1}"},
	})
}

func TestRetainOthers(t *testing.T) {
	retains(t, "apiVersion: v1\nkind: ServiceAccount", []retention{
		{"secrets and pull secrets go by name", "imagePullSecrets: [{name: a}]", "{secrets: [{name: token}], imagePullSecrets: [{name: registry}, {name: a}]}",
			"{secrets: [{name: token}], imagePullSecrets: [{name: a}, {name: registry}]}"},
	})
	retains(t, "apiVersion: v1\nkind: PersistentVolumeClaim", []retention{
		{"the binding of a claim", "spec: {accessModes: [ReadWriteOnce]}", "spec: {volumeName: pv-1, storageClassName: fast}", "spec: {accessModes: [ReadWriteOnce], volumeName: pv-1}"},
		{"a claim that is not bound", "spec: {volumeName: mine}", "spec: {}", "spec: {volumeName: mine}"},
	})
	retains(t, "apiVersion: v1\nkind: PersistentVolume", []retention{
		{"the binding of a volume", "spec: {claimRef: {namespace: ns, name: c}}", "spec: {claimRef: {namespace: ns, name: c, uid: u}}", "spec: {claimRef: {namespace: ns, name: c, uid: u}}"},
		{"a volume reserved for another claim", "spec: {claimRef: {namespace: ns, name: other}}", "spec: {claimRef: {namespace: ns, name: c, uid: u}}", "spec: {claimRef: {namespace: ns, name: other}}"},
	})
	retains(t, "apiVersion: batch/v1\nkind: Job", []retention{
		{"the selector of a Job and its labels", "spec: {template: {metadata: {labels: {app: a}}}}",
			"spec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: old, controller-uid: u, job-name: j}}}}",
			"spec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u, job-name: j}}}}"},
		{"a manual selector is the author's", "spec: {manualSelector: true, selector: {matchLabels: {a: b}}}", "spec: {selector: {matchLabels: {c: d}}}",
			"spec: {manualSelector: true, selector: {matchLabels: {a: b}}}"},
	})
	retains(t, "apiVersion: v1\nkind: Secret", []retention{
		{"the token controller's values", "{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: a}}}",
			"{type: kubernetes.io/service-account-token, data: {token: eA==, ca.crt: eQ==, own: eg==}, metadata: {annotations: {kubernetes.io/service-account.name: a, kubernetes.io/service-account.uid: u}}}",
			"{type: kubernetes.io/service-account-token, data: {token: eA==, ca.crt: eQ==}, metadata: {annotations: {kubernetes.io/service-account.name: a, kubernetes.io/service-account.uid: u}}}"},
		{"a token of another account is not kept", "{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: b}}}",
			"{type: kubernetes.io/service-account-token, data: {token: eA==}, metadata: {annotations: {kubernetes.io/service-account.name: a}}}", ""},
		{"other secrets are their author's", "{type: Opaque, data: {token: eA==}}", "{type: Opaque, data: {token: eQ==}}", ""},
	})
}

func TestRetainBundle(t *testing.T) {
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		retains(t, "apiVersion: admissionregistration.k8s.io/v1\nkind: "+kind, []retention{
			{"an injected bundle, by name of the webhook", "webhooks: [{name: a, clientConfig: {}}, {name: b, clientConfig: {caBundle: Cg==}}]",
				"webhooks: [{name: b, clientConfig: {caBundle: QUI=}}, {name: a, clientConfig: {caBundle: Q0Q=}}]",
				"webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}, {name: b, clientConfig: {caBundle: QUI=}}]"},
			{"a bundle of the author's stays", "webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]", "webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}]", "webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]"},
			{"injection that is asked for wins", "{metadata: {annotations: {cert-manager.io/inject-ca-from: ns/c}}, webhooks: [{name: a, clientConfig: {caBundle: QUI=}}]}",
				"webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}]",
				"{metadata: {annotations: {cert-manager.io/inject-ca-from: ns/c}}, webhooks: [{name: a, clientConfig: {caBundle: Q0Q=}}]}"},
		})
	}
	retains(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", []retention{
		{"the conversion webhook's bundle", "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: u}}}}",
			"spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: u, caBundle: QUI=}}}}",
			"spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: u, caBundle: QUI=}}}}"},
		{"without conversion there is none", "spec: {conversion: {strategy: None}}", "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: QUI=}}}}", "spec: {conversion: {strategy: None}}"},
	})
}

func TestRetainReplicasThatAnAutoscalerWrites(t *testing.T) {
	for _, header := range []string{"apiVersion: apps/v1\nkind: Deployment\n", "apiVersion: example.com/v1\nkind: Widget\n"} {
		retains(t, header, []retention{
			{"the autoscaler's number", "{metadata: {name: scaled}, spec: {replicas: 1}}", "{metadata: {name: scaled}, spec: {replicas: 5}}", "{metadata: {name: scaled}, spec: {replicas: 5}}"},
			{"no autoscaler scales it", "{metadata: {name: a}, spec: {replicas: 1}}", "{metadata: {name: a}, spec: {replicas: 5}}", ""},
			{"an object that names no number is left to server-side apply", "{metadata: {name: scaled}, spec: {}}", "{metadata: {name: scaled}, spec: {replicas: 5}}", ""},
			{"a live object without a number", "{metadata: {name: scaled}, spec: {replicas: 1}}", "{metadata: {name: scaled}, spec: {}}", ""},
		})
	}
}
