package plane

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

func testPlane(profile instance.Profile, withKudo bool) *Plane {
	return &Plane{Instance: instance.New("/state", "one", instance.Settings{Profile: profile, WithKudo: withKudo})}
}

func TestComponentsOfProfiles(t *testing.T) {
	tests := []struct {
		reason   string
		profile  instance.Profile
		withKudo bool
		want     string
	}{
		{"full runs pods", instance.Full, false, "etcd kube-apiserver kube-controller-manager kube-scheduler kwok"},
		{"the manager is the last, it needs all others", instance.Full, true, "etcd kube-apiserver kube-controller-manager kube-scheduler kwok manager"},
		{"nothing schedules in profile api", instance.API, false, "etcd kube-apiserver kube-controller-manager"},
	}
	for _, tc := range tests {
		p := testPlane(tc.profile, tc.withKudo)
		if got := strings.Join(p.Components(), " "); got != tc.want {
			t.Errorf("%s: components are %s", tc.reason, got)
		}
		var grouped []string
		for _, group := range p.groups() {
			for _, c := range group {
				grouped = append(grouped, c.name)
			}
		}
		if got := strings.Join(grouped, " "); got != tc.want {
			t.Errorf("%s: started are %s", tc.reason, got)
		}
	}
	if got := testPlane(instance.API, false).staleComponents(); !slices.Equal(got, []string{"kube-scheduler", "kwok", "node", "manager"}) {
		t.Errorf("staleComponents in profile api: %v", got)
	}
	if _, err := testPlane(instance.API, false).component("kwok"); err == nil || !strings.Contains(err.Error(), "it has etcd") {
		t.Errorf("error for a component that is not there: %v", err)
	}
}

func TestEveryPortHasOneOwner(t *testing.T) {
	owners := map[string]string{}
	for _, c := range testPlane(instance.Full, true).components() {
		for _, use := range c.ports {
			if owners[use] != "" {
				t.Errorf("port %s belongs to %s and %s", use, owners[use], c.name)
			}
			owners[use] = c.name
		}
		if !slices.Contains(everything, c.name) {
			t.Errorf("down would not stop %s", c.name)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(path, []byte("1\n2\n3\nno end"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		lines int
		want  string
	}{{0, ""}, {1, "no end"}, {2, "3\nno end"}, {9, "1\n2\n3\nno end"}, {-1, "1\n2\n3\nno end"}}
	for _, tc := range tests {
		got, offset, err := Tail(path, tc.lines)
		if err != nil || string(got) != tc.want || offset != 12 {
			t.Errorf("Tail(%d) = %q, %d, %v", tc.lines, got, offset, err)
		}
	}
	if got := lastLines(filepath.Join(t.TempDir(), "none"), 3); !strings.Contains(got, "no such file") {
		t.Errorf("the end of a log that is not there: %q", got)
	}
}

// TestFeatures: features are turned on in all components, and APIs in the API server alone.
func TestFeatures(t *testing.T) {
	p := testPlane(instance.Full, false)
	p.store = &pki.Store{}
	features, runtime := "--feature-gates=StorageVersionMigrator=true", "--runtime-config=storagemigration.k8s.io/v1beta1=true"
	has := func(args []string) (got [2]bool) {
		return [2]bool{slices.Contains(args, features), slices.Contains(args, runtime)}
	}
	for _, want := range [][3][2]bool{{}, {{true, true}, {true, false}, {true, false}}} {
		if got := [3][2]bool{has(p.apiServerArgs()), has(p.controllerManagerArgs()), has(p.schedulerArgs())}; got != want {
			t.Errorf("features and APIs %v, want %v", got, want)
		}
		p.Settings.FeatureGates, p.Settings.RuntimeConfig = "StorageVersionMigrator=true", "storagemigration.k8s.io/v1beta1=true"
	}
}

// TestKubernetesDir: the servers of another Kubernetes take the place of those in this program, and are looked for before anything starts.
func TestKubernetesDir(t *testing.T) {
	p := testPlane(instance.Full, false)
	p.Settings.KubernetesDir, p.executable = t.TempDir(), "/kudo-local"
	for name, own := range map[string]bool{"etcd": true, "kube-apiserver": false, "kube-controller-manager": false, "kube-scheduler": false, "kwok": true} {
		at := slices.IndexFunc(p.components(), func(c component) bool { return c.name == name })
		c := p.components()[at]
		c.args = func(*Plane) []string { return []string{"--flag"} }
		program, args := p.command(c)
		want, wantArgs := filepath.Join(p.Settings.KubernetesDir, name), []string{"--flag"}
		if own {
			want, wantArgs = "/kudo-local", []string{"component", name, "--flag"}
		}
		if program != want || !slices.Equal(args, wantArgs) {
			t.Errorf("%s is run by %s %v, want %s %v", name, program, args, want, wantArgs)
		}
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		want := "--kubernetes-dir needs the program " + filepath.Join(p.Settings.KubernetesDir, name) + ", which is not there"
		if err := p.CheckPrograms(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := os.WriteFile(filepath.Join(p.Settings.KubernetesDir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.CheckPrograms(); err != nil {
		t.Error(err)
	}
}
