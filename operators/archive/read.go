package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"kudo.dev/kudo/pkg/text"
)

// Limits bound what Read takes. A field that is zero means that of DefaultLimits.
type Limits struct {
	// Compressed is the size of the archive in bytes, Unpacked that of all its files, File that of one.
	Compressed, Unpacked, File int64
	// Ratio is how many times as large as the archive its content may be, once that is more than 1 MiB.
	Ratio int64
	// Entries is how many entries the archive may have, folders included.
	Entries int
	// Name is the length of a path in bytes, Depth the number of its parts, Part the length of each.
	Name, Depth, Part int
}

// DefaultLimits are ample for a package, which must fit into an object of at most 1.5 MiB.
func DefaultLimits() Limits {
	return Limits{Compressed: 16 << 20, Unpacked: 64 << 20, File: 16 << 20, Ratio: 200, Entries: 10_000, Name: 512, Depth: 32, Part: 512}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, field := range []struct{ value, standard *int64 }{
		{&l.Compressed, &d.Compressed}, {&l.Unpacked, &d.Unpacked}, {&l.File, &d.File}, {&l.Ratio, &d.Ratio}} {
		if *field.value == 0 {
			*field.value = *field.standard
		}
	}
	for _, field := range []struct{ value, standard *int }{{&l.Entries, &d.Entries}, {&l.Name, &d.Name}, {&l.Depth, &d.Depth},
		{&l.Part, &d.Part}} {
		if *field.value == 0 {
			*field.value = *field.standard
		}
	}
	return l
}

// freeOfRatio is how much an archive may unpack to whatever its size, as small files of much white space pack well.
const freeOfRatio = 1 << 20

// Read unpacks a gzipped tar into memory. It takes regular files and folders only; a path that is absolute, leaves the
// root, or comes twice (even in other letter case) is refused, and so is what goes beyond the limits. Errors name the entry.
func Read(r io.Reader, limits Limits) (fs.FS, error) {
	into := newTree()
	u := newUnpacker(r, limits)
	u.file = func(name string, content io.Reader) error {
		// Grows with what is there, not with what the header says is there.
		var data bytes.Buffer
		if _, err := io.Copy(&data, content); err != nil {
			return err
		}
		into.nodes[name].data = data.Bytes()
		return nil
	}
	u.tree = into
	if err := u.run(); err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	return into, nil
}

// Sink takes what Extract finds. Names are clean, relative, and unique; folders that have no entry are not announced.
type Sink interface {
	// Folder makes a folder. It may be there already.
	Folder(name string) error
	// File makes a file of the content, which may end in an error: what was written is worthless then.
	File(name string, content io.Reader) error
}

// Extract unpacks a gzipped tar into a sink, by the rules of Read, holding one block of the content in memory at a time.
// The sink has seen a part of the archive when an error comes. Errors of the sink are wrapped, with the entry's name.
func Extract(r io.Reader, limits Limits, sink Sink) error {
	u := newUnpacker(r, limits)
	u.tree, u.folder, u.file = newTree(), sink.Folder, sink.File
	if err := u.run(); err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	return nil
}

type unpacker struct {
	limits   Limits
	in       *counter
	unpacked int64
	// tree knows the paths so far.
	tree   *tree
	folder func(name string) error
	file   func(name string, content io.Reader) error
}

func newUnpacker(r io.Reader, limits Limits) *unpacker {
	limits = limits.withDefaults()
	return &unpacker{limits: limits, in: &counter{r: r, limit: limits.Compressed}, folder: func(string) error { return nil }}
}

func (u *unpacker) run() error {
	zipped, err := gzip.NewReader(u.in)
	if err != nil {
		return u.broken("the archive is not gzip", err)
	}
	// One stream only: bytes behind it are no part of what a digest was meant for.
	zipped.Multistream(false)
	// Counted outside of the tar reader, which reads headers and padding of any size by itself.
	content := &counter{r: zipped, limit: u.limits.Unpacked + int64(u.limits.Entries+2)*4096, growth: u.ratio}
	packed := tar.NewReader(content)
	for entries := 0; ; entries++ {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u.broken("the archive is cut short or damaged", err)
		}
		if entries >= u.limits.Entries {
			return fmt.Errorf("the archive has more than %d entries", u.limits.Entries)
		}
		if err := u.entry(header, packed); err != nil {
			return fmt.Errorf("entry %s: %w", text.Quote(header.Name, 100), err)
		}
	}
	// What follows the end of the tar is read too, for the checksum of gzip stands behind it.
	if _, err := io.Copy(io.Discard, content); err != nil {
		return u.broken("the archive is cut short or damaged", err)
	}
	return nil
}

