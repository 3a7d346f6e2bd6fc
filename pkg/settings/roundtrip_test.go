package settings

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestParseReportsEachWrongKey checks that one error names all wrong keys in one order, and that keys that are right count all
// the same.
func TestParseReportsEachWrongKey(t *testing.T) {
	data := map[string]string{
		ModeKey: "loose", DefaultAccountKey: "Not A Name", RunAsEverywhereKey: "maybe", DefaultCRDURLKey: "ftp://a.example/crds.tgz",
		AllowedHostsKey: "a.example", "zone": "x", "account": "y",
	}
	got, err := Parse(data)
	if err == nil {
		t.Fatal("no key was refused")
	}
	rest := err.Error()
	for _, want := range []string{
		"ConfigMap kudo-config: ", `mode is "loose": it must be strict or privileged; `, `default-account is "Not A Name", which is no name of a ServiceAccount: `,
		`run-as-everywhere is "maybe": it must be true or false; `, `default-crd-url-template is "ftp://a.example/crds.tgz": it must begin with https://`,
		"account is no setting: there are mode, default-account, ", "zone is no setting: ",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("the error has no %q, or not in this order: %v", want, err)
			continue
		}
		rest = after
	}
	want := Default()
	want.AllowedHosts = []string{"a.example"}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("each wrong value is the strict choice (-want +got):\n%s", diff)
	}
	for range 20 {
		if _, again := Parse(maps.Clone(data)); again.Error() != err.Error() {
			t.Fatalf("the error is another one each time:\n%v\n%v", err, again)
		}
	}
}

// TestParseLists checks how the hosts of a list are told apart.
func TestParseLists(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         []string
	}{
		{"no text is no host", "", nil},
		{"separators alone are no host", " ,\n, ", nil},
		{"one host", "a.example", []string{"a.example"}},
		{"blanks around commas", " a.example , b.example ", []string{"a.example", "b.example"}},
		{"lines of a block", "a.example\nb.example\n", []string{"a.example", "b.example"}},
		{"lines of an editor of Windows", "a.example\r\nb.example\r\n", []string{"a.example", "b.example"}},
		{"a tab", "a.example,\tb.example", []string{"a.example", "b.example"}},
		{"the order and repetitions stay", "b.example,a.example,b.example", []string{"b.example", "a.example", "b.example"}},
		{"ports and wildcards", "*.a.example b.example:5000", []string{"*.a.example", "b.example:5000"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Parse(map[string]string{AllowedHostsKey: tc.text, TokenRealmsKey: tc.text})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.AllowedHosts, tc.want) || !slices.Equal(got.TokenRealms, tc.want) {
				t.Errorf("got %q and %q, want %q", got.AllowedHosts, got.TokenRealms, tc.want)
			}
		})
	}
}

// TestParseValues checks the bounds of single values.
func TestParseValues(t *testing.T) {
	for _, tc := range []struct {
		reason, key, value string
		ok                 bool
	}{
		{"a mode with a blank is no mode", ModeKey, "privileged ", false},
		{"a name of 253 characters", DefaultAccountKey, strings.Repeat("a", 253), true},
		{"a name of 254 characters", DefaultAccountKey, strings.Repeat("a", 254), false},
		{"a name of another namespace", DefaultAccountKey, "kudo-system/kudo", false},
		{"a number is a truth value of Go", RunAsEverywhereKey, "0", true},
		{"a truth value with a blank", RunAsEverywhereKey, " true", false},
		{"https in capitals is refused", DefaultCRDURLKey, "HTTPS://a.example/crds.tgz", false},
		{"a template", DefaultCRDURLKey, "https://a.example/{{ .Name }}.tgz", true},
		{"a policy is required", PackagePolicyKey, "required", true},
		{"a registry", DefaultCRDURLKey, "oci://a.example/crds", false},
	} {
		got, err := Parse(map[string]string{tc.key: tc.value})
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if !tc.ok && cmp.Diff(Default(), got, cmpopts.EquateEmpty()) != "" {
			t.Errorf("%s: the strict choice is expected, got %+v", tc.reason, got)
		}
	}
}

// TestData checks which keys are written, and that all settings are read back as they were.
func TestData(t *testing.T) {
	want := map[string]string{ModeKey: "strict", DefaultAccountKey: "kudo", RunAsEverywhereKey: "false"}
	if diff := cmp.Diff(want, Default().Data()); diff != "" {
		t.Errorf("what the administrator did not decide has no key (-want +got):\n%s", diff)
	}
	wrong, err := Parse(map[string]string{PackagePolicyKey: "off"})
	if err == nil || !strings.Contains(err.Error(), `package-policy is "off": it must be required, or be left out`) || !wrong.RequirePackagePolicy {
		t.Errorf("a wrong value requires a policy, and is an error (S24): %+v, %v", wrong, err)
	}
	if s := Strictest(); !s.RequirePackagePolicy || s.Mode != Strict {
		t.Errorf("settings that are not known require a policy (S24): %+v", s)
	}
	all := Settings{
		Mode: Privileged, DefaultAccount: "deployer", RunAsEverywhere: true, AllowedHosts: []string{"a.example", "*.b.example"},
		DefaultCRDURL: "https://a.example/{{ .Name }}.tgz", TokenRealms: []string{"auth.example"}, RequirePackagePolicy: true,
	}
	data := all.Data()
	if len(data) != 7 || data[AllowedHostsKey] != "a.example,*.b.example" {
		t.Errorf("each setting has its key: %v", data)
	}
	if got, err := Parse(data); err != nil || cmp.Diff(all, got) != "" {
		t.Errorf("read back: %v\n%s", err, cmp.Diff(all, got))
	}
}
