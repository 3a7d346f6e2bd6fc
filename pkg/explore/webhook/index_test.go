package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// nowhere is a webhook that nothing answers at.
var nowhere = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")}

func rule(operation v1alpha1.OperationType, group, version, resource string, scope admissionregistrationv1.ScopeType) v1alpha1.RuleWithOperations {
	r := v1alpha1.RuleWithOperations{Operations: []v1alpha1.OperationType{operation}, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
	}}
	if scope != "" {
		r.Scope = &scope
	}
	return r
}

// TestRules is which objects a webhook is asked about.
func TestRules(t *testing.T) {
	const (
		foo  = `{"apiVersion":"foo.example.com/v1","kind":"Foo","metadata":{"name":"f"}}`
		bar  = `{"apiVersion":"bar.example.com/v1","kind":"Bar","metadata":{"name":"b"}}`
		core = `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"f"}}`
		lost = `{"apiVersion":"foo.example.com/v1","kind":"Lost","metadata":{"name":"f"}}`
		none = "" // for the table's last column
	)
	healthy, any := explore.Healthy, v1alpha1.AnyOperation
	for name, tc := range map[string]struct {
		reason string
		rule   v1alpha1.RuleWithOperations
		object string
		asked  bool
		err    string
	}{
		"Exact":          {"all as named", rule(healthy, "foo.example.com", "v1", "foos", "Namespaced"), foo, true, none},
		"AnyOperation":   {"*", rule(any, "foo.example.com", "v1", "foos", ""), foo, true, none},
		"Operation":      {"another operation", rule(explore.Status, "foo.example.com", "v1", "foos", ""), foo, false, none},
		"AnyGroup":       {"*", rule(healthy, "*", "v1", "foos", ""), foo, true, none},
		"Group":          {"another group", rule(healthy, "bar.example.com", "v1", "foos", ""), foo, false, none},
		"Core":           {"the core group is empty", rule(healthy, "", "v1", "foos", ""), core, true, none},
		"CoreIsNotAny":   {"the core group is no wildcard", rule(healthy, "", "v1", "foos", ""), foo, false, none},
		"AnyVersion":     {"*", rule(healthy, "foo.example.com", "*", "foos", ""), foo, true, none},
		"Version":        {"another version", rule(healthy, "foo.example.com", "v2", "foos", ""), foo, false, none},
		"AnyResource":    {"*", rule(healthy, "foo.example.com", "v1", "*", ""), foo, true, none},
		"Everything":     {"*/*", rule(healthy, "foo.example.com", "v1", "*/*", ""), foo, true, none},
		"WithSubs":       {"foos/* has foos too", rule(healthy, "foo.example.com", "v1", "foos/*", ""), foo, true, none},
		"Resource":       {"another resource", rule(healthy, "foo.example.com", "v1", "fools", ""), foo, false, none},
		"AllScopes":      {"*", rule(healthy, "foo.example.com", "v1", "foos", "*"), foo, true, none},
		"Namespaced":     {"an object of the cluster", rule(healthy, "bar.example.com", "v1", "bars", "Namespaced"), bar, false, none},
		"Cluster":        {"an object with a namespace", rule(healthy, "foo.example.com", "v1", "*", "Cluster"), foo, false, none},
		"ClusterMatches": {"an object of the cluster", rule(healthy, "bar.example.com", "v1", "*", "Cluster"), bar, true, none},
		"Unsure":         {"a kind that the cluster does not have may match", rule(healthy, "foo.example.com", "v1", "foos", ""), lost, false, errNoKind.Error()},
		"UnsureScope":    {"and so may its scope", rule(healthy, "*", "*", "*", "Cluster"), lost, false, errNoKind.Error()},
		"SureOfAny":      {"* matches kinds that the cluster does not have", rule(healthy, "foo.example.com", "v1", "*", ""), lost, true, none},
		"SureOfVersion":  {"another version is no doubt", rule(healthy, "foo.example.com", "v2", "foos", ""), lost, false, none},
	} {
		t.Run(name, func(t *testing.T) {
			h := hookOf(nowhere)
			h.Rules = []v1alpha1.RuleWithOperations{rule(healthy, "never.example.com", "v1", "foos", ""), tc.rule}
			l, _ := layerOf(t, Options{}, h)
			r := explore.Request{Operation: healthy, Object: exploretest.Object(t, tc.object)}
			want := tc.err
			if tc.asked {
				want = "127.0.0.1:1" // it was asked, and is not there
			}
			if want != "" {
				refused(t, tc.reason, l, r, want)
				h.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
				l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", h)})
			}
			if _, known, err := l.Explore(t.Context(), r); known || err != nil {
				t.Errorf("%s: got known %v, error %v: want no opinion", tc.reason, known, err)
			}
		})
	}
}

