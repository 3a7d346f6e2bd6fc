package clusters

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func placed(names ...string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "book", UID: "u", Generation: 7}}
	i.Spec = v1beta1.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: "v"}, Parameters: map[string]string{"REPLICAS": "6"},
		Placement: &v1beta1.Placement{}}
	for _, name := range names {
		i.Spec.Placement.Clusters = append(i.Spec.Placement.Clusters, v1beta1.PlacedCluster{Name: name})
	}
	return i
}

// TestShares checks C46: shares add up to the value, and no cluster has more than one more than its part.
func TestShares(t *testing.T) {
	for _, tc := range []struct {
		value   int64
		weights []int32
		want    []int64
	}{
		{6, []int32{2, 1}, []int64{4, 2}},
		{6, []int32{0, 0}, []int64{3, 3}},
		{7, []int32{1, 1}, []int64{4, 3}},
		{10, []int32{1, 1, 1}, []int64{4, 3, 3}},
		{5, []int32{3, 1}, []int64{4, 1}},
		{0, []int32{3, 1}, []int64{0, 0}},
		{2147483647, []int32{1000, 1}, []int64{2145338309, 2145338}},
	} {
		var clusters []v1beta1.PlacedCluster
		for n, w := range tc.weights {
			clusters = append(clusters, v1beta1.PlacedCluster{Name: fmt.Sprintf("m%d", n), Weight: w})
		}
		got := Shares(tc.value, clusters)
		var sum int64
		for n, want := range tc.want {
			share := got[fmt.Sprintf("m%d", n)]
			sum += share
			if share < want-1 || share > want+1 || tc.value < 100 && share != want {
				t.Errorf("%d by %v: %v, want %v", tc.value, tc.weights, got, tc.want)
			}
		}
		if sum != tc.value {
			t.Errorf("%d by %v: the sum of %v is %d", tc.value, tc.weights, got, sum)
		}
	}
}

