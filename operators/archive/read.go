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
)

// Limits bound what Read takes. A field that is zero means that of DefaultLimits.
type Limits struct {
	// Compressed is the size of the archive in bytes, Unpacked that of all its files, File that of one.
	Compressed, Unpacked, File int64
	// Ratio is how many times as large as the archive its content may be, once that is more than 1 MiB.
	Ratio int64
	// Entries is how many entries the archive may have, folders included.
	Entries int
	// Name is the length of a path in bytes, Depth the number of its parts.
	Name, Depth int
}

// DefaultLimits are ample for a package, which must fit into an object of at most 1.5 MiB.
func DefaultLimits() Limits {
	return Limits{Compressed: 16 << 20, Unpacked: 64 << 20, File: 16 << 20, Ratio: 200, Entries: 10_000, Name: 512, Depth: 32}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, field := range []struct{ value, standard *int64 }{
		{&l.Compressed, &d.Compressed}, {&l.Unpacked, &d.Unpacked}, {&l.File, &d.File}, {&l.Ratio, &d.Ratio}} {
		if *field.value == 0 {
			*field.value = *field.standard
		}
	}
	for _, field := range []struct{ value, standard *int }{{&l.Entries, &d.Entries}, {&l.Name, &d.Name}, {&l.Depth, &d.Depth}} {
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
	limits = limits.withDefaults()
	u := &unpacker{limits: limits, in: &counter{r: r, limit: limits.Compressed}, tree: newTree()}
	if err := u.run(); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return u.tree, nil
}

type unpacker struct {
	limits   Limits
	in       *counter
	unpacked int64
	tree     *tree
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
			return fmt.Errorf("entry %s: %w", quote(header.Name), err)
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
		return fmt.Errorf("is a link to %s: replace it by the file, packages have no links", quote(header.Linkname))
	default:
		return fmt.Errorf("is neither a file nor a folder (type %q)", header.Typeflag)
	}
	name, err := u.clean(header.Name)
	if err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		return u.tree.addFolder(name)
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
	// Grows with what is there, not with what the header says is there.
	var data bytes.Buffer
	if _, err := io.Copy(&data, content); err != nil {
		return u.broken("is cut short or damaged", err)
	}
	if int64(data.Len()) != header.Size {
		return errors.New("is cut short")
	}
	return u.tree.addFile(name, data.Bytes())
}

// clean checks the path of an entry and takes off a leading `./` and a trailing `/`.
func (u *unpacker) clean(name string) (string, error) {
	switch {
	case len(name) > u.limits.Name:
		return "", fmt.Errorf("the path is longer than %d bytes", u.limits.Name)
	case strings.HasPrefix(name, "/"):
		return "", errors.New("the path is absolute")
	case strings.Contains(name, `\`) || (len(name) > 1 && name[1] == ':'):
		return "", errors.New("the path is of Windows")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", errors.New("the path has characters that are no text")
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", errors.New("the path leaves the archive with .. in it")
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

func quote(name string) string {
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
