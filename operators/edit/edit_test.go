package edit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var ann = Maintainer{Name: "Ann", Email: "n@x"}

// TestInsert checks that what stands in a file stays as it is.
func TestInsert(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, key, want string
	}{
		"Missing": {"the list is made", "# top\nname: x # n\n", "",
			"# top\nname: x # n\nl:\n  - name: Ann\n    email: n@x\n"},
		"Empty": {"brackets go, comments stay", "l: [] # none yet\nb: 1\n", "",
			"l: # none yet\n  - name: Ann\n    email: n@x\nb: 1\n"},
		"Null": {"a list without value", "l:\n\n# b is next\nb: 1\n", "",
			"l:\n  - name: Ann\n    email: n@x\n\n# b is next\nb: 1\n"},
		"NullWord": {"a list that is null in words", "l: null # none\nb: 1\n", "",
			"l: # none\n  - name: Ann\n    email: n@x\nb: 1\n"},
		"Items": {"comments of what follows stay there", "l:\n# first\n- a # c\n\n# about b\nb: 1", "",
			"l:\n# first\n- a # c\n- name: Ann\n  email: n@x\n\n# about b\nb: 1\n"},
		"Indented": {"as far to the right as the others", "l:\n    - a: |\n        text\n      # in it\nb: 1\n", "",
			"l:\n    - a: |\n        text\n      # in it\n    - name: Ann\n      email: n@x\nb: 1\n"},
		"Flow": {"a list in brackets stays one", "# c\nl: [a, b] # d\n", "",
			"# c\nl: [a, b, {name: Ann, email: n@x}] # d\n"},
		"FlowFile": {"a file in brackets stays one", "{a: 1, l: [b]}\n", "",
			"{a: 1, l: [b, {name: Ann, email: n@x}]}\n"},
		"Windows": {"ends of lines stay", "l:\r\n- a\r\nb: 1\r\n", "",
			"l:\r\n- a\r\n- name: Ann\r\n  email: n@x\r\nb: 1\r\n"},
		"Mixed": {"each line keeps its end", "a: 1\nb: 2\r\nl: []\nc: 3\r\n", "",
			"a: 1\nb: 2\r\nl:\n  - name: Ann\n    email: n@x\nc: 3\r\n"},
		"MixedItems": {"lines end as the line before them", "a: 1\nl:\n- b\r\nc: 2\n", "",
			"a: 1\nl:\n- b\r\n- name: Ann\r\n  email: n@x\r\nc: 2\n"},
		"Ends": {"empty lines at the end stay", "l:\n- a\nb: 1\n\n\n", "",
			"l:\n- a\n- name: Ann\n  email: n@x\nb: 1\n\n\n"},
		"EndsMissing": {"also behind a new list", "a: 1\n\n\n", "",
			"a: 1\nl:\n  - name: Ann\n    email: n@x\n\n\n"},
		"Old Mac": {"a file is written anew if its lines cannot be counted", "a: 1 # x\rb: 2\nl:\n- x\n", "",
			"a: 1 # x\nb: 2\nl:\n  - x\n  - name: Ann\n    email: n@x\n"},
		"Separator": {"so it is with a separator of lines in a text", "a: \"x\u2028y\"\nl: []\n", "",
			"a: \"x\\Ly\"\nl: [{name: Ann, email: n@x}]\n"},
		"Block": {"a text that ends in empty lines keeps them", "l:\n- a\nb: |+\n  x\n\n", "",
			"l:\n- a\n- name: Ann\n  email: n@x\nb: |+\n  x\n\n"},
		"NoText": {"an empty file gets the list", "", "",
			"l:\n  - name: Ann\n    email: n@x\n"},
		"Comment": {"so does one that is a comment", "# nothing\n", "",
			"# nothing\nl:\n  - name: Ann\n    email: n@x\n"},
		"Nested": {"a key of the same name further down is another", "a:\n  l: []\nl:\n- b\n", "",
			"a:\n  l: []\nl:\n- b\n- name: Ann\n  email: n@x\n"},
		"MapMissing": {"the map is made", "a: 1\n", "k",
			"a: 1\nl:\n  k:\n    name: Ann\n    email: n@x\n"},
		"MapEmpty": {"braces go", "l: {} # none\nb: 1\n", "k",
			"l: # none\n  k:\n    name: Ann\n    email: n@x\nb: 1\n"},
		"MapEntries": {"after the last entry", "l:\n    a:\n      x: 1\n    # end\nb: 1\n", "k",
			"l:\n    a:\n      x: 1\n    k:\n      name: Ann\n      email: n@x\n    # end\nb: 1\n"},
		"MapFlow": {"a map in braces stays one", "l: {a: {x: 1}}\n", "k",
			"l: {a: {x: 1}, k: {name: Ann, email: n@x}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Insert([]byte(tc.text), Entry{List: "l", Name: tc.key, Value: ann})
			if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" {
				t.Errorf("%s: %v -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestInsertRefuses checks that a file that cannot be added to is not changed, and that the error says why.
func TestInsertRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, key string
		value             any
		want              string
	}{
		"Text":    {"text is no list", "l: text\n", "", ann, "neither a list nor a map"},
		"Number":  {"neither is a number", "l: 3\n", "k", ann, "neither a list nor a map"},
		"NoMap":   {"a file has keys", "- a\n", "", ann, "the file is no map"},
		"Scalar":  {"a file is more than a word", "word\n", "", ann, "the file is no map"},
		"Syntax":  {"a file is YAML", "l: [\n", "", ann, "line"},
		"Aliased": {"a list that other keys share is not changed for these", "a: &x []\nl: *x\n", "", ann, "Add it by hand"},
		"ListKey": {"an item of a list has no key", "l:\n- a\n", "k", ann, "Add it by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Insert([]byte(tc.text), Entry{List: "l", Name: tc.key, Value: tc.value})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if got != nil {
				t.Errorf("%s: there is a text:\n%s", tc.reason, got)
			}
		})
	}
}

