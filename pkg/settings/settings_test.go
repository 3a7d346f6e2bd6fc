package settings

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestParse: T7, a key that is missing or wrong is the strict choice.
func TestParse(t *testing.T) {
	strict := func(change func(*Settings)) Settings {
		s := Default()
		change(&s)
		return s
	}
	for _, tc := range []struct {
		reason string
		data   map[string]string
		want   Settings
		wrong  string
	}{
		{"nothing is decided", nil, Default(), ""},
		{"privileged is said in words", map[string]string{ModeKey: "privileged"}, strict(func(s *Settings) { s.Mode = Privileged }), ""},
		{"no other word counts", map[string]string{ModeKey: "Privileged"}, Default(), `mode is "Privileged": it must be strict or privileged`},
		{"an account of its own", map[string]string{DefaultAccountKey: "deployer"}, strict(func(s *Settings) { s.DefaultAccount = "deployer" }), ""},
		{"no name of an account", map[string]string{DefaultAccountKey: "a:b"}, Default(), `default-account is "a:b"`},
		{"everywhere", map[string]string{RunAsEverywhereKey: "true"}, strict(func(s *Settings) { s.RunAsEverywhere = true }), ""},
		{"not in all words", map[string]string{RunAsEverywhereKey: "yes"}, Default(), `run-as-everywhere is "yes"`},
		{"hosts", map[string]string{AllowedHostsKey: "a.example, *.b.example"}, strict(func(s *Settings) { s.AllowedHosts = []string{"a.example", "*.b.example"} }), ""},
		{"hosts in all forms", map[string]string{AllowedHostsKey: "A.example:8443 10.0.0.1 10.0.0.1:80 ::1 [::1]:80 my_host localhost"}, strict(func(s *Settings) {
			s.AllowedHosts = []string{"A.example:8443", "10.0.0.1", "10.0.0.1:80", "::1", "[::1]:80", "my_host", "localhost"}
		}), ""},
		{"a default by http", map[string]string{DefaultCRDURLKey: "http://a.example/crds.tgz"}, Default(), `default-crd-url-template is "http://a.example/crds.tgz": it must begin with https://`},
		{"a key with a slip", map[string]string{"modes": "privileged"}, Default(), "modes is no setting"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Parse(tc.data)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("error %v, want %q", err, tc.wrong)
			}
			if again, err := Parse(got.Data()); err != nil || cmp.Diff(got, again, cmpopts.EquateEmpty()) != "" {
				t.Errorf("what is written is not what is read: %v, %v", again, err)
			}
		})
	}
}

// TestWrongHosts: what names no host is refused with its key, and stays in the list, since an empty list allows all hosts that
// OperatorVersions name.
func TestWrongHosts(t *testing.T) {
	for _, tc := range []struct{ reason, entry string }{
		{"a URL", "https://a.example"},
		{"a path", "a.example/path"},
		{"a user", "user@a.example"},
		{"all hosts", "*"},
		{"hosts below none", "*."},
		{"hosts below one, with a port", "*.a.example:8443"},
		{"a wildcard that is not the first part", "a.*.example"},
		{"an empty first part", ".a.example"},
		{"an empty last part", "a.example."},
		{"an empty port", "a.example:"},
		{"a port that does not exist", "a.example:0"},
		{"a port that is too large", "a.example:65536"},
		{"a port by its name", "a.example:http"},
		{"an address in brackets without a port", "[::1]"},
		{"half an address", "::1:80:"},
	} {
		for _, key := range []string{AllowedHostsKey, TokenRealmsKey} {
			t.Run(tc.reason+" "+key, func(t *testing.T) {
				got, err := Parse(map[string]string{key: tc.entry})
				if want := fmt.Sprintf("%s has %q, which names no host", key, tc.entry); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				if all := append(got.AllowedHosts, got.TokenRealms...); !slices.Equal(all, []string{tc.entry}) {
					t.Errorf("the lists are %q", all)
				}
			})
		}
	}
}

// TestWrongHostAmongOthers: the error names the entry that is wrong, and no other one.
func TestWrongHostAmongOthers(t *testing.T) {
	got, err := Parse(map[string]string{AllowedHostsKey: "a.example, http://b.example, *.c.example"})
	if err == nil {
		t.Fatal("a URL is no host")
	}
	for entry, want := range map[string]bool{"http://b.example": true, `"a.example"`: false, "*.c.example\"": false} {
		if named := strings.Contains(err.Error(), entry); named != want {
			t.Errorf("the error names %s: %t, want %t: %v", entry, named, want, err)
		}
	}
	if want := []string{"a.example", "http://b.example", "*.c.example"}; !slices.Equal(got.AllowedHosts, want) {
		t.Errorf("the hosts are %q, want %q", got.AllowedHosts, want)
	}
}
