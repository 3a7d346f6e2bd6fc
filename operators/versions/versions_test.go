package versions

import "testing"

// TestCompare checks the order of versions: semantic ones before others, and each two in one way only.
func TestCompare(t *testing.T) {
	ordered := []string{"", "a", "latest", "0.0.1", "0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-rc.1", "1.0.0", "1.0.0+a", "v1.1.0", "10.0.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := Compare(a, b)
			if (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

// TestMatches checks which versions are in a range, and that a version means itself, as in KUDO.
func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		version, wanted string
		fits, fails     bool
	}{
		{version: "1.2.3", wanted: "", fits: true},
		{version: "", wanted: "", fits: true},
		{version: "", wanted: "1.0.0"},
		{version: "5.7", wanted: "5.7", fits: true},
		{version: "5.7.1", wanted: "5.7"},
		{version: "5.7.0", wanted: "5.7", fits: true},
		{version: "latest", wanted: "latest", fits: true},
		{version: "latest", wanted: "^1.0"},
		{version: "1.9.0", wanted: "^1.2", fits: true},
		{version: "2.0.0", wanted: "^1.2"},
		{version: "0.2.5", wanted: "^0.2.1", fits: true},
		{version: "0.3.0", wanted: "^0.2.1"},
		{version: "1.2.9", wanted: "~1.2.3", fits: true},
		{version: "1.3.0", wanted: "~1.2.3"},
		{version: "2.5.0", wanted: ">=1, <3", fits: true},
		{version: "3.0.0", wanted: ">=1, <3"},
		{version: "1.4.0", wanted: "1.x", fits: true},
		{version: "1.0.0-rc.1", wanted: "^1.0"},
		{version: "1.0.0", wanted: "^abc", fails: true},
		{version: "1.0.0", wanted: ">=1 <<2", fails: true},
	} {
		fits, err := Matches(tc.version, tc.wanted)
		if fits != tc.fits || (err != nil) != tc.fails {
			t.Errorf("%q for %q: %t, %v", tc.version, tc.wanted, fits, err)
		}
		if err := CheckRange(tc.wanted); (err != nil) != tc.fails {
			t.Errorf("%q: %v", tc.wanted, err)
		}
	}
}

// TestIsRange checks what is a range and what is a version.
func TestIsRange(t *testing.T) {
	for wanted, is := range map[string]bool{
		"": false, "1": false, "1.2": false, "1.2.3": false, "1.2.3-rc.1": false, "latest": false, "xenial": false, "v1": false,
		"^1": true, "~1.2": true, ">1": true, "<2": true, "=1": true, "*": true, "!=1": true, "1 || 2": true, "1, 2": true, "1.x": true, "1.2.X": true,
	} {
		if IsRange(wanted) != is {
			t.Errorf("%q is a range: %t", wanted, !is)
		}
	}
}
