package karmada

import (
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
)

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

// cluster returns a Cluster with a condition Ready.
func cluster(name, status, reason, message string) *unstructured.Unstructured {
	out := ofKind(remote.ClusterKind)
	out.SetName(name)
	out.Object["status"] = map[string]any{"conditions": []any{condition("CompleteAPIEnablements", "True", "", ""), condition("Ready", status, reason, message)}}
	return out
}

func item(name string, applied bool, message string, status any) map[string]any {
	out := map[string]any{"clusterName": name, "health": "Unknown"}
	if applied {
		out["applied"] = true
	}
	if message != "" {
		out["appliedMessage"] = message
	}
	if status != nil {
		out["status"] = status
	}
	return out
}

// scheduled returns a view of an Instance on m1 with weight 2 and m2, which Karmada has scheduled as it is written.
func scheduled() View {
	instance := template("m1", "m2")
	instance.Spec.Placement.Divide = "REPLICAS"
	instance.Spec.Placement.Clusters[0].Weight = 2
	policy, _ := Compile(placed(instance))
	policy.SetLabels(map[string]string{permanentIDLabel: "p-1"})
	binding := ofKind(BindingKind)
	binding.SetNamespace("shop")
	binding.SetName("book-instance")
	binding.SetGeneration(5)
	binding.SetLabels(map[string]string{permanentIDLabel: "p-1"})
	binding.Object["spec"] = map[string]any{
		"resource":  map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "namespace": "shop", "name": "book", "uid": "u-1"},
		"replicas":  int64(6),
		"clusters":  []any{map[string]any{"name": "m1", "replicas": int64(4)}, map[string]any{"name": "m2", "replicas": int64(2)}},
		"placement": policy.DeepCopy().Object["spec"].(map[string]any)["placement"],
	}
	binding.Object["status"] = map[string]any{
		"schedulerObservedGeneration": int64(5),
		"conditions":                  []any{condition("Scheduled", "True", "Success", "")},
		"aggregatedStatus": []any{
			item("m1", true, "", map[string]any{"generation": int64(1), "ready": "True"}),
			item("m2", false, "the object exists", nil),
		},
	}
	return View{Instance: instance, Policy: policy, Binding: binding, Clusters: []*unstructured.Unstructured{
		cluster("m1", "True", "ClusterReady", "fine"), cluster("m2", "False", "ClusterNotReachable", "no route"), cluster("m3", "True", "", ""),
	}}
}

func share(n int64) *int64 { return &n }

// shown is what Observe returns of the view that scheduled returns.
func shown() clusters.Observation {
	return clusters.Observation{
		Settled: true,
		Bound:   map[string]*int64{"m1": share(4), "m2": share(2)},
		Members: map[string]clusters.Member{
			"m1": {Applied: true, Report: &clusters.Report{Generation: 1, Ready: "True"}},
			"m2": {Unreachable: "ClusterNotReachable: no route", AppliedMessage: "the object exists"},
		},
	}
}

// set writes a field of an object.
func set(o *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(o.Object, value, fields...); err != nil {
		panic(err)
	}
}

