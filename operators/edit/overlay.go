package edit

import (
	"bytes"
	"io"
	"io/fs"
	"slices"

	"kudo.dev/kudo/operators"
)

// Overlay returns a folder in which one file has another text, so that a change can be checked before it is written.
func Overlay(folder fs.ReadLinkFS, name string, text []byte) fs.ReadLinkFS {
	return overlay{folder, name, text}
}

// overlay embeds the folder: the links of a package are checked by ReadLink and Lstat.
type overlay struct {
	fs.ReadLinkFS
	name string
	text []byte
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	file, err := o.ReadLinkFS.Open(name)
	if err != nil || name != o.name {
		return file, err
	}
	return overlaidFile{file, bytes.NewReader(o.text)}, nil
}

type overlaidFile struct {
	fs.File
	text io.Reader
}

// Read implements fs.File.
func (f overlaidFile) Read(p []byte) (int, error) { return f.text.Read(p) }

// NewFindings returns the findings after a change that were not there before it. The change may have moved a finding to another line.
func NewFindings(before, after []operators.Finding) []operators.Finding {
	return slices.DeleteFunc(slices.Clone(after), func(f operators.Finding) bool {
		return slices.ContainsFunc(before, func(b operators.Finding) bool { return b.File == f.File && b.Message == f.Message })
	})
}
