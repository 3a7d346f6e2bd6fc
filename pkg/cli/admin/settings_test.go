package admin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
)

// parsed returns the flags of settings after they were read.
func parsed(t *testing.T, args ...string) *settingFlags {
	t.Helper()
	s := &settingFlags{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.add(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	s.given = flags.Changed
	return s
}

// TestSettingFlags checks which settings of a cluster flags change, and that the others stay.
func TestSettingFlags(t *testing.T) {
	privileged := map[string]string{settings.ModeKey: string(settings.Privileged), settings.DefaultAccountKey: "runner", settings.RunAsEverywhereKey: "true"}
	for name, tc := range map[string]struct {
		reason string
		before map[string]string // nil for a cluster without kudo
		args   []string
		want   map[string]string // of the keys that matter
		given  bool
	}{
		"New":            {"a new installation is strict", nil, nil, map[string]string{settings.ModeKey: string(settings.Strict)}, false},
		"NewPrivileged":  {"unless a flag says otherwise", nil, []string{"--privileged"}, map[string]string{settings.ModeKey: string(settings.Privileged)}, true},
		"Stays":          {"without a flag, nothing changes", privileged, nil, privileged, false},
		"Strict":         {"a flag changes one setting", privileged, []string{"--strict"}, map[string]string{settings.ModeKey: string(settings.Strict), settings.DefaultAccountKey: "runner", settings.RunAsEverywhereKey: "true"}, true},
		"RunAsOff":       {"a flag that is false was given, too", privileged, []string{"--" + settings.RunAsEverywhereKey + "=false"}, map[string]string{settings.ModeKey: string(settings.Privileged), settings.RunAsEverywhereKey: "false"}, true},
		"Account":        {"an account", privileged, []string{"--" + settings.DefaultAccountKey, "other"}, map[string]string{settings.DefaultAccountKey: "other", settings.ModeKey: string(settings.Privileged)}, true},
		"Hosts":          {"hosts", nil, []string{"--" + settings.AllowedHostsKey, "example.org,*.example.com"}, map[string]string{settings.AllowedHostsKey: "example.org,*.example.com"}, true},
		"ArgumentsFlags": {"what happens to arguments is no setting", nil, []string{"--keep-args"}, map[string]string{settings.ModeKey: string(settings.Strict)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, tc.args...)
			to := settings.Settings{}
			if tc.before != nil {
				var err error
				if to, err = settings.Parse(tc.before); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.apply(&to); err != nil {
				t.Fatal(err)
			}
			data := to.Data()
			for key, want := range tc.want {
				if got := strings.ReplaceAll(data[key], " ", ""); got != want {
					t.Errorf("%s: %s is %q, want %q", tc.reason, key, got, want)
				}
			}
			if s.any() != tc.given {
				t.Errorf("%s: a flag was given: %t", tc.reason, s.any())
			}
			again := to
			if err := s.apply(&again); err != nil || !cmp.Equal(again.Data(), data) {
				t.Errorf("%s: the same flags change nothing more: %v, %v", tc.reason, again.Data(), err)
			}
		})
	}
}

// TestSettingFlagsWrong checks that a wrong value changes no setting, and is wrong usage.
func TestSettingFlagsWrong(t *testing.T) {
	for flag, value := range map[string]string{
		settings.DefaultAccountKey: "A_b", settings.DefaultCRDURLKey: "{{ .Nope }}",
	} {
		s := parsed(t, "--strict", "--"+flag, value)
		to := settings.Default()
		to.Mode = settings.Privileged
		before := to.Data()
		err := s.apply(&to)
		var coded *command.CodeError
		if !errors.As(err, &coded) || coded.Code != command.ExitUsage || !strings.Contains(err.Error(), flag) || strings.Contains(err.Error(), "ConfigMap") {
			t.Errorf("--%s %s: %v", flag, value, err)
		}
		if diff := cmp.Diff(before, to.Data()); diff != "" {
			t.Errorf("--%s %s: the settings were changed:\n%s", flag, value, diff)
		}
	}
}

// TestReadyTime checks how long init waits until kudo is ready.
func TestReadyTime(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		upgrade bool
		time    command.Seconds
		want    command.Seconds
	}{
		{"as the flag says", false, 7, 7},
		{"an upgrade, too", true, 7, 7},
		{"an upgrade that does not wait for plans waits for the manager", true, 0, command.DefaultWait},
		{"an installation that does not wait", false, 0, 0},
	} {
		if got := (&initOptions{upgrade: tc.upgrade, waitTime: tc.time}).readyTime(); command.Seconds(got) != tc.want {
			t.Errorf("%s: %s", tc.reason, got)
		}
	}
}

// onServer starts an API server in memory, which commands of the test connect to.
func onServer(t *testing.T, objects ...client.Object) *apitest.Server {
	t.Helper()
	noCluster(t)
	server := apitest.Start(t, objects...)
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s'}}]\ncontexts: [{name: c, context: {cluster: c, namespace: lab}}]\n", server.Config().Host)
	if err := os.WriteFile(os.Getenv("KUBECONFIG"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return server
}

// writes returns the requests that change objects.
func writes(server *apitest.Server) []string {
	return slices.DeleteFunc(server.Requests(), func(request string) bool {
		verb, _, _ := strings.Cut(request, " ")
		return !slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, verb) || strings.Contains(request, "AccessReview")
	})
}

// TestVersionMode checks what version says of the mode of a cluster.
func TestVersionMode(t *testing.T) {
	config := func(mode settings.Mode) *corev1.ConfigMap {
		s := settings.Default()
		s.Mode = mode
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kudoinit.DefaultNamespace, Name: settings.ConfigMap}, Data: s.Data()}
	}
	namespace := func(name, privileged string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.PrivilegedLabel: privileged}}}
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		want    string
	}{
		"None":       {"without settings, the default counts", nil, "mode: strict\n"},
		"Strict":     {"strict", []client.Object{config(settings.Strict)}, "mode: strict\n"},
		"Privileged": {"privileged, whatever namespaces say", []client.Object{config(settings.Privileged), namespace("a", "true")}, "mode: privileged, all namespaces\n"},
		"Namespaces": {"strict, but for namespaces with the label", []client.Object{config(settings.Strict), namespace("b", "true"), namespace("a", "true"), namespace("c", "false")}, "mode: strict, privileged in a, b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			server := onServer(t, tc.objects...)
			out, _ := commandtest.Expect(t, NewVersion, 0, "", "version")
			if _, mode, _ := strings.Cut(out, "\n"); mode != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, mode, tc.want)
			}
			if changed := writes(server); len(changed) > 0 {
				t.Errorf("version changes objects: %v", changed)
			}
		})
	}
}

