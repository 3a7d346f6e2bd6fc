package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// anything stands for any text within a line, and as a line of its own for any number of lines.
const anything = "…"

var (
	columns = regexp.MustCompile(` {2,}`) // they are wider where another row has more in them
	// varying is what no two runs have in common: times, durations, ports, digests at the end of generated names.
	varying = []struct{ shown, printed *regexp.Regexp }{
		pattern(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?`),
		{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?(ms|s)\b`), regexp.MustCompile(`(\d+[dhm])*\d+(\.\d+)?(ms|s|m|h|d)|<invalid>`)},
		pattern(`127\.0\.0\.1:\d+`),
		pattern(`-[0-9a-f]{8}\b`),
	}
)

func pattern(text string) struct{ shown, printed *regexp.Regexp } {
	p := regexp.MustCompile(text)
	return struct{ shown, printed *regexp.Regexp }{p, p}
}

// lineOf makes an expression of a line of a page. The page's namespace default is that of the test.
func lineOf(shown, namespace string) *regexp.Regexp {
	text := columns.ReplaceAllString(strings.TrimSpace(shown), " ")
	var out strings.Builder
	for text != "" {
		from, to, with := len(text), len(text), ""
		consider := func(at []int, instead string) {
			if at != nil && at[0] < from {
				from, to, with = at[0], at[1], instead
			}
		}
		for _, v := range varying {
			consider(v.shown.FindStringIndex(text), "(?:"+v.printed.String()+")")
		}
		if at := strings.Index(text, anything); at >= 0 {
			consider([]int{at, at + len(anything)}, ".*")
		}
		consider(regexp.MustCompile(`\bdefault\b`).FindStringIndex(text), "(?:default|"+regexp.QuoteMeta(namespace)+")")
		out.WriteString(regexp.QuoteMeta(text[:from]) + with)
		text = text[to:]
	}
	return regexp.MustCompile("^" + out.String() + "$")
}

// differs says where a command prints something else than the page shows; empty if nowhere.
func differs(shown []string, printed, namespace string) string {
	var lines []string
	for _, line := range strings.Split(printed, "\n") {
		if line = columns.ReplaceAllString(strings.TrimSpace(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	at, loose := 0, false
	for _, want := range shown {
		if strings.TrimSpace(want) == anything {
			loose = true
			continue
		}
		expression := lineOf(want, namespace)
		for loose && at < len(lines) && !expression.MatchString(lines[at]) {
			at++
		}
		if at == len(lines) {
			return fmt.Sprintf("the page shows %q, which is not printed", want)
		}
		if !expression.MatchString(lines[at]) {
			return fmt.Sprintf("the page shows\n\t%s\nand printed is\n\t%s", columns.ReplaceAllString(strings.TrimSpace(want), " "), lines[at])
		}
		at, loose = at+1, false
	}
	if at < len(lines) && !loose {
		return fmt.Sprintf("printed is also %q", lines[at])
	}
	return ""
}

// fails reports whether what a page shows is a failure.
func fails(shown []string) bool {
	for _, line := range shown {
		if strings.HasPrefix(line, "Error") || strings.HasPrefix(line, "error: ") {
			return true
		}
	}
	return false
}
