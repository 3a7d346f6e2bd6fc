package repository

import (
	"cmp"
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

// Versions are the two versions of a package, of which that of the application may be empty; or what is wanted of them:
// versions or ranges, where empty ones are any.
type Versions struct{ App, Operator string }

// String puts the versions, or what is wanted of them, into words. It is empty if both are.
func (v Versions) String() string {
	var parts []string
	if v.App != "" {
		parts = append(parts, "appVersion "+v.App)
	}
	if v.Operator != "" {
		parts = append(parts, "operatorVersion "+v.Operator)
	}
	return strings.Join(parts, " with ")
}

// Compare orders by appVersion, and then by operatorVersion, as the function Compare does each.
func (v Versions) Compare(other Versions) int {
	return cmp.Or(Compare(v.App, other.App), Compare(v.Operator, other.Operator))
}

// Best is the index of the highest that fits, by appVersion and then by operatorVersion. One that is written as the wish
// is goes before those that are only equal to it. It is -1 if nothing fits; the error says that a wish is none.
func Best(all []Versions, wanted Versions) (int, error) {
	best, literal := -1, false
	for i, v := range all {
		app, err := Matches(v.App, wanted.App)
		if err != nil {
			return -1, err
		}
		operator, err := Matches(v.Operator, wanted.Operator)
		if err != nil {
			return -1, err
		}
		if !app || !operator {
			continue
		}
		exact := isExact(wanted.App, v.App) && isExact(wanted.Operator, v.Operator)
		if best < 0 || exact && !literal || exact == literal && v.Compare(all[best]) > 0 {
			best, literal = i, exact
		}
	}
	return best, nil
}

// isExact reports whether a version that fits is all that the wish can mean, and not just equal to what it says.
func isExact(wanted, version string) bool {
	return wanted == "" || wanted == version || IsRange(wanted)
}

// Choose picks the best entry, as Best does. Removed entries are not picked. It returns nil if nothing fits; the error
// says that a wish is none.
func Choose(entries []Entry, appVersion, operatorVersion string) (*Entry, error) {
	var there []*Entry
	var versions []Versions
	for i := range entries {
		if e := &entries[i]; !e.Removed {
			there = append(there, e)
			versions = append(versions, Versions{e.AppVersion, e.OperatorVersion})
		}
	}
	at, err := Best(versions, Versions{appVersion, operatorVersion})
	if at < 0 || err != nil {
		return nil, err
	}
	return there[at], nil
}
