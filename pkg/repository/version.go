package repository

import (
	"cmp"
	"strings"

	"kudo.dev/kudo/operators/versions"
)

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

// Compare orders by appVersion, and then by operatorVersion, as versions.Compare does each.
func (v Versions) Compare(other Versions) int {
	return cmp.Or(versions.Compare(v.App, other.App), versions.Compare(v.Operator, other.Operator))
}

// Best is the index of the highest that fits, by appVersion and then by operatorVersion. One that is written as the wish
// is goes before those that are only equal to it. It is -1 if nothing fits; the error says that a wish is none.
func Best(all []Versions, wanted Versions) (int, error) {
	best, literal := -1, false
	for i, v := range all {
		app, err := versions.Matches(v.App, wanted.App)
		if err != nil {
			return -1, err
		}
		operator, err := versions.Matches(v.Operator, wanted.Operator)
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
	return wanted == "" || wanted == version || versions.IsRange(wanted)
}

// Choose picks the best entry, as Best does. Removed entries are not picked. It returns nil if nothing fits; the error
// says that a wish is none.
func Choose(entries []Entry, appVersion, operatorVersion string) (*Entry, error) {
	var there []*Entry
	var all []Versions
	for i := range entries {
		if e := &entries[i]; !e.Removed {
			there = append(there, e)
			all = append(all, Versions{e.AppVersion, e.OperatorVersion})
		}
	}
	at, err := Best(all, Versions{appVersion, operatorVersion})
	if at < 0 || err != nil {
		return nil, err
	}
	return there[at], nil
}
