package command

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestPrompterTexts checks which answers a question for a text takes, and how often it is asked.
func TestPrompterTexts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in, before string
		required           bool
		want, asked        string
		fails              bool
	}{
		"Answer":         {"the answer is taken", "web\n", "", true, "web", "Name: ", false},
		"Blanks":         {"blanks around an answer are no part of it", " \tweb server \n", "", true, "web server", "Name: ", false},
		"Standard":       {"an empty answer stands for the standard", "\n", "web", true, "web", "Name [web]: ", false},
		"OnlyBlanks":     {"and so does one of blanks", "  \n", "web", true, "web", "Name [web]: ", false},
		"OverStandard":   {"an answer wins over the standard", "db\n", "web", true, "db", "Name [web]: ", false},
		"Empty":          {"a text may be empty", "\n", "", false, "", "Name: ", false},
		"AskedAgain":     {"a required text is asked for again", "\n\nweb\n", "", true, "web", "Name:   this cannot be empty\nName:   this cannot be empty\nName: ", false},
		"NoNewline":      {"the last line needs no end", "web", "", true, "web", "Name: ", false},
		"Windows":        {"lines of Windows are lines", "web\r\n", "", true, "web", "Name: ", false},
		"End":            {"the end of the input is no answer", "", "web", false, "", "Name [web]: ", true},
		"EndAfterWrong":  {"nor is it after an answer that is not valid", "\n", "", true, "", "Name:   this cannot be empty\nName: ", true},
		"OtherLetters":   {"answers are in any script", "Größe 🚀\n", "", true, "Größe 🚀", "Name: ", false},
		"RestIsLeft":     {"one line is read", "a\nb\n", "", false, "a", "Name: ", false},
		"LongerThanLine": {"a line has a limit", strings.Repeat("x", 1<<17) + "\n", "", false, "", "Name: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := tc.before
			a := NewPrompter(strings.NewReader(tc.in), &out)
			ask := a.Text
			if tc.required {
				ask = a.RequiredText
			}
			err := ask(&got, "Name")
			if (err != nil) != tc.fails || got != tc.want || out.String() != tc.asked {
				t.Errorf("%s: %q after %q, error %v", tc.reason, got, out.String(), err)
			}
			if tc.fails && !strings.Contains(err.Error(), `no answer to "Name": nothing was changed`) {
				t.Errorf("%s: the error does not say that nothing was changed: %v", tc.reason, err)
			}
		})
	}
}

// TestPrompterReadError checks that the cause of an input that cannot be read is in the error.
func TestPrompterReadError(t *testing.T) {
	cause := errors.New("the terminal was closed")
	var got string
	err := NewPrompter(iotest.ErrReader(cause), io.Discard).RequiredText(&got, "Name")
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("got %v", err)
	}
}

// TestPrompterChoose checks that only a choice is an answer.
func TestPrompterChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in, before, want string
		wrong                    int // how many answers are refused
		fails                    bool
	}{
		"Choice":       {"a choice", "serial\n", "", "serial", 0, false},
		"Standard":     {"the standard", "\n", "parallel", "parallel", 0, false},
		"NoStandard":   {"without a standard, an empty answer is none", "\nserial\n", "", "serial", 1, false},
		"LetterCase":   {"values are written as they are", "Serial\nserial\n", "", "serial", 1, false},
		"Beginning":    {"the beginning of a choice is none", "ser\nserial\n", "", "serial", 1, false},
		"All":          {"one is chosen", "serial, parallel\nparallel\n", "", "parallel", 1, false},
		"WrongDefault": {"a standard that is no choice is refused, too", "\nserial\n", "other", "serial", 1, false},
		"End":          {"the end is no choice", "other\n", "", "", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := tc.before
			err := NewPrompter(strings.NewReader(tc.in), &out).Choose(&got, "Order", []string{"serial", "parallel"})
			if (err != nil) != tc.fails || got != tc.want {
				t.Errorf("%s: %q, error %v", tc.reason, got, err)
			}
			if n := strings.Count(out.String(), "  must be one of serial, parallel\n"); n != tc.wrong {
				t.Errorf("%s: %d answers are refused, want %d:\n%s", tc.reason, n, tc.wrong, out.String())
			}
			if !strings.HasPrefix(out.String(), "Order (serial, parallel)") {
				t.Errorf("%s: the question does not name the choices: %s", tc.reason, out.String())
			}
		})
	}
}

