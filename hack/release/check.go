package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// commit is what git says of the sources.
type commit struct {
	hash string
	time time.Time
	tags []string
	// dirty are the files that differ from the commit.
	dirty []string
	// last is the newest tag of a version before the commit, and since how many commits came after it.
	last  string
	since int
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s", strings.Join(args, " "), strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

func readCommit() (commit, error) {
	c := commit{last: "v0.0.0"}
	head, err := git("log", "-1", "--format=%H %ct")
	if err != nil {
		return c, err
	}
	hash, seconds, _ := strings.Cut(head, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return c, err
	}
	c.hash, c.time = hash, time.Unix(at, 0).UTC()
	tags, err := git("tag", "--points-at", "HEAD")
	if err != nil {
		return c, err
	}
	c.tags = strings.Fields(tags)
	status, err := git("status", "--porcelain")
	if err != nil {
		return c, err
	}
	for _, line := range strings.Split(status, "\n") {
		if line != "" {
			c.dirty = append(c.dirty, strings.TrimSpace(line[2:]))
		}
	}
	count := []string{"rev-list", "--count", "HEAD"}
	if last, err := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"); err == nil {
		c.last, count = last, append(count, "^"+last)
	}
	since, err := git(count...)
	if err != nil {
		return c, err
	}
	c.since, err = strconv.Atoi(since)
	return c, err
}

var (
	versions     = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)
	repositories = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
)

// check refuses to release what is not exactly a tagged commit, before anything is built. A snapshot gets a version of its own instead.
func (r *release) check(snapshot bool) error {
	if !repositories.MatchString(r.image) {
		return fmt.Errorf("-image %q: name the repository of the manager's image, such as registry.example.org/kudo/manager", r.image)
	}
	if !isHTTPS(r.url) {
		return fmt.Errorf("-url %q: name the address of the files, such as https://example.org/kudo/v0.2.0", r.url)
	}
	r.url = strings.TrimSuffix(r.url, "/")
	if r.catalog = strings.TrimSuffix(r.catalog, "/"); r.catalog == "" {
		r.catalog = r.url
	}
	if !isHTTPS(r.catalog) {
		return fmt.Errorf("-catalog %q: name the address of a repository, such as https://example.org/kudo/catalog", r.catalog)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	if err := checkModule(string(mod), runtime.Version()); err != nil {
		return err
	}
	security, err := os.ReadFile("SECURITY.md")
	if err != nil {
		return err
	}
	if err := r.chooseKey(security, snapshot); err != nil {
		return err
	}
	if snapshot {
		r.version = fmt.Sprintf("%s-dev.%d+%s", r.commit.last, r.commit.since, r.commit.hash[:12])
		if len(r.commit.dirty) > 0 {
			r.version += ".dirty"
		}
		r.notes, _ = section(string(changelog), "Unreleased")
		return nil
	}
	if !versions.MatchString(r.version) {
		return fmt.Errorf("-version %q: must be like v0.2.0", r.version)
	}
	if !slices.Contains(r.commit.tags, r.version) {
		return fmt.Errorf("HEAD is not tagged %s: git tag %[1]s, or make snapshot", r.version)
	}
	if len(r.commit.dirty) > 0 {
		return fmt.Errorf("the sources differ from the commit: %s", strings.Join(r.commit.dirty, ", "))
	}
	r.notes, err = section(string(changelog), strings.TrimPrefix(r.version, "v"))
	return err
}

// isHTTPS reports whether a text is an address that begins with https.
func isHTTPS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

// checkModule refuses a module that is not what its requirements say, and a toolchain that is not the module's.
func checkModule(mod, toolchain string) error {
	want := ""
	for _, line := range strings.Split(mod, "\n") {
		switch words := strings.Fields(line); {
		case len(words) > 0 && words[0] == "replace":
			return fmt.Errorf("go.mod has a replacement: %s", strings.TrimSpace(line))
		case len(words) == 2 && words[0] == "go" && want == "":
			want = "go" + words[1]
		case len(words) == 2 && words[0] == "toolchain":
			want = words[1]
		}
	}
	if toolchain != want {
		return fmt.Errorf("this is %s, and go.mod names %s: another toolchain builds other bytes", toolchain, want)
	}
	return nil
}

// section returns the text of a version in a changelog. That of a released version has a date.
func section(changelog, version string) (string, error) {
	_, after, found := strings.Cut("\n"+changelog, "\n## ["+version+"]")
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no section [%s]", version)
	}
	head, text, _ := strings.Cut(after, "\n")
	if version != "Unreleased" && !regexp.MustCompile(`^ - \d{4}-\d{2}-\d{2}$`).MatchString(head) {
		return "", fmt.Errorf("CHANGELOG.md: the section [%s] has no date: ## [%[1]s] - 2026-01-31", version)
	}
	text, _, _ = strings.Cut(text, "\n## [")
	return strings.TrimSpace(text) + "\n", nil
}
