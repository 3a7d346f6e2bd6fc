package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeNotes writes the changes of the version, and how to install it, and copies the page of known issues.
func (r *release) writeNotes() error {
	page, err := os.ReadFile(knownIssues)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, knownIssues), page, 0o644); err != nil {
		return err
	}
	text := fmt.Sprintf("# kudo %s\n\nThe manager's image is `%s@%s`. [Known issues](%s/%s). Known vulnerabilities: %s.\n\n%s",
		r.version, r.image, r.digest, r.url, knownIssues, r.vulnerabilities, r.notes)
	return os.WriteFile(filepath.Join(r.out, "RELEASE-NOTES.md"), []byte(text), 0o644)
}

// tag of the image. A tag cannot have the sign before the commit of a snapshot.
func (r *release) tag() string { return strings.ReplaceAll(r.version, "+", "_") }

// krewVersion is the version without the commit of a snapshot, which krew does not take.
func (r *release) krewVersion() string {
	version, _, _ := strings.Cut(r.version, "+")
	return version
}
