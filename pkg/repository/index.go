package repository

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// IndexFileName is the name of the index at the root of a repository, and IndexVersion the only version of its format.
const (
	IndexFileName = "index.yaml"
	IndexVersion  = "v1"
)

// Bounds of an index in bytes. An index of 100,000 archives has some 30 MiB. One whose layout is not that of a
// machine is taken as a whole, which needs many times its size in memory.
const (
	MaxIndex       = 128 << 20
	maxOtherLayout = 8 << 20
	// maxSection bounds the entries of one package, which are read as a whole.
	maxSection = 8 << 20
)

// Entry is one archive of a package in a repository.
type Entry struct {
	Name            string               `json:"name" yaml:"name"`
	OperatorVersion string               `json:"operatorVersion" yaml:"operatorVersion"`
	AppVersion      string               `json:"appVersion,omitempty" yaml:"appVersion"`
	Description     string               `json:"description,omitempty" yaml:"description"`
	Maintainers     []v1beta1.Maintainer `json:"maintainers,omitempty" yaml:"maintainers"`
	// URLs of the archive, tried in order. Relative ones are relative to the repository's URL.
	URLs []string `json:"urls" yaml:"urls"`
	// Digest is the SHA-256 of the archive in hex.
	Digest string `json:"digest,omitempty" yaml:"digest"`
	// Removed entries are not installed any more.
	Removed bool `json:"removed,omitempty" yaml:"removed"`
}

// Index lists what a repository has. An index may be large and of a lookup little is needed, so the entries of a
// package are parsed when they are asked for; the rest stays text, in memory or in the file of the cache.
type Index struct {
	// sections are sorted by name.
	sections []section
	text     io.ReaderAt
	close    func() error
}

// section is where the entries of a package stand in the text.
type section struct {
	name           string
	offset, length int
}

// file is an index as a whole.
type indexFile struct {
	APIVersion string             `json:"apiVersion" yaml:"apiVersion"`
	Entries    map[string][]Entry `json:"entries" yaml:"entries"`
	Generated  string             `json:"generated,omitempty" yaml:"generated"`
}

// ParseIndex reads an index. What is wrong with the entries of a package is said when they are asked for, unless the
// layout of the text makes it necessary to read all of it now.
func ParseIndex(text []byte) (*Index, error) {
	if len(text) > MaxIndex {
		return nil, fmt.Errorf("the index has %d bytes, more than the %d allowed", len(text), MaxIndex)
	}
	sections, plain := split(text)
	if !plain {
		entries, err := parseWhole(text)
		if err != nil {
			return nil, err
		}
		if text, err = EncodeIndex(entries, time.Time{}); err != nil {
			return nil, err
		}
		if sections, plain = split(text); !plain {
			return nil, errors.New("the index holds names that no package can have")
		}
	}
	sections = slices.DeleteFunc(sections, func(s section) bool { return len(bytes.TrimSpace(text[s.offset:s.offset+s.length])) == 0 })
	slices.SortFunc(sections, func(a, b section) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(sections); i++ {
		if sections[i].name == sections[i-1].name {
			return nil, fmt.Errorf("the index has package %q twice", sections[i].name)
		}
	}
	return &Index{sections: sections, text: bytes.NewReader(text)}, nil
}

// Close releases the file of the cache.
func (x *Index) Close() error {
	if x.close == nil {
		return nil
	}
	return x.close()
}

// Names of all packages, sorted.
func (x *Index) Names() []string {
	names := make([]string, len(x.sections))
	for i, s := range x.sections {
		names[i] = s.name
	}
	return names
}

// Versions are the entries of a package, the highest first: by appVersion, then by operatorVersion. It returns nothing
// if there is no such package. The error says what is wrong with them.
func (x *Index) Versions(name string) ([]Entry, error) {
	at, known := slices.BinarySearchFunc(x.sections, name, func(s section, name string) int { return cmp.Compare(s.name, name) })
	if !known {
		return nil, nil
	}
	if size := x.sections[at].length; size > maxSection {
		return nil, fmt.Errorf("package %s in the index: its entries have %d bytes, more than the %d allowed", name, size, maxSection)
	}
	part := make([]byte, x.sections[at].length)
	if _, err := x.text.ReadAt(part, int64(x.sections[at].offset)); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("package %s in the index: %w", name, err)
	}
	var entries []Entry
	if err := decode(part, &entries); err != nil {
		return nil, fmt.Errorf("package %s in the index: %w", name, err)
	}
	return entries, check(name, entries)
}

