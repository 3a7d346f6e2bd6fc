package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const (
	testImage = "registry.example.org/kudo/manager"
	testURL   = "https://example.org/kudo"
)

// commitSources makes a repository of the sources as they are, changes included.
const commitSources = `tar -c --exclude=./.git --exclude=./bin --exclude=./dist . | tar -x -C "$SOURCES"
cd "$SOURCES"
git init -q
git add -A
git -c user.name=a -c user.email=a@example.org commit -q -m all`

// TestRelease checks R3, R4, R6, R9 and R12: two users in two folders and time zones build the same files from a commit. The command line
// knows its image, and the image has what it needs. Other platforms are built in the same way.
func TestRelease(t *testing.T) {
	program := filepath.Join(t.TempDir(), "release")
	output(t, ".", nil, "go", "build", "-o", program, ".")
	var folders []string
	for _, zone := range []string{"UTC", "Asia/Kathmandu"} {
		sources := t.TempDir()
		output(t, "../..", []string{"SOURCES=" + sources, "GIT_AUTHOR_DATE=@1000000000 +0000", "GIT_COMMITTER_DATE=@1000000000 +0000"}, "sh", "-ec", commitSources)
		env := []string{"HOME=" + t.TempDir(), "TZ=" + zone, "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE")}
		output(t, sources, env, program, "-snapshot", "-platforms", runtime.GOOS+"/"+runtime.GOARCH, "-image", testImage, "-url", testURL+"/", "-o", "out")
		folders = append(folders, filepath.Join(sources, "out"))
	}
	first, second := read(t, folders[0], "SHA256SUMS"), read(t, folders[1], "SHA256SUMS")
	if first != second {
		t.Errorf("two builds differ:\n%s\n%s", first, second)
	}
	output(t, folders[0], nil, "sha256sum", "-c", "--strict", "SHA256SUMS")
	checkFiles(t, folders[0])
}

func checkFiles(t *testing.T, folder string) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	for _, pattern := range []string{"SHA256SUMS", "RELEASE-NOTES.md", "crds.yaml", "install.yaml", "kudo.yaml", "kudo-kustomize_v*.tar", "manager_v*.oci.tar",
		"kubectl-kudo_v*_" + platform + ".tar.gz", "kubectl-kudo_v*_" + platform + ".cdx.json", "manager_v*.oci.cdx.json", "provenance.json"} {
		if !slices.ContainsFunc(files, func(file string) bool {
			matches, _ := filepath.Match(pattern, filepath.Base(file))
			return matches
		}) {
			t.Errorf("there is no %s among %v", pattern, files)
		}
	}
	layout := unpack(t, glob(t, folder, "manager_v*.oci.tar"), false)
	index := struct {
		Manifests []struct{ MediaType, Digest string }
	}{}
	if err := json.Unmarshal(layout["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].MediaType != "application/vnd.oci.image.index.v1+json" {
		t.Fatalf("the layout has %+v", index.Manifests)
	}
	image := testImage + "@" + index.Manifests[0].Digest
	checkConfig(t, layout)

	archive := unpack(t, glob(t, folder, "kubectl-kudo_v*_"+platform+".tar.gz"), true)
	for _, name := range []string{"LICENSE", "kubectl_complete-kudo", "completion.bash", "completion.zsh", "completion.fish", "completion.powershell", "man/kubectl-kudo-install.1"} {
		if len(archive[name]) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
	command := filepath.Join(t.TempDir(), "kubectl-kudo")
	if err := os.WriteFile(command, archive["kubectl-kudo"], 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + os.DevNull}
	if out := output(t, ".", env, command, "version"); !strings.Contains(out, "kudo v0.") || !strings.Contains(out, "image of the manager: "+image+"\n") {
		t.Errorf("version prints %s, and the image is %s", out, image)
	}
	for _, file := range []string{"install.yaml", "RELEASE-NOTES.md"} {
		if !strings.Contains(read(t, folder, file), image) {
			t.Errorf("%s does not name %s", file, image)
		}
	}
	checkSBOM(t, folder, command)
	checkProvenance(t, folder)
	if krew := read(t, folder, "kudo.yaml"); !strings.Contains(krew, "uri: "+testURL+"/kubectl-kudo_v0.") {
		t.Errorf("krew downloads from somewhere else:\n%s", krew)
	}
}

// checkSBOM compares the SBOM of the command line with what Go says of it (R10).
func checkSBOM(t *testing.T, folder, command string) {
	bom := cdx.BOM{}
	file := glob(t, folder, "kubectl-kudo_v*_"+runtime.GOOS+"_"+runtime.GOARCH+".cdx.json")
	if err := cdx.NewBOMDecoder(strings.NewReader(read(t, folder, filepath.Base(file))), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, c := range *bom.Components {
		if c.Name == "std" {
			continue
		}
		line := c.Name + " " + c.Version
		if c.Properties != nil {
			line += " " + (*c.Properties)[0].Value
		}
		got = append(got, line)
		if c.Licenses == nil {
			t.Errorf("%s has no license", c.Name)
		}
	}
	for _, line := range strings.Split(output(t, ".", nil, "go", "version", "-m", command), "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "dep" {
			want = append(want, strings.Join(fields[1:], " "))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) < 20 {
		t.Errorf("the SBOM has\n%s\nand the program\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != "2001-09-09T01:46:40Z" {
		t.Errorf("the SBOM is not the same each time: %q, %s", bom.SerialNumber, bom.Metadata.Timestamp)
	}
}

// checkProvenance checks that the provenance is about all files but the checksums and itself (R11).
func checkProvenance(t *testing.T, folder string) {
	s := statement{}
	if err := json.Unmarshal([]byte(read(t, folder, "provenance.json")), &s); err != nil {
		t.Fatal(err)
	}
	var about strings.Builder
	for _, subject := range s.Subject {
		about.WriteString(subject.Digest["sha256"] + "  " + subject.Name + "\n")
	}
	var want strings.Builder
	for line := range strings.Lines(read(t, folder, "SHA256SUMS")) {
		if !strings.HasSuffix(line, "  provenance.json\n") {
			want.WriteString(line)
		}
	}
	if about.String() != want.String() {
		t.Errorf("the provenance is about\n%s\nand the files are\n%s", about.String(), want.String())
	}
	if from := s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]; len(from) != 40 || s.Type != statementType || s.PredicateType != predicateType {
		t.Errorf("the provenance names commit %q: %+v", from, s)
	}
}

// checkConfig checks the only image of a layout: its user, its program, and that it has no time.
func checkConfig(t *testing.T, layout map[string][]byte) {
	config := struct {
		Created string
		Config  struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
	}{}
	for name, content := range layout {
		if strings.HasPrefix(name, "blobs/") && bytes.Contains(content, []byte(`"Entrypoint"`)) {
			if err := json.Unmarshal(content, &config); err != nil {
				t.Fatal(err)
			}
		}
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) || config.Created != "0001-01-01T00:00:00Z" ||
		config.Config.Labels["org.opencontainers.image.licenses"] != "Apache-2.0" {
		t.Errorf("the image has the configuration %+v", config)
	}
}

// output runs a program, which must succeed, with an environment that has nothing but env, the path and the toolchain.
func output(t *testing.T, folder string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	if env != nil {
		cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "GOPROXY="+goEnv(t, "GOPROXY"), "GOFLAGS=-p=2")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
	return string(out)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func glob(t *testing.T, folder, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files[0]
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func unpack(t *testing.T, file string, compressed bool) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in io.Reader = bytes.NewReader(data)
	if compressed {
		if in, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string][]byte{}
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
