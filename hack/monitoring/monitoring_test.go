package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/metrics"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func rules(t *testing.T) []Rule {
	t.Helper()
	all, err := ParseRules(read(t, "manifests", "monitoring", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// names returns the metrics and the labels of an expression, by Prometheus' parser.
func names(t *testing.T, expression string) (series []string, used map[string][]string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	used = map[string][]string{}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			series = append(series, selector.Name)
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name != model.MetricNameLabel {
					used[selector.Name] = append(used[selector.Name], matcher.Name)
				}
			}
		}
		return nil
	})
	return series, used
}

// check fails if an expression names a metric or a label that the table does not have.
func check(t *testing.T, where, expression string) {
	t.Helper()
	known := map[string]metrics.Metric{}
	for _, m := range metrics.Table {
		known[m.Name] = m
		if m.Type == metrics.Histogram {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[m.Name+suffix] = m
			}
		}
	}
	series, used := names(t, expression)
	if len(series) == 0 {
		t.Errorf("%s names no metric: %s", where, expression)
	}
	for _, name := range series {
		m, found := known[name]
		if !found {
			t.Errorf("%s names %s, which the manager does not have", where, name)
		}
		for _, label := range used[name] {
			if !slices.Contains(m.Labels, label) && label != "le" {
				t.Errorf("%s asks for the label %s of %s, which has %v", where, label, name, m.Labels)
			}
		}
	}
}

// TestRules checks R31: each alert names metrics that exist, has a duration and a severity, and a section in docs/runbooks.md with its
// meaning, its impact, three commands and a remedy.
func TestRules(t *testing.T) {
	page := string(read(t, "docs", "runbooks.md"))
	var alerts []string
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		check(t, r.Alert, r.Expr)
		if _, err := time.ParseDuration(r.For); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has the labels %v and the annotations %v", r.Alert, r.Labels, r.Annotations)
		}
		if want := "docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: the runbook is %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		_, section, found := strings.Cut(page, "\n## "+r.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, part := range []string{"**Meaning.**", "**Impact.**", "**Remedy.**"} {
			if !found || !strings.Contains(section, part) {
				t.Errorf("docs/runbooks.md does not say the %s of %s", part, r.Alert)
			}
		}
		if n := strings.Count(section, "\n* `kubectl "); n != 3 {
			t.Errorf("docs/runbooks.md has %d commands for %s, want three", n, r.Alert)
		}
	}
	for line := range strings.Lines(page) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "## "); found && !slices.Contains(alerts, name) {
			t.Errorf("docs/runbooks.md has a section %s, and there is no such alert", name)
		}
	}
}

// TestDashboard checks R31: each panel names metrics that exist.
func TestDashboard(t *testing.T) {
	var file struct{ Data map[string]string }
	if err := yaml.Unmarshal(read(t, "manifests", "monitoring", "dashboard.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(file.Data["kudo.json"]), &board); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, panel := range board.Panels {
		if seen[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %d, %q, shows nothing, or its number is taken", panel.ID, panel.Title)
		}
		seen[panel.ID] = true
		for _, target := range panel.Targets {
			check(t, panel.Title, target.Expr)
		}
	}
}

// TestAlertsFire checks R31 by Prometheus' engine: each alert has series that it fires for, and series that it does not fire for.
func TestAlertsFire(t *testing.T) {
	for alert, tc := range map[string]struct{ fires, quiet string }{
		"KudoManagerDown":             {`other 1x120`, `kudo_build_info{version="v1"} 1x120`},
		"KudoNoLeader":                {`kudo_leader{pod="a"} 0x120`, "kudo_leader{pod=\"a\"} 0x120\n  kudo_leader{pod=\"b\"} 1x120"},
		"KudoPlanStuck":               {`kudo_instance_stuck_seconds{namespace="a",instance="b",plan="deploy",reason="x"} 0+60x120`, `kudo_instance_stuck_seconds{namespace="a",instance="b",plan="deploy",reason="x"} 1700x120`},
		"KudoPlanFailures":            {"kudo_plan_runs_total{outcome=\"fatal\"} 0+1x120\n  kudo_plan_runs_total{outcome=\"complete\"} 0+2x120", "kudo_plan_runs_total{outcome=\"fatal\"} 0+1x120\n  kudo_plan_runs_total{outcome=\"complete\"} 0+9x120"},
		"KudoQueueGrowing":            {`kudo_plan_queue_length{operator="a"} 0+1x120`, `kudo_plan_queue_length{operator="a"} 120-1x120`},
		"KudoDrifted":                 {`kudo_instances_drifted{operator="a"} 1x120`, `kudo_instances_drifted{operator="a"} 0x120`},
		"KudoSharedObjectsMismatched": {`kudo_shared_objects_mismatched{operator="a"} 2x120`, `kudo_shared_objects_mismatched{operator="a"} 0x120`},
		"KudoCertificateExpires":      {`kudo_webhook_certificate_expiry_timestamp_seconds 1000000x120`, `kudo_webhook_certificate_expiry_timestamp_seconds 9000000x120`},
		"KudoConflicts":               {`kudo_write_conflicts_total{reason="fields"} 0+60x120`, `kudo_write_conflicts_total{reason="version"} 0+60x120`},
		"KudoRequestErrors":           {"kudo_api_requests_total{code=\"503\"} 0+10x120\n  kudo_api_requests_total{code=\"200\"} 0+90x120", "kudo_api_requests_total{code=\"503\"} 0+1x120\n  kudo_api_requests_total{code=\"200\"} 0+99x120"},
		"KudoPackageRefused":          {"kudo_instances_refused{operator=\"a\"} 0x120\n  kudo_operatorversions_refused{operator=\"a\"} 1x120", "kudo_instances_refused{operator=\"a\"} 0x120\n  kudo_operatorversions_refused{operator=\"a\"} 0x120"},
		"KudoPackagePolicyUnusable":   {`kudo_package_policies{ready="false"} 1x120`, "kudo_package_policies{ready=\"true\"} 3x120\n  kudo_package_policies{ready=\"false\"} 0x120"},
		"KudoPackageChecksFail":       {`kudo_package_verifications_total{caller="instance",result="error"} 0x115 1x5`, "kudo_package_verifications_total{caller=\"instance\",result=\"error\"} 7x120\n  kudo_package_verifications_total{caller=\"instance\",result=\"refused\"} 0+1x120"},
		"KudoAuthorityExpires":        {`kudo_package_authority_expiry_timestamp_seconds{policy="p",authority="a"} 2000000x120`, `kudo_package_authority_expiry_timestamp_seconds{policy="p",authority="a"} 9000000x120`},
		"KudoTarballFailures":         {`kudo_crd_tarball_failures_total{reason="a"} 0+1x120`, `kudo_crd_tarball_failures_total{reason="a"} 7x120`},
	} {
		t.Run(alert, func(t *testing.T) {
			i := slices.IndexFunc(rules(t), func(r Rule) bool { return r.Alert == alert })
			if i < 0 {
				t.Fatal("there is no such alert")
			}
			for series, want := range map[string]bool{tc.fires: true, tc.quiet: false} {
				if got := holds(t, rules(t)[i].Expr, series); got != want {
					t.Errorf("%s: fires %v, want %v", series, got, want)
				}
			}
		})
	}
	for _, r := range rules(t) {
		if !strings.Contains(string(read(t, "hack", "monitoring", "monitoring_test.go")), fmt.Sprintf("%q:", r.Alert)) {
			t.Errorf("no series are tried with %s", r.Alert)
		}
	}
}

// holds reports whether an expression has a result after two hours of the series, which have a value a minute.
func holds(t *testing.T, expression, series string) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+series+"\n")
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	query, err := engine.NewInstantQuery(t.Context(), storage, nil, expression, time.Unix(0, 0).Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	vector, err := result.Vector()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(vector, func(promql.Sample) bool { return true })
}

