package render

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The runes that stand around what a value printed. They are of Unicode's private use area, where nothing is assigned;
// a value that holds one is refused. A marked stretch is
//
//	opening origin ';' text [opening skeleton] closing
//
// where origin is the number of the action that printed it, and skeleton, which only toYaml and its kin write, is the
// text with each of its scalars replaced by a word.
const (
	opening = '\uf3f1'
	closing = '\uf3f2'
)

const markRunes = string(opening) + string(closing)

// marked puts marks around a text. Empty text stays empty: where it stands, the template is as its author sees it.
func marked(origin int, text, skeleton string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	b.WriteRune(opening)
	b.WriteString(strconv.Itoa(origin))
	b.WriteByte(';')
	b.WriteString(text)
	if skeleton != "" {
		b.WriteRune(opening)
		b.WriteString(skeleton)
	}
	b.WriteRune(closing)
	return b.String()
}

// word stands for a value in a skeleton. It ends with a mark, so that no text of a template can be one.
func word(origin int) string { return "v" + strconv.Itoa(origin) + string(opening) }

// hasWord reports whether a text of a filled rendering holds the word of a value.
func hasWord(text string) bool { return strings.ContainsRune(text, opening) }

// unmarked removes the marks, and leaves what was printed.
func unmarked(text string) (string, error) {
	if !strings.ContainsAny(text, markRunes) {
		return text, nil
	}
	plain, _, err := separate(text)
	return plain, err
}

// separate reads a marked text. plain is what was printed; filled is plain with each marked stretch replaced by its
// skeleton or a word.
func separate(text string) (plain, filled string, err error) {
	var p, f strings.Builder
	for {
		at := strings.IndexAny(text, markRunes)
		if at < 0 {
			p.WriteString(text)
			f.WriteString(text)
			return p.String(), f.String(), nil
		}
		p.WriteString(text[:at])
		f.WriteString(text[:at])
		s, rest, err := stretchAt(text[at:])
		if err != nil {
			return "", "", err
		}
		p.WriteString(s.text)
		if s.skeleton != "" {
			f.WriteString(s.skeleton)
		} else if s.text != "" {
			f.WriteString(word(s.origin))
		}
		text = rest
	}
}

// stretch is one marked stretch of a text.
type stretch struct {
	origin         int
	text, skeleton string
}

// stretchAt reads the stretch that a text begins with, and returns what follows it.
func stretchAt(text string) (s stretch, rest string, err error) {
	body, ok := strings.CutPrefix(text, string(opening))
	number, body, found := strings.Cut(body, ";")
	if s.origin, err = strconv.Atoi(number); !ok || !found || err != nil {
		return s, "", fmt.Errorf("marks are out of order")
	}
	end := strings.IndexAny(body, markRunes)
	if end < 0 {
		return s, "", fmt.Errorf("a mark is missing")
	}
	s.text = body[:end]
	first, size := utf8.DecodeRuneInString(body[end:])
	if rest = body[end+size:]; first == closing {
		return s, rest, nil
	}
	// Words end with the opening rune, so that the skeleton ends with the closing one and nothing else.
	s.skeleton, rest, found = strings.Cut(rest, string(closing))
	if !found {
		return s, "", fmt.Errorf("a mark is missing")
	}
	return s, rest, nil
}

// cutMarked removes bytes of what was printed at both ends, and keeps all marks. What is cut does not count as printed
// by a value; the functions that cut do so at white space, or at what the author of the template names.
func cutMarked(text string, left, right int) (string, error) {
	plain, err := unmarked(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	from, to, at := left, len(plain)-right, 0
	keep := func(part string) string {
		start, end := max(0, from-at), min(len(part), to-at)
		at += len(part)
		if start >= end {
			return ""
		}
		return part[start:end]
	}
	for {
		next := strings.IndexAny(text, markRunes)
		if next < 0 {
			out.WriteString(keep(text))
			return out.String(), nil
		}
		out.WriteString(keep(text[:next]))
		s, rest, err := stretchAt(text[next:])
		if err != nil {
			return "", err
		}
		out.WriteString(marked(s.origin, keep(s.text), s.skeleton))
		text = rest
	}
}

// trimmers are the layout functions that cut at both ends, as they are to work on marked text. The text comes last.
var trimmers = map[string]func(cut, text string) (string, error){
	"trim": func(_, text string) (string, error) {
		return trimMarked(text, unicode.IsSpace, unicode.IsSpace)
	},
	"trimAll":    func(cut, text string) (string, error) { return trimMarked(text, among(cut), among(cut)) },
	"trimPrefix": func(cut, text string) (string, error) { return trimAffix(text, cut, true) },
	"trimSuffix": func(cut, text string) (string, error) { return trimAffix(text, cut, false) },
}

func among(cut string) func(rune) bool {
	return func(r rune) bool { return strings.ContainsRune(cut, r) }
}

func trimMarked(text string, left, right func(rune) bool) (string, error) {
	plain, err := unmarked(text)
	if err != nil {
		return "", err
	}
	rest := strings.TrimLeftFunc(plain, left)
	return cutMarked(text, len(plain)-len(rest), len(rest)-len(strings.TrimRightFunc(rest, right)))
}

func trimAffix(text, affix string, prefix bool) (string, error) {
	plain, err := unmarked(text)
	switch {
	case err != nil:
		return "", err
	case prefix && strings.HasPrefix(plain, affix):
		return cutMarked(text, len(affix), 0)
	case !prefix && strings.HasSuffix(plain, affix):
		return cutMarked(text, 0, len(affix))
	}
	return text, nil
}
