package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestPipe: what reads the files of a Pipe task in its pod.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(path, []byte("KEY\x00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		reason         string
		args           []string
		code           int
		want, problems string
	}{
		{"a file, byte for byte", []string{"read", path}, 0, "KEY\x00\n", ""},
		{"none", []string{"read", filepath.Join(dir, "none")}, 1, "", "open " + filepath.Join(dir, "none") + ": no such file or directory\n"},
		{"a folder", []string{"read", dir}, 1, "", "read " + dir + ": is a directory\n"},
		{"it waits until it is stopped", []string{"wait"}, 0, "", ""},
		{"nothing else", []string{"write", path}, 2, "", "usage: manager pipe wait | read FILE\n"},
		{"nor nothing", nil, 2, "", "usage: manager pipe wait | read FILE\n"},
	} {
		var out, problems bytes.Buffer
		if code := pipe(stopped, &out, &problems, tc.args); code != tc.code || out.String() != tc.want || problems.String() != tc.problems {
			t.Errorf("%s: exit code %d, %q, %q", tc.reason, code, out.String(), problems.String())
		}
	}
}
