package cli

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

func TestApply(t *testing.T) {
	full := instance.Settings{Profile: instance.Full, PodReadyDelay: time.Second, InitArgs: []string{"--a"}}
	yes := true
	servers, err := filepath.Abs("servers")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason, args string
		fresh        bool
		change       func(*instance.Settings)
		wantError    string
	}{
		{reason: "flags that are not given change nothing", change: func(*instance.Settings) {}},
		{reason: "each flag sets its setting, also to a default", args: "--pod-ready-delay 2s --feature-gates A=true --runtime-config b=true " +
			"--audit-log --with-kudo --privileged --manager-arg -v --bin-dir servers --nodes fake", change: func(s *instance.Settings) {
			s.PodReadyDelay, s.FeatureGates, s.RuntimeConfig = 2*time.Second, "A=true", "b=true"
			s.AuditLog, s.WithKudo, s.Privileged, s.ManagerArgs, s.BinDir = true, true, &yes, []string{"-v"}, servers
		}},
		{reason: "an empty argument takes all away", args: "--init-arg=", change: func(s *instance.Settings) { s.InitArgs = []string{} }},
		{reason: "a new instance can have any profile", args: "--profile api", fresh: true,
			change: func(s *instance.Settings) { s.Profile = instance.API }},
		{reason: "a folder is made absolute", args: "--kubernetes-dir servers", fresh: true,
			change: func(s *instance.Settings) { s.KubernetesDir = servers }},
		{reason: "a profile stays", args: "--profile api --audit-log", wantError: `"one" has the profile full: take another --name, or first 'kudo-local down`},
		{reason: "there are two profiles", args: "--profile half", fresh: true, wantError: `--profile: there is no profile "half"`},
		{reason: "nodes are fake or real", args: "--nodes none", fresh: true, wantError: `--nodes: there are no nodes "none"`},
		{reason: "no pod is ready before it is scheduled", args: "--pod-ready-delay=-1s", wantError: "--pod-ready-delay: "},
		{reason: "old versions cannot be emulated", args: "--kubernetes-version 1.2", fresh: true, wantError: "--kubernetes-version: "},
		{reason: "flags exclude each other", args: "--nodes real --profile api", fresh: true, wantError: "exclude each other"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f, flags := &upFlags{}, pflag.NewFlagSet("up", pflag.ContinueOnError)
			f.register(flags)
			if err := flags.Parse(strings.Fields(tc.args)); err != nil {
				t.Fatal(err)
			}
			i := instance.New(t.TempDir(), "one", full)
			err := f.apply(flags.Changed, &options{name: "one"}, i, tc.fresh)
			if (err != nil) != (tc.wantError != "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("the error is %v, want one with %q", err, tc.wantError)
			}
			want := full
			if tc.change != nil {
				tc.change(&want)
			}
			if !reflect.DeepEqual(i.Settings, want) {
				t.Errorf("the settings are %+v, want %+v", i.Settings, want)
			}
		})
	}
}