// TestValidate checks C7, C13 and C52: what is wrong is named with its field and remedy.
func TestValidate(t *testing.T) {
	yes, text := true, "3"
	version := &v1beta1.OperatorVersionSpec{Parameters: []v1beta1.Parameter{
		{Name: "REPLICAS", Type: v1beta1.IntegerType, Default: &text}, {Name: "CLASS", Immutable: &yes, Default: &text},
		{Name: "KEY", Sensitive: true}, {Name: "REGION"},
	}}
	for _, tc := range []struct {
		reason string
		edit   func(i *v1beta1.Instance, p *v1beta1.Placement)
		want   string
	}{
		{"it is right", func(*v1beta1.Instance, *v1beta1.Placement) {}, ""},
		{"divided", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Divide = "REPLICAS" }, ""},
		{"divided by zero", func(i *v1beta1.Instance, p *v1beta1.Placement) {
			p.Divide, i.Spec.Parameters["REPLICAS"] = "REPLICAS", "0"
		}, ""},
		{"no cluster", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters = nil }, "spec.placement.clusters: there are 0"},
		{"the same cluster twice", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters[1].Name = "m1" }, "clusters[1].name: m1 is there twice"},
		{"a group of an unknown cluster", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Waves = &v1beta1.Waves{Groups: [][]string{{"m3"}}}
		}, "waves.groups[0]: m3 is not in spec.placement.clusters, which has m1, m2"},
		{"a cluster in two groups", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Waves = &v1beta1.Waves{Groups: [][]string{{"m1"}, {"m1"}}}
		}, "waves.groups[1]: m1 is in two groups"},
		{"a negative soak", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Waves = &v1beta1.Waves{Soak: &metav1.Duration{Duration: -1}}
		}, "waves.soak"},
		{"an unknown parameter is divided", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Divide = "NODES" }, "divide: the OperatorVersion has no parameter NODES"},
		{"an immutable one", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Divide = "CLASS" }, "parameter CLASS is immutable"},
		{"a sensitive one", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Divide = "KEY" }, "parameter KEY is sensitive"},
		{"one without a value", func(i *v1beta1.Instance, p *v1beta1.Placement) { p.Divide, i.Spec.Parameters = "REPLICAS", nil }, "spec.parameters has no value for REPLICAS"},
		{"no number", func(i *v1beta1.Instance, p *v1beta1.Placement) {
			p.Divide, i.Spec.Parameters["REPLICAS"] = "REPLICAS", "06"
		}, `spec.parameters.REPLICAS is "06"`},
		{"a share of none", func(i *v1beta1.Instance, p *v1beta1.Placement) { p.Divide, p.Clusters[0].Weight = "REPLICAS", 10 }, "clusters[1].weight: the share of m2 of REPLICAS=6 is less than 1"},
		{"divided and given", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Divide, p.Clusters[0].Parameters = "REPLICAS", map[string]string{"REPLICAS": "1"}
		}, "clusters[0].parameters: REPLICAS is divided"},
		{"a value of the wrong type", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Clusters[0].Parameters = map[string]string{"REPLICAS": "many"}
		}, "clusters[0].parameters: "},
		{"a value of an unknown parameter", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Clusters[0].Parameters = map[string]string{"NODES": "1"}
		}, "clusters[0].parameters: the OperatorVersion has no parameter NODES"},
		{"a value that replaces none", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Clusters[0].Parameters = map[string]string{"REGION": "eu"}
		}, "clusters[0].parameters: spec.parameters has no value for REGION"},
		{"a version of another namespace", func(i *v1beta1.Instance, _ *v1beta1.Placement) { i.Spec.OperatorVersion.Namespace = "other" }, "install the package in namespace ns"},
		{"a Pod is included", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Include = []v1beta1.IncludedObject{{Kind: "Pod", Name: "p"}}
		}, `include[0].kind: "Pod" must be one of`},
		{"a Secret that the user may not read is included", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Include = []v1beta1.IncludedObject{{Kind: "Secret", Name: "s"}}
		}, `include[0].kind: "Secret" must be one of`},
	} {
		i := placed("m1", "m2")
		tc.edit(i, i.Spec.Placement)
		err := Validate(i, version)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// ready returns the observation of a cluster that is ready with generation 7.
func ready() Member {
	return Member{Applied: true, Report: &Report{Template: "u/7", Released: "u/7", Generation: 3, ObservedGeneration: 3,
		Ready: metav1.ConditionTrue, Plan: "deploy", PlanStatus: v1beta1.Complete}}
}

func observed(members map[string]Member) Observation {
	o := Observation{Settled: true, Members: members, Bound: map[string]*int64{}}
	for name := range members {
		o.Bound[name] = nil
	}
	return o
}

// TestStates checks C28: the state of a member is the first that holds.
func TestStates(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		reason string
		edit   func(m *Member, o *Observation)
		state  v1beta1.MemberState
		ready  metav1.ConditionStatus
		why    string
	}{
		{"ready", func(*Member, *Observation) {}, v1beta1.MemberReady, metav1.ConditionTrue, v1beta1.ReasonMembersReady},
		{"lost wins", func(m *Member, _ *Observation) { m.Unreachable, m.Applied = "gone", false }, v1beta1.MemberLost, metav1.ConditionUnknown, v1beta1.ReasonMembersLost},
		{"not known", func(_ *Member, o *Observation) { o.Members = nil }, v1beta1.MemberLost, metav1.ConditionUnknown, v1beta1.ReasonMembersLost},
		{"not bound", func(_ *Member, o *Observation) { o.Bound = nil }, v1beta1.MemberNotScheduled, metav1.ConditionUnknown, v1beta1.ReasonNotScheduled},
		{"too many bound", func(_ *Member, o *Observation) { o.Bound["m2"] = nil }, v1beta1.MemberReady, metav1.ConditionUnknown, v1beta1.ReasonNotScheduled},
		{"not applied", func(m *Member, _ *Observation) { m.Applied, m.AppliedMessage = false, "exists" }, v1beta1.MemberNotApplied, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"silent", func(m *Member, _ *Observation) { m.Report = nil }, v1beta1.MemberSilent, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"suspended", func(m *Member, _ *Observation) { m.Suspended = "by ann" }, v1beta1.MemberHeld, metav1.ConditionUnknown, v1beta1.ReasonWaveInProgress},
		{"an old template", func(m *Member, _ *Observation) { m.Report.Template = "u/6" }, v1beta1.MemberLagging, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"another uid", func(m *Member, _ *Observation) { m.Report.Template = "x/7" }, v1beta1.MemberLagging, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"an old release", func(m *Member, _ *Observation) { m.Report.Released = "u/6" }, v1beta1.MemberLagging, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"not observed", func(m *Member, _ *Observation) { m.Report.ObservedGeneration = 2 }, v1beta1.MemberLagging, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"another share", func(m *Member, o *Observation) { n := int64(4); o.Bound["m1"], m.Report.Replicas = &n, "6" }, v1beta1.MemberLagging, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"its share", func(m *Member, o *Observation) { n := int64(4); o.Bound["m1"], m.Report.Replicas = &n, "4" }, v1beta1.MemberReady, metav1.ConditionTrue, v1beta1.ReasonMembersReady},
		{"failed", func(m *Member, _ *Observation) { m.Report.PlanStatus = v1beta1.FatalError }, v1beta1.MemberFailed, metav1.ConditionFalse, v1beta1.ReasonMemberFailed},
		{"running", func(m *Member, _ *Observation) { m.Report.PlanStatus = v1beta1.InProgress }, v1beta1.MemberProgressing, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"queued", func(m *Member, _ *Observation) { m.Report.Queued = 1 }, v1beta1.MemberProgressing, metav1.ConditionUnknown, v1beta1.ReasonMembersLagging},
		{"not ready", func(m *Member, _ *Observation) { m.Report.Ready = metav1.ConditionFalse }, v1beta1.MemberNotReady, metav1.ConditionFalse, v1beta1.ReasonMemberNotReady},
		{"odd", func(m *Member, _ *Observation) { m.Report.Ready = "odd" }, v1beta1.MemberNotReady, metav1.ConditionFalse, v1beta1.ReasonMemberNotReady},
		{"the engine is silent", func(_ *Member, o *Observation) { o.Silent = "silent" }, v1beta1.MemberReady, metav1.ConditionUnknown, v1beta1.ReasonEngineSilent},
		{"no cluster fits", func(_ *Member, o *Observation) { o.Unschedulable = "none" }, v1beta1.MemberReady, metav1.ConditionFalse, v1beta1.ReasonNotScheduled},
		{"refused", func(_ *Member, o *Observation) { o.Refused = &RefusedError{v1beta1.ReasonForeignPolicy, "theirs"} }, v1beta1.MemberReady, metav1.ConditionFalse, v1beta1.ReasonForeignPolicy},
	} {
		i, m := placed("m1"), ready()
		o := observed(map[string]Member{"m1": m})
		tc.edit(&m, &o)
		if o.Members != nil {
			o.Members["m1"] = m
		}
		s := Summarize(i, o, BeginRollout(i, now), now)
		if s.Members[0].State != tc.state || s.Ready.Status != tc.ready || s.Ready.Reason != tc.why {
			t.Errorf("%s: %+v, %+v", tc.reason, s.Members[0], s.Ready)
		}
	}
}

