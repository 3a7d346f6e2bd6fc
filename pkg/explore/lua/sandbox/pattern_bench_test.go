package sandbox

import (
	"strings"
	"testing"
)

// BenchmarkMatch matches patterns of each kind of item against subjects that need many steps.
func BenchmarkMatch(b *testing.B) {
	for name, c := range map[string]struct{ subject, pattern string }{
		"literal":   {strings.Repeat("a", 200), strings.Repeat("a", 200)},
		"repeat":    {strings.Repeat("ab1 ", 100), "%w+%s*%w-%s.*$"},
		"optional":  {strings.Repeat("a", 20), strings.Repeat("a?", 20) + strings.Repeat("a", 12)},
		"capture":   {"key = value", "^?(%w+)%s*=%s*(()%w+)$"},
		"special":   {"(a(b)c) THE (quick) fox", "%b()%s%f[%a]%u+%f[%A] (%b())"},
		"backtrack": {strings.Repeat("a", 40), "a*a*a*b"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m := matcher{subject: c.subject, pattern: c.pattern, budget: 1 << 30}
				if _, err := m.match(0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
