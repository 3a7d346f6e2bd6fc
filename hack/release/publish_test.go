package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// published is a folder with the files of a release, whose command line notes how it is called.
type published struct{ folder, sums, calls, suffix string }

func newPublished(t *testing.T) published {
	t.Helper()
	p := published{folder: t.TempDir(), calls: filepath.Join(t.TempDir(), "calls")}
	p.sums = filepath.Join(t.TempDir(), "SHA256SUMS")
	program := "#!/bin/sh\necho \"$@\" >>" + p.calls + "\n"
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	err := files.WriteHeader(&tar.Header{Name: "kubectl-kudo", Mode: 0o755, Size: int64(len(program))})
	_, written := files.Write([]byte(program))
	if err := errors.Join(err, written, files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	p.suffix = "v0.2.0-dev.1+abc_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	sums := ""
	for name, content := range map[string][]byte{"manager_v0.2.0-dev.1+abc.oci.tar": []byte("image"),
		"kubectl-kudo_" + p.suffix: packed.Bytes()} {
		p.write(t, name, content)
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
	}
	p.write(t, "SHA256SUMS", []byte(sums))
	if err := os.WriteFile(p.sums, []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p published) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns the checksums.
func (p published) read(t *testing.T) []byte {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(p.folder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// TestPublish shows R17: what two machines have built alike is verified and pushed under its version, and nothing else is pushed.
func TestPublish(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*published)
		want    string
		pushes  bool
	}{
		"Same":      {func(*published) {}, "The image is published", true},
		"OtherSums": {func(p *published) { p.write(t, "SHA256SUMS", []byte("0  manager_v0.2.0.oci.tar\n")) }, "nothing was published: the first lines (<) are of", false},
		"OtherFile": {func(p *published) { p.write(t, "manager_v0.2.0-dev.1+abc.oci.tar", []byte("other")) }, "are not those of its SHA256SUMS", false},
		"OwnSums":   {func(p *published) { p.sums = filepath.Join(p.folder, "SHA256SUMS") }, "name that of another machine", false},
		"NoSums":    {func(p *published) { p.sums = "" }, "SUMS= is no file", false},
		"Unlisted": {func(p *published) {
			p.write(t, "SHA256SUMS", bytes.Replace(p.read(t), []byte("kubectl-kudo_"), []byte("other_"), 1))
			if err := os.Rename(filepath.Join(p.folder, "kubectl-kudo_"+p.suffix), filepath.Join(p.folder, "other_"+p.suffix)); err != nil {
				t.Fatal(err)
			}
			p.write(t, "kubectl-kudo_"+p.suffix, []byte("a program of another origin"))
			p.sums = filepath.Join(t.TempDir(), "sums")
			if err := os.WriteFile(p.sums, p.read(t), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "SHA256SUMS must have one file kubectl-kudo_", false},
		"NoRelease": {func(p *published) { p.folder = t.TempDir() }, "make release builds a release", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublished(t)
			tc.prepare(&p)
			out, err := exec.Command("../publish.sh", p.folder, p.sums, "registry.example.org/kudo/manager", "--plain-http").CombinedOutput()
			if (err == nil) != tc.pushes || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v, no %q: %s", err, tc.want, out)
			}
			calls, _ := os.ReadFile(p.calls)
			want := ""
			if tc.pushes {
				want = "image verify manager_v0.2.0-dev.1+abc.oci.tar\nimage push manager_v0.2.0-dev.1+abc.oci.tar oci://registry.example.org/kudo/manager:v0.2.0-dev.1-abc --plain-http\n"
			}
			if string(calls) != want {
				t.Errorf("the command line is called with\n%s, want\n%s", calls, want)
			}
		})
	}
}

// TestOutdated shows R5: the CA roots in the manager may be 90 days old, and not older.
func TestOutdated(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`golang\.org/x/crypto/x509roots/fallback v0\.0\.0-(\d{8})`).FindSubmatch(mod)
	if version == nil {
		t.Fatal("go.mod has no version with a time of the CA roots")
	}
	at, err := time.Parse("20060102", string(version[1]))
	if err != nil {
		t.Fatal(err)
	}
	made := at.Unix()
	const day = 24 * 60 * 60
	for days, fails := range map[int64]bool{0: false, 90: false, 91: true} {
		out, err := exec.Command("../outdated.sh", fmt.Sprint(made+days*day)).CombinedOutput()
		if (err != nil) != fails || !strings.Contains(string(out), fmt.Sprintf("%d days old", days)) || fails != strings.Contains(string(out), "go get golang.org/x/crypto/x509roots/fallback@latest") {
			t.Errorf("after %d days: %v, %s", days, err, out)
		}
	}
}