// TestFiring checks what fires if metrics go on as between two scrapes.
func TestFiring(t *testing.T) {
	const well = "kudo_build_info{version=\"v1\"} 1\nkudo_leader 1\n"
	for reason, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"all is well":             {well, well, nil},
		"no manager answers":      {"", "", []string{"KudoManagerDown"}},
		"none leads":              {well, "kudo_build_info{version=\"v1\"} 1\nkudo_leader 0\n", []string{"KudoNoLeader"}},
		"no progress goes on":     {well + stuckFor(300), well + stuckFor(310), []string{"KudoPlanStuck"}},
		"no progress has ended":   {well + stuckFor(300), well, nil},
		"an age that stays":       {well, well + stuckFor(310), nil},
		"a counter that goes on":  {well + "kudo_write_conflicts_total{reason=\"fields\"} 3\n", well + "kudo_write_conflicts_total{reason=\"fields\"} 5\n", []string{"KudoConflicts"}},
		"a counter that is slow":  {well + "kudo_write_conflicts_total{reason=\"fields\"} 3\n", well + "kudo_write_conflicts_total{reason=\"fields\"} 3\n", nil},
		"a manager starts anew":   {well + "# TYPE kudo_write_conflicts_total counter\nkudo_write_conflicts_total{reason=\"fields\"} 90\n", well + "# TYPE kudo_write_conflicts_total counter\nkudo_write_conflicts_total{reason=\"fields\"} 5\n", []string{"KudoConflicts"}},
		"a time that is near":     {well, well + fmt.Sprintf("kudo_webhook_certificate_expiry_timestamp_seconds %d\n", time.Now().Add(10*24*time.Hour).Unix()), []string{"KudoCertificateExpires"}},
		"a time that is far away": {well, well + fmt.Sprintf("kudo_webhook_certificate_expiry_timestamp_seconds %d\n", time.Now().Add(20*24*time.Hour).Unix()), nil},
	} {
		got, err := Firing(t.Context(), rules(t), strings.NewReader(tc.before), strings.NewReader(tc.after), 10*time.Second, time.Now())
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v fire (%v), want %v", reason, got, err, tc.want)
		}
	}
	for _, malformed := range []string{"kudo_leader x\n", "{\n"} {
		if _, err := Firing(t.Context(), rules(t), strings.NewReader(""), strings.NewReader(malformed), time.Second, time.Now()); err == nil {
			t.Errorf("%q is taken", malformed)
		}
	}
}

func stuckFor(seconds int) string {
	return fmt.Sprintf("kudo_instance_stuck_seconds{instance=\"i\",namespace=\"n\",plan=\"deploy\",reason=\"x\"} %d\n", seconds)
}
