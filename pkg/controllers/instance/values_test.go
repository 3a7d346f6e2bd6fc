package instance

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/test/gen"
)

type texts = map[string]string

// sensitive makes a parameter of the version sensitive.
func sensitive(name string) gen.VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: name, Sensitive: true})
	}
}

// TestRunValues: which value a run gets, and which of them must not be seen.
func TestRunValues(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		spec    texts
		sources paramsource.Values
		fixed   texts
		content bool
		want    values
	}{
		{"nothing is given", nil, paramsource.Values{}, nil, true, values{given: texts{}}},
		{"spec gives a value", texts{"VALUE": "2"}, paramsource.Values{}, nil, true, values{given: texts{"VALUE": "2"}}},
		{"spec wins over a source", texts{"VALUE": "2"}, paramsource.Values{Given: texts{"VALUE": "3"}}, nil, true, values{given: texts{"VALUE": "2"}}},
		{"spec wins over a source with nothing", texts{"VALUE": ""}, paramsource.Values{Given: texts{"VALUE": "3"}}, nil, true, values{given: texts{"VALUE": ""}}},
		{"a source wins over a default that was fixed", nil, paramsource.Values{Given: texts{"VALUE": "3"}}, texts{"VALUE": "4"}, true, values{given: texts{"VALUE": "3"}}},
		{"a default was fixed", nil, paramsource.Values{}, texts{"VALUE": "4"}, true, values{given: texts{"VALUE": "4"}}},
		{"a parameter is sensitive", texts{"TOKEN": "t"}, paramsource.Values{}, nil, true, values{texts{"TOKEN": "t"}, []string{"TOKEN"}}},
		{"a sensitive parameter that has no value has nothing to hide", texts{"VALUE": "2"}, paramsource.Values{}, nil, true, values{given: texts{"VALUE": "2"}}},
		{"names are listed once, in order", texts{"TOKEN": "t"}, paramsource.Values{Given: texts{"VALUE": "3", "TOKEN": "u"}, Sensitive: []string{"VALUE", "TOKEN"}}, nil, true,
			values{texts{"VALUE": "3", "TOKEN": "t"}, []string{"TOKEN", "VALUE"}}},
		{"the version is not known", texts{"TOKEN": "t"}, paramsource.Values{Given: texts{"VALUE": "3", "A": "4"}, Sensitive: []string{"VALUE", "A"}}, nil, false,
			values{texts{"VALUE": "3", "TOKEN": "t", "A": "4"}, []string{"A", "VALUE"}}},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), tc.spec)
		if tc.fixed != nil {
			i.Status.Baseline = &v1beta1.Baseline{ImmutableDefaults: tc.fixed}
		}
		a := pure(i)
		a.sourceValues = paramsource.Values{Given: maps.Clone(tc.sources.Given), Sensitive: slices.Clone(tc.sources.Sensitive)}
		if tc.content {
			a.content = &runner.ParsedVersion{Spec: &webVersion("web-1.0", sensitive("TOKEN")).Spec}
		}
		got := a.runValues()
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(values{})); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
		got.given["VALUE"] = "changed"
		got.hide("ZERO", "ALPHA", "ZERO")
		if diff := cmp.Diff(tc.spec, a.Next.Spec.Parameters); diff != "" {
			t.Errorf("%s: the values of a run are those of spec itself: %s", tc.reason, diff)
		}
		if diff := cmp.Diff(tc.sources, a.sourceValues); diff != "" {
			t.Errorf("%s: the values of a run are those of the sources themselves: %s", tc.reason, diff)
		}
	}
}

// recordRun writes down run 1 of the Instance as one that is complete.
func (f *fixture) recordRun(t *testing.T, run history.Run) {
	t.Helper()
	run.UID = history.RunUID(instanceUID, 1)
	if err := f.r.History.RecordStart(t.Context(), f.instance(), 1, run); err != nil {
		t.Fatal(err)
	}
	f.change(func(i *v1beta1.Instance) {
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "ns/web-1.0", Revision: 1, RunAs: "ns/kudo"}
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{run.Plan: {Name: run.Plan, Status: v1beta1.Complete, UID: run.UID, Revision: 1}}
	})
	f.Requests()
}

