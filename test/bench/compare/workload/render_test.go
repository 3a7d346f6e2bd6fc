package workload

import (
	"fmt"
	"testing"
)

// Both engines must make the same of the templates.
func TestAlike(t *testing.T) {
	if err := alike(kudoCold(3), helmEngine(3)); err != nil {
		t.Error(err)
	}
}

// BenchmarkRender is for profiles of what the workload compares.
func BenchmarkRender(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, render := range map[string]renderer{"kudo": kudoCold(n), "again": kudoWarm(n), "helm": helmEngine(n)} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := render(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