// TestLaggardsNamed checks C25 and C29: the message names members, the worst first, and what they reported last.
func TestLaggardsNamed(t *testing.T) {
	i := placed("m1", "m2", "m3", "m4", "m5", "m6", "m7")
	members := map[string]Member{"m1": ready()}
	for _, name := range []string{"m2", "m3", "m4", "m5", "m6", "m7"} {
		m := ready()
		m.Report.Template, m.Report.Released = "u/6", "u/6"
		members[name] = m
	}
	lost := members["m7"]
	lost.Unreachable = "cluster is not reachable"
	members["m7"] = lost
	s := Summarize(i, observed(members), BeginRollout(i, time.Now()), time.Now())
	for _, want := range []string{"1 of 7 clusters are ready; m7 is Lost: cluster is not reachable; reported generation 6 of 7", "and 1 more"} {
		if !strings.Contains(s.Ready.Message, want) {
			t.Errorf("%q lacks %q", s.Ready.Message, want)
		}
	}
	if s.Members[6].Generation != 6 || s.Members[0].Generation != 7 {
		t.Errorf("generations %d and %d", s.Members[6].Generation, s.Members[0].Generation)
	}
}

// TestSummarizeModel checks C25 and C29 against a reference model, over random observations: Ready is true only if each cluster of spec, and
// no other, is reachable, has the change, and is ready with it.
func TestSummarizeModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	trues := 0
	for range 20000 {
		i := placed("m1", "m2", "m3")
		if random.IntN(2) == 0 {
			i.Spec.Placement.Divide = "REPLICAS"
		}
		o := observed(map[string]Member{})
		for n, c := range i.Spec.Placement.Clusters {
			o.Members[c.Name], o.Bound[c.Name] = randomMember(random, i, int64(n+1), o.Bound)
		}
		perturb(random, &o)
		wave := BeginRollout(i, time.Now())
		s := Summarize(i, o, wave, time.Now())
		want := isReadyByModel(i, o)
		if want {
			trues++
		}
		if got := s.Ready.Status == metav1.ConditionTrue; got != want {
			t.Fatalf("ready %v, want %v: %+v\n%+v", got, want, o, s)
		}
		if !reflect.DeepEqual(s.Ready.Status == metav1.ConditionTrue, len(s.Ready.Message) == 0) {
			t.Fatalf("%+v", s.Ready)
		}
	}
	if trues < 1000 {
		t.Errorf("only %d observations were ready", trues)
	}
}

