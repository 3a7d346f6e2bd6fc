package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"kudo.dev/kudo/hack/release/chart/charttest"
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

// TestRelease checks R3, R4, R6, R8, R9, R12, R13, R14 and R15: two users in two folders and time zones build the same files from a commit. The command line
// knows its image, and the image has what it needs. Other platforms are built in the same way.
func TestRelease(t *testing.T) {
	program := filepath.Join(t.TempDir(), "release")
	output(t, ".", nil, "go", "build", "-o", program, ".")
	private, public := newKeyFile(t, t.TempDir(), algorithmP256)
	_, other := newKeyFile(t, t.TempDir(), algorithmP256)
	var folders []string
	for _, zone := range []string{"UTC", "Asia/Kathmandu"} {
		sources := t.TempDir()
		output(t, "../..", []string{"SOURCES=" + sources, "GIT_AUTHOR_DATE=@1000000000 +0000", "GIT_COMMITTER_DATE=@1000000000 +0000"}, "sh", "-ec", commitSources)
		env := []string{"HOME=" + t.TempDir(), "TZ=" + zone, "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE")}
		output(t, sources, env, program, "-snapshot", "-platforms", runtime.GOOS+"/"+runtime.GOARCH, "-image", testImage, "-url", testURL+"/", "-o", "out", "-sign-key", private)
		folders = append(folders, filepath.Join(sources, "out"))
	}
	first, second := read(t, folders[0], "SHA256SUMS"), read(t, folders[1], "SHA256SUMS")
	if first != second {
		t.Errorf("two builds differ:\n%s\n%s", first, second)
	}
	output(t, folders[0], nil, "sha256sum", "-c", "--strict", "SHA256SUMS")
	checkFiles(t, folders[0], public)
	for _, folder := range folders {
		checkBundles(t, folder, public, other)
	}
}

// checkFiles checks the files of a release that is signed with the key of a file.
func checkFiles(t *testing.T, folder, public string) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	for _, pattern := range []string{"SHA256SUMS", "RELEASE-NOTES.md", "KNOWN-ISSUES.md", "crds.yaml", "install.yaml", "kudo.yaml", "kudo-0.*.tgz", "kudo-kustomize_v*.tar", "manager_v*.oci.tar",
		"kubectl-kudo_v*_" + platform + ".tar.gz", "kubectl-kudo_v*_" + platform + ".cdx.json", "manager_v*.oci.cdx.json", "provenance.json", "SHA256SUMS.sigstore.json",
		"provenance.sigstore.json",
		"postgres-*.tgz", "index.yaml"} {
		if !slices.ContainsFunc(files, func(file string) bool {
			matches, _ := filepath.Match(pattern, filepath.Base(file))
			return matches
		}) {
			t.Errorf("there is no %s among %v", pattern, files)
		}
	}
	if notes := read(t, folder, "RELEASE-NOTES.md"); !strings.Contains(notes, "[Known issues]("+testURL+"/KNOWN-ISSUES.md). Known vulnerabilities: not checked.") {
		t.Errorf("the release notes do not say what is known: %s", notes)
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
	version := output(t, ".", env, command, "version")
	if !strings.Contains(version, "kudo v0.") || !strings.Contains(version, "image of the manager: "+image+"\n") {
		t.Errorf("version prints %s, and the image is %s", version, image)
	}
	if out := output(t, ".", env, command, "version", "--key"); out != read(t, filepath.Dir(public), filepath.Base(public)) {
		t.Errorf("version --key prints %s", out)
	}
	checkPush(t, folder, command, index.Manifests[0].Digest)
	checkCatalog(t, folder, command, env)
	for _, file := range []string{"install.yaml", "RELEASE-NOTES.md"} {
		if !strings.Contains(read(t, folder, file), image) {
			t.Errorf("%s does not name %s", file, image)
		}
	}
	install := output(t, ".", env, command, "init", "--dry-run", "-o", "yaml")
	checkInstall(t, folder, install[strings.Index(install, "apiVersion:"):])
	checkSBOM(t, folder, command)
	checkProvenance(t, folder)
	checkKrew(t, folder, version)
	if krew := read(t, folder, "kudo.yaml"); !strings.Contains(krew, "uri: "+testURL+"/kubectl-kudo_v0.") {
		t.Errorf("krew downloads from somewhere else:\n%s", krew)
	}
}

