package fetch

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/settings"
)

// T34: which block counts, and that the default is for versions whose author has the verb install.
func TestResolve(t *testing.T) {
	https := func(url string) *v1beta1.CRDTarball {
		return &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: url}}
	}
	for _, tc := range []struct {
		reason, plan      string
		version, instance *v1beta1.CRDTarball
		want, err         string
	}{
		{"a version without an install plan may be anybody's", "", nil, nil, "", ""},
		{"the policy kudo-install guards one with", "install", nil, nil, "https://default.example.org/2.0", ""},
		{"a block of the version is guarded too", "", https("https://a.example.org/{{ .AppVersion }}"), nil, "https://a.example.org/2.0", ""},
		{"and one of the Instance", "", nil, https("https://b.example.org"), "https://b.example.org", ""},
		{"what is stored without a digest is not fetched by http", "", https("http://a.example.org"), nil, "", "spec.crdTarball.httpSource.sha256 is required"},
		{"whatever its template becomes", "", https("{{ if true }}http{{ end }}://a.example.org"), nil, "", "spec.crdTarball.httpSource.sha256 is required"},
	} {
		f := New(context.Background(), Options{Policy: func() Policy { return Policy{Default: https("https://default.example.org/{{ .AppVersion }}")} }, Clock: clock.RealClock{}}, nil)
		spec := &v1beta1.OperatorVersionSpec{AppVersion: "2.0", InstallPlan: tc.plan, CRDTarball: tc.version}
		instance := &v1beta1.Instance{}
		instance.Spec.CRDTarball = tc.instance
		got, err := f.Resolve(instance, "ns", spec)
		identity := ""
		if err == nil && got.Source != nil {
			identity = got.Source.Identity()
		}
		if identity != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.reason, identity, err)
		}
	}
}

// T34: what makes a use the first one again.
func TestSpecHash(t *testing.T) {
	hash := func(change func(*v1beta1.OperatorVersionSpec, *v1beta1.Instance)) string {
		t.Helper()
		spec := &v1beta1.OperatorVersionSpec{AppVersion: "2.0", Version: "1.0.0", CRDTarball: &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://a.example.org/x"}}}
		instance := &v1beta1.Instance{}
		instance.Namespace, instance.Spec.OperatorVersion.Name = "ns", "v"
		change(spec, instance)
		wanted, err := New(context.Background(), Options{}, nil).Resolve(instance, "ns", spec)
		if err != nil {
			t.Fatal(err)
		}
		return wanted.SpecHash
	}
	plain := hash(func(*v1beta1.OperatorVersionSpec, *v1beta1.Instance) {})
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.OperatorVersionSpec, *v1beta1.Instance)
		same   bool
	}{
		{"the policies do not decide the content", func(s *v1beta1.OperatorVersionSpec, _ *v1beta1.Instance) {
			s.CRDTarball.CRDDownloadPolicy, s.CRDTarball.CRDUpdatePolicy = v1beta1.DownloadAlways, v1beta1.UpdateIfSafe
		}, true},
		{"nor do parameters", func(_ *v1beta1.OperatorVersionSpec, i *v1beta1.Instance) {
			i.Spec.Parameters = map[string]string{"A": "b"}
		}, true},
		{"another URL", func(s *v1beta1.OperatorVersionSpec, _ *v1beta1.Instance) { s.CRDTarball.HTTPSource.URL += "y" }, false},
		{"a digest", func(s *v1beta1.OperatorVersionSpec, _ *v1beta1.Instance) {
			s.CRDTarball.HTTPSource.SHA256 = strings.Repeat("a", 64)
		}, false},
		{"another OperatorVersion", func(_ *v1beta1.OperatorVersionSpec, i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "w" }, false},
		{"another version of the application", func(s *v1beta1.OperatorVersionSpec, _ *v1beta1.Instance) { s.AppVersion = "3.0" }, false},
	} {
		if got := hash(tc.change); (got == plain) != tc.same {
			t.Errorf("%s: same %t", tc.reason, got == plain)
		}
	}
}

// T35: a host that only an OperatorVersion names may be asked, and may have no private address.
func TestInsideHosts(t *testing.T) {
	f := New(context.Background(), Options{}, nil)
	tarball := &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://127.0.0.1:1/x"}}
	spec := &v1beta1.OperatorVersionSpec{CRDTarball: tarball}
	instance := &v1beta1.Instance{}
	for reason, own := range map[string]*v1beta1.CRDTarball{"the version's": nil, "the Instance's": tarball} {
		instance.Spec.CRDTarball = own
		wanted, err := f.Resolve(instance, "ns", spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wanted.Source.Fetch(t.Context(), nil, crdtarball.Validators{}); err == nil || !strings.Contains(err.Error(), "loopback or private") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestPolicyOf checks what the settings of kudo say of tarballs (T34).
func TestPolicyOf(t *testing.T) {
	const template = "https://a.example.com/{{ .AppVersion }}.tgz"
	for name, tc := range map[string]struct {
		reason   string
		settings settings.Settings
		want     Policy
	}{
		"Nothing": {"no default, and all public hosts", settings.Settings{}, Policy{}},
		"Hosts":   {"these hosts only", settings.Settings{AllowedHosts: []string{"a.example.com"}}, Policy{Hosts: []string{"a.example.com"}}},
		"Realms": {"hosts that get the credentials of registries", settings.Settings{TokenRealms: []string{"b.example.com"}},
			Policy{TokenRealms: []string{"b.example.com"}}},
		"Default": {"the tarball of versions that name none", settings.Settings{DefaultCRDURL: template},
			Policy{Default: &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: template}}}},
		"Others": {"other settings say nothing of tarballs", settings.Settings{DefaultAccount: "kudo", Mode: settings.Privileged}, Policy{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PolicyOf(tc.settings)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}
