package kudoinit

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/pkg/settings"
)

// variable returns the expression of a variable of a policy.
func variable(t *testing.T, o Options, policy, name string) string {
	t.Helper()
	objs, err := Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		if obj.GetKind() != "ValidatingAdmissionPolicy" || obj.GetName() != policy {
			continue
		}
		variables, _, _ := unstructured.NestedSlice(obj.Object, "spec", "variables")
		for _, v := range variables {
			if v.(map[string]any)["name"] == name {
				return v.(map[string]any)["expression"].(string)
			}
		}
	}
	t.Fatalf("policy %s has no variable %s", policy, name)
	return ""
}

// TestPolicySettings: T6 and T7, policies say what the settings do.
func TestPolicySettings(t *testing.T) {
	strict, privileged := Options{}, Options{Settings: settings.Settings{Mode: settings.Privileged, DefaultAccount: "deployer"}}
	for _, tc := range []struct {
		reason, policy, variable string
		options                  Options
		want                     string
	}{
		{"the account of Instances that name none", "kudo-account", "defaultAccount", strict, "'kudo'"},
		{"another one", "kudo-account", "defaultAccount", privileged, "'deployer'"},
		{"a namespace is privileged by its label", "kudo-account", "privileged", strict, "kudo.dev/privileged"},
		{"all are", "kudo-account", "privileged", privileged, "true"},
		{"and who makes an Instance is told", "kudo-privileged-use", "privileged", privileged, "true"},
	} {
		got := variable(t, tc.options, tc.policy, tc.variable)
		if got != tc.want && (len(tc.want) <= 10 || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %s of %s is %s, want %s", tc.reason, tc.variable, tc.policy, got, tc.want)
		}
	}
}

// TestPipeImage: T37, Pipe tasks read their files from the manager's own image, or from one that init was given, which init does
// not take for a foreign argument.
func TestPipeImage(t *testing.T) {
	pin := func(name string) string { return name + "@sha256:" + strings.Repeat("0", 64) }
	for _, tc := range []struct {
		reason  string
		options Options
		want    []string
	}{
		{"the manager's own", Options{Image: pin("example.org/kudo")}, []string{"--pipe-image=" + pin("example.org/kudo")}},
		{"which needs no digest", Options{Image: "example.org/kudo:1"}, []string{"--pipe-image=example.org/kudo:1", "--allow-unpinned-pipe-image"}},
		{"a copy", Options{Image: "example.org/kudo:1", PipeImage: pin("example.org/copy")}, []string{"--pipe-image=" + pin("example.org/copy")}},
		{"the same, named", Options{Image: pin("example.org/kudo"), PipeImage: pin("example.org/kudo")}, []string{"--pipe-image=" + pin("example.org/kudo")}},
	} {
		containers, _, _ := unstructured.NestedSlice(find(t, tc.options, "Deployment").Object, "spec", "template", "spec", "containers")
		var got []string
		for _, arg := range containers[0].(map[string]any)["args"].([]any) {
			if strings.Contains(arg.(string), "pipe-image") {
				got = append(got, arg.(string))
			}
			if strings.Contains(arg.(string), "pipe-image") && !ownArgs[flagOf(arg.(string))] {
				t.Errorf("%s: init takes %s for a foreign argument", tc.reason, arg)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: the arguments are %v, want %v", tc.reason, got, tc.want)
		}
	}
}

// TestReplicas: an upgrade that knows the replicas of the manager keeps them.
func TestReplicas(t *testing.T) {
	for given, want := range map[int32]int64{0: 2, 1: 1, 3: 3} {
		if got, _, _ := unstructured.NestedInt64(find(t, Options{Replicas: given}, "Deployment").Object, "spec", "replicas"); got != want {
			t.Errorf("%d replicas for %d", got, given)
		}
	}
}

// TestInsecureMetrics: T1 and T37, metrics are served without authentication only if that was said, which init keeps.
func TestInsecureMetrics(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		containers, _, _ := unstructured.NestedSlice(find(t, Options{InsecureMetrics: insecure}, "Deployment").Object, "spec", "template", "spec", "containers")
		args := containers[0].(map[string]any)["args"].([]any)
		if slices.Contains(args, any(insecureMetricsArg)) != insecure {
			t.Errorf("insecure %t: the arguments are %v", insecure, args)
		}
	}
	if !ownArgs[flagOf(insecureMetricsArg)] {
		t.Error("init takes the argument for one that it did not write")
	}
}

