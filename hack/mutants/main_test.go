package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse("# faults\n\na name\npkg/a.go ./test/a\n-\told\n-\tolder\n+\tnew\n")
	want := mutant{"a name", "pkg/a.go", "./test/a", "\told\n\tolder\n", "\tnew\n"}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for text, want := range map[string]string{
		"a name":                      `"a name": want a name, a file with a suite, and lines`,
		"a\nfile\n-x":                 `"file" is no file with a suite`,
		"a\nfile suite\nx":            `"x" begins with neither - nor +`,
		"a\nfile suite\n-x\n\nb\nc d": `"b": want a name`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", text, err, want)
		}
	}
}

// TestMutants checks that each fault can be planted: its file has the lines once, and its suite exists.
func TestMutants(t *testing.T) {
	text, err := os.ReadFile("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := parse(string(text))
	if err != nil || len(mutants) < 10 {
		t.Fatalf("%d mutants, %v", len(mutants), err)
	}
	root := filepath.Join("..", "..")
	for _, m := range mutants {
		data, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil || bytes.Count(data, []byte(m.from)) != 1 || m.from == m.to {
			t.Errorf("%s: %s does not have the lines once (%v)", m.name, m.file, err)
		}
		if _, err := os.Stat(filepath.Join(root, m.suite)); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