// checkPush runs the commands of the page for clusters without access to registries, with a registry of another project (R8).
func checkPush(t *testing.T, folder, command, digest string) {
	page := read(t, "../../docs", "administration.md")
	_, page, _ = strings.Cut(page, "## Without access to registries\n")
	page, _, _ = strings.Cut(page, "\n## ")
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	steps := 0
	for _, step := range regexp.MustCompile("(?m)^\\d\\. Run `kubectl kudo ([^`]+)`").FindAllStringSubmatch(page, -1) {
		steps++
		line := strings.NewReplacer("manager_v0.2.0.oci.tar", glob(t, folder, "manager_v*.oci.tar"), "registry.example.com", host, "--wait", "--dry-run -o yaml").Replace(step[1])
		args := strings.Fields(line)
		if args[1] == "push" {
			args = append(args, "--plain-http")
		}
		if out := output(t, ".", []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + os.DevNull}, command, args...); !strings.Contains(out, digest) {
			t.Errorf("%s does not print %s:\n%s", line, digest, out)
		} else if args[0] == "init" && !strings.Contains(out, "image: "+host+"/mirror/kudo/manager@"+digest+"\n") {
			t.Errorf("%s does not install the copy", line)
		}
	}
	answer, err := http.Get(server.URL + "/v2/mirror/kudo/manager/manifests/" + digest)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if steps != 3 || answer.StatusCode != http.StatusOK {
		t.Errorf("the page has %d commands, and the registry answers %s for the image", steps, answer.Status)
	}
}

// checkInstall compares the manifests in their forms with what init prints (R14).
func checkInstall(t *testing.T, folder, install string) {
	if read(t, folder, "install.yaml") != install {
		t.Error("install.yaml is not what init --dry-run -o yaml prints")
	}
	wanted, err := charttest.Parse([]byte(install))
	if err != nil {
		t.Fatal(err)
	}
	base := filesys.MakeFsInMemory()
	for name, text := range unpack(t, glob(t, folder, "kudo-kustomize_v*.tar"), false) {
		if err := base.WriteFile(name, text); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(base, ".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	kustomized, err := charttest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	compareObjects(t, "kustomize", wanted, kustomized)

	files := map[string][]byte{}
	for name, text := range unpack(t, glob(t, folder, "kudo-0.*.tgz"), true) {
		files[strings.TrimPrefix(name, "kudo/")] = text
	}
	loaded, err := charttest.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := charttest.Render(loaded, "kudo-system", "")
	if err != nil {
		t.Fatal(err)
	}
	wanted = slices.DeleteFunc(wanted, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Namespace" })
	compareObjects(t, "the chart", wanted, rendered)
}

func compareObjects(t *testing.T, name string, wanted, got []*unstructured.Unstructured) {
	diff, err := charttest.Difference(wanted, got)
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" || len(got) < 50 {
		t.Errorf("%s has %d objects, which differ from those of init (-init +other):\n%s", name, len(got), diff)
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

// checkCatalog checks that a command line has the catalog as its repository at first, and that the files of the release are one.
func checkCatalog(t *testing.T, folder, command string, env []string) {
	if out := output(t, ".", env, command, "repo", "list"); !strings.Contains(out, "*catalog   "+testURL+" ") {
		t.Errorf("the repository at first is not that of the release:\n%s", out)
	}
	output(t, ".", env, command, "repo", "add", "files", "file://"+folder)
	packages, err := filepath.Glob("../../operators/catalog/*/operator")
	if err != nil || len(packages) == 0 {
		t.Fatalf("the catalog has no packages: %v", err)
	}
	found := output(t, ".", env, command, "search", "--repo", "files")
	for _, dir := range packages {
		if name := filepath.Base(filepath.Dir(dir)); !strings.Contains(found, "\n"+name+" ") {
			t.Errorf("the files of the release have no package %s:\n%s", name, found)
		}
	}
	if out := output(t, ".", env, command, "package", "list", "plans", "postgres", "--repo", "files"); !strings.Contains(out, "backup") {
		t.Errorf("the package of the release has no plan backup:\n%s", out)
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
