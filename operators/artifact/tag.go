package artifact

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/text"
)

// maxTag bounds a tag, in characters, as the distribution specification does.
const maxTag = 128

var tagPattern = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)

// IsTag reports whether a text can be a tag.
func IsTag(s string) bool { return len(s) <= maxTag && tagPattern.MatchString(s) }

// Tag returns the tag of a version: <operatorVersion>, or <appVersion>_<operatorVersion>. This is unambiguous, since versions are parts of
// the names of objects, and hold no _.
func Tag(appVersion, operatorVersion string) string {
	if appVersion == "" {
		return operatorVersion
	}
	return appVersion + "_" + operatorVersion
}

// TagOf returns the tag of a package. The error says that its versions are too long for a tag.
func TagOf(pkg *operators.Package) (string, error) {
	tag := Tag(pkg.Operator.AppVersion, pkg.Operator.OperatorVersion)
	switch {
	case len(tag) > maxTag:
		return "", fmt.Errorf("appVersion and operatorVersion have more than %d characters together, so that they cannot be a tag: shorten them",
			maxTag-1)
	case !IsTag(tag):
		return "", fmt.Errorf("appVersion and operatorVersion make %s, which cannot be a tag", text.Quote(tag, maxShown))
	}
	return tag, nil
}

// ParseTag returns the versions that a tag names, and reports whether it names any. Only the tags of versions that New takes name versions.
// Tags such as latest, 1, 1.0 and v1.0.0 name none, since people move them from version to version.
func ParseTag(tag string) (appVersion, operatorVersion string, is bool) {
	app, operator, both := strings.Cut(tag, "_")
	if !both {
		app, operator = "", tag
	}
	if !isComplete(operator) || both && app == "" || !IsTag(tag) {
		return "", "", false
	}
	return app, operator, true
}

// IsVersion reports whether a text is one version and no range, as a task names a dependency that is to be the same each time.
func IsVersion(version string) bool { return isComplete(version) }

// isComplete reports whether a version is a semantic version with all of its parts, in the form in which packages have it.
func isComplete(version string) bool {
	v, err := semver.StrictNewVersion(version)
	return err == nil && v.String() == version && v.Metadata() == ""
}

// CheckTag returns an error if a tag names another version than that of the package: the tag was moved, or the push was wrong. Tags that
// name no version, such as latest, can refer to any version.
func CheckTag(tag string, pkg *operators.Package) error {
	is := Tag(pkg.Operator.AppVersion, pkg.Operator.OperatorVersion)
	if _, _, version := ParseTag(tag); version && tag != is {
		return &ContentError{"version " + is + ": the tag was moved, or the push was wrong"}
	}
	return nil
}
