package main

import (
	"strings"
	"testing"
)

// TestCheck checks R2: nothing is built that is not exactly a tagged commit of a clean tree.
func TestCheck(t *testing.T) {
	t.Chdir("../..")
	good := release{version: "v0.2.0", image: "registry.example.org/kudo/manager", url: "https://example.org/kudo/"}
	good.commit = commit{hash: strings.Repeat("a", 40), tags: []string{"v0.2.0"}, last: "v0.1.0", since: 3}
	for _, tc := range []struct {
		reason   string
		change   func(*release)
		snapshot bool
		want     string
	}{
		{"an image has a registry", func(r *release) { r.image = "manager" }, false, `-image "manager": name the repository`},
		{"an image has no tag here", func(r *release) { r.image += ":v1" }, false, "name the repository"},
		{"files are downloaded safely", func(r *release) { r.url = "http://example.org" }, false, `-url "http://example.org": name the address`},
		{"packages are downloaded safely", func(r *release) { r.catalog = "http://example.org/catalog" }, false, `-catalog "http://example.org/catalog": name the address`},
		{"a version has three numbers", func(r *release) { r.version = "0.2" }, false, `-version "0.2": must be like v0.2.0`},
		{"a version is a tag", func(r *release) { r.commit.tags = nil }, false, "HEAD is not tagged v0.2.0"},
		{"a tree is clean", func(r *release) { r.commit.dirty = []string{"a.go", "b.go"} }, false, "the sources differ from the commit: a.go, b.go"},
		{"a version has its notes", func(*release) {}, false, "CHANGELOG.md has no section [0.2.0]"},
		{"a snapshot needs no tag", func(r *release) { r.version, r.commit.tags = "", nil }, true, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := good
			tc.change(&r)
			err := r.check(tc.snapshot)
			if tc.want == "" && err == nil {
				if r.version != "v0.1.0-dev.3+aaaaaaaaaaaa" || r.tag() != "v0.1.0-dev.3_aaaaaaaaaaaa" || r.krewVersion() != "v0.1.0-dev.3" {
					t.Errorf("the version is %s, the tag %s, krew's version %s", r.version, r.tag(), r.krewVersion())
				}
				return
			}
			if err == nil || tc.want == "" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCheckModule(t *testing.T) {
	for _, tc := range []struct{ reason, mod, toolchain, want string }{
		{"the module's own", "module a\n\ngo 1.27.4\n", "go1.27.4", ""},
		{"a line of its own", "module a\n\ngo 1.27.0\ntoolchain go1.27.4\n", "go1.27.4", ""},
		{"another one", "module a\n\ngo 1.27.4\n", "go1.28.0", "this is go1.28.0, and go.mod names go1.27.4: another toolchain builds other bytes"},
		{"a replacement", "module a\n\ngo 1.27.4\n\nreplace b => ../b\n", "go1.27.4", "go.mod has a replacement: replace b => ../b"},
	} {
		err := checkModule(tc.mod, tc.toolchain)
		if text := errorText(err); text != tc.want {
			t.Errorf("%s: error %q, want %q", tc.reason, text, tc.want)
		}
	}
}

func TestSection(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n- new\n\n## [0.2.0] - 2026-11-23\n### CLI\n- one\n\n## [0.1.0]\n- old\n"
	for _, tc := range []struct{ version, text, err string }{
		{"0.2.0", "### CLI\n- one\n", ""},
		{"Unreleased", "- new\n", ""},
		{"0.1.0", "", "CHANGELOG.md: the section [0.1.0] has no date: ## [0.1.0] - 2026-01-31"},
		{"0.3.0", "", "CHANGELOG.md has no section [0.3.0]"},
	} {
		text, err := section(changelog, tc.version)
		if text != tc.text || errorText(err) != tc.err {
			t.Errorf("%s: %q and error %v, want %q and %q", tc.version, text, err, tc.text, tc.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