// perturb takes one thing of an observation away, most times nothing.
func perturb(random *rand.Rand, o *Observation) {
	switch random.IntN(20) {
	case 0:
		o.Silent = "silent"
	case 1:
		o.Unschedulable = "none"
	case 2:
		delete(o.Bound, "m2")
	case 3:
		delete(o.Members, "m3")
	case 4:
		o.Bound["m9"] = nil
	case 5:
		o.Refused = &RefusedError{v1beta1.ReasonPolicyRefused, "theirs"}
	}
}

// randomMember returns a member that is ready most times, and lacks something else.
func randomMember(random *rand.Rand, i *v1beta1.Instance, share int64, _ map[string]*int64) (Member, *int64) {
	m := ready()
	var bound *int64
	if i.Spec.Placement.Divide != "" {
		bound, m.Report.Replicas = &share, strconv.FormatInt(share, 10)
	}
	switch random.IntN(30) {
	case 0:
		m.Unreachable = "gone"
	case 1:
		m.Applied = false
	case 2:
		m.Report = nil
	case 3:
		m.Report.Template = "u/6"
	case 4:
		m.Report.Released = ""
	case 5:
		m.Report.ObservedGeneration = 1
	case 6:
		m.Report.Ready = metav1.ConditionUnknown
	case 7:
		m.Report.PlanStatus = v1beta1.FatalError
	case 8:
		m.Report.PlanStatus = v1beta1.InProgress
	case 9:
		m.Report.Replicas = "77"
	case 10:
		m.Suspended = "by ann"
	}
	return m, bound
}

// isReadyByModel is the reference: one sentence of C29 after the other.
func isReadyByModel(i *v1beta1.Instance, o Observation) bool {
	if o.Silent != "" || o.Unschedulable != "" || o.Refused != nil || len(o.Bound) != len(i.Spec.Placement.Clusters) {
		return false
	}
	for _, c := range i.Spec.Placement.Clusters {
		m, known := o.Members[c.Name]
		share, bound := o.Bound[c.Name]
		if !known || !bound || m.Unreachable != "" || !m.Applied || m.Suspended != "" || m.Report == nil {
			return false
		}
		r := *m.Report
		if share != nil && fmt.Sprint(*share) != r.Replicas {
			return false
		}
		if r.Template != "u/7" || r.Released != "u/7" || r.Generation != r.ObservedGeneration || r.Ready != metav1.ConditionTrue ||
			r.PlanStatus != v1beta1.Complete {
			return false
		}
	}
	return true
}

// TestDividedValue checks C46: the value that is divided is read of spec; none is if no parameter is, or if a hub without webhook has let in
// what is no number.
func TestDividedValue(t *testing.T) {
	for _, tc := range []struct {
		reason, divide, value string
		want                  int64 // -1 for none
	}{
		{"nothing is divided", "", "6", -1},
		{"a number", "REPLICAS", "6", 6},
		{"none", "REPLICAS", "0", 0},
		{"the largest one", "REPLICAS", "2147483647", 2147483647},
		{"a larger one", "REPLICAS", "2147483648", -1},
		{"no number", "REPLICAS", "many", -1},
		{"nothing", "REPLICAS", "", -1},
		{"a parameter without value", "NODES", "6", -1},
	} {
		i := placed("m1", "m2")
		i.Spec.Placement.Divide, i.Spec.Parameters["REPLICAS"] = tc.divide, tc.value
		got := DividedValue(i)
		if (got == nil) != (tc.want < 0) || got != nil && *got != tc.want {
			t.Errorf("%s: %v, want %d", tc.reason, got, tc.want)
		}
	}
}

