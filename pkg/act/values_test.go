package act

import (
	"maps"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestCheckValues checks which values of parameters are refused.
func TestCheckValues(t *testing.T) {
	no, yes, three := false, true, "3"
	defs := []v1beta1.Parameter{
		{Name: "REPLICAS", Type: v1beta1.IntegerType, Default: &three},
		{Name: "PASSWORD", Required: &yes},
		{Name: "NOTE", Required: &no},
	}
	source := []v1beta1.ParametersSource{{Kind: "Secret", Name: "db"}}
	for name, tc := range map[string]struct {
		reason        string
		given, others map[string]string
		from          []v1beta1.ParametersSource
		want          string // of the error; empty for none
	}{
		"Enough":        {"the required one is given", map[string]string{"PASSWORD": "x"}, nil, nil, ""},
		"Others":        {"or was there before", nil, map[string]string{"PASSWORD": "x"}, nil, ""},
		"Source":        {"or may come from a source", nil, nil, source, ""},
		"Required":      {"no value is given", map[string]string{"REPLICAS": "1"}, nil, nil, "PASSWORD"},
		"Type":          {"a value has its type", map[string]string{"PASSWORD": "x", "REPLICAS": "many"}, nil, nil, "REPLICAS"},
		"TypeSource":    {"with a source, too", map[string]string{"REPLICAS": "many"}, nil, source, "REPLICAS"},
		"OtherType":     {"a value of before is checked", map[string]string{"PASSWORD": "x"}, map[string]string{"REPLICAS": "many"}, nil, "REPLICAS"},
		"Given":         {"unless a given value replaces it", map[string]string{"PASSWORD": "x", "REPLICAS": "2"}, map[string]string{"REPLICAS": "many"}, nil, ""},
		"Unknown":       {"parameters are defined", map[string]string{"PASSWORD": "x", "REPLIKAS": "2"}, nil, nil, "parameter REPLIKAS is not defined by operator web 1.0"},
		"UnknownSource": {"a source makes none known", map[string]string{"REPLIKAS": "2"}, nil, source, "parameter REPLIKAS is not defined by operator web 1.0"},
		"LetterCase":    {"names have a letter case", map[string]string{"password": "x"}, nil, nil, "parameter password is not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			given, others := maps.Clone(tc.given), maps.Clone(tc.others)
			err := CheckValues(defs, given, others, tc.from, "operator web 1.0")
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if !maps.Equal(given, tc.given) || !maps.Equal(others, tc.others) {
				t.Errorf("%s: the check changes the values: %v, %v", tc.reason, given, others)
			}
		})
	}
}

// TestCheckGiven: the values of an install plan are checked, and others that the package requires may be absent.
func TestCheckGiven(t *testing.T) {
	yes := true
	defs := []v1beta1.Parameter{
		{Name: "SIZE", Type: v1beta1.IntegerType, Required: &yes},
		{Name: "PASSWORD", Required: &yes},
	}
	for _, tc := range []struct {
		reason string
		given  map[string]string
		want   string
	}{
		{"no value is given", nil, ""},
		{"one value is given", map[string]string{"SIZE": "2"}, ""},
		{"a value has another type", map[string]string{"SIZE": "two"}, "SIZE"},
		{"a parameter is not defined", map[string]string{"SIZ": "2"}, "parameter SIZ is not defined by operator web 1.0"},
	} {
		err := CheckGiven(defs, tc.given, "operator web 1.0")
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
		}
	}
}
