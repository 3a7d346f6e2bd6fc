package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// krewTools builds krew's validator and krew itself, of the version in go.mod, and returns their folder.
func krewTools(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	output(t, ".", nil, "go", "build", "-o", folder, "sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	return folder
}

// installByKrew installs an archive by krew, and returns the folder of krew.
func installByKrew(t *testing.T, tools, folder, archive string, p platform) string {
	t.Helper()
	root := t.TempDir()
	env := []string{"KREW_ROOT=" + root, "KREW_OS=" + p.system, "KREW_ARCH=" + p.processor, "KREW_NO_UPGRADE_CHECK=1", "HOME=" + t.TempDir()}
	output(t, folder, env, filepath.Join(tools, "krew"), "install", "--manifest", "kudo.yaml", "--archive", archive)
	return root
}

// checkKrew checks R15: krew's own code accepts the manifest of a release, and krew installs the archive for this platform, which runs.
func checkKrew(t *testing.T, folder, version string) {
	t.Helper()
	p := platform{runtime.GOOS, runtime.GOARCH}
	tools := krewTools(t)
	output(t, folder, nil, filepath.Join(tools, "validate-krew-manifest"), "-manifest", "kudo.yaml", "-skip-install")
	archive := glob(t, folder, "kubectl-kudo_v*_"+p.system+"_"+p.processor+".tar.gz")
	root := installByKrew(t, tools, folder, archive, p)
	env := []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + os.DevNull}
	if out := output(t, ".", env, filepath.Join(root, "bin", "kubectl-kudo"), "version"); out != version {
		t.Errorf("the installed plugin prints\n%s, want\n%s", out, version)
	}
}

// TestKrew checks R15 for all platforms: krew's own code accepts the manifest, and krew installs each archive; an archive with another digest
// is refused.
func TestKrew(t *testing.T) {
	r := &release{out: t.TempDir(), work: t.TempDir(), version: "v0.2.0-dev.3+0123456789ab", url: testURL, commit: commit{time: time.Unix(1000000000, 0)}}
	for _, p := range platforms {
		if err := os.MkdirAll(filepath.Dir(r.commandFile(p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.commandFile(p), []byte("program for "+p.String()), 0o755); err != nil {
			t.Fatal(err)
		}
		entries := map[string]entry{"LICENSE": {"../../LICENSE", 0o644}, filepath.Base(r.commandFile(p)): {r.commandFile(p), 0o755}}
		pack := packGzip
		if p.system == "windows" {
			pack = packZip
		}
		if err := r.write(r.archiveName(p), func(out io.Writer) error { return pack(out, entries, r.commit.time) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writeKrew(); err != nil {
		t.Fatal(err)
	}
	tools := krewTools(t)
	output(t, r.out, nil, filepath.Join(tools, "validate-krew-manifest"), "-manifest", "kudo.yaml", "-skip-install")
	for _, p := range platforms {
		root := installByKrew(t, tools, r.out, r.archiveName(p), p)
		folder := filepath.Join(root, "store", "kudo", r.krewVersion())
		if got := read(t, folder, filepath.Base(r.commandFile(p))); got != "program for "+p.String() {
			t.Errorf("krew installs %q for %s", got, p)
		}
		other := r.archiveName(platforms[0])
		if other == r.archiveName(p) {
			other = r.archiveName(platforms[1])
		}
		cmd := exec.Command(filepath.Join(tools, "krew"), "install", "--manifest", "kudo.yaml", "--archive", other)
		cmd.Dir, cmd.Env = r.out, []string{"KREW_ROOT=" + t.TempDir(), "KREW_OS=" + p.system, "KREW_ARCH=" + p.processor, "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"),
			"KREW_NO_UPGRADE_CHECK=1"}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "checksum does not match") {
			t.Errorf("an archive of another platform is installed for %s: %v: %s", p, err, out)
		}
		if license := read(t, folder, "LICENSE"); !strings.Contains(license, "Apache License") {
			t.Errorf("the license for %s is %q", p, license)
		}
	}
}