// broken puts an error of the libraries into words, unless it is one of our limits.
func (u *unpacker) broken(what string, err error) error {
	var limit *limitError
	if errors.As(err, &limit) {
		return limit
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ratio refuses content that is out of proportion to what was read so far.
func (u *unpacker) ratio(unpacked int64) error {
	if unpacked > freeOfRatio && unpacked/u.limits.Ratio > u.in.n {
		return &limitError{fmt.Sprintf("the archive unpacks to more than %d times its size", u.limits.Ratio)}
	}
	return nil
}

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		return nil // as git archive writes it: a comment
	case tar.TypeSymlink, tar.TypeLink:
		return fmt.Errorf("is a link to %s: replace it by the file, links are not allowed", text.Quote(header.Linkname, 100))
	default:
		return fmt.Errorf("is neither a file nor a folder (type %q)", header.Typeflag)
	}
	name, err := u.clean(header.Name)
	if err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		if err := u.tree.addFolder(name); err != nil {
			return err
		}
		return u.folder(name)
	}
	if name == "." {
		return errors.New("a file needs a name")
	}
	if header.Size > u.limits.File {
		return fmt.Errorf("has %d bytes, more than the %d allowed", header.Size, u.limits.File)
	}
	if u.unpacked += header.Size; u.unpacked > u.limits.Unpacked {
		return fmt.Errorf("the archive unpacks to more than the %d bytes allowed", u.limits.Unpacked)
	}
	if err := u.tree.addFile(name, nil); err != nil {
		return err
	}
	part := &counter{r: content, limit: header.Size}
	if err := u.file(name, &describing{r: part, u: u}); err != nil {
		return err
	}
	if part.n != header.Size {
		return errors.New("is cut short")
	}
	return nil
}

// describing puts errors of reading an entry into words, and leaves those of writing it as they are.
type describing struct {
	r io.Reader
	u *unpacker
}

func (d *describing) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = d.u.broken("is cut short or damaged", err)
	}
	return n, err
}

// clean checks the path of an entry and takes off a leading `./` and a trailing `/`.
func (u *unpacker) clean(name string) (string, error) {
	switch {
	case len(name) > u.limits.Name:
		return "", fmt.Errorf("the path is longer than %d bytes", u.limits.Name)
	case strings.HasPrefix(name, "/"):
		return "", errors.New("the path is absolute")
	case strings.Contains(name, `\`) || (len(name) > 1 && name[1] == ':'):
		return "", errors.New("the path is a Windows path")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", errors.New("the path has characters that are no text")
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", errors.New("the path leaves the archive with .. in it")
		}
		if len(part) > u.limits.Part {
			return "", fmt.Errorf("a part of the path is longer than %d bytes", u.limits.Part)
		}
	}
	cleaned := path.Clean(name)
	if strings.Count(cleaned, "/")+1 > u.limits.Depth {
		return "", fmt.Errorf("the path is deeper than %d folders", u.limits.Depth)
	}
	return cleaned, nil
}

// limitError is a bound that was reached, as seen through the readers of the libraries.
type limitError struct{ message string }

func (e *limitError) Error() string { return e.message }

// counter counts what is read, and ends it beyond the limit.
type counter struct {
	r      io.Reader
	n      int64
	limit  int64
	growth func(int64) error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.n > c.limit {
		return 0, &limitError{fmt.Sprintf("the archive has more than the %d bytes allowed", c.limit)}
	}
	if c.growth != nil {
		if err := c.growth(c.n); err != nil {
			return 0, err
		}
	}
	return n, err
}