// TestValuesExceptDeferred: a parameter whose new value waits for another plan keeps the value of the last run, and stays hidden.
func TestValuesExceptDeferred(t *testing.T) {
	last := history.Run{Plan: "deploy", Parameters: texts{"A": "old", "B": "old", "SECRET": "old"}, Sensitive: []string{"SECRET"}}
	for _, tc := range []struct {
		reason   string
		given    texts
		deferred []string
		lost     bool
		want     values
		reads    int
	}{
		{"no parameter is deferred, and nothing is read", texts{"A": "new"}, nil, false, values{given: texts{"A": "new"}}, 0},
		{"one is deferred", texts{"A": "new", "B": "new"}, []string{"B"}, false, values{texts{"A": "new", "B": "old"}, []string{"SECRET"}}, 1},
		{"one that spec has dropped is deferred", texts{"A": "new"}, []string{"B"}, false, values{texts{"A": "new", "B": "old"}, []string{"SECRET"}}, 1},
		{"one that spec has added is deferred", texts{"A": "new", "C": "new"}, []string{"C"}, false, values{texts{"A": "new"}, []string{"SECRET"}}, 1},
		{"one that was sensitive is deferred", texts{"SECRET": "new"}, []string{"SECRET"}, false, values{texts{"SECRET": "old"}, []string{"SECRET"}}, 1},
		{"the record is not there: spec counts", texts{"A": "new"}, []string{"A"}, true, values{given: texts{"A": "new"}}, 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			f.recordRun(t, last)
			if tc.lost {
				f.dropRecord(1)
			}
			f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = tc.given })
			a := f.action(t)
			f.Requests()
			got, err := a.valuesExceptDeferred(t.Context(), tc.deferred)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(values{})); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if reads := count(f.Requests(), "get ControllerRevision ns/web-1"); reads != tc.reads {
				t.Errorf("the record is read %d times, want %d", reads, tc.reads)
			}
		})
	}
}

// TestCleanupValues: the cleanup plan runs with the values of the last run where the sources cannot be read any more.
func TestCleanupValues(t *testing.T) {
	last := history.Run{Plan: "deploy", Parameters: texts{"VALUE": "old"}, Sensitive: []string{"VALUE"}}
	from := []v1beta1.ParametersSource{{Kind: "Secret", Name: "values"}}
	for _, tc := range []struct {
		reason  string
		sources []v1beta1.ParametersSource
		problem string
		version bool
		ran     bool
		lost    bool
		want    values
	}{
		{"it names no source", nil, "", true, true, false, values{given: texts{"VALUE": "new"}}},
		{"the sources are read", from, "", true, true, false, values{given: texts{"VALUE": "new"}}},
		{"the sources cannot be read", from, "waits for Secret ns/values", true, true, false, values{texts{"VALUE": "old"}, []string{"VALUE"}}},
		{"the version does not exist, so that no source was read", from, "", false, true, false, values{texts{"VALUE": "old"}, []string{"VALUE"}}},
		{"the sources cannot be read, and it never ran", from, "waits for Secret ns/values", true, false, false, values{given: texts{"VALUE": "new"}}},
		{"the sources cannot be read, and the record is not there", from, "waits for Secret ns/values", true, true, true, values{given: texts{"VALUE": "new"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			if tc.ran {
				f.recordRun(t, last)
			}
			if tc.lost {
				f.dropRecord(1)
			}
			f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = texts{"VALUE": "new"} })
			a := f.action(t)
			a.Next.Spec.ParametersFrom, a.sourceError = tc.sources, tc.problem
			if !tc.version {
				a.content = nil
			}
			got, err := a.cleanupValues(t.Context())
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(values{})); diff != "" || err != nil {
				t.Errorf("%v, -want +got: %s", err, diff)
			}
		})
	}
}

// TestRecordUnread: a record that cannot be read now is an error, since the values of spec are not those of the run.
func TestRecordUnread(t *testing.T) {
	f := newFixture(t)
	f.recordRun(t, history.Run{Plan: "deploy", Parameters: texts{"VALUE": "old"}})
	a := f.action(t)
	a.Next.Spec.ParametersFrom, a.sourceError = []v1beta1.ParametersSource{{Kind: "Secret", Name: "values"}}, "waits for Secret ns/values"
	f.failReads("ControllerRevision")
	if got, err := a.cleanupValues(t.Context()); err == nil || got.given != nil {
		t.Errorf("cleanup has %v (%v)", got, err)
	}
	if got, err := a.valuesExceptDeferred(t.Context(), []string{"VALUE"}); err == nil || got.given != nil {
		t.Errorf("the run has %v (%v)", got, err)
	}
}
