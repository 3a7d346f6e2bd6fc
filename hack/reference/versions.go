package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// supportedVersion is an entry of supported-versions.yaml.
type supportedVersion struct {
	Minor string `json:"minor"`
	// Tested is one of the keys of testedText.
	Tested string `json:"tested"`
	// Servers is the day when the main suites passed on the servers of the version; empty if they have not.
	Servers string `json:"servers"`
	Since   string `json:"since"`
	Until   string `json:"until"`
}

// testedText says how a version is tested.
var testedText = map[string]string{
	"real":     "the suites run on a control plane of this version",
	"emulated": "suites run on a newer control plane that emulates this version",
	"none":     "no",
}

// readVersions reads supported-versions.yaml.
func readVersions(root string) ([]supportedVersion, error) {
	file := filepath.Join(root, "supported-versions.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var table struct {
		Kubernetes []supportedVersion `json:"kubernetes"`
	}
	if err := yaml.UnmarshalStrict(text, &table); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, v := range table.Kubernetes {
		if testedText[v.Tested] == "" || v.Minor == "" || v.Since == "" {
			return nil, fmt.Errorf("%s: the entry %+v lacks minor or since, or tested is none of real, emulated and none", file, v)
		}
	}
	return table.Kubernetes, nil
}

// writeVersions writes the page of the supported versions of Kubernetes.
func writeVersions(root string) (string, error) {
	versions, err := readVersions(root)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, header, "Supported versions of Kubernetes", "It has the table `supported-versions.yaml`; [support](../support.md) "+
		"explains it.")
	out.WriteString("| Kubernetes | tested on each change | main suites passed on its servers | since kudo | until kudo |\n" +
		"|---|---|---|---|---|\n")
	for _, v := range versions {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", v.Minor, testedText[v.Tested], v.Servers, v.Since, v.Until)
	}
	return out.String(), nil
}
