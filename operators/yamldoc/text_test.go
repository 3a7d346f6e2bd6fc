package yamldoc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestValueTextIsLinear checks that the digits of a long number are not converted, which takes very long.
func TestValueTextIsLinear(t *testing.T) {
	digits := strings.Repeat("9", 1<<21)
	begin := time.Now()
	got, err := ValueText([]any{json.Number(digits)})
	if err != nil || got != "- "+digits+"\n" {
		t.Errorf("got %.40q, %v", got, err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("a number of 2 MiB took %v", took)
	}
}
