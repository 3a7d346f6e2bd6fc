// Package text formats text for messages: it bounds values and lists, and finds the names that were meant. It imports
// the standard library only.
package text

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ellipsis marks the end of a text that was cut.
const Ellipsis = "…"

// Truncate returns s if it has at most limit bytes. Otherwise it returns the beginning of s and an ellipsis, at most limit
// bytes together and never a part of a rune. Invalid UTF-8 is removed, so that the result can stand in an API object.
func Truncate(s string, limit int) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= limit {
		return s
	}
	return head(s, limit-len(Ellipsis)) + Ellipsis
}

// Quote returns s in Go's quotes. Of a longer text than limit bytes it quotes the beginning, and adds the size of the whole.
func Quote(s string, limit int) string {
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	return strconv.Quote(head(s, limit)) + fmt.Sprintf("%s (%d bytes)", Ellipsis, len(s))
}

// JSON returns value as JSON of at most limit bytes, as Truncate cuts it. A value that has no JSON is printed as fmt does.
func JSON(value any, limit int) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		encoded = fmt.Append(nil, value)
	}
	return Truncate(string(encoded), limit)
}

// head returns at most limit bytes from the beginning of s, without a part of a rune at the end.
func head(s string, limit int) string {
	end := max(limit, 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// List joins the first limit names with commas, and counts the others: "a, b and 3 more".
func List(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// OneLine returns s with each run of white space, line ends included, as one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Plain returns s on one line, without control characters and others that are not printed, and truncated to limit bytes: a
// client has chosen s, and a terminal must not act on it.
func Plain(s string, limit int) string {
	printed := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return Truncate(OneLine(printed), limit)
}

// Grouped writes a number with a comma before each three digits.
func Grouped(n int64) string {
	digits, sign := strconv.FormatInt(n, 10), ""
	if n < 0 {
		digits, sign = digits[1:], "-"
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// plainWord matches the words that mean themselves in a shell.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_@%+=:,./-]+$`)

// ShellQuote returns a word for a command that a user pastes into a shell.
func ShellQuote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
