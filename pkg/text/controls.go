package text

import (
	"strconv"
	"strings"
	"unicode"
)

// EscapeControls replaces each control character of a text by its escape sequence in Go, such as \x1b: a terminal would take it for a
// command, and whoever may write an Instance or a log chooses the text. Characters that change the direction of text, and bytes
// that are no text, are replaced, too. Tabs and the ends of lines stay.
func EscapeControls(text string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(text, string(unicode.ReplacementChar)) {
		if isControl(r) {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