// TestReplacedParameters checks C8: which parameters need a value that an engine can replace, each once, by name.
func TestReplacedParameters(t *testing.T) {
	values := func(names ...string) map[string]string {
		out := map[string]string{}
		for _, name := range names {
			out[name] = "v"
		}
		return out
	}
	for _, tc := range []struct {
		reason, divide string
		m1, m2         map[string]string
		want           []string
	}{
		{"none", "", nil, nil, nil},
		{"the one that is divided", "REPLICAS", nil, nil, []string{"REPLICAS"}},
		{"those of one cluster", "", values("Z", "A"), nil, []string{"A", "Z"}},
		{"those of two", "", values("Z", "A"), values("A", "B"), []string{"A", "B", "Z"}},
		{"all of them", "M", values("Z", "M"), values("B"), []string{"B", "M", "Z"}},
	} {
		p := placed("m1", "m2").Spec.Placement
		p.Divide, p.Clusters[0].Parameters, p.Clusters[1].Parameters = tc.divide, tc.m1, tc.m2
		if got := ReplacedParameters(p); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
}

// TestValidateMore checks C52 where the OperatorVersion is not known, at the bounds, and that all that is wrong is said at once.
func TestValidateMore(t *testing.T) {
	for _, tc := range []struct {
		reason string
		edit   func(i *v1beta1.Instance, p *v1beta1.Placement)
		want   []string // none if it is right
	}{
		{"a parameter that the version may have", func(i *v1beta1.Instance, p *v1beta1.Placement) {
			i.Spec.Parameters["NODES"], p.Clusters[0].Parameters = "1", map[string]string{"NODES": "many"}
		}, nil},
		{"a number is divided", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Divide = "REPLICAS" }, nil},
		{"no number", func(i *v1beta1.Instance, p *v1beta1.Placement) {
			p.Divide, i.Spec.Parameters["REPLICAS"] = "REPLICAS", "-1"
		},
			[]string{`spec.parameters.REPLICAS is "-1", which must be a whole number from 0 to 2147483647`}},
		{"a number that is too large", func(i *v1beta1.Instance, p *v1beta1.Placement) {
			p.Divide, i.Spec.Parameters["REPLICAS"] = "REPLICAS", "2147483648"
		}, []string{"must be a whole number"}},
		{"a cluster without a name", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters[0].Name = "" }, []string{"clusters[0].name: it is empty"}},
		{"weights out of bounds", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters[0].Weight, p.Clusters[1].Weight = -1, 1001 },
			[]string{"clusters[0].weight: -1 must be 1 to 1000", "clusters[1].weight: 1001 must be 1 to 1000"}},
		{"an empty group", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Waves = &v1beta1.Waves{Groups: [][]string{{}}} },
			[]string{"waves.groups[0]: it is empty"}},
		{"a negative bound", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Waves = &v1beta1.Waves{MaxFailures: -1} },
			[]string{"waves.maxFailures: -1 must not be negative"}},
		{"an object without a name", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Include = []v1beta1.IncludedObject{{Kind: "Operator", Name: "s"}, {Kind: "Operator"}}
		}, []string{"include[1].name: it is empty"}},
		{"a hundred clusters", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters = manyClusters(100) }, nil},
		{"one more", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters = manyClusters(101) }, []string{"there are 101: name 1 to 100 clusters"}},
		{"a decision", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Clusters, p.Decision, p.Divide = nil, &v1beta1.DecisionReference{Name: "prod"}, "REPLICAS"
			p.Waves = &v1beta1.Waves{Groups: [][]string{{"m9"}}}
		}, nil},
		{"a decision and a list", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Decision = &v1beta1.DecisionReference{Name: "prod"} },
			[]string{"spec.placement.decision: the decision prod names the clusters, and spec.placement.clusters names 2, too: remove one of the two"}},
		{"a decision that no label can name", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Clusters, p.Decision = nil, &v1beta1.DecisionReference{Name: "a b"}
		}, []string{`spec.placement.decision.name: "a b" cannot be the value of the label`}},
		{"neither", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters = nil },
			[]string{"spec.placement.clusters: there are 0: name 1 to 100 clusters, or the decision of a scheduler in spec.placement.decision"}},
		{"a group of a decision twice", func(_ *v1beta1.Instance, p *v1beta1.Placement) {
			p.Clusters, p.Decision = nil, &v1beta1.DecisionReference{Name: "prod"}
			p.Waves = &v1beta1.Waves{Groups: [][]string{{"m1"}, {"m1"}}}
		}, []string{"m1 is in two groups"}},
		{"two mistakes", func(_ *v1beta1.Instance, p *v1beta1.Placement) { p.Clusters[1].Name, p.Divide = "m1", "NODES" },
			[]string{"clusters[1].name: m1 is there twice", "divide: spec.parameters has no value for NODES"}},
	} {
		i := placed("m1", "m2")
		tc.edit(i, i.Spec.Placement)
		err := Validate(i, nil)
		if (err == nil) != (len(tc.want) == 0) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, want)
			}
		}
	}
}

