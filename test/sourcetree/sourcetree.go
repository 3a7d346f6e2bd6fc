// Package sourcetree finds the source tree that tests run in. Programs that are built with -trimpath do not know the folders of their sources.
package sourcetree

import (
	"os"
	"path/filepath"
	"strings"
)

const module = "module kudo.dev/kudo\n"

// root is found when the program starts: a test may change its working directory later.
var root = find(os.Getwd())

// Root returns the root of the source tree, above the working directory in which the program was started. It panics if there is none.
func Root() string {
	if root == "" {
		panic("the working directory lies outside of the sources of kudo: run the tests with go test or ginkgo, which start them in their folder")
	}
	return root
}

// find returns the folder at or above dir whose go.mod is that of kudo, or "".
func find(dir string, err error) string {
	for ; err == nil; dir = filepath.Dir(dir) {
		content, readErr := os.ReadFile(filepath.Join(dir, "go.mod"))
		if readErr == nil && strings.HasPrefix(string(content), module) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return ""
}
