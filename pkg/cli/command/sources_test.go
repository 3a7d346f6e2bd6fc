package command

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestSourceFlags checks which Secrets and ConfigMaps the flags name.
func TestSourceFlags(t *testing.T) {
	secret := func(name string) v1beta1.ParametersSource {
		return v1beta1.ParametersSource{Kind: "Secret", Name: name}
	}
	configMap := func(name string) v1beta1.ParametersSource {
		return v1beta1.ParametersSource{Kind: "ConfigMap", Name: name}
	}
	for name, tc := range map[string]struct {
		reason string
		texts  []string
		want   []v1beta1.ParametersSource
		wrong  bool
	}{
		"None":       {"no flag, no source", nil, nil, false},
		"Empty":      {"an empty value takes the sources away", []string{""}, nil, false},
		"Secret":     {"a Secret", []string{"secret/db"}, []v1beta1.ParametersSource{secret("db")}, false},
		"ConfigMap":  {"a ConfigMap", []string{"configmap/db"}, []v1beta1.ParametersSource{configMap("db")}, false},
		"Short":      {"by the short name of kubectl", []string{"cm/db"}, []v1beta1.ParametersSource{configMap("db")}, false},
		"LetterCase": {"kinds are in any letter case", []string{"Secret/db", "ConfigMap/DB"}, []v1beta1.ParametersSource{secret("db"), configMap("DB")}, false},
		"Order":      {"the order of the flags stays", []string{"cm/b", "secret/a", "cm/b"}, []v1beta1.ParametersSource{configMap("b"), secret("a"), configMap("b")}, false},
		"EmptyToo":   {"an empty value among others counts for nothing", []string{"", "cm/b"}, []v1beta1.ParametersSource{configMap("b")}, false},
		"Kind":       {"another kind gives no values", []string{"pod/a"}, nil, true},
		"Plural":     {"the plural is no kind", []string{"secrets/a"}, nil, true},
		"NoName":     {"a source has a name", []string{"secret/"}, nil, true},
		"NoKind":     {"and a kind", []string{"/a"}, nil, true},
		"NoSlash":    {"a name alone has no kind", []string{"secret"}, nil, true},
		"LastWrong":  {"one wrong flag makes the command line wrong", []string{"cm/b", "x"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var s SourceFlags
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			s.Add(flags)
			for _, text := range tc.texts {
				if err := flags.Set(SourcesFlag, text); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.Read()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			var coded *CodeError
			if (err != nil) != tc.wrong || tc.wrong && (!errors.As(err, &coded) || coded.Code != ExitUsage || !strings.Contains(err.Error(), "must be secret/NAME or configmap/NAME")) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if s.IsSet() != (len(tc.texts) > 0) {
				t.Errorf("%s: IsSet is %t", tc.reason, s.IsSet())
			}
		})
	}
}

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

// TestVersionFlags checks which versions and ranges are refused before a repository is asked.
func TestVersionFlags(t *testing.T) {
	for _, tc := range []struct {
		reason, operator, app string
		wrong                 bool
	}{
		{"no flag", "", "", false},
		{"a version", "1.2.3", "3.5", false},
		{"a range", "^1.2", ">=3, <4", false},
		{"a wrong version of the operator", "^abc", "", true},
		{"a wrong version of the application", "1.0.0", ">>1", true},
	} {
		err := (&VersionFlags{OperatorVersion: tc.operator, AppVersion: tc.app}).Check()
		var coded *CodeError
		if (err != nil) != tc.wrong || tc.wrong && (!errors.As(err, &coded) || coded.Code != ExitUsage) {
			t.Errorf("%s: error %v", tc.reason, err)
		}
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
