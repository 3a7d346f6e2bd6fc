package instances

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/repository/incluster"
	"kudo.dev/kudo/test/gen"
)

// splitCommand returns the words of a command line, as a shell sees them, behind "kubectl kudo".
func splitCommand(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", "printf '%s\\000' "+strings.TrimPrefix(line, "kubectl kudo ")).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestCopiedCommand checks U4: the command line of an action, which a user may copy from the page, has the same preview and gives the
// same spec as the action.
func TestCopiedCommand(t *testing.T) {
	version, newer, older := web("1.0.0"), web("1.1.0"), web("0.9.0")
	all := incluster.New("lab", []v1beta1.OperatorVersion{*version, *newer, *older})
	for _, tc := range []struct {
		reason  string
		command commandtest.Constructor
		action  func(i *v1beta1.Instance) act.Edit
		apply   func(i *v1beta1.Instance)
	}{
		{"a plan", NewPlan, func(i *v1beta1.Instance) act.Edit { return act.Trigger{Instance: i, Plan: "backup"} },
			func(i *v1beta1.Instance) { i.Spec.PlanExecution.PlanName = "backup" }},
		{"a value for a shell", NewUpdate, func(i *v1beta1.Instance) act.Edit {
			return act.Update{Instance: i, Version: version, Set: map[string]string{"VALUE": "it's $(id); \"x\"\n\\ -p A=b"}}
		}, func(i *v1beta1.Instance) { i.Spec.Parameters["VALUE"] = "it's $(id); \"x\"\n\\ -p A=b" }},
		{"a default", NewUpdate, func(i *v1beta1.Instance) act.Edit {
			return act.Update{Instance: i, Version: version, Unset: []string{"VALUE"}}
		}, func(i *v1beta1.Instance) { delete(i.Spec.Parameters, "VALUE") }},
		{"another version", NewUpgrade, func(i *v1beta1.Instance) act.Edit {
			return act.Upgrade{Instance: i, Old: version, Version: newer, Installed: all}
		},
			func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = newer.Name }},
		{"a lower version", NewUpgrade, func(i *v1beta1.Instance) act.Edit {
			return act.Upgrade{Instance: i, Old: version, Version: older, Installed: all, AllowDowngrade: true}
		}, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = older.Name }},
	} {
		server := onServer(t, version, newer, older, site(version))
		server.Read(version)
		want, got := site(version), &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
		server.Read(want) // with its resourceVersion
		previewer := &act.Previewer{Config: server.Config(), Client: server.Client(), Limit: time.Minute}
		edit := tc.action(want)
		change, err := edit.Change(t.Context(), server.Client())
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		p, err := edit.Preview(t.Context(), previewer, change)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		commandtest.Expect(t, tc.command, 0, "", splitCommand(t, edit.Command()+" --expect "+p.Digest)...)
		server.Read(got)
		tc.apply(want)
		got.Spec.PlanExecution.UID = ""
		if diff := cmp.Diff(want.Spec.PlanExecution, got.Spec.PlanExecution); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
		if want.Spec.OperatorVersion != got.Spec.OperatorVersion {
			t.Errorf("%s: the Instance names %+v", tc.reason, got.Spec.OperatorVersion)
		}
		if len(want.Spec.Parameters) > 0 || len(got.Spec.Parameters) > 0 {
			if diff := cmp.Diff(want.Spec.Parameters, got.Spec.Parameters); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		}
	}
	server := onServer(t, version, newer, &corev1.ServiceAccount{ObjectMeta: gen.Meta("lab", "kudo")})
	wanted := gen.Instance("site", version, map[string]string{"VALUE": "it's"})
	wanted.Spec.ServiceAccountName = "kudo"
	install := act.Install{Instance: wanted, Version: version, Installed: all}
	p, err := install.Preview(t.Context(), &act.Previewer{Config: server.Config(), Client: server.Client(), Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	commandtest.Expect(t, NewInstall, 0, "", splitCommand(t, install.Command()+" --expect "+p.Digest)...)
	made := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	server.Read(made)
	if diff := cmp.Diff(wanted.Spec, made.Spec); diff != "" {
		t.Errorf("install: -want +got: %s", diff)
	}
	server = onServer(t, version, site(version))
	commandtest.Expect(t, NewUninstall, 0, "", splitCommand(t, act.Uninstall{Instance: site(version)}.Command())...)
	left := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	if found := server.Get(left); found != nil && found.GetDeletionTimestamp() == nil {
		t.Error("uninstall: the Instance is not deleted")
	}
}
