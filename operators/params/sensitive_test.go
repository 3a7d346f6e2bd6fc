package params

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

func TestMask(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
		values             []string
	}{
		"None":    {"without values, text stays", "password hunter2", "password hunter2", nil},
		"Plain":   {"a value goes wherever it stands", `Invalid value: "hunter2": hunter2`, `Invalid value: "(sensitive)": (sensitive)`, []string{"hunter2"}},
		"Base64":  {"as data of a Secret too", "data: aHVudGVyMg==", "data: (sensitive)", []string{"hunter2"}},
		"Quoted":  {"as it stands between quotes", `Invalid value: "pa\"ss\\word"`, `Invalid value: "(sensitive)"`, []string{`pa"ss\word`}},
		"JSON":    {"as it stands in JSON", `{"a":"x\u003cyyy"}`, `{"a":"(sensitive)"}`, []string{"x<yyy"}},
		"Control": {"as it stands where control characters are left out", "denied: hunter 2[x", "denied: (sensitive)", []string{"hun\x07ter\t 2\x1b[x"}},
		"Nothing": {"what is left without control characters may be short", "a step", "a step", []string{"\x01\x02\x03\x04"}},
		"Lines":   {"of several lines, each goes", "line MIIEdeadbeef of it", "line (sensitive) of it", []string{"-----BEGIN-----\nMIIEdeadbeef\n"}},
		"Prefix":  {"of a longer value nothing is left", "secret-long", "(sensitive)", []string{"secret", "secret-long"}},
		"Short":   {"a value of few letters would take words apart", "a step of phase a", "a step of phase a", []string{"a", "tep"}},
		"Cut":     {"of a value that is cut, nothing is left", `default is "abc correct-hor…", and correct-…`, `default is "abc (sensitive)…", and (sensitive)…`, []string{"correct-horse"}},
		"CutIn":   {"a quote may end before the ellipsis", `"correct-hor"… (90 bytes)`, `"(sensitive)"… (90 bytes)`, []string{"correct-horse"}},
		"CutLate": {"few letters before an ellipsis are no value", "cor… corr…", "cor… (sensitive)…", []string{"correct-horse"}},
		"CutAll":  {"a message may be the beginning of a value", "……corr…", "……(sensitive)…", []string{"correct-horse"}},
		"CutMost": {"the longest beginning of several values goes", "x-correct-ho…", "(sensitive)…", []string{"correct-horse", "x-correct-horse"}},
		"Several": {"each of several", "one hunter2 two swordfish", "one (sensitive) two (sensitive)", []string{"hunter2", "swordfish"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewMask(tc.values).Text(tc.text); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestGivenSensitive: those are named that the definitions say, and that have a value.
func TestGivenSensitive(t *testing.T) {
	defs := []v1beta1.Parameter{{Name: "B", Sensitive: true}, {Name: "A", Sensitive: true}, {Name: "UNSET", Sensitive: true}, {Name: "PLAIN"}}
	got := GivenSensitive(defs, map[string]string{"A": "", "B": "x", "PLAIN": "y", "OTHER": "z"})
	if !slices.Equal(got, []string{"B", "A"}) {
		t.Errorf("%q", got)
	}
}

// TestSensitiveProblems: what is wrong with a sensitive value is said without the value.
func TestSensitiveProblems(t *testing.T) {
	enum := []string{"a", "b"}
	defs := []v1beta1.Parameter{
		{Name: "ENUM", Enum: &enum}, {Name: "NUMBER", Type: v1beta1.IntegerType}, {Name: "MAP", Type: v1beta1.MapType}, {Name: "LIST", Type: v1beta1.ArrayType},
	}
	given := map[string]string{"ENUM": "hunter2", "NUMBER": "hunter2", "MAP": "{hunter2: [", "LIST": "hunter2"}
	hidden := Sensitive(defs, []string{"ENUM", "NUMBER", "MAP", "LIST"})
	if defs[0].Sensitive {
		t.Error("the definitions that were given have changed")
	}
	problems := Validate(hidden, given)
	if len(problems) != 4 || strings.Contains(problems.Error(), "hunter2") || strings.Count(problems.Error(), Masked) != 4 {
		t.Errorf("problems: %s", problems)
	}
	if _, err := Resolve(hidden, given); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Resolve: %v", err)
	}
}

// TestMaskCuts masks random messages in which values are cut, and checks that no beginning of a value stands before an ellipsis.
func TestMaskCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		out := make([]byte, 1+random.IntN(most))
		for i := range out {
			out[i] = "ab"[random.IntN(2)]
		}
		return string(out)
	}
	for range 2000 {
		value := word(12) + "c"
		message := ""
		for range 1 + random.IntN(4) {
			message += word(8) + value[:random.IntN(len(value))] + text.Ellipsis
		}
		got := NewMask([]string{value}).Text(message)
		for before := range strings.SplitSeq(strings.TrimSuffix(got, text.Ellipsis), text.Ellipsis) {
			for n := shortest; n < len(value) && len(value) >= shortest; n++ {
				if strings.HasSuffix(before, value[:n]) {
					t.Fatalf("%q of %q leaves %q", message, value, got)
				}
			}
		}
		if shown := strings.ReplaceAll(got, Masked, ""); strings.Count(got, text.Ellipsis) != strings.Count(message, text.Ellipsis) || len(shown) > len(message) {
			t.Fatalf("%q of %q becomes %q", message, value, got)
		}
	}
}

// TestMaskHostileCuts checks that neither long values nor values of many lines make a mask slow, and that nothing of a value is left where
// the search is given up.
func TestMaskHostileCuts(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	var lines strings.Builder
	for n := range 100_000 {
		fmt.Fprintf(&lines, "%07d\n", n)
	}
	mask := NewMask([]string{long + "b", lines.String()})
	for _, tc := range []struct{ reason, message, want string }{
		{"a long beginning", "x " + long[:100] + text.Ellipsis, "x " + Masked + text.Ellipsis},
		{"many beginnings", "0000…00012… 00123x…", Masked + "…" + Masked + "… 00123x…"},
		{"a search that is given up", "x " + long + "c" + text.Ellipsis, "x " + Masked + text.Ellipsis},
		{"no beginning", strings.Repeat("x", 1<<16) + text.Ellipsis, strings.Repeat("x", 1<<16) + text.Ellipsis},
	} {
		if got := mask.Text(tc.message); got != tc.want {
			t.Errorf("%s: %d bytes, want %d: %.100q", tc.reason, len(got), len(tc.want), got)
		}
	}
}
