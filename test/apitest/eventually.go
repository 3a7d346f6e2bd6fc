package apitest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// eventuallyLimit is longer than any wait of a unit test takes on a machine that does much else.
const eventuallyLimit = time.Minute

// Eventually waits until a condition holds of what runs beside the test, such as a watch. It ends the test if that takes too long. It may be
// called by a cleanup.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	poll := func(context.Context) (bool, error) { return holds(), nil }
	if err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, eventuallyLimit, true, poll); err != nil {
		tb.Fatalf("not yet: %s: %v", what, err)
	}
}