// TestInsertKeepsLines checks on random files that only lines are added, in one place, and that all other keys keep their values.
func TestInsertKeepsLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		text, ending := randomFile(random)
		for _, key := range []string{"", "k"} {
			list := "l"
			if key != "" {
				list = "m"
			}
			got, err := Insert([]byte(text), Entry{List: list, Name: key, Value: ann})
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			if !hasLinesAround(strings.Split(text, ending), strings.Split(string(got), ending)) {
				t.Fatalf("a line of\n%s\nhas changed in\n%s", text, got)
			}
			if diff := cmp.Diff(others(t, text, list), others(t, string(got), list)); diff != "" {
				t.Fatalf("another key has changed: %s", diff)
			}
		}
	}
}

// randomFile returns a file of random keys, in which the list l and the map m may have entries, and how its lines end.
func randomFile(random *rand.Rand) (text, ending string) {
	blocks := []string{
		"# a comment\n", "\n", "a: 1 # one\n", "b: |\n  text\n\n  # no comment\n", "c:\n- x: 1\n  # of x\n- y\n", "d: {e: [f]}\n",
	}
	indent := strings.Repeat(" ", random.IntN(4))
	list, m := "l:\n", "m:\n"
	for n := range 1 + random.IntN(3) {
		list += fmt.Sprintf("%s- name: n%d # item\n%s  # below it\n", indent, n, indent)
		m += fmt.Sprintf("%s k%d:\n%s   x: |\n%s     text\n\n", indent, n, indent, indent)
	}
	blocks = append(blocks, list, m)
	random.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	text, ending = strings.TrimRight(strings.Join(blocks, ""), "\n")+strings.Repeat("\n", 1+random.IntN(3)), "\n"
	if random.IntN(4) == 0 {
		text, ending = strings.ReplaceAll(text, "\n", "\r\n"), "\r\n"
	}
	return text, ending
}

// hasLinesAround reports whether the lines after a change begin and end with those before it, and are more.
func hasLinesAround(before, after []string) bool {
	added := len(after) - len(before)
	if added <= 0 {
		return false
	}
	for at := range len(before) + 1 {
		if slices.Equal(before[:at], after[:at]) && slices.Equal(before[at:], after[at+added:]) {
			return true
		}
	}
	return false
}

// others returns the values of all keys of a file but one.
func others(t *testing.T, text, key string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	delete(all, key)
	return all
}

// FuzzInsert checks that no text makes Insert panic, and that a text with an entry can get another one.
func FuzzInsert(f *testing.F) {
	f.Add("l:\n- a\n# c\nb: |+\n  x\n\n")
	f.Add("l: [] #\n---\nx")
	f.Add("a: 1\r\nl:\n- b\nc: 2\r\n")
	f.Add("a: \"x\u2028y\"\rl:\n- b")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"", "n"} {
			got, err := Insert([]byte(text), Entry{List: "l", Name: name, Value: "x"})
			if err != nil {
				continue
			}
			var after map[string]any
			if err := yaml.Unmarshal(got, &after); err != nil || after["l"] == nil {
				t.Errorf("%v: no list in\n%s", err, got)
			}
		}
	})
}
