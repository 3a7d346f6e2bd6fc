package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
)

// statement says how files were made: an in-toto statement with SLSA provenance.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// writeProvenance says of all files so far from what and how they were made. It has no time and no name of a machine, so that each
// machine writes the same; the trust comes from the second machine and from the signature.
func (r *release) writeProvenance() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	s := statement{Type: statementType, PredicateType: predicateType}
	for _, file := range files {
		digest, err := sum(filepath.Join(r.out, file.Name()))
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, subject{Name: file.Name(), Digest: map[string]string{"sha256": digest}})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType = r.url + "/make-release"
	build.ExternalParameters = map[string]string{"version": r.version, "image": r.image, "url": r.url}
	build.InternalParameters = map[string]string{"go": runtime.Version(), "command": "make release", "vulnerabilities": r.vulnerabilities}
	build.ResolvedDependencies = []subject{{URI: "git+" + r.url, Digest: map[string]string{"gitCommit": r.commit.hash}}}
	for _, name := range []string{"go.mod", "go.sum"} {
		digest, err := sum(name)
		if err != nil {
			return err
		}
		build.ResolvedDependencies = append(build.ResolvedDependencies, subject{URI: name, Digest: map[string]string{"sha256": digest}})
	}
	s.Predicate.RunDetails.Builder.ID = r.url + "/make-release"
	return r.write("provenance.json", func(out io.Writer) error {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	})
}
