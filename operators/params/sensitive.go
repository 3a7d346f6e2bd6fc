package params

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Masked stands in messages where a sensitive value was.
const Masked = "(sensitive)"

// Sensitive returns the definitions, with the named ones marked as sensitive too: a parameter is it by its definition, or
// since its value comes from a Secret. The definitions that are given do not change.
func Sensitive(defs []v1beta1.Parameter, names []string) []v1beta1.Parameter {
	out := slices.Clone(defs)
	for i := range out {
		out[i].Sensitive = out[i].Sensitive || slices.Contains(names, out[i].Name)
	}
	return out
}

// GivenSensitive returns the names of the parameters that are sensitive by their definitions, and given.
func GivenSensitive(defs []v1beta1.Parameter, given map[string]string) []string {
	var out []string
	for _, def := range defs {
		if _, set := given[def.Name]; set && def.Sensitive {
			out = append(out, def.Name)
		}
	}
	return out
}

// Mask takes sensitive values out of text that people will read. The zero value takes nothing.
type Mask struct {
	replacer *strings.Replacer
	// sorted are the texts that are taken out, in the order of their bytes.
	sorted []string
}

// shortest is the length in bytes from which a value is masked: shorter ones are parts of ordinary words.
const shortest = 4

// NewMask returns a mask of the values, of each line of those that have several, of both as they stand between quotes and in
// messages without control characters, and of their base64 forms, as they stand in Secrets.
func NewMask(values []string) Mask {
	var hidden []string
	for _, value := range values {
		parts := append(strings.Split(value, "\n"), value)
		for _, part := range parts {
			if part = strings.TrimSpace(part); len(part) >= shortest {
				hidden = append(hidden, part)
				hidden = append(hidden, unquoted(strconv.Quote(part)))
				if plain := text.Plain(part, len(part)); len(plain) >= shortest {
					hidden = append(hidden, plain)
				}
				if encoded, err := json.Marshal(part); err == nil {
					hidden = append(hidden, unquoted(string(encoded)))
				}
			}
		}
		if len(value) >= shortest {
			hidden = append(hidden, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	if len(hidden) == 0 {
		return Mask{}
	}
	// Of two that begin at the same place, the longer one goes first: nothing of it must be left.
	slices.SortFunc(hidden, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	hidden = slices.Compact(hidden)
	var pairs []string
	for _, form := range hidden {
		pairs = append(pairs, form, Masked)
	}
	replacer := strings.NewReplacer(pairs...)
	slices.Sort(hidden)
	return Mask{replacer, hidden}
}

func unquoted(text string) string { return text[1 : len(text)-1] }

// Whole masks the values in a text that nothing has cut. It does not mask beginnings of values: they may be whole values of other fields.
func (m Mask) Whole(text string) string {
	if m.replacer == nil {
		return text
	}
	return m.replacer.Replace(text)
}

// maxSteps bounds the search for beginnings of values in a message: values and messages are chosen by others.
const maxSteps = 1 << 20

// Text returns a message without the values, and without the beginnings of values before an ellipsis: what makes a message may have cut it
// in the middle of a value. If the search for these takes too long, all that is left to search before an ellipsis is taken out.
func (m Mask) Text(message string) string {
	message = m.Whole(message)
	cuts := cutsIn(message)
	if len(cuts) == 0 || len(m.sorted) == 0 {
		return message
	}
	begins := m.beginnings(message, cuts)
	var out strings.Builder
	end := 0
	for n, cut := range cuts {
		if begin := max(begins[n], end); begin < cut {
			out.WriteString(message[end:begin] + Masked)
			end = cut
		}
	}
	return out.String() + message[end:]
}

// cutsIn returns where a message ends before an ellipsis, or before the quote in front of it.
func cutsIn(message string) []int {
	var out []int
	for at := 0; ; {
		next := strings.Index(message[at:], text.Ellipsis)
		if next < 0 {
			return out
		}
		at += next
		cut := at
		if cut > 0 && message[cut-1] == '"' {
			cut--
		}
		out = append(out, cut)
		at += len(text.Ellipsis)
	}
}

// beginnings returns for each cut where the longest beginning of a value starts that ends there; the cut itself if there is none.
func (m Mask) beginnings(message string, cuts []int) []int {
	out := slices.Clone(cuts)
	steps := 0
	for start := range message {
		next, _ := slices.BinarySearch(cuts, start+shortest) // the first cut that a value from here may reach
		if next == len(cuts) {
			break
		}
		among := m.sorted
		for at := start; next < len(cuts) && len(among) > 0; at++ {
			for ; next < len(cuts) && cuts[next] == at; next++ {
				out[next] = min(out[next], start)
			}
			among = withByte(among, at-start, message[at])
			if steps++; steps > maxSteps {
				takeOutFrom(start, out)
				return out
			}
		}
	}
	return out
}

// takeOutFrom lets what is taken out before each cut begin at a place, unless it begins earlier.
func takeOutFrom(start int, begins []int) {
	for n := range begins {
		begins[n] = min(begins[n], start)
	}
}

// withByte returns those of sorted texts, which are equal before a place, that have a byte there.
func withByte(sorted []string, place int, b byte) []string {
	from := sort.Search(len(sorted), func(i int) bool { return len(sorted[i]) > place && sorted[i][place] >= b })
	to := sort.Search(len(sorted), func(i int) bool { return len(sorted[i]) > place && sorted[i][place] > b })
	return sorted[from:to]
}

// maxQuoted bounds a value in a message, in bytes: values may be whole files.
const maxQuoted = 64

// quoteValue quotes the value of a parameter for a message, and hides a sensitive one.
func quoteValue(def v1beta1.Parameter, value string) string {
	if def.Sensitive {
		return Masked
	}
	return text.Quote(value, maxQuoted)
}
