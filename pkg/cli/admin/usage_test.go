package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/kudoinit"
)

// noCluster gives a test a kubeconfig without clusters, and a folder of its own.
func noCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUDO_HOME", filepath.Join(t.TempDir(), "home"))
}

// TestUsage checks that a wrong command line is refused before the cluster is connected, with the exit code of wrong usage.
func TestUsage(t *testing.T) {
	noCluster(t)
	const image = "example.com/kudo@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for line, want := range map[string]string{
		"init now":           "init takes no arguments",
		"init --wait-time 5": "--wait-time requires --wait, --remove or --upgrade",
		"init --webhook-url https://localhost:9443":              "require --external-manager",
		"init --manager-kubeconfig k":                            "require --external-manager",
		"init --token-duration 1h":                               "--token-duration requires --manager-kubeconfig",
		"init --token-duration 9000h":                            "8760h",
		"init --crd-only --external-manager":                     "--crd-only and --external-manager exclude each other",
		"init --kudo-image example.com/kudo:1 --version 0.20.0":  "--kudo-image and --version exclude each other",
		"init --pipe-image example.com/kudo:1":                   "--pipe-image: ",
		"init --pipe-image " + image + " --external-manager":     "give it to the manager",
		"init --insecure-metrics --external-manager":             "give --metrics-secure=false to the manager",
		"init --cert-manager --unsafe-self-signed-webhook-ca":    "exclude each other",
		"init --cert-manager --external-manager":                 "the certificate is for the Service",
		"init --dry-run --diff":                                  "--dry-run and --diff exclude each other",
		"init --diff --wait":                                     "--wait cannot be used with --dry-run and --diff",
		"init --remove --diff":                                   "--diff cannot be used with",
		"init --diff -o yaml":                                    "--output requires --dry-run or --verify",
		"init --verify --dry-run":                                "--dry-run cannot be used with --verify",
		"init --client-only --wait":                              "take no flags of an installation",
		"init --rotate-history-key --insecure-metrics=false":     "take no flags of an installation",
		"init --upgrade --crd-only":                              "--upgrade and --crd-only exclude each other",
		"init --remove -o yaml":                                  "--output requires --dry-run or --verify",
		"init --remove --dry-run -o wide":                        "use text, json, yaml or markdown",
		"init --dry-run -o markdown":                             "only yaml and json are known",
		"init --instances keep":                                  "--remove-crds and --instances require --remove",
		"token":                                                  "--manager-kubeconfig is missing",
		"token x":                                                "no arguments",
		"token --manager-kubeconfig none --token-duration 1s":    "10m",
		"token --manager-kubeconfig none":                        "is not there: kubectl kudo init --external-manager",
		"version x":                                              "no arguments",
		"version -o table":                                       `invalid output format "table"`,
		"diagnostics get":                                        `has no command "get"`,
		"diagnostics collect":                                    "--instance is missing",
		"diagnostics collect --instance x -o a -O b":             "none of the others can be",
		"diagnostics collect --instance x --log-since yesterday": "neither a number of seconds",
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			construct := map[string]commandtest.Constructor{
				"init": NewInit, "token": NewToken, "version": NewVersion, "diagnostics": NewDiagnostics,
			}[args[0]]
			out, errs := commandtest.Expect(t, construct, command.ExitUsage, "", args...)
			if out != "" || !strings.HasPrefix(errs, "Error: ") || !strings.Contains(errs, want) {
				t.Errorf("no %q in\n%s%s", want, out, errs)
			}
		})
	}
}

// TestNoCluster checks that a command line that is right says that no cluster is configured.
func TestNoCluster(t *testing.T) {
	noCluster(t)
	kubeconfig := filepath.Join(t.TempDir(), "manager.kubeconfig")
	if err := os.WriteFile(kudoinit.TokenFile(kubeconfig), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		command commandtest.Constructor
		args    []string
	}{
		{NewInit, []string{"init", "--kudo-image", "example.com/kudo:1"}},
		{NewToken, []string{"token", "--manager-kubeconfig", kubeconfig}},
		{NewDiagnostics, []string{"diagnostics", "collect", "--instance", "x"}},
	} {
		_, errs := commandtest.Expect(t, tc.command, command.ExitError, "", tc.args...)
		if !strings.Contains(errs, "no cluster is configured") {
			t.Errorf("%v:\n%s", tc.args, errs)
		}
	}
}

// TestClientOnly checks that init --client-only makes the folder of repositories, and touches no cluster.
func TestClientOnly(t *testing.T) {
	noCluster(t)
	for range 2 { // it may be run again
		commandtest.Expect(t, NewInit, 0, "", "init", "--client-only")
		if _, err := os.Stat(filepath.Join(os.Getenv("KUDO_HOME"), "repository", "repositories.yaml")); err != nil {
			t.Error(err)
		}
	}
}

// TestDryRunFormats checks what a dry run prints, and what it warns of.
func TestDryRunFormats(t *testing.T) {
	noCluster(t)
	for name, tc := range map[string]struct {
		reason          string
		args            []string
		out, errs, lack string
	}{
		"YAML":      {"documents", nil, "kind: Deployment", "the Secret kudo-history-key is not printed", "\n  current: "},
		"JSON":      {"one list", []string{"-o", "json"}, `"kind": "List"`, "is not printed", "---"},
		"CRDs":      {"a definition needs no key", []string{"--crd-only"}, "kind: CustomResourceDefinition", "", "kind: Deployment"},
		"Namespace": {"in another namespace", []string{"-n", "tools"}, "namespace: tools", "-n tools", "namespace: kudo-system"},
		"External": {
			"without a Deployment", []string{"--external-manager", "--webhook-url", "https://localhost:9443"},
			"url: https://localhost:9443", "", "kind: Deployment",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"init", "--dry-run", "--kudo-image", "example.com/kudo:1"}, tc.args...)
			if name == "CRDs" || name == "External" {
				args = append([]string{"init", "--dry-run"}, tc.args...)
			}
			out, errs := commandtest.Expect(t, NewInit, 0, "", args...)
			if !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.errs) || strings.Contains(out, tc.lack) {
				t.Errorf("%s: no %q, or no %q, or %q in\n%s\n%s", tc.reason, tc.out, tc.errs, tc.lack, errs, out)
			}
		})
	}
}