// TestOrder is by the names of the configuration and of the webhook, whichever group or resource found them.
func TestOrder(t *testing.T) {
	with := func(name string, r v1alpha1.RuleWithOperations) v1alpha1.ResourceExploringWebhook {
		h := hookOf(nowhere, named(name))
		h.Rules = []v1alpha1.RuleWithOperations{r, r}
		return h
	}
	l := New(Options{Resources: cluster})
	l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{
		configuration("z", with("a", rule(explore.Healthy, "foo.example.com", "v1", "foos", ""))),
		configuration("a", with("d", rule("*", "*", "*", "*", "")), with("c", rule(explore.Healthy, "foo.example.com", "v1", "*", "")), with("b", rule(explore.Healthy, "*", "v1", "foos", ""))),
	})
	_, found := l.index.Load().find(t.Context(), cluster, requestOf(t, explore.Healthy))
	var got []string
	for _, h := range found {
		got = append(got, h.String())
	}
	if diff := cmp.Diff([]string{"a/b", "a/c", "a/d", "z/a"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSelectors restrict a webhook by labels and by expressions.
func TestSelectors(t *testing.T) {
	conditions := func(expressions ...string) func(*v1alpha1.ResourceExploringWebhook) {
		return func(h *v1alpha1.ResourceExploringWebhook) {
			for i, e := range expressions {
				h.MatchConditions = append(h.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("c%d", i), Expression: e})
			}
		}
	}
	labels := func(value string) func(*v1alpha1.ResourceExploringWebhook) {
		return func(h *v1alpha1.ResourceExploringWebhook) {
			h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
		}
	}
	const asked = "127.0.0.1:1"
	for name, tc := range map[string]struct {
		reason    string
		modify    func(*v1alpha1.ResourceExploringWebhook)
		operation explore.Operation
		want      string // of the error; empty if the webhook is not asked
	}{
		"Labels":     {"a label that the object has", labels("a"), explore.Healthy, asked},
		"Other":      {"a label that it does not have", labels("b"), explore.Healthy, ""},
		"Either":     {"of two objects one is enough", labels("a"), explore.Retaining, asked},
		"Nothing":    {"an empty selector matches all", func(h *v1alpha1.ResourceExploringWebhook) { h.ObjectSelector = &metav1.LabelSelector{} }, explore.Healthy, asked},
		"True":       {"an expression", conditions(`object.spec.replicas == 1 && request.kind.group == "foo.example.com" && request.operation == "ExploreHealthy" && oldObject == null`), explore.Healthy, asked},
		"False":      {"one that is false", conditions(`object.metadata.name != "f"`), explore.Healthy, ""},
		"Old":        {"the observed object", conditions(`oldObject.spec.node == "x" && request.namespace == "n"`), explore.Retaining, asked},
		"Replicas":   {"the number of replicas", conditions(`request.replicas == 3`), explore.ReplicaRevising, asked},
		"Big":        {"whole numbers of 64 bits", conditions(`object.spec.big == 9007199254740993`), explore.Healthy, asked},
		"Library":    {"the apiserver's functions", conditions(`quantity("1Gi").isGreaterThan(quantity("1M")) && "abc".find("b") == "b"`), explore.Healthy, asked},
		"Fails":      {"one that fails", conditions(`object.spec.absent == 1`), explore.Healthy, `matchCondition "c0": no such key: absent`},
		"FalseWins":  {"one that is false decides, whatever else fails", conditions(`object.spec.absent == 1`, `false`), explore.Healthy, ""},
		"NotBool":    {"one that is not bool after all", conditions(`object.spec.replicas`), explore.Healthy, "not bool"},
		"Costs":      {"one that takes too long", conditions(`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))`), explore.Healthy, "cost limit exceeded"},
		"Uncompiled": {"one that does not compile", conditions(`object.`), explore.Healthy, "cannot be used until its configuration is corrected"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := layerOf(t, Options{}, hookOf(nowhere, tc.modify))
			if tc.want != "" {
				refused(t, tc.reason, l, requestOf(t, tc.operation), tc.want)
				return
			}
			if _, known, err := l.Explore(t.Context(), requestOf(t, tc.operation)); known || err != nil {
				t.Errorf("%s: got known %v, error %v: want no opinion", tc.reason, known, err)
			}
		})
	}
}