// TestPrompterList checks that a list has one text at least.
func TestPrompterList(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in string
		before     []string
		want       []string
		wrong      int
	}{
		"One":        {"one text", "a\n", nil, []string{"a"}, 0},
		"Two":        {"blanks around a text are no part of it", " a , b\n", nil, []string{"a", "b"}, 0},
		"EmptyParts": {"empty parts are dropped", "a,,b,\n", nil, []string{"a", "b"}, 0},
		"Standard":   {"the standard stays", "\n", []string{"a", "b"}, []string{"a", "b"}, 0},
		"Empty":      {"an empty list is asked for again", "\na\n", nil, []string{"a"}, 1},
		"Commas":     {"commas alone are an empty list", ",\n , ,\na\n", nil, []string{"a"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := tc.before
			err := NewPrompter(strings.NewReader(tc.in), &out).List(&got, "Tasks")
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: error %v\n%s", tc.reason, err, diff)
			}
			if n := strings.Count(out.String(), "  this cannot be empty\n"); n != tc.wrong {
				t.Errorf("%s: %d answers are refused, want %d:\n%s", tc.reason, n, tc.wrong, out.String())
			}
		})
	}
	list := []string{"kept"}
	if err := NewPrompter(strings.NewReader(""), io.Discard).List(&list, "Tasks"); err == nil || len(list) != 1 || list[0] != "kept" {
		t.Errorf("without an answer, the list stays as it is: %v, %v", list, err)
	}
}

// TestPrompterConfirm checks the answers of yes and no.
func TestPrompterConfirm(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in   string
		before, want bool
		asked        string
		fails        bool
	}{
		"Yes":       {"the first letter", "y\n", false, true, "Sure? (y, n) [n]: ", false},
		"Word":      {"the word", "yes\n", false, true, "Sure? (y, n) [n]: ", false},
		"LetterUp":  {"in any letter case", "YES\n", false, true, "Sure? (y, n) [n]: ", false},
		"True":      {"as in YAML", "true\n", false, true, "Sure? (y, n) [n]: ", false},
		"No":        {"no", "n\n", true, false, "Sure? (y, n) [y]: ", false},
		"False":     {"as in YAML", "False\n", true, false, "Sure? (y, n) [y]: ", false},
		"StandardN": {"no is the standard of what is not set", "\n", false, false, "Sure? (y, n) [n]: ", false},
		"StandardY": {"yes is that of what is", "\n", true, true, "Sure? (y, n) [y]: ", false},
		"Other":     {"another word is asked about again", "maybe\ny\n", false, true, "Sure? (y, n) [n]:   must be y or n\nSure? (y, n) [n]: ", false},
		"Number":    {"1 is no answer", "1\nn\n", true, false, "Sure? (y, n) [y]:   must be y or n\nSure? (y, n) [y]: ", false},
		"End":       {"the end of the input is a no, even if yes is the standard", "", true, false, "Sure? (y, n) [y]: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := tc.before
			err := NewPrompter(strings.NewReader(tc.in), &out).Confirm(&got, "Sure?")
			if (err != nil) != tc.fails || got != tc.want || out.String() != tc.asked {
				t.Errorf("%s: %t after %q, error %v", tc.reason, got, out.String(), err)
			}
		})
	}
}

// TestPrompterSequence checks that questions take one line each from the same input.
func TestPrompterSequence(t *testing.T) {
	a := NewPrompter(strings.NewReader("web\nb\n\nx, y\nmore\n"), io.Discard)
	var name, kind, last string
	var sure bool
	var list []string
	err := errors.Join(a.RequiredText(&name, "Name"), a.Choose(&kind, "Kind", []string{"a", "b"}), a.Confirm(&sure, "Sure?"), a.List(&list, "List"), a.Text(&last, "Last"))
	if err != nil || name != "web" || kind != "b" || sure || !cmp.Equal(list, []string{"x", "y"}) || last != "more" {
		t.Errorf("%q, %q, %t, %q, %q, error %v", name, kind, sure, list, last, err)
	}
}

// TestSplitList checks how lists of flags are split.
func TestSplitList(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         []string
	}{
		{"nothing", "", nil},
		{"blanks", "  ", nil},
		{"commas", ",,", nil},
		{"one", "a", []string{"a"}},
		{"order and repetitions stay", "b, a,b", []string{"b", "a", "b"}},
		{"blanks inside stay", "a b,c", []string{"a b", "c"}},
		{"ends of lines count as blanks", "a\n,\tb", []string{"a", "b"}},
	} {
		if diff := cmp.Diff(tc.want, SplitList(tc.text)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}
