package kudoinit

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/Masterminds/semver/v3"
)

// described is a version as builds write it: a release, and by `git describe` how many commits came after it.
var described = regexp.MustCompile(`^v?(.+?)(?:-(\d+)-g[0-9a-f]+)?(-dirty)?$`)

type buildVersion struct {
	release *semver.Version
	commits int
	dirty   bool
}

// parseVersion reads a version. One that names no release, like that of a build outside of version control, cannot be
// compared with others.
func parseVersion(text string) (buildVersion, bool) {
	parts := described.FindStringSubmatch(text)
	if parts == nil {
		return buildVersion{}, false
	}
	release, err := semver.StrictNewVersion(parts[1])
	if err != nil {
		return buildVersion{}, false
	}
	commits, err := strconv.Atoi(parts[2])
	if err != nil && parts[2] != "" {
		return buildVersion{}, false
	}
	return buildVersion{release, commits, parts[3] != ""}, true
}

// readMinors is how many earlier minor versions this version supports as the writers of records and statuses.
const readMinors = 2

// stepBefore returns the minor version that an upgrade must go through, or "" if it needs none, or the versions cannot be compared. How
// many minor versions an earlier major version has had is not known: of one major version to the next, only the first minor ones count.
func stepBefore(installed, wanted string) string {
	x, known := parseVersion(installed)
	y, also := parseVersion(wanted)
	if !known || !also {
		return ""
	}
	from, to := x.release, y.release
	switch {
	case from.Major() == to.Major() && to.Minor() > from.Minor()+readMinors:
		return fmt.Sprintf("v%d.%d", from.Major(), from.Minor()+readMinors)
	case to.Major() > from.Major()+1, to.Major() == from.Major()+1 && to.Minor() >= readMinors:
		return fmt.Sprintf("v%d.0", from.Major()+1)
	}
	return ""
}

// Older reports whether version a is older than b. Versions that cannot be compared are not.
func Older(a, b string) bool {
	x, known := parseVersion(a)
	y, also := parseVersion(b)
	if !known || !also {
		return false
	}
	if order := x.release.Compare(y.release); order != 0 {
		return order < 0
	}
	return x.commits < y.commits
}
