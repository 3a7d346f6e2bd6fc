package explore

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/live"
)

// hubRules is the folder of the rules for Instances.
const hubRules = "../../explore/library/hub"

// TestConvertInstanceRules checks C20 and C24: the rules for Instances become one customization without a warning, and can be read again.
func TestConvertInstanceRules(t *testing.T) {
	out, errs := commandtest.Expect(t, New, 0, "", "explore", "convert", "--to", "karmada", "--strict", "--instance-rules")
	if errs != "" || strings.Count(out, "kind: ResourceInterpreterCustomization\n") != 1 {
		t.Errorf("the rules: %s%s", errs, out)
	}
	for _, want := range []string{
		"name: instance.v1beta1.kudo.dev\n", "apiVersion: kudo.dev/v1beta1\n", "kind: Instance\n", "dependencyInterpretation:", "healthInterpretation:",
		"replicaResource:", "replicaRevision:", "retention:", "statusReflection:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the customization has no %q:\n%s", want, out)
		}
	}
	for _, other := range []string{"statusAggregation:", "componentResource:"} {
		if strings.Contains(out, other) {
			t.Errorf("the customization has %q: on a hub, the manager alone writes the status, and there are no components", other)
		}
	}
	again, _ := commandtest.Expect(t, New, 0, out, "explore", "convert", "-")
	commandtest.Expect(t, New, 0, again, "explore", "check", "--strict", "-f", "-")
	config, _ := commandtest.Expect(t, New, 0, "", "explore", "convert", "--instance-rules")
	commandtest.Expect(t, New, 0, config, "explore", "check", "--strict", "-f", "-")
	commandtest.Expect(t, New, 0, "", "explore", "test", "--strict", hubRules)
	commandtest.Expect(t, New, command.ExitUsage, "", "explore", "convert", "--instance-rules", "--library")
	commandtest.Expect(t, New, command.ExitUsage, "", "explore", "convert", "--instance-rules", "a")
}

// TestReportsOfInstances checks C27: what the rules report is a clusters.Report, and nothing of it is lost.
func TestReportsOfInstances(t *testing.T) {
	folders, err := cases.Load(os.DirFS(hubRules), live.NewHost())
	if err != nil {
		t.Fatal(err)
	}
	reports := 0
	for _, folder := range folders {
		for _, c := range folder.Cases {
			if c.Request.Operation != explore.Status || c.Output["status"] == nil {
				continue
			}
			text, err := json.Marshal(c.Output["status"])
			if err != nil {
				t.Fatal(err)
			}
			var report clusters.Report
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&report); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			again, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(again, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -rule +clusters.Report:\n%s", c.Name, diff)
			}
			reports++
		}
	}
	if reports < 10 {
		t.Errorf("%d reports were compared", reports)
	}
}
