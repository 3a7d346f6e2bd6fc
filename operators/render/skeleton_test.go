package render

import (
	"strings"
	"testing"

	"kudo.dev/kudo/operators/yamldoc"
)

// TestSkeletons checks that a skeleton has the structure of its text, with a word for each scalar and each key.
func TestSkeletons(t *testing.T) {
	o := string(opening)
	for name, tc := range map[string]struct {
		reason, text string
		json         bool
		want         string
	}{
		"Scalar":  {"one value", "a b\n", false, "x1v7" + o},
		"Nothing": {"no value", "", false, "x1v7" + o},
		"List":    {"a list", "- a\n- b\n", false, "- x1v7" + o + "\n- x2v7" + o},
		"Map": {"the keys of a map differ, and keep their order", "b: 1\na: 2\n", false,
			"x1v7" + o + ": x2v7" + o + "\nx3v7" + o + ": x4v7" + o},
		"Empty":    {"an empty list", "[]", false, "[]"},
		"EmptyMap": {"an empty map", "{}", false, "{}"},
		"JSON": {"JSON stays JSON", `{"a":[1,{"b":null}],"c":""}`, true,
			`{"x1v7` + o + `":["x2v7` + o + `",{"x3v7` + o + `":"x4v7` + o + `"}],"x5v7` + o + `":"x6v7` + o + `"}`},
		"JSONText": {"one value of JSON", `"a"`, true, `"x1v7` + o + `"`},
		"JSONNone": {"empty values of JSON", `[[],{}]`, true, `[[],{}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := skeletonOf(tc.text, 7, tc.json)
			if err != nil {
				t.Fatal(err)
			}
			// yaml.v2 writes the rune of a mark as it is.
			if got = strings.ReplaceAll(got, `\uf3f1`, o); strings.ReplaceAll(got, `"`, "") != strings.ReplaceAll(tc.want, `"`, "") {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			is, err := yamldoc.Split(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			words, err := yamldoc.Split(got)
			if err != nil {
				t.Fatal(err)
			}
			if d := (&comparison{free: true}).documents(is, words); tc.text != "" && d != nil {
				t.Errorf("%s: the structure differs: %s", tc.reason, d.what)
			}
		})
	}
	if _, err := skeletonOf("a: [", 7, false); err == nil ||
		err.Error() != "read the output: line 1: malformed YAML: did not find expected node content" {
		t.Errorf("malformed text: %v", err)
	}
}

// TestMarkedWriter checks that white space around the text stays outside of the marks, and that a bare include has none.
func TestMarkedWriter(t *testing.T) {
	loud := markedWriter("toYaml", func() bool { return false })
	if got, err := loud(3, map[string]any{"a": "b"}); err != nil || !strings.HasPrefix(got, string(opening)+"3;a: b"+string(opening)) ||
		!strings.HasSuffix(got, string(closing)+"\n") {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := markedWriter("toYaml", func() bool { return true })(3, []any{"x"}); got != "- x\n" || err != nil {
		t.Errorf("without marks: %q, %v", got, err)
	}
	if got, err := loud(3, "\uf3f1"); err != nil || strings.Contains(got, "3;") {
		t.Errorf("a value with marks of its own: %q, %v", got, err)
	}
	if _, err := markedWriter("toJson", func() bool { return false })(3, func() {}); err == nil {
		t.Error("an error of the writer is kept")
	}
}