// TestRotateNotInstalled checks that no key is made on a cluster without kudo.
func TestRotateNotInstalled(t *testing.T) {
	server := onServer(t)
	for _, args := range [][]string{{"init", "--rotate-history-key"}, {"init", "--rotate-history-key", "--drop-old"}} {
		_, errs := commandtest.Expect(t, NewInit, command.ExitError, "", args...)
		if !strings.Contains(errs, "kudo is not installed on this cluster, so there is no key to rotate: run kubectl kudo init") {
			t.Errorf("%v: %s", args, errs)
		}
	}
	if changed := writes(server); len(changed) > 0 {
		t.Errorf("objects were changed: %v", changed)
	}
}

// TestInitNoImage checks that a build without an image changes nothing on a cluster before it says so.
func TestInitNoImage(t *testing.T) {
	server := onServer(t)
	_, errs := commandtest.Expect(t, NewInit, command.ExitUsage, "", "init")
	if !strings.Contains(errs, noImage) {
		t.Errorf("no remedy in %s", errs)
	}
	if changed := writes(server); len(changed) > 0 {
		t.Errorf("objects were changed: %v", changed)
	}
}

// TestDiagnosticsTarget checks which targets of diagnostics are refused, and that nothing is left of them.
func TestDiagnosticsTarget(t *testing.T) {
	onServer(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("there.tar.gz", []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"File":   {"an archive is not overwritten", []string{"-o", "there.tar.gz"}, "there.tar.gz exists already: remove it, or choose another name with --output or --output-directory"},
		"Folder": {"nor is a folder", []string{"-O", "folder"}, "folder exists already"},
		"Dir":    {"by the other name of the flag, too", []string{"--dir", "folder"}, "folder exists already"},
		"Slash":  {"with a slash behind it, too", []string{"-O", "folder/"}, "folder exists already"},
		"Parent": {"the folder of an archive exists", []string{"-o", "none/a.tar.gz"}, "write none/a.tar.gz: "},
		"Absent": {"the Instance exists", nil, "site"},
		"NewDir": {"with a slash behind the folder, the error is the same", []string{"-O", "new/"}, "site"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := commandtest.Expect(t, NewDiagnostics, command.ExitError, "", append([]string{"diagnostics", "collect", "--instance", "site"}, tc.args...)...)
			if !strings.Contains(errs, tc.want) || strings.HasSuffix(name, "Dir") && strings.Contains(errs, "write new") {
				t.Errorf("%s: no %q in\n%s", tc.reason, tc.want, errs)
			}
			left, err := filepath.Glob("*")
			hidden, _ := filepath.Glob(".kudo-diag-*")
			if err != nil || !cmp.Equal(left, []string{"folder", "there.tar.gz"}) || len(hidden) > 0 {
				t.Errorf("%s: files %v and %v, error %v", tc.reason, left, hidden, err)
			}
		})
	}
	if kept, err := os.ReadFile("there.tar.gz"); err != nil || string(kept) != "kept" {
		t.Errorf("the archive was changed: %q, %v", kept, err)
	}
}
