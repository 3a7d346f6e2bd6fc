package operators

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
)

// TestResolve checks where a path leads through links, and which links are refused.
func TestResolve(t *testing.T) {
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(target)}
	}
	fsys := fstest.MapFS{
		"a/file": {}, "a/b/file": {}, "file": {},
		"same": link("file"), "folder": link("a"), "up": link("a/b/../file"), "dots": link("./a/./file"), "a/back": link("../file"),
		"a/b/far": link("../../same"),
		"leaves":  link("../x"), "a/leaves": link("../../x"), "absolute": link("/etc/passwd"), "drive": link(`C:\x`), "drive2": link("c:x"),
		"share":   link(`\\host\x`),
		"windows": link(`a\b\file`), "loop": link("loop"), "one": link("two"), "two": link("one"), "dead": link("nothing"), "root": link("."),
		"a/top":     link(".."),
		"a/b/again": link("../top/file"),
	}
	for name, tc := range map[string]struct {
		reason, path, want string
		err                string
	}{
		"Plain":     {"no link", "a/b/file", "a/b/file", ""},
		"Dots":      {"dots in the path", "./a/./b//file", "a/b/file", ""},
		"Link":      {"a link to a file", "same", "file", ""},
		"Folder":    {"a link to a folder", "folder/b/file", "a/b/file", ""},
		"Up":        {"a link that goes up inside", "up", "a/file", ""},
		"DotLink":   {"a link with dots", "dots", "a/file", ""},
		"Back":      {"a link to a folder above", "a/back", "file", ""},
		"Far":       {"a link to a link", "a/b/far", "file", ""},
		"Root":      {"a link to the root", "root/file", "file", ""},
		"TopUp":     {"a link to the root from below", "a/top/a/file", "a/file", ""},
		"Roots":     {"a link through a link to the root", "a/b/again", "file", ""},
		"Windows":   {"a link of Windows inside", "windows", "a/b/file", ""},
		"Leaves":    {"a link out of the root", "leaves", "", "the link leaves the package (leaves)"},
		"LeavesIn":  {"a link out of the root from below", "a/leaves", "", "the link leaves the package (a/leaves)"},
		"Above":     {"the path itself leaves", "../file", "", "the link leaves the package (../file)"},
		"Absolute":  {"an absolute link", "absolute", "", "the link leaves the package (absolute -> /etc/passwd)"},
		"Drive":     {"a drive", "drive", "", "the link leaves the package (drive -> C:/x)"},
		"DriveHere": {"a path relative to a drive", "drive2", "", "the link leaves the package (drive2 -> c:x)"},
		"Share":     {"a network share", "share", "", "the link leaves the package (share -> //host/x)"},
		"Loop":      {"a link to itself", "loop", "", "too many links on the way to loop"},
		"Circle":    {"links in a circle", "one", "", "too many links on the way to one"},
		"Dead":      {"a link to nothing", "dead", "", "lstat nothing: file does not exist"},
		"Absent":    {"no file", "a/none", "", "lstat a/none: file does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(fsys, tc.path)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if tc.err == "lstat nothing: file does not exist" || tc.err == "lstat a/none: file does not exist" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: error %v", tc.reason, err)
				}
				return
			}
			if got != tc.want || message != tc.err {
				t.Errorf("%s: got %q, %q, want %q, %q", tc.reason, got, message, tc.want, tc.err)
			}
		})
	}
}

// plainFS is a file system without links.
type plainFS struct{ fs.FS }

// TestResolveWithoutLinks checks that a path is left alone where there are no links.
func TestResolveWithoutLinks(t *testing.T) {
	if got, err := resolve(plainFS{fstest.MapFS{}}, "a/../b"); got != "a/../b" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
