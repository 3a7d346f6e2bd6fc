package ui

import (
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/browser"
)

// openFile opens an address in the default browser, and may return only when the browser ends. The browser gets a file of mode 0600 that
// redirects to the address, since all users of a machine can see the arguments of its processes: an address among them would show the
// token.
func (o *options) openFile(folder, address string) {
	file := filepath.Join(folder, "open.html")
	link := html.EscapeString(address)
	page := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><title>kubectl kudo ui</title><meta http-equiv="refresh" content="0;url=%s">`+
		`<a href="%s">kubectl kudo ui</a>`, link, link)
	err := os.WriteFile(file, []byte(page), 0o600)
	if err == nil {
		err = o.browse(file)
	}
	if err != nil {
		o.env.Warnf("no browser can be opened (%v): open the address", err)
	}
}

// browse opens a file in the default browser.
func browse(file string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	return browser.OpenFile(file)
}
