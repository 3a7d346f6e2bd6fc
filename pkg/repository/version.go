package repository

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

// Fits tells whether a version is the one that is wanted, or in the range that is. An empty wish fits all. Ranges are
// those of github.com/Masterminds/semver: ^1.2, ~1.2.3, ">=1, <3", 1.x. The error says that the wish is neither.
func Fits(version, wanted string) (bool, error) {
	if wanted == "" || version == wanted {
		return true, nil
	}
	v, err := semver.NewVersion(version)
	if !isRange(wanted) {
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
	_, err := Fits("0.0.0", wanted)
	return err
}

// isRange tells ranges from versions, which mean themselves: appVersion 5.7 is not 5.7.1, as in KUDO.
func isRange(wanted string) bool {
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

// Choose picks the highest entry that fits, by appVersion and then by operatorVersion. Entries must be sorted as those
// of an Index are. An entry whose version is written as the wish is goes before one that is only equal to it. Removed
// entries are not picked. It returns nil if nothing fits; the error says that a wish is none.
func Choose(entries []Entry, appVersion, operatorVersion string) (*Entry, error) {
	var best *Entry
	for i := range entries {
		e := &entries[i]
		app, err := Fits(e.AppVersion, appVersion)
		if err != nil {
			return nil, err
		}
		operator, err := Fits(e.OperatorVersion, operatorVersion)
		if err != nil {
			return nil, err
		}
		if !app || !operator || e.Removed {
			continue
		}
		if (appVersion == "" || e.AppVersion == appVersion || isRange(appVersion)) &&
			(operatorVersion == "" || e.OperatorVersion == operatorVersion || isRange(operatorVersion)) {
			return e, nil
		}
		if best == nil {
			best = e
		}
	}
	return best, nil
}