// All are the entries of all packages. It is for indexes that are made into others.
func (x *Index) All() (map[string][]Entry, error) {
	all := map[string][]Entry{}
	for _, s := range x.sections {
		entries, err := x.Versions(s.name)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			all[s.name] = entries
		}
	}
	return all, nil
}

// MaxNameBytes bounds the name of a package, and each of its versions.
const MaxNameBytes = 253

var packageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// isPackageName reports whether a package can have a name.
func isPackageName(name string) bool {
	return len(name) <= MaxNameBytes && packageName.MatchString(name)
}

// check completes and sorts the entries of a package, or says what is wrong.
func check(name string, entries []Entry) error {
	if !isPackageName(name) {
		return fmt.Errorf("the index names a package %q, which no package can be called", name)
	}
	for i := range entries {
		e := &entries[i]
		if e.Name == "" {
			e.Name = name
		}
		digest, err := hex.DecodeString(e.Digest)
		switch {
		case e.Name != name:
			return fmt.Errorf("package %s in the index: entry %d is of package %q", name, i, e.Name)
		case len(e.OperatorVersion) > MaxNameBytes || len(e.AppVersion) > MaxNameBytes:
			return fmt.Errorf("package %s in the index: entry %d has a version of more than %d bytes", name, i, MaxNameBytes)
		case e.OperatorVersion == "":
			return fmt.Errorf("package %s in the index: entry %d has no operatorVersion", name, i)
		case e.Digest != "" && (err != nil || len(digest) != 32):
			return fmt.Errorf("package %s %s in the index: digest %q is no SHA-256 in hex", name, e.OperatorVersion, e.Digest)
		}
		e.Digest = strings.ToLower(e.Digest)
	}
	slices.SortStableFunc(entries, compareEntries)
	return nil
}

// compareEntries puts the highest first.
func compareEntries(a, b Entry) int {
	return Versions{b.AppVersion, b.OperatorVersion}.Compare(Versions{a.AppVersion, a.OperatorVersion})
}

// parseWhole reads an index of any layout.
func parseWhole(text []byte) (map[string][]Entry, error) {
	if len(text) > maxOtherLayout {
		return nil, fmt.Errorf("the index has %d bytes and is not laid out as kubectl kudo repo index does it; such an index may have %d",
			len(text), maxOtherLayout)
	}
	var f indexFile
	if err := decode(text, &f); err != nil {
		return nil, fmt.Errorf("this is no index of a repository: %w", err)
	}
	switch f.APIVersion {
	case IndexVersion:
	case "":
		return nil, errors.New("this is no index of a repository: it has no apiVersion")
	default:
		return nil, fmt.Errorf("the index has apiVersion %q: only %s is known", f.APIVersion, IndexVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Entries)) {
		if err := check(name, f.Entries[name]); err != nil {
			return nil, err
		}
	}
	return f.Entries, nil
}

// decode parses YAML, of which aliases are bounded by the parser.
func decode(text []byte, into any) (err error) {
	// The parser reports its own errors by return; anything else it throws is its bug, and must not end the process.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	if err := yaml.Unmarshal(text, into); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return nil
}

// EncodeIndex writes an index: names sorted, the highest versions first, so that the same entries give the same bytes.
// The time is left out if it is zero.
func EncodeIndex(entries map[string][]Entry, generated time.Time) ([]byte, error) {
	f := indexFile{APIVersion: IndexVersion, Entries: map[string][]Entry{}}
	if !generated.IsZero() {
		f.Generated = generated.UTC().Format(time.RFC3339)
	}
	for name, list := range entries {
		if len(list) == 0 {
			continue
		}
		list = slices.Clone(list)
		if err := check(name, list); err != nil {
			return nil, err
		}
		f.Entries[name] = list
	}
	text, err := sigsyaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return text, nil
}
