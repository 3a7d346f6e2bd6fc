package explore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestExploreOutput compares what commands print with testdata/explore/<case>.golden.
func TestExploreOutput(t *testing.T) {
	const dir = "testdata/explore/"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
	}{
		"check":           {"what is right", []string{"check", "-f", dir + "config.yaml"}, 0},
		"check-wrong":     {"what is not", []string{"check", "-f", dir + "wrong.yaml"}, command.ExitError},
		"check-nothing":   {"files are needed", []string{"check"}, command.ExitUsage},
		"run-retain":      {"what is kept", []string{"run", "-f", dir + "config.yaml", "--operation", "Retain", "--desired", dir + "desired.yaml", "--observed", dir + "observed.yaml"}, 0},
		"run-health":      {"a value", []string{"run", "-f", dir + "config.yaml", "--operation", "InterpretHealth", "--observed", dir + "observed.yaml"}, 0},
		"run-json":        {"for programs", []string{"run", "-f", dir + "config.yaml", "--operation", "InterpretHealth", "--observed", dir + "observed.yaml", "-o", "json"}, 0},
		"run-revise":      {"with an argument", []string{"run", "-f", dir + "config.yaml", "--operation", "ReviseReplica", "--replicas", "7", "--desired", dir + "desired.yaml"}, 0},
		"run-status":      {"with items", []string{"run", "-f", dir + "config.yaml", "--operation", "AggregateStatus", "--status", dir + "items.yaml", "--desired", dir + "desired.yaml"}, 0},
		"run-none":        {"no layer answers", []string{"run", "-f", dir + "config.yaml", "--operation", "ExplorePacking", "--observed", dir + "observed.yaml"}, 0},
		"run-unknown":     {"operations exist", []string{"run", "-f", dir + "config.yaml", "--operation", "Reatin", "--observed", dir + "observed.yaml"}, command.ExitUsage},
		"run-object":      {"an object is needed", []string{"run", "-f", dir + "config.yaml", "--operation", "Retain"}, command.ExitUsage},
		"run-native":      {"what kudo knows without Configs", []string{"run", "--operation", "InterpretReplica", "--desired", dir + "desired.yaml"}, 0},
		"run-library":     {"and what comes with it", []string{"run", "--operation", "InterpretHealth", "--observed", dir + "certificate.yaml"}, 0},
		"test-none":       {"cases are needed", []string{"test", dir}, command.ExitError},
		"test-o":          {"formats exist", []string{"test", dir, "-o", "xml"}, command.ExitUsage},
		"convert":         {"a customization becomes a Config", []string{"convert", dir + "customization.yaml"}, 0},
		"convert-karmada": {"a Config becomes customizations", []string{"convert", "--to", "karmada", dir + "config.yaml"}, 0},
		"convert-strict":  {"what Karmada has not is an error", []string{"convert", "--to", "karmada", "--strict", dir + "config.yaml"}, command.ExitError},
		"convert-webhook": {"a hub is asked for what Karmada's scripts cannot say", []string{"convert", "--to", "karmada", "--strict", "--webhook-url", "https://hub.example.org:9443", dir + "config.yaml"}, 0},
		"convert-to":      {"two formats exist", []string{"convert", "--to", "helm", dir + "config.yaml"}, command.ExitUsage},
		"convert-secret":  {"another kind does not", []string{"convert", dir + "secret.yaml"}, command.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			commandtest.ExpectGolden(t, New, tc.code, name, tc.reason, append([]string{"explore"}, tc.args...)...)
		})
	}
}

// TestExploreTest runs a tree whose cases pass, and one of which one fails.
func TestExploreTest(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("rules/g/v1/K/config.yaml", "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: k}\nspec: {explorations: [{apiVersion: g/v1, kind: K, healthLua: return observedObj.ok}]}\n")
	health := "operation: InterpretHealth\nobservedObj: {apiVersion: g/v1, kind: K, metadata: {name: a}, ok: %v}\noutput: {healthy: true}\n"
	write("rules/g/v1/K/testdata/a.yaml", fmt.Sprintf(health, true))
	if out, errs, code := commandtest.Run(t, New, "", "explore", "test", "rules"); code != 0 || !strings.Contains(out, "1 cases passed, 0 failed, 0 broken, 0 unasserted") {
		t.Errorf("all pass: %d\n%s%s", code, out, errs)
	}
	write("rules/g/v1/K/testdata/b.yaml", fmt.Sprintf(health, false))
	for format, want := range map[string]string{"": "FAIL InterpretHealth (g/v1/K/testdata/b.yaml:1)\n  healthy: want true, got false", "json": `"healthy: want true, got false"`, "junit": `<failure message="healthy: want true, got false">`} {
		args := []string{"explore", "test", "rules"}
		if format != "" {
			args = append(args, "-o", format)
		}
		if out, errs, code := commandtest.Run(t, New, "", args...); code != command.ExitFailed || !strings.Contains(out, want) || !strings.Contains(errs, "1 of 2 cases failed") {
			t.Errorf("-o %q: %d\n%s%s", format, code, out, errs)
		}
	}
}

// TestCheckStrict checks that a global that a script reads and does not define is a warning, and an error with --strict.
func TestCheckStrict(t *testing.T) {
	t.Chdir(t.TempDir())
	config := "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: k}\nspec: {explorations: [{apiVersion: g/v1, kind: K, healthLua: return undefinedName == nil}]}\n"
	if err := os.WriteFile("config.yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := commandtest.Run(t, New, "", "explore", "check", "-f", "config.yaml"); code != 0 || !strings.Contains(errs, "undefinedName") {
		t.Errorf("a warning: %d\n%s%s", code, out, errs)
	}
	if out, errs, code := commandtest.Run(t, New, "", "explore", "check", "-f", "config.yaml", "--strict"); code != command.ExitError || !strings.Contains(out, "undefinedName") {
		t.Errorf("an error: %d\n%s%s", code, out, errs)
	}
}

// TestMalformedFiles (C53): a run with ten malformed files reports ten broken cases, judges the rest, and has exit code 1, also if a case
// failed.
func TestMalformedFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const dir = "rules/g/v1/K/"
	write(dir+"config.yaml", "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: k}\nspec: {explorations: [{apiVersion: g/v1, kind: K, healthLua: return observedObj.ok}]}\n")
	good := "operation: InterpretHealth\nobservedObj: {apiVersion: g/v1, kind: K, metadata: {name: a}, ok: %v}\noutput: {healthy: true}\n"
	write(dir+"testdata/a.yaml", fmt.Sprintf(good, true))
	write(dir+"testdata/b.yaml", fmt.Sprintf(good, false))
	malformed := []string{"a: [", "a:\n\tb: 1", "- 1\n- 2", "operation: 7", "operation: Fly", "just text", "observedObj: 3", "{{ x }}", "operation: InterpretHealth\noutput: 3",
		"operation: [InterpretHealth]"}
	for n, text := range malformed {
		write(fmt.Sprintf("%stestdata/broken-%d.yaml", dir, n), text+"\n")
	}
	out, errs, code := commandtest.Run(t, New, "", "explore", "test", "rules")
	if want := fmt.Sprintf("1 cases passed, 1 failed, %d broken, 0 unasserted", len(malformed)); code != command.ExitError || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %d and %q:\n%s%s", code, command.ExitError, want, out, errs)
	}
	for n := range malformed {
		if file := fmt.Sprintf("testdata/broken-%d.yaml:", n); strings.Count(out, file) == 0 {
			t.Errorf("%s is not reported:\n%s", file, out)
		}
	}
}
