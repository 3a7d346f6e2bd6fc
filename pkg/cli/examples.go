package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are command lines for the help of commands whose own text explains none.
var examples = map[string][]string{
	"cache export":    {"cache export https://example.org/spark/3.5.1/crds.tar.gz crds.tar.gz"},
	"cache import":    {"cache import https://example.org/spark/3.5.1/crds.tar.gz crds.tar.gz --cache-dir carry"},
	"cache list":      {"cache list --cache-dir carry"},
	"cache verify":    {"cache verify --cache-dir carry -o json"},
	"diff":            {"diff --instance db -p MEMORY=2Gi", "diff ./mysql-0.4.0 --instance db -o markdown"},
	"explore check":   {"explore check -f config.yaml --strict", "explore check --live"},
	"explore convert": {"explore convert customizations.yaml > config.yaml"},
	"explore run": {"explore run --operation health -f config.yaml --observed workflow.yaml",
		"explore run --operation health --live Deployment/web"},
	"explore test":           {"explore test ./rules"},
	"image verify":           {"image verify kudo-manager.tar"},
	"options":                {"options"},
	"package add maintainer": {`package add maintainer Ann ann@example.com`},
	"package add parameter":  {"package add parameter REPLICAS --default 3"},
	"package crd-diff":       {"package crd-diff crds-1.0 crds-1.1", "package crd-diff crds-1.0 crds-1.1 --live"},
	"package create":         {"package create ./web -d dist"},
	"package list parameters": {
		"package list parameters ./web", "package list parameters ./web --names"},
	"package list plans": {"package list plans ./web"},
	"package list tasks": {"package list tasks ./web"},
	"package new":        {"package new web"},
	"package verify":     {"package verify ./web", "package verify ./web --strict"},
	"plan preview":       {"plan preview db backup"},
	"plan cancel":        {"plan cancel db"},
	"plan history":       {"plan history db"},
	"plan retry":         {"plan retry db --wait", "plan retry --operator-version spark-3.5.1-1.0.0"},
	"plan status":        {"plan status db", "plan status db --wait"},
	"plan trigger":       {"plan trigger db backup --wait"},
	"plan wait":          {"plan wait db --wait-time 10m"},
	"repo context":       {"repo context ours"},
	"repo index":         {"repo index dist", "repo index dist --url https://packages.example.com/kudo"},
	"repo list":          {"repo list"},
	"repo remove":        {"repo remove ours"},
	"version":            {"version", "version -o json"},
}

// addExamples puts the examples behind the help texts of the commands.
func addExamples(root *cobra.Command) {
	for path, lines := range examples {
		if cmd, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 {
			if cmd.Long == "" {
				cmd.Long = cmd.Short + "."
			}
			prefix := "\n  " + root.DisplayName() + " "
			cmd.Long += "\n" + prefix + strings.Join(lines, prefix)
		}
	}
}
