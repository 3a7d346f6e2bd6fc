package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/packagepolicy"
	"kudo.dev/kudo/pkg/metrics"
)

// judged gives an OperatorVersion a condition Verified.
func judged(ov *v1beta1.OperatorVersion, status metav1.ConditionStatus, reason string, more ...metav1.Condition) *v1beta1.OperatorVersion {
	ov.Status.Conditions = append(more, condition(v1beta1.VerifiedCondition, status, reason, 0))
	return ov
}

// packagePolicy is a PackagePolicy with the authorities a, b and so on, which end after these times; 0 is never.
func packagePolicy(name string, ready metav1.ConditionStatus, ends ...time.Duration) *configv1alpha1.PackagePolicy {
	p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if ready != "" {
		p.Status.Conditions = []metav1.Condition{condition(packagepolicy.ReadyCondition, ready, "x", 0)}
	}
	for i, after := range ends {
		authority := configv1alpha1.PolicyAuthority{Name: string(rune('a' + i))}
		if after != 0 {
			authority.NotAfter = &metav1.Time{Time: now.Add(after)}
		}
		p.Spec.Authorities = append(p.Spec.Authorities, authority)
	}
	return p
}

// scrapePolicies returns the lines of the metrics of PackagePolicies that are not 0.
func scrapePolicies(t *testing.T, c *stateCollector) []string {
	t.Helper()
	return slices.DeleteFunc(scrape(t, c), func(line string) bool { return !isOfPolicies(line) || strings.HasSuffix(line, " 0") })
}

// TestPolicyMetrics checks R29: what the gauges say of PackagePolicies and of what they refuse, and that a series goes with its object.
func TestPolicyMetrics(t *testing.T) {
	refused := func(namespace, name, version string) *v1beta1.Instance {
		return instanceOf(namespace, name, version, condition(v1beta1.ReadyCondition, metav1.ConditionFalse, v1beta1.ReasonPackageNotVerified, 0))
	}
	notInstalled := condition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonPackageNotVerified, 0)
	stalled := condition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonPackageNotVerified, 0)
	recovered := condition(v1beta1.StalledCondition, metav1.ConditionFalse, v1beta1.ReasonPackageNotVerified, 0)
	end := fmt.Sprint(float64(now.Add(time.Hour).Unix()))
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		want    []string
	}{
		{"there are no policies", []client.Object{version("a", "redis-1", "redis", ""), instanceOf("a", "x", "redis-1")}, nil},
		{"an OperatorVersion that nothing runs is unverified, and nothing waits", []client.Object{judged(version("a", "redis-1", "redis", ""), metav1.ConditionFalse, "NoSignature")},
			[]string{`operatorversions_unverified{reason="NoSignature"} 1`}},
		{"verified, and no policy for it", []client.Object{judged(version("a", "redis-1", "redis", ""), metav1.ConditionTrue, "Verified"), judged(version("a", "redis-2", "redis", ""), metav1.ConditionUnknown, "NoPolicy")}, nil},
		{"two Instances wait for one OperatorVersion, which counts once", []client.Object{judged(version("a", "redis-1", "redis", ""), metav1.ConditionFalse, "WrongKey"), refused("a", "x", "redis-1"), refused("a", "y", "redis-1")},
			[]string{`instances_refused{operator="redis"} 2`, `operatorversions_refused{operator="redis"} 1`, `operatorversions_unverified{reason="WrongKey"} 1`}},
		{"install plans wait, and one continues", []client.Object{
			judged(version("a", "redis-1", "redis", "install"), metav1.ConditionFalse, "Expired", notInstalled), judged(version("a", "redis-2", "redis", "install"), metav1.ConditionFalse, "Expired", stalled),
			judged(version("a", "redis-3", "redis", "install"), metav1.ConditionTrue, "Verified", recovered),
		}, []string{`operatorversions_refused{operator="redis"} 2`, `operatorversions_unverified{reason="Expired"} 2`}},
		{"an Instance whose OperatorVersion does not exist", []client.Object{refused("a", "x", "redis-1")}, []string{`instances_refused{operator=""} 1`}},
		{"a reason of a status that was forged", []client.Object{judged(version("a", "redis-1", "redis", ""), metav1.ConditionFalse, "Hostile1"), judged(version("a", "redis-2", "redis", ""), metav1.ConditionFalse, "Hostile2")},
			[]string{`operatorversions_unverified{reason="other"} 2`}},
		{"policies", []client.Object{packagePolicy("p", metav1.ConditionTrue, time.Hour, 0), packagePolicy("q", metav1.ConditionFalse), packagePolicy("r", "")}, []string{
			`package_authority_expiry_timestamp_seconds{authority="a",policy="p"} ` + end,
			`package_policies{ready="false"} 1`, `package_policies{ready="true"} 1`, `package_policies{ready="unknown"} 1`,
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := newCollector(t, tc.objects...)
			if got := scrapePolicies(t, c); !slices.Equal(got, tc.want) {
				t.Errorf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			for _, object := range tc.objects {
				if err := c.reader.(client.Client).Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			if got := scrapePolicies(t, c); len(got) > 0 {
				t.Errorf("the objects are deleted, and the metrics are\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// TestPolicyBounds: the number of series and the length of labels are bounded, whatever the packages and policies, and the authorities that
// end first are named.
func TestPolicyBounds(t *testing.T) {
	waits := condition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonPackageNotVerified, 0)
	var objects []client.Object
	for i := range 300 {
		objects = append(objects, packagePolicy(fmt.Sprintf("p-%03d", i), metav1.ConditionTrue, time.Hour-time.Duration(i)*time.Second),
			judged(version("a", fmt.Sprintf("v-%03d", i), fmt.Sprintf("operator-%03d", i), "install"), metav1.ConditionFalse, fmt.Sprintf("Reason%d", i), waits))
	}
	for i := range 3 {
		objects = append(objects, judged(version("a", fmt.Sprintf("long-%d", i), strings.Repeat("x", 1<<20)+fmt.Sprint(i), "install"), metav1.ConditionFalse, "NoSignature", waits))
	}
	got := scrape(t, newCollector(t, objects...))
	count := map[string]int{}
	for _, line := range got {
		name, _, _ := strings.Cut(line, "{")
		count[name]++
		if len(line) > 300 {
			t.Errorf("a line of %d bytes: %s…", len(line), line[:100])
		}
	}
	for name, most := range map[string]int{
		"package_authority_expiry_timestamp_seconds": maxAuthorities, "operatorversions_refused": metrics.MaxOperators, "instances_refused": metrics.MaxOperators,
		"operatorversions_unverified": 2, "package_policies": 3,
	} {
		if count[name] != most {
			t.Errorf("%s has %d series, want %d", name, count[name], most)
		}
	}
	for _, line := range []string{
		`operatorversions_refused{operator="other"} 104`, `operatorversions_unverified{reason="other"} 300`, `operatorversions_unverified{reason="NoSignature"} 3`,
	} {
		if !slices.Contains(got, line) {
			t.Errorf("%s is missing", line)
		}
	}
	for policy, want := range map[string]bool{"p-299": true, "p-100": true, "p-099": false} {
		if found := slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, `policy="`+policy+`"`) }); found != want {
			t.Errorf("the authority of %s is named: %t, want %t", policy, found, want)
		}
	}
}
