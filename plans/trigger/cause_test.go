package trigger

import "testing"

// TestCauseClass: the class of a cause is one of few words, whatever names users have put into the cause.
func TestCauseClass(t *testing.T) {
	for _, tc := range []struct{ cause, want string }{
		{"", UnknownCause},
		{"instance created", "created"},
		{"OperatorVersion created", "created"},
		{"operator version changed from a/b-1 to a/b-2", "upgrade"},
		{"OperatorVersion changed", "changed"},
		{"installPlan or installParameters changed", "changed"},
		{"parameters changed: SIZE, retry of run 1", "changed"},
		{"asked for by spec.planExecution", "request"},
		{"retry of run 7", "retry"},
		{"retry of cleanup", "retry"},
		{"spec.suspend set", "suspend"},
		{"spec.suspend taken back", "suspend"},
		{"instance deleted", "deleted"},
		{"to restore ConfigMap a", "drift"},
		{"restored", "restored"},
		{"schedule nightly, weekly", "schedule"},
		{"a cause of a later version", "other"},
		{" instance created", "other"},
	} {
		if got := CauseClass(tc.cause); got != tc.want {
			t.Errorf("%q is of class %q, want %q", tc.cause, got, tc.want)
		}
	}
}

// TestCauseClasses: each cause has a class of its own words, and no cause begins with another one of another class.
func TestCauseClasses(t *testing.T) {
	for _, c := range causeClasses {
		if got := CauseClass(c.cause + " and a name"); got != c.class {
			t.Errorf("%q is of class %q, want %q", c.cause, got, c.class)
		}
		if c.class == UnknownCause || c.class == otherCause {
			t.Errorf("%q has no class of its own", c.cause)
		}
	}
}
