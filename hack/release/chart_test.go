package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// TestWriteChart checks R9 and R14: the same commit gives the same chart, which Helm loads from its archive.
func TestWriteChart(t *testing.T) {
	var archives [][]byte
	for range 2 {
		r := &release{version: "v0.2.0", image: testImage, digest: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			url: testURL, out: t.TempDir(), work: t.TempDir(), commit: commit{time: time.Unix(1_700_000_000, 0).UTC()}}
		if err := r.writeChart(); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(filepath.Join(r.out, "kudo-0.2.0.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two charts of the same commit differ")
	}
	chart, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil || chart.Name() != "kudo" || chart.Metadata.Version != "0.2.0" || len(chart.Schema) == 0 || len(chart.Templates) < 50 {
		t.Errorf("Helm loads %s %+v with %d templates: %v", chart.Name(), chart.Metadata, len(chart.Templates), err)
	}
}