// TestDecided checks C13 and C45: shares of the clusters that a decision names are at least 1, unless the value is 0.
func TestDecided(t *testing.T) {
	for value, want := range map[string]string{"3": "", "4": "", "0": "", "2": "the decision prod names 3 clusters, and REPLICAS=2 gives some of them"} {
		i := placed()
		i.Spec.Placement = &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: "prod"}, Divide: "REPLICAS"}
		i.Spec.Parameters["REPLICAS"] = value
		err := ValidateDecided(i, []string{"m1", "m2", "m3"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
		i.Spec.Placement.Divide = ""
		if err := ValidateDecided(i, []string{"m1", "m2", "m3"}); err != nil {
			t.Errorf("nothing is divided: %v", err)
		}
	}
	if got := Shares(6, nil); len(got) > 0 {
		t.Errorf("shares of no cluster: %v", got)
	}
}

// TestUndecided checks C45: while the clusters that are summed up may not be those that were decided, Ready is not true, nor if there are none.
func TestUndecided(t *testing.T) {
	i := placed()
	i.Spec.Placement = &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: "prod"}}
	i.Status.Decision = &v1beta1.DecisionStatus{Name: "prod", Clusters: []string{"m1"}}
	m := ready()
	o := observed(map[string]Member{"m1": m})
	check := func(reason string, status metav1.ConditionStatus, want string) {
		t.Helper()
		if got := Summarize(i, o, BeginRollout(i, time.Now()), time.Now()).Ready; got.Status != status || got.Reason != want {
			t.Errorf("%s: %+v, want %s %s", reason, got, status, want)
		}
	}
	check("the report is of another set", metav1.ConditionUnknown, v1beta1.ReasonMembersLagging)
	m.Report.Template, m.Report.Released = i.Template(), i.Template()
	check("it is of this set", metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	o.Undecided = "a slice is missing"
	check("the decision is held", metav1.ConditionUnknown, v1beta1.ReasonDecisionHeld)
	o.Undecided = ""
	i.Status.Decision.Clusters = nil
	o = observed(map[string]Member{})
	check("it names none", metav1.ConditionFalse, v1beta1.ReasonNotScheduled)
	wave, _ := AdvanceRollout(i, BeginRollout(i, time.Now()), nil, time.Now())
	i.Status.Wave = &wave
	if again := BeginRollout(i, time.Now().Add(time.Hour)); wave.State != v1beta1.WaveDone || wave.Of != 0 || !reflect.DeepEqual(again, wave) {
		t.Errorf("waves of no cluster: %+v, then %+v", wave, again)
	}
}

func manyClusters(n int) (clusters []v1beta1.PlacedCluster) {
	for n := range n {
		clusters = append(clusters, v1beta1.PlacedCluster{Name: fmt.Sprintf("m%d", n)})
	}
	return clusters
}

