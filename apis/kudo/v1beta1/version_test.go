package v1beta1

import (
	"strings"
	"testing"
)

// TestCompletedVersion shows G5: templates see versions only, whatever the status holds.
func TestCompletedVersion(t *testing.T) {
	if got := (&Instance{}).CompletedVersion(); got != (PackageVersion{}) {
		t.Errorf("a new Instance has %v", got)
	}
	for text, want := range map[string]string{
		"15.20.0": "15.20.0", "1.0.0-rc.1+build_7": "1.0.0-rc.1+build_7", "": "", "1\nkind: Secret": "", "1: {a: b}": "", "{{ .Params.PASSWORD }}": "",
		"$(reboot)": "", "1 2": "", "-flag": "", strings.Repeat("1", 129): "",
	} {
		i := &Instance{Status: InstanceStatus{Baseline: &Baseline{Completed: &PackageVersion{OperatorVersion: "2.0.0", AppVersion: text}}}}
		if got := i.CompletedVersion(); got.AppVersion != want || got.OperatorVersion != "2.0.0" {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
		if i.Status.Baseline.Completed.AppVersion != text {
			t.Errorf("%q: the status was changed", text)
		}
	}
}
