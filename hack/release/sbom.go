package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	licenseclassifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// sumProperty is the property of a component that has its hash as in go.sum.
const sumProperty = "cdx:gomod:h1"

// writeSBOMs writes a CycloneDX SBOM for each program, and one for the image: the modules of the managers, which are the same.
func (r *release) writeSBOMs() error {
	licenses, err := readLicenses()
	if err != nil {
		return err
	}
	write := func(name, program, file string) error {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		return r.write(name+".cdx.json", func(out io.Writer) error {
			return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(newSBOM(info, program, r.version,
				r.commit.time, licenses))
		})
	}
	for _, p := range managerPlatforms {
		if err := write(fmt.Sprintf("manager_%s_%s_%s", r.version, p.system, p.processor), "manager", r.managerFile(p)); err != nil {
			return err
		}
	}
	for _, p := range platforms {
		if err := write(fmt.Sprintf("kubectl-kudo_%s_%s_%s", r.version, p.system, p.processor), "kubectl-kudo", r.commandFile(p)); err != nil {
			return err
		}
	}
	return write("manager_"+r.version+".oci", r.image+"@"+r.digest, r.managerFile(managerPlatforms[0]))
}

// newSBOM lists the modules of a program, with the hashes that go.sum has of them, and Go's own library.
func newSBOM(info *debug.BuildInfo, name, version string, at time.Time, licenses map[string][]string) *cdx.BOM {
	bom := cdx.NewBOM()
	bom.SerialNumber = ""
	program := cdx.Component{BOMRef: "pkg:golang/" + info.Path + "@" + version, Type: cdx.ComponentTypeApplication, Name: name,
		Version: version}
	program.PackageURL = program.BOMRef
	program.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	bom.Metadata = &cdx.Metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: &program}

	components := []cdx.Component{newComponent(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")},
		[]string{"BSD-3-Clause"})}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, newComponent(module, licenses[module.Path+"@"+module.Version]))
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Components, bom.Dependencies = &components, &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom
}

func newComponent(module *debug.Module, licenses []string) cdx.Component {
	c := cdx.Component{BOMRef: "pkg:golang/" + module.Path + "@" + module.Version, Type: cdx.ComponentTypeLibrary, Name: module.Path,
		Version: module.Version}
	c.PackageURL = c.BOMRef
	if module.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: sumProperty, Value: module.Sum}}
	}
	if len(licenses) > 0 {
		choices := cdx.Licenses{}
		for _, id := range licenses {
			choices = append(choices, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		c.Licenses = &choices
	}
	return c
}

// readLicenses returns the licenses of all modules, by path@version, as their files in the module cache show them.
func readLicenses() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-m", "-json", "all")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m all: %w", err)
	}
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var module struct {
			Path, Version, Dir string
			Replace            *struct{ Path, Version, Dir string }
		}
		if err := decoder.Decode(&module); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if module.Dir != "" { // it is in the cache, and so are all that are built
			out[module.Path+"@"+module.Version] = licensesOf(classifier, module.Dir)
		}
	}
}

// licensesOf returns the SPDX names of the licenses whose texts or notices are in the files LICENSE and COPYING of a folder, in order.
func licensesOf(classifier *licenseclassifier.Classifier, folder string) []string {
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	var out []string
	for _, file := range files {
		name := strings.ToUpper(filepath.Base(file))
		if !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, match := range classifier.Match(text).Matches {
			isText := match.MatchType == "License" || match.MatchType == "Header" // some files have only the notice that names the license
			if isText && !slices.Contains(out, match.Name) {
				out = append(out, match.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}