// TestMembersShown checks C27 and C32: what the status shows of a member is bounded, is of the report, and keeps the time of its state.
func TestMembersShown(t *testing.T) {
	now := time.Unix(1000, 0)
	i := placed("m2", "m1")
	i.Spec.Placement.Waves = &v1beta1.Waves{Groups: [][]string{{"m2"}}}
	share, long := int64(4), strings.Repeat("x", 1000)
	m2 := ready()
	*m2.Report = Report{Template: "u/7", Released: "u/7", Generation: 3, ObservedGeneration: 3, Ready: metav1.ConditionFalse, Reason: long, Message: long,
		Plan: long, PlanStatus: v1beta1.FatalError, OperatorVersion: long, Replicas: "4"}
	o := observed(map[string]Member{"m1": ready(), "m2": m2})
	o.Bound["m2"] = &share
	s := Summarize(i, o, BeginRollout(i, now), now)
	m := s.Members[1]
	if s.Members[0].Cluster != "m1" || m.Cluster != "m2" || m.State != v1beta1.MemberFailed || *m.Replicas != 4 || m.Generation != 7 {
		t.Errorf("members %+v", s.Members)
	}
	if max(len(m.Reason), len(m.Plan), len(m.PlanStatus)) > maxName || len(m.Message) > maxMessage || len(m.OperatorVersion) > 4*maxName {
		t.Errorf("a member shows too much: %+v", m)
	}
	if got := s.Members[0]; got.State != v1beta1.MemberHeld || got.Message != "waits for wave 2 of 2" {
		t.Errorf("a member of the next wave is %+v", got)
	}
	if s.Aggregated.Status != v1beta1.FatalError || s.Aggregated.Message != s.Ready.Message {
		t.Errorf("the aggregated status is not that of the worst: %+v", s.Aggregated)
	}
	i.Status.Members = s.Members
	o.Members["m2"] = ready()
	o.Bound["m2"] = nil
	later := Summarize(i, o, BeginRollout(i, now), now.Add(time.Minute))
	if !later.Members[0].Since.Time.Equal(now) || !later.Members[1].Since.Time.Equal(now.Add(time.Minute)) {
		t.Errorf("one state is kept, the other is new: %+v", later.Members)
	}
	o.Members["m2"].Report.PlanStatus = v1beta1.InProgress
	if got := Summarize(i, o, BeginRollout(i, now), now).Aggregated; got.ActivePlanName != "deploy" || got.Status != v1beta1.InProgress {
		t.Errorf("the aggregated status lacks the plan that runs: %+v", got)
	}
	i.Spec.Placement = &v1beta1.Placement{}
	if got := Summarize(i, Observation{Settled: true}, v1beta1.WaveStatus{}, now); got.Ready.Status == metav1.ConditionTrue || len(got.Members) > 0 {
		t.Errorf("an Instance without clusters is %+v", got)
	}
}

// TestReconcilingAndStalled checks C32: what waits by itself is Reconciling, what waits for a user is Stalled, never both.
func TestReconcilingAndStalled(t *testing.T) {
	for _, tc := range []struct {
		reason               string
		edit                 func(m *Member, o *Observation)
		wave                 v1beta1.WaveState
		reconciling, stalled bool
	}{
		{"ready", func(*Member, *Observation) {}, v1beta1.WaveDone, false, false},
		{"lagging", func(m *Member, _ *Observation) { m.Report.Template = "u/6" }, v1beta1.WaveOpen, true, false},
		{"lost", func(m *Member, _ *Observation) { m.Unreachable = "gone" }, v1beta1.WaveOpen, true, false},
		{"silent", func(_ *Member, o *Observation) { o.Silent = "silent" }, v1beta1.WaveOpen, true, false},
		{"not ready", func(m *Member, _ *Observation) { m.Report.Ready = metav1.ConditionFalse }, v1beta1.WaveOpen, false, false},
		{"failed", func(m *Member, _ *Observation) { m.Report.PlanStatus = v1beta1.FatalError }, v1beta1.WaveOpen, false, true},
		{"stopped", func(*Member, *Observation) {}, v1beta1.WaveStopped, false, true},
		{"paused", func(m *Member, _ *Observation) { m.Report.Released = "u/6" }, v1beta1.WavePaused, false, false},
		{"refused", func(_ *Member, o *Observation) { o.Refused = &RefusedError{v1beta1.ReasonForeignPolicy, "theirs"} }, v1beta1.WaveOpen, false, true},
	} {
		i, m := placed("m1"), ready()
		o := observed(map[string]Member{"m1": m})
		tc.edit(&m, &o)
		o.Members["m1"] = m
		wave := BeginRollout(i, time.Unix(1000, 0))
		wave.State = tc.wave
		s := Summarize(i, o, wave, time.Unix(1000, 0))
		if s.Reconciling != tc.reconciling || s.Stalled != tc.stalled {
			t.Errorf("%s: reconciling %v, stalled %v: %+v", tc.reason, s.Reconciling, s.Stalled, s.Ready)
		}
	}
}
