package ui

import (
	"context"
	"net/http"
	"strings"
	"time"

	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

// settingsTime bounds how long the settings are read.
const settingsTime = 5 * time.Second

// settingsView is what the page of settings shows. It is read when the page is opened, and has no watch.
type settingsView struct {
	Problem string
	Read    time.Time
	Rows    []settingRow
}

// settingRow is a setting, with what it means.
type settingRow struct{ Name, Value, Meaning string }

func (s *Server) settingsPage(r *http.Request) screen {
	ctx, cancel := context.WithTimeout(r.Context(), settingsTime)
	defer cancel()
	shown := s.readSettings(ctx)
	return still(func() view {
		return view{Title: "Settings", Nav: "settings", Form: &fragment{Template: "settings", Data: shown}}
	})
}

// readSettings reads how kudo is installed, with the rights of the user.
func (s *Server) readSettings(ctx context.Context) settingsView {
	out := settingsView{Read: s.Clock.Now()}
	out.add("this command", s.Version, "kubectl kudo version")
	live, err := kudoinit.ReadState(ctx, s.client)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	if !live.Installed {
		out.Problem = "kudo is not installed on this cluster: run kubectl kudo init"
		return out
	}
	out.add("kudo on the cluster", live.Version, "the version that kubectl kudo init has installed")
	meaning := "plans write with the rights of a ServiceAccount of their namespace"
	if live.Settings.Mode == settings.Privileged {
		meaning = "Instances that name no ServiceAccount write with the rights of kudo: whoever may create Instances is an administrator"
	}
	out.add("mode", string(live.Settings.Mode), meaning)
	out.add("default account", live.Settings.DefaultAccount, "the ServiceAccount of Instances that name none")
	hosts := strings.Join(live.Settings.AllowedHosts, ", ")
	out.add("hosts of CRD tarballs", hosts, "others are refused; none: those that OperatorVersions name")
	policy := "packages need no signature where no PackagePolicy is for them"
	if live.Settings.RequirePackagePolicy {
		policy = "packages that no PackagePolicy is for are refused"
	}
	out.add("package policy", map[bool]string{true: "required", false: "not required"}[live.Settings.RequirePackagePolicy], policy)
	if live.SettingsError != nil {
		out.Problem = live.SettingsError.Error()
	}
	manager := live.Image
	if live.External {
		manager = "runs outside of the cluster, or was deleted"
	}
	out.add("manager", manager, "in namespace "+live.Namespace)
	s.addAuthorities(ctx, &out)
	return out
}

// add adds a setting; one without a value is said to have none.
func (v *settingsView) add(name, value, meaning string) {
	if value == "" {
		value = "none"
	}
	v.Rows = append(v.Rows, settingRow{name, value, meaning})
}

// addAuthorities adds until when the certificates are valid by which the API server trusts the webhooks. They are public, unlike the Secret
// with the key of the webhooks, which this page does not read.
func (s *Server) addAuthorities(ctx context.Context, out *settingsView) {
	authorities, err := kudoinit.Authorities(ctx, s.client)
	if err != nil {
		out.add("certificate authority of the webhooks", "not known", err.Error())
		return
	}
	for _, a := range authorities {
		meaning := "the API server trusts the webhooks until then: kubectl kudo init --verify checks their certificate, too"
		if s.Clock.Now().After(a.NotAfter) {
			meaning = "it has ended: the API server cannot reach the webhooks"
		}
		out.add("certificate authority of the webhooks", "valid until "+a.NotAfter.UTC().Format(time.RFC3339), meaning)
	}
}
