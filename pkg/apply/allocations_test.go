package apply

import "testing"

// TestAllocations: the hash of an object, which each reconcile makes, takes no more allocations than this.
func TestAllocations(t *testing.T) {
	const most = 20
	object := own("x")[0]
	if got := testing.AllocsPerRun(100, func() { Hash(object, nil) }); got > most {
		t.Errorf("%g allocations, and not %d", got, most)
	}
}
