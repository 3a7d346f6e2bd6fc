package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiagrams: the pictures of docs/diagrams are what their texts give, byte by byte.
func TestDiagrams(t *testing.T) {
	dir, out := filepath.Join("..", "..", "docs", "diagrams"), t.TempDir()
	if err := run(t.Context(), dir, out); err != nil {
		t.Fatal(err)
	}
	drawn, err := filepath.Glob(filepath.Join(out, "*.svg"))
	if err != nil || len(drawn) < 2 {
		t.Fatalf("%d pictures (%v)", len(drawn), err)
	}
	for _, path := range drawn {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(path)))
		if err != nil || string(got) != string(want) {
			t.Errorf("docs/diagrams/%s is out of date: run make generate (%v)", filepath.Base(path), err)
		}
	}
}

// TestDrawErrors: a text that is no D2 is an error, and so is a folder without texts.
func TestDrawErrors(t *testing.T) {
	if _, err := draw(t.Context(), "a -> {"); err == nil {
		t.Error("a broken text was drawn")
	}
	if err := run(t.Context(), t.TempDir(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no texts") {
		t.Errorf("an empty folder: %v", err)
	}
}
