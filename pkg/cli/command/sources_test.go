package command

import (
	"errors"
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
