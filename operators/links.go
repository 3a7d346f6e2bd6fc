package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// errLeaves is a link that leads out of the package.
var errLeaves = errors.New("the link leaves the package")

// resolve follows the links on the way to a file, and refuses those that leave the tree: what a package holds must
// not depend on the machine, and must not be a file of it. File systems without links are taken as they are.
func resolve(fsys fs.FS, name string) (string, error) {
	if _, ok := fsys.(fs.ReadLinkFS); !ok {
		return name, nil
	}
	rest := strings.Split(name, "/")
	done := "."
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", fmt.Errorf("%w (%s)", errLeaves, name)
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := fs.Lstat(fsys, next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if hops++; hops > 20 {
			return "", fmt.Errorf("too many links on the way to %s", name)
		}
		target, err := fs.ReadLink(fsys, next)
		if err != nil {
			return "", err
		}
		target = strings.ReplaceAll(target, `\`, "/")
		if path.IsAbs(target) || (len(target) > 1 && target[1] == ':') {
			return "", fmt.Errorf("%w (%s -> %s)", errLeaves, next, target)
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}
