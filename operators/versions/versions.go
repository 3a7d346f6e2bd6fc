// Package versions compares versions of packages, and ranges of them, as KUDO does.
package versions

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Compare orders versions: semantic ones by their precedence (https://semver.org, 11), above all that are not
// semantic, which are ordered as text, so that any order is the same each time. An empty one is the lowest.
func Compare(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	switch {
	case errX == nil && errY == nil && x.Compare(y) != 0:
		return x.Compare(y)
	case errX == nil && errY != nil:
		return 1
	case errX != nil && errY == nil:
		return -1
	}
	return strings.Compare(a, b)
}

// Matches reports whether a version is the one that is wanted, or in the range that is. An empty wish fits all. Ranges are
// those of github.com/Masterminds/semver: ^1.2, ~1.2.3, ">=1, <3", 1.x. The error says that the wish is neither.
func Matches(version, wanted string) (bool, error) {
	if wanted == "" || version == wanted {
		return true, nil
	}
	v, err := semver.NewVersion(version)
	if !IsRange(wanted) {
		w, errW := semver.NewVersion(wanted)
		return err == nil && errW == nil && v.Equal(w) && v.Metadata() == w.Metadata(), nil
	}
	constraint, errC := semver.NewConstraint(wanted)
	if errC != nil {
		return false, fmt.Errorf("%q is neither a version nor a range such as ^1.2 or \">=1.0, <3\": %w", wanted, errC)
	}
	return err == nil && constraint.Check(v), nil
}

// CheckRange says what is wrong with a wish that nothing can fit.
func CheckRange(wanted string) error {
	_, err := Matches("0.0.0", wanted)
	return err
}

// IsRange tells ranges from versions, which mean themselves: appVersion 5.7 is not 5.7.1, as in KUDO.
func IsRange(wanted string) bool {
	if strings.ContainsAny(wanted, "^~<>=*!|, ") {
		return true
	}
	for part := range strings.SplitSeq(wanted, ".") {
		if part == "x" || part == "X" {
			return true
		}
	}
	return false
}
