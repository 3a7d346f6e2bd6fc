package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeNotes writes the changes of the version, and how to install it.
func (r *release) writeNotes() error {
	text := fmt.Sprintf("# kudo %s\n\nThe manager's image is `%s@%s`.\n\n%s", r.version, r.image, r.digest, r.notes)
	return os.WriteFile(filepath.Join(r.out, "RELEASE-NOTES.md"), []byte(text), 0o644)
}

// tag of the image. A tag cannot have the sign before the commit of a snapshot.
func (r *release) tag() string { return strings.ReplaceAll(r.version, "+", "_") }

// krewVersion is the version without the commit of a snapshot, which krew does not take.
func (r *release) krewVersion() string {
	version, _, _ := strings.Cut(r.version, "+")
	return version
}