// TestSet keeps what did not change, and tells what did.
func TestSet(t *testing.T) {
	l := New(Options{Resources: cluster})
	foo, bar := schema.GroupVersionKind{Group: "foo.example.com", Version: "v1", Kind: "Foo"}, schema.GroupVersionKind{Group: "bar.example.com", Version: "v1", Kind: "Bar"}
	set := func(hooks ...v1alpha1.ResourceExploringWebhook) Change {
		return l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", hooks...)})
	}
	callers := func() (out []*caller) {
		for _, h := range l.index.Load().hooks {
			out = append(out, h.caller)
		}
		return out
	}
	if s := l.State("c"); s.Ready || s.Reason != ReasonUnknown {
		t.Errorf("nothing is loaded: got %+v", s)
	}
	a, b := hookOf(nowhere, named("a")), hookOf(nowhere, named("b"))
	if c := set(a, b); c.Empty() || !c.Affects(t.Context(), foo) || c.Affects(t.Context(), bar) {
		t.Error("new webhooks touch what their rules name")
	}
	first := callers()
	if c := set(b, a); !c.Empty() || !slices.Equal(first, callers()) {
		t.Error("the order in a configuration does not matter, and connections stay")
	}
	a.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	if c := set(a, b); !c.Affects(t.Context(), foo) || !slices.Equal(first, callers()) {
		t.Error("another policy changes answers, but not connections")
	}
	a.ClientConfig.URL = ptr.To("https://127.0.0.1:2/")
	if c := set(a, b); !c.Affects(t.Context(), foo) || callers()[0] == first[0] || callers()[1] != first[1] || callers()[0].slots != first[0].slots {
		t.Error("another address needs a connection of its own, and shares the bound on calls")
	}
	a.Rules[0].APIGroups, a.Rules[0].Resources = []string{"bar.example.com"}, []string{"bars"}
	if c := set(a, b); !c.Affects(t.Context(), foo) || !c.Affects(t.Context(), bar) {
		t.Error("a changed rule touches what it named and what it names")
	}
	if c := set(b); c.Affects(t.Context(), foo) || !c.Affects(t.Context(), bar) {
		t.Error("the removal of a webhook must affect the kinds that it named, and no others")
	}
	b.ClientConfig.CABundle = []byte("junk")
	set(b)
	if s := l.State("c"); s.Ready || s.Reason != ReasonInvalid || s.Message == "" {
		t.Errorf("a webhook that cannot be used is told: got %+v", s)
	}
	b.ClientConfig.CABundle[0] = 'J'
	if string(l.index.Load().hooks[0].spec.ClientConfig.CABundle) != "junk" {
		t.Error("the layer keeps parts of what it was given")
	}
}

// BenchmarkMatching finds the one webhook among many that is asked about an object, and fails its selector.
func BenchmarkMatching(b *testing.B) {
	for _, n := range []int{1, 100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var hooks []v1alpha1.ResourceExploringWebhook
			for i := range n {
				h := hookOf(nowhere, named(fmt.Sprintf("h%d", i)), ignore)
				h.Rules[0].Resources = []string{fmt.Sprintf("r%d", i)}
				h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}
				hooks = append(hooks, h)
			}
			hooks[n/2].Rules[0].Resources = []string{"foos"}
			l, _ := layerOf(b, Options{}, hooks...)
			r := requestOf(b, explore.Healthy)
			b.ReportAllocs()
			for b.Loop() {
				if _, known, err := l.Explore(b.Context(), r); known || err != nil {
					b.Fatal(known, err)
				}
			}
		})
	}
}

// BenchmarkCondition asks one expression.
func BenchmarkCondition(b *testing.B) {
	h := hookOf(nowhere)
	h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: `object.metadata.name == "g" && object.spec.replicas > 0`}}
	l, _ := layerOf(b, Options{}, h)
	r := requestOf(b, explore.Healthy)
	b.ReportAllocs()
	for b.Loop() {
		if _, known, err := l.Explore(b.Context(), r); known || err != nil {
			b.Fatal(known, err)
		}
	}
}

// BenchmarkCall is a whole call over TLS on a connection that is there.
func BenchmarkCall(b *testing.B) {
	l, _ := layerOf(b, Options{}, hookOf(secure(b, http.Handler(allOperations))))
	r := requestOf(b, explore.Retaining)
	b.ReportAllocs()
	for b.Loop() {
		if _, known, err := l.Explore(b.Context(), r); !known || err != nil {
			b.Fatal(known, err)
		}
	}
}