// TestObserve checks C12, C26, C28, C29: what is read of Karmada's objects, and when Karmada has acted upon the policy.
func TestObserve(t *testing.T) {
	unsettled := func(_ *View, o *clusters.Observation) { o.Settled = false }
	claimed := func(by string) func(*View, *clusters.Observation) {
		return func(_ *View, o *clusters.Observation) {
			o.Settled = false
			o.Refused = &clusters.RefusedError{Reason: "PolicyRefused", Message: by + " has claimed Instance shop/book, so that Karmada does not follow " +
				"PropagationPolicy shop/kudo-book: take the Instance out of its resourceSelectors, or delete it"}
		}
	}
	nothingBound := func(_ *View, o *clusters.Observation) {
		*o = clusters.Observation{Bound: map[string]*int64{}, Members: map[string]clusters.Member{"m1": {}, "m2": {Unreachable: "ClusterNotReachable: no route"}}}
	}
	for _, tc := range []struct {
		reason string
		change func(*View)
		want   func(*View, *clusters.Observation)
	}{
		{"all is scheduled", func(*View) {}, func(*View, *clusters.Observation) {}},
		{"Karmada is silent", func(v *View) { v.Silent = "no Lease" }, func(_ *View, o *clusters.Observation) { o.Silent = "no Lease" }},
		{"the cache is older than the write", func(v *View) { v.Outdated = true }, unsettled},
		{"there is no policy", func(v *View) { v.Policy = nil }, unsettled},
		{"there is no binding", func(v *View) { v.Binding = nil }, nothingBound},
		{"the binding is of a former Instance", func(v *View) { v.Instance.UID = "u-2" }, nothingBound},
		{"the binding is of a kind Instance of others", func(v *View) { set(v.Binding, "other.dev/v1", "spec", "resource", "apiVersion") }, nothingBound},
		{"the binding is of a former policy", func(v *View) { v.Binding.SetLabels(map[string]string{permanentIDLabel: "p-0"}) }, unsettled},
		{"the binding has another placement", func(v *View) {
			set(v.Binding, []any{"m1"}, "spec", "placement", "clusterAffinity", "clusterNames")
		}, unsettled},
		{"empty fields and other types of numbers are equal", func(v *View) {
			set(v.Binding, []any{}, "spec", "placement", "clusterTolerations")
			set(v.Binding, map[string]any{}, "spec", "placement", "clusterAffinity", "labelSelector")
			set(v.Binding, float64(6), "spec", "replicas")
		}, func(*View, *clusters.Observation) {}},
		{"the webhook of Karmada has added to the policy, and the binding has it", func(v *View) {
			for _, o := range []*unstructured.Unstructured{v.Policy, v.Binding} {
				set(o, []any{map[string]any{"spreadByField": "cluster", "minGroups": int64(1)}}, "spec", "placement", "spreadConstraints")
			}
		}, func(*View, *clusters.Observation) {}},
		{"the policy is of an earlier template", func(v *View) { v.Instance.Spec.Placement.Clusters[0].Weight = 3 }, unsettled},
		{"the scheduler has not seen the binding", func(v *View) { v.Binding.SetGeneration(6) }, unsettled},
		{"the scheduler has seen nothing", func(v *View) { delete(v.Binding.Object["status"].(map[string]any), "schedulerObservedGeneration") }, unsettled},
		{"a cluster is not bound", func(v *View) {
			set(v.Binding, []any{map[string]any{"name": "m1", "replicas": int64(6)}}, "spec", "clusters")
		}, func(_ *View, o *clusters.Observation) {
			o.Settled, o.Bound = false, map[string]*int64{"m1": share(6)}
		}},
		{"another cluster is bound", func(v *View) {
			set(v.Binding, []any{map[string]any{"name": "m1", "replicas": int64(4)}, map[string]any{"name": "m3", "replicas": int64(2)}}, "spec", "clusters")
		}, func(_ *View, o *clusters.Observation) {
			o.Settled, o.Bound = false, map[string]*int64{"m1": share(4), "m3": share(2)}
			o.Members["m3"] = clusters.Member{}
		}},
		{"the binding has an earlier value", func(v *View) { v.Instance.Spec.Parameters["REPLICAS"] = "9" }, unsettled},
		{"the value is no number", func(v *View) { v.Instance.Spec.Parameters["REPLICAS"] = "many" }, unsettled},
		{"the shares do not sum up to the value", func(v *View) {
			set(v.Binding, []any{map[string]any{"name": "m1", "replicas": int64(4)}, map[string]any{"name": "m2", "replicas": int64(3)}}, "spec", "clusters")
		}, func(_ *View, o *clusters.Observation) {
			o.Settled = false
			o.Bound["m2"] = share(3)
		}},
		{"zero is divided into zeros, C13", func(v *View) {
			v.Instance.Spec.Parameters["REPLICAS"] = "0"
			delete(v.Binding.Object["spec"].(map[string]any), "replicas")
			set(v.Binding, []any{map[string]any{"name": "m1"}, map[string]any{"name": "m2"}}, "spec", "clusters")
		}, func(_ *View, o *clusters.Observation) { o.Bound = map[string]*int64{"m1": share(0), "m2": share(0)} }},
		{"nothing is divided", func(v *View) {
			v.Instance.Spec.Placement.Divide = ""
			for _, o := range []*unstructured.Unstructured{v.Policy, v.Binding} {
				unstructured.RemoveNestedField(o.Object, "spec", "placement", "replicaScheduling")
			}
		}, func(_ *View, o *clusters.Observation) { o.Bound = map[string]*int64{"m1": nil, "m2": nil} }},
		{"no cluster fits", func(v *View) {
			set(v.Binding, []any{}, "spec", "clusters")
			set(v.Binding, []any{condition("Scheduled", "False", "NoClusterFit", "0/2 clusters are available")}, "status", "conditions")
		}, func(_ *View, o *clusters.Observation) {
			o.Settled, o.Bound, o.Unschedulable = false, map[string]*int64{}, "NoClusterFit: 0/2 clusters are available"
		}},
		{"an error of the scheduler is transient", func(v *View) {
			set(v.Binding, []any{condition("Scheduled", "False", "SchedulerError", "time-out")}, "status", "conditions")
		}, func(*View, *clusters.Observation) {}},
		{"a Cluster is not known", func(v *View) { v.Clusters = v.Clusters[1:] }, func(_ *View, o *clusters.Observation) { delete(o.Members, "m1") }},
		{"a Cluster has no condition", func(v *View) { delete(v.Clusters[0].Object, "status") }, func(_ *View, o *clusters.Observation) {
			m := o.Members["m1"]
			m.Unreachable = "the Cluster has no condition Ready"
			o.Members["m1"] = m
		}},
		{"the policy suspends one cluster", func(v *View) {
			set(v.Policy, []any{"m2"}, "spec", "suspension", "dispatchingOnClusters", "clusterNames")
		}, func(_ *View, o *clusters.Observation) {
			m := o.Members["m2"]
			m.Suspended = "PropagationPolicy shop/kudo-book"
			o.Members["m2"] = m
		}},
		{"the binding suspends all", func(v *View) { set(v.Binding, true, "spec", "suspension", "dispatching") }, func(_ *View, o *clusters.Observation) {
			for name, m := range o.Members {
				m.Suspended = "ResourceBinding shop/book-instance"
				o.Members[name] = m
			}
		}},
		{"our policy has the Instance", func(v *View) {
			v.Instance.Annotations = map[string]string{claimNamespaceAnnotation: "shop", claimNameAnnotation: "kudo-book"}
			v.Instance.Labels = map[string]string{permanentIDLabel: "p-1"}
		}, func(*View, *clusters.Observation) {}},
		{"another policy has the Instance", func(v *View) {
			v.Instance.Annotations = map[string]string{claimNamespaceAnnotation: "shop", claimNameAnnotation: "all"}
		}, claimed("PropagationPolicy shop/all")},
		{"a policy of all namespaces has the Instance", func(v *View) {
			v.Instance.Annotations = map[string]string{clusterClaimAnnotation: "all"}
		}, claimed("ClusterPropagationPolicy all")},
		{"only a label says that a policy of all namespaces has the Instance", func(v *View) {
			v.Instance.Labels = map[string]string{clusterPermanentIDLabel: "c-1"}
		}, claimed("a ClusterPropagationPolicy")},
		{"messages are bounded", func(v *View) {
			set(v.Binding, []any{item("m2", false, strings.Repeat("ü", 4000), nil)}, "status", "aggregatedStatus")
		}, func(_ *View, o *clusters.Observation) {
			o.Members["m1"] = clusters.Member{}
			m := o.Members["m2"]
			m.AppliedMessage = strings.Repeat("ü", 511) + "…"
			o.Members["m2"] = m
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v, want := scheduled(), shown()
			tc.change(&v)
			tc.want(&v, &want)
			if diff := cmp.Diff(want, Observe(v)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestObserveHostile checks that content of wrong types counts as absent, whatever field has it.
func TestObserveHostile(t *testing.T) {
	hostile := []any{nil, true, "text", int64(-1), 1e300, []any{}, []any{nil, "x", []any{int64(1)}}, map[string]any{}, map[string]any{"name": []any{}}}
	for _, fields := range [][]string{
		{"metadata"}, {"spec"}, {"status"}, {"metadata", "labels"}, {"metadata", "generation"}, {"spec", "resource"}, {"spec", "resource", "apiVersion"},
		{"spec", "clusters"}, {"spec", "replicas"}, {"spec", "placement"}, {"spec", "placement", "clusterAffinity"}, {"spec", "suspension"},
		{"spec", "suspension", "dispatchingOnClusters"}, {"status", "conditions"}, {"status", "aggregatedStatus"}, {"status", "schedulerObservedGeneration"},
	} {
		for _, value := range hostile {
			v := scheduled()
			for _, o := range []*unstructured.Unstructured{v.Policy, v.Binding, v.Clusters[0]} {
				_ = unstructured.SetNestedField(o.Object, value, fields...)
			}
			if got := Observe(v); got.Settled && len(fields) == 1 {
				t.Errorf("with %v as %v the Instance is settled", value, fields)
			}
		}
	}
}

// TestParseReport checks C27: what is a report.
func TestParseReport(t *testing.T) {
	full := map[string]any{"template": "u-1/3", "released": "u-1/3", "generation": int64(2), "observedGeneration": int64(2), "ready": "False", "reason": "PlanFailed",
		"message": "a\nb", "plan": "deploy", "planStatus": "FATAL_ERROR", "revision": int64(4), "queued": int64(1), "operatorVersion": "book-1", "replicas": "4"}
	with := func(key string, value any) map[string]any {
		out := maps.Clone(full)
		out[key] = value
		return out
	}
	for _, tc := range []struct {
		reason string
		status any
		want   *clusters.Report
	}{
		{"a whole report", full, &clusters.Report{Template: "u-1/3", Released: "u-1/3", Generation: 2, ObservedGeneration: 2, Ready: "False", Reason: "PlanFailed",
			Message: "a b", Plan: "deploy", PlanStatus: v1beta1.ExecutionStatus("FATAL_ERROR"), Revision: 4, Queued: 1, OperatorVersion: "book-1", Replicas: "4"}},
		{"a copy that no manager has seen", map[string]any{"generation": int64(1), "later": "field"}, &clusters.Report{Generation: 1, Ready: "Unknown"}},
		{"none", nil, nil},
		{"a text", "fine", nil},
		{"an empty one", map[string]any{}, nil},
		{"a status as it is, without our rule", map[string]any{"generation": int64(1), "planStatus": map[string]any{"deploy": map[string]any{}}}, nil},
		{"no generation", with("generation", int64(0)), nil},
		{"a key in other letters", map[string]any{"Generation": int64(1)}, nil},
		{"a negative number", with("revision", int64(-1)), nil},
		{"a fraction", with("generation", 1.5), nil},
		{"a number beyond the range", with("queued", 1e300), nil},
		{"a number for a text", with("replicas", int64(4)), nil},
		{"another status of a condition", with("ready", "Yes"), nil},
		{"a control character in a word", with("plan", "de\x1b[2Jploy"), nil},
		{"a word that is too long", with("operatorVersion", strings.Repeat("a", 254)), nil},
		{"more than 4 KiB", with("later", strings.Repeat("a", 4<<10)), nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseReport(tc.status)); diff != "" {
				t.Error(diff)
			}
		})
	}
	report := parseReport(with("message", strings.Repeat("ü", 600)))
	if report == nil || utf8.RuneCountInString(report.Message) != 512 {
		t.Errorf("a long message becomes %v", report)
	}
}

// FuzzReport checks C27 on content of any kind: nothing panics, and what is accepted is bounded.
func FuzzReport(f *testing.F) {
	for _, seed := range []string{`{"template":"u-1/3","generation":2,"ready":"True","message":"m"}`, `{"generation":1e3}`, `{"generation":"1"}`, `[]`, `"x"`,
		`{"generation":1,"message":"\u001b\ud800"}`, `{"generation":9007199254740993}`} {
		f.Add([]byte(`{"kind":"ResourceBinding","spec":{},"status":{"aggregatedStatus":[{"clusterName":"m1","applied":true,"status":` + seed + `}]}}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content := &unstructured.Unstructured{}
		if content.UnmarshalJSON(data) != nil {
			return
		}
		v := scheduled()
		for _, key := range []string{"spec", "status"} {
			if content.Object[key] != nil {
				v.Binding.Object[key] = content.Object[key]
			}
		}
		_, isMap := v.Binding.Object["spec"].(map[string]any)
		if isMap {
			_ = unstructured.SetNestedField(v.Binding.Object, scheduled().Binding.Object["spec"].(map[string]any)["resource"], "spec", "resource")
		}
		for name, member := range Observe(v).Members {
			texts := []string{member.AppliedMessage, member.Suspended, member.Unreachable}
			if r := member.Report; r != nil {
				texts = append(texts, r.Message, r.Reason, r.Template, r.Released, r.Plan, string(r.PlanStatus), r.OperatorVersion, r.Replicas)
				if r.Generation <= 0 || r.Ready == "" {
					t.Errorf("the report of %s is %+v", name, r)
				}
			}
			for _, said := range texts {
				if utf8.RuneCountInString(said) > 512 || !utf8.ValidString(said) || strings.ContainsAny(said, "\x00\x1b\n") {
					t.Errorf("a text of %s is %q", name, said)
				}
			}
		}
	})
}
