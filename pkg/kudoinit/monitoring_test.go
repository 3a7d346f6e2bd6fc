package kudoinit

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestMonitoring checks R31: what monitors the manager is installed only if it is asked for, where the manager runs in the cluster.
func TestMonitoring(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		options Options
		want    []string
	}{
		{"not asked for", Options{}, nil},
		{"asked for", Options{Namespace: "other", Values: Values{Monitoring: true}}, []string{"ServiceMonitor other/kudo-manager", "PrometheusRule other/kudo-manager", "ConfigMap other/kudo-dashboard"}},
		{"the manager runs elsewhere", Options{External: true, Values: Values{Monitoring: true}}, nil},
		{"only the CRDs", Options{CRDsOnly: true, Values: Values{Monitoring: true}}, nil},
	} {
		objs, err := Objects(tc.options)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, obj := range objs {
			if strings.HasPrefix(obj.GetAPIVersion(), "monitoring.coreos.com/") || obj.GetName() == dashboard {
				got = append(got, obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName())
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
	names, err := manifestNames()
	if err != nil || !names["ServiceMonitor kudo-manager"] {
		t.Errorf("an upgrade takes them for objects of an earlier version (%v)", err)
	}
}

// TestMonitoringKinds: a cluster without the Prometheus Operator is named before anything is written.
func TestMonitoringKinds(t *testing.T) {
	server := apitest.Start(t)
	err := Monitoring(server.Client())
	if err == nil || !strings.Contains(err.Error(), "does not serve ServiceMonitor of monitoring.coreos.com/v1: install the Prometheus Operator, or leave --monitoring out") {
		t.Errorf("the error is %v", err)
	}
}

// TestNetworkPolicy checks R30: the policy is installed only if it is asked for, selects the manager's pods, opens the webhooks to all and
// the metrics to namespaces with the label, and closes all else.
func TestNetworkPolicy(t *testing.T) {
	for reason, o := range map[string]Options{
		"not asked for":              {},
		"the manager runs elsewhere": {External: true, Values: Values{NetworkPolicy: true}},
		"only the CRDs":              {CRDsOnly: true, Values: Values{NetworkPolicy: true}},
	} {
		objs, err := Objects(o)
		if err != nil || slices.ContainsFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "NetworkPolicy" }) {
			t.Errorf("%s: there is a NetworkPolicy (%v)", reason, err)
		}
	}
	o := Options{Namespace: "other", Values: Values{NetworkPolicy: true}}
	policy, deployment := &networkingv1.NetworkPolicy{}, &appsv1.Deployment{}
	for kind, to := range map[string]any{"NetworkPolicy": policy, "Deployment": deployment} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, o, kind).Object, to); err != nil {
			t.Fatal(err)
		}
	}
	pod := deployment.Spec.Template
	if selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err != nil || policy.Namespace != "other" || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the policy does not select the manager's pods: %+v (%v)", policy, err)
	}
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) || len(policy.Spec.Ingress) != 2 {
		t.Fatalf("the policy is %+v", policy.Spec)
	}
	for n, want := range []struct {
		port string
		from []networkingv1.NetworkPolicyPeer
	}{
		{"webhook-server", nil},
		{"metrics", []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.MetricsLabel: "true"}}}}},
	} {
		rule := policy.Spec.Ingress[n]
		if !reflect.DeepEqual(rule.From, want.from) || len(rule.Ports) != 1 || rule.Ports[0].Port.StrVal != want.port {
			t.Errorf("rule %d is %+v", n, rule)
		}
		if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == want.port }) {
			t.Errorf("the manager has no port %s", want.port)
		}
	}
}
