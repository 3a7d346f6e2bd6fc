package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, text string
		want         []part
		fails        bool
	}{
		{reason: "commands with what they print, and a here document", text: "```console\n$ a\nx\n\ny\n$ b <<END\n1\nEND\nz\n$ c \\\n  d\n```\n", want: []part{
			{kind: shown, line: 2, text: "a", prints: []string{"x", "y"}}, {kind: shown, line: 6, text: "b <<END\n1\nEND", prints: []string{"z"}}, {kind: shown, line: 10, text: "c \\\n  d"}}},
		{reason: "a script", text: "text\n```sh\na\nb\n```\n", want: []part{{kind: script, line: 3, text: "a\nb\n"}}},
		{reason: "hidden commands", text: "<!-- run: kubectl create ns a -->\n", fails: true},
		{reason: "hidden files", text: "<!-- file: d.txt -->\n```\nz\n```\n", fails: true},
		{reason: "commands that would not be run", text: "<!-- not run: no reason -->\n```sh\na\n```\n", fails: true},
		{reason: "a remark", text: "<!-- to be written -->\n", fails: true},
		{reason: "conditions to wait for, on one line and on several", text: "<!-- wait: kubectl get ns a -->\n<!-- wait:\n! kubectl get ns b | grep -q c\n[ -s d ]\n-->\n", want: []part{
			{kind: wait, line: 1, text: "until kubectl get ns a; do sleep 0.1; done"}, {kind: wait, line: 2, text: "until ! kubectl get ns b | grep -q c; do sleep 0.1; done"}, {kind: wait, line: 2, text: "until [ -s d ]; do sleep 0.1; done"}}},
		{reason: "commands that delete", text: "<!-- cleanup: kubectl delete ns a -->\n", want: []part{{kind: cleanup, line: 1, text: "kubectl delete ns a"}}},
		{reason: "a command in a wait", text: "<!-- wait: kubectl create ns a -->\n", fails: true},
		{reason: "a command behind a condition", text: "<!-- wait: kubectl get ns a && kubectl create ns b -->\n", fails: true},
		{reason: "a command in a cleanup", text: "<!-- cleanup:\nkubectl delete ns a\nkubectl create ns b\n-->\n", fails: true},
		{reason: "a command behind one that deletes", text: "<!-- cleanup: rm a; kubectl create ns b -->\n", fails: true},
		{reason: "a comment without an end", text: "<!-- wait: kubectl get ns a\n", fails: true},
		{reason: "files by their first line, and by a line above", text: "```yaml\n# a/b.yaml\nx: 1\n```\n`c.yaml`\n```yaml\ny: 1\n```\n", want: []part{
			{kind: file, line: 2, text: "# a/b.yaml\nx: 1\n", note: "a/b.yaml"}, {kind: file, line: 7, text: "y: 1\n", note: "c.yaml"}}},
		{reason: "an example that is no file", text: "```yaml\n# in a.yaml\nx: 1\n```\n"},
		{reason: "make is what runs the test", text: "```sh\nmake a  # b\n```\n", want: []part{{kind: skipped, line: 1, text: "make a  # b\n"}}},
		{reason: "go build, over two lines", text: "```sh\ngo build -o a \\\n  ./b\n```\n", want: []part{{kind: skipped, line: 1, text: "go build -o a \\\n  ./b\n"}}},
		{reason: "make beside other commands", text: "```sh\nmake a\nb\n```\n", want: []part{{kind: script, line: 2, text: "make a\nb\n"}}},
		{reason: "commands of another language would be passed over", text: "```bash\nkubectl get pods\n```\n", fails: true},
		{reason: "output of nothing", text: "```console\nx\n```\n", fails: true},
		{reason: "a block without an end", text: "```sh\na\n", fails: true},
	} {
		got, err := parse(tc.text)
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(part{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, printed string
		shown           []string
		same            bool
	}{
		{"the same, but for columns and empty lines", "a    b\n\nc\n", []string{"a  b", "c"}, true},
		{"times and durations", "x 2026-01-02 03:04:05 1m2s [DONE] 15ms", []string{"x 2025-11-21 02:57:18 3s [DONE] 1.1s"}, true},
		{"digests and ports", "a-0123abcd at 127.0.0.1:4", []string{"a-ffffffff at 127.0.0.1:27443"}, true},
		{"the namespace of the test", "instance t-x/a in t-x", []string{"instance default/a in default"}, true},
		{"another namespace", "instance t-y/a", []string{"instance default/a"}, false},
		{"anything within a line", "a is b", []string{"a … b"}, true},
		{"any lines", "a\nb\nc\n", []string{"a", "…", "c"}, true},
		{"any lines at the end", "a\nb\nc\n", []string{"a", "…"}, true},
		{"a line that is not shown", "a\nb\n", []string{"a"}, false},
		{"a line that is not printed", "a\n", []string{"a", "b"}, false},
		{"a line that never comes", "a\nb\n", []string{"…", "c"}, false},
		{"a number counts", "3 replicas", []string{"2 replicas"}, false},
	} {
		if why := differs(tc.shown, tc.printed, "t-x"); (why == "") != tc.same {
			t.Errorf("%s: %q", tc.reason, why)
		}
	}
}

// TestParsePages: no page has a command that its readers do not see.
func TestParsePages(t *testing.T) {
	t.Parallel()
	for _, path := range files(t) {
		if _, err := parse(read(t, path)); err != nil {
			t.Errorf("%s: %v", name(path), err)
		}
	}
}

// FuzzParse: no page breaks the parser.
func FuzzParse(f *testing.F) {
	f.Add("```console\n$ a <<END\nEND\n```\n<!-- wait: x -->\n`a.yaml`\n```yaml\nx\n```\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parse(text) })
}