// TestRunAsEverywhere: T3, the manager acts as accounts of all namespaces only if that was said.
func TestRunAsEverywhere(t *testing.T) {
	for _, everywhere := range []bool{false, true} {
		objs, err := Objects(Options{Settings: settings.Settings{RunAsEverywhere: everywhere}})
		if err != nil {
			t.Fatal(err)
		}
		bound := false
		for _, obj := range objs {
			bound = bound || obj.GetKind() == "ClusterRoleBinding" && obj.GetName() == RunAsRole
		}
		if bound != everywhere {
			t.Errorf("run-as-everywhere %v: bound %v", everywhere, bound)
		}
	}
}

// TestManagerRole: T2, the manager holds kudo's kinds, impersonation of one account and reading, and no right to give rights.
func TestManagerRole(t *testing.T) {
	objs, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		if obj.GetName() != roleName || !strings.HasSuffix(obj.GetKind(), "Role") {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(obj.Object, "rules")
		for _, item := range rules {
			rule := item.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
			for _, verb := range verbs {
				reads := verb == "get" || verb == "list" || verb == "watch"
				wild := groups[0] == "*" || resources[0] == "*" || verb == "*"
				switch {
				case verb == "escalate" || verb == "bind" || !reads && wild:
					t.Errorf("%s %s: %s on %v", obj.GetKind(), obj.GetName(), verb, resources)
				case !reads && (resources[0] == "secrets" || verb == "impersonate") && (obj.GetKind() == "ClusterRole" || rule["resourceNames"] == nil):
					t.Errorf("%s %s: %s on %v is not bound to names in kudo's namespace", obj.GetKind(), obj.GetName(), verb, resources)
				}
			}
		}
	}
}

// TestHighAvailability checks R27: what lets the manager survive the loss of a node, a drain and an update.
func TestHighAvailability(t *testing.T) {
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, Options{}, "Deployment").Object, deployment); err != nil {
		t.Fatal(err)
	}
	budget := &policyv1.PodDisruptionBudget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, Options{}, "PodDisruptionBudget").Object, budget); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, Options{}, "ResourceQuota").Object, quota); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if *deployment.Spec.Replicas != 2 || deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Error("an update or the loss of a node leaves no manager")
	}
	if scope := quota.Spec.ScopeSelector.MatchExpressions; len(scope) != 1 || !slices.Equal(scope[0].Values, []string{pod.PriorityClassName}) {
		t.Errorf("the priority is %s, and the quota without which some clusters refuse it is for %v", pod.PriorityClassName, scope)
	}
	var keys []string
	for _, spread := range pod.TopologySpreadConstraints {
		keys = append(keys, spread.TopologyKey)
		if spread.WhenUnsatisfiable != corev1.ScheduleAnyway || !reflect.DeepEqual(spread.LabelSelector, deployment.Spec.Selector) {
			t.Errorf("the spread over %s is %+v: it must select the manager's pods, and must not stop them on a cluster of one node", spread.TopologyKey, spread)
		}
	}
	if !slices.Equal(keys, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
		t.Errorf("the pods are spread over %v", keys)
	}
	if !reflect.DeepEqual(budget.Spec.Selector, deployment.Spec.Selector) || budget.Spec.MaxUnavailable.IntValue() != 1 || budget.Spec.MinAvailable != nil {
		t.Errorf("the budget %+v is not one pod at a time, or stops the drain of the only manager", budget.Spec)
	}
	limits := pod.Containers[0].Resources
	if limits.Limits.Memory().String() != "1Gi" || limits.Requests.Memory().String() != "128Mi" || limits.Requests.Cpu().String() != "100m" || !limits.Limits.Cpu().IsZero() {
		t.Errorf("the resources are %+v", limits)
	}
	if len(pod.Containers[0].Env) != 1 || pod.Containers[0].Env[0].Name != "MEMORY_LIMIT" || pod.Containers[0].Env[0].ValueFrom.ResourceFieldRef.Resource != "limits.memory" {
		t.Errorf("the manager does not know its limit of memory: %+v", pod.Containers[0].Env)
	}
	if *pod.TerminationGracePeriodSeconds <= 60 {
		t.Errorf("%d s are less than a request may take", *pod.TerminationGracePeriodSeconds)
	}
}
