package ui

import (
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/browser"
)

// openFile opens an address in the default browser. The browser gets a file of mode 0600 that leads to the address: all users of a machine
// can see the arguments of its processes, and so the token. remove deletes the file.
func (o *options) openFile(address string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "kudo-ui-") // of mode 0700
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	file := filepath.Join(folder, "open.html")
	link := html.EscapeString(address)
	page := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><title>kubectl kudo ui</title><meta http-equiv="refresh" content="0;url=%s">`+
		`<a href="%s">kubectl kudo ui</a>`, link, link)
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return remove, err
	}
	return remove, o.browse(file)
}

// browse opens a file in the default browser.
func browse(file string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	return browser.OpenFile(file)
}
