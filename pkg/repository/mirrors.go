package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/pkg/text"
)

// maxMirrors bounds the places of one mirror.
const maxMirrors = 8

// Mirror says where packages of a registry are read from instead. What they are does not change: signatures name no host, and what is
// fetched by a digest has it.
type Mirror struct {
	// Prefix is a registry or a place in it, oci://HOST[/PATH]. Of several that fit, the longest counts.
	Prefix string `json:"prefix"`
	// To are the places that are asked in its stead, in this order: oci://HOST[/PATH] or layout:DIR.
	To []string `json:"to"`
	// Fallback reports whether the registry itself is asked for what no mirror has. Without it, the registry is never asked.
	Fallback bool `json:"fallback,omitempty"`
}

// Validate says what is wrong with a mirror.
func (m Mirror) Validate() error {
	if !strings.HasPrefix(m.Prefix, registry.Scheme) {
		return fmt.Errorf("mirror of %s: only registries have mirrors: name it by %sHOST[/PATH]", text.Quote(m.Prefix, 256), registry.Scheme)
	}
	if len(m.To) == 0 || len(m.To) > maxMirrors {
		return fmt.Errorf("mirror of %s: name 1 to %d places that are asked instead", m.Prefix, maxMirrors)
	}
	for i, at := range append([]string{m.Prefix}, m.To...) {
		if _, err := Within(at, "name", ""); err != nil {
			return fmt.Errorf("mirror of %s: %w", text.Quote(m.Prefix, 256), err)
		}
		if i > 0 && place(at) == place(m.Prefix) {
			return fmt.Errorf("mirror of %s: it cannot be its own mirror", m.Prefix)
		}
	}
	return nil
}

// SetMirror adds a mirror, in place of one of the same prefix.
func (l *Repositories) SetMirror(m Mirror) error {
	if err := m.Validate(); err != nil {
		return err
	}
	l.Mirrors = slices.DeleteFunc(l.Mirrors, func(other Mirror) bool { return place(other.Prefix) == place(m.Prefix) })
	l.Mirrors = append(l.Mirrors, m)
	return nil
}

// RemoveMirror removes the mirror of a prefix.
func (l *Repositories) RemoveMirror(prefix string) error {
	at := slices.IndexFunc(l.Mirrors, func(m Mirror) bool { return place(m.Prefix) == place(prefix) })
	if at < 0 {
		return fmt.Errorf("%s has no mirror: kubectl kudo repo mirror list shows those that there are", text.Plain(prefix, 256))
	}
	l.Mirrors = slices.Delete(l.Mirrors, at, at+1)
	return nil
}

// place returns the address of a registry or of a place in it in one form: names of hosts have no letter case, and 443 is the port of TLS.
func place(address string) string {
	rest, is := strings.CutPrefix(strings.TrimSuffix(address, "/"), registry.Scheme)
	if !is {
		return strings.TrimSuffix(address, "/")
	}
	host, path, below := strings.Cut(rest, "/")
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	if below {
		path = "/" + path
	}
	return registry.Scheme + host + path
}

// mirrorOf returns the mirror of a package in a registry, and the path of the package below the prefix; nil if there is none.
func (l *Repositories) mirrorOf(r Reference) (best *Mirror, rest string) {
	for i := range l.Mirrors {
		below, is := strings.CutPrefix(place(r.Repository()), place(l.Mirrors[i].Prefix)+"/")
		if is && (best == nil || len(below) < len(rest)) {
			best, rest = &l.Mirrors[i], below
		}
	}
	return best, rest
}

// sources returns where the artifacts of a package are read from: the registry or folder that the reference names, or its mirrors.
func (s *Remote) sources(r Reference, from *Found) (store, error) {
	if r.IsFolder() || s.Direct {
		return s.artifacts(r, from)
	}
	list, err := s.Repositories()
	if err != nil {
		return nil, err
	}
	mirror, rest := list.mirrorOf(r)
	if mirror == nil {
		return s.artifacts(r, from)
	}
	if err := mirror.Validate(); err != nil { // the file may have been edited by hand
		return nil, err
	}
	var out mirrored
	for _, at := range mirror.To {
		there, err := s.mirrorStore(strings.TrimSuffix(at, "/") + "/" + rest)
		if err != nil {
			return nil, err
		}
		out = append(out, there)
	}
	if mirror.Fallback {
		origin, err := s.artifacts(r, from)
		if err != nil {
			return nil, err
		}
		out = append(out, origin)
	}
	return out, nil
}

// mirrorStore connects to a package in a mirror. What the user has given by flags is for the registry that the user has named, but for the
// file of credentials and the certificates.
func (s *Remote) mirrorStore(repository string) (store, error) {
	r, err := ParseReference(repository)
	if err != nil {
		return nil, err
	}
	return s.artifacts(r, &Found{})
}

// mirrored is a store whose content is read from the first of several stores that has it.
type mirrored []store

// first calls a function for one store after the other, until one has no error. The error is registry.ErrNotFound if no store has what is
// asked for.
func first[T any](ctx context.Context, stores []store, read func(store) (T, error)) (T, error) {
	var none T
	var failed error
	for _, at := range stores {
		out, err := read(at)
		switch {
		case err == nil:
			return out, nil
		case ctx.Err() != nil:
			return none, err
		case !errors.Is(err, registry.ErrNotFound):
			failed = errors.Join(failed, err)
		}
	}
	if failed == nil {
		failed = registry.ErrNotFound
	}
	return none, failed
}

// Manifest implements artifacts.
func (m mirrored) Manifest(ctx context.Context, reference string, limit int64) (ocispec.Descriptor, []byte, error) {
	type found struct {
		descriptor ocispec.Descriptor
		data       []byte
	}
	out, err := first(ctx, m, func(at store) (found, error) {
		d, data, err := at.Manifest(ctx, reference, limit)
		return found{d, data}, err
	})
	return out.descriptor, out.data, err
}

// Blob implements artifacts.
func (m mirrored) Blob(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	return first(ctx, m, func(at store) ([]byte, error) { return at.Blob(ctx, d) })
}

// Tags implements artifacts. The tags of all places count, since none has to have all versions. It is an error if no place answers.
func (m mirrored) Tags(ctx context.Context) ([]string, error) {
	var all []string
	var failed error
	answered := false
	for _, at := range m {
		tags, err := at.Tags(ctx)
		switch {
		case err == nil:
			all, answered = append(all, tags...), true
		case ctx.Err() != nil:
			return nil, err
		case !errors.Is(err, registry.ErrNotFound):
			failed = errors.Join(failed, err)
		}
	}
	slices.Sort(all)
	switch {
	case answered:
		return slices.Compact(all), nil
	case failed == nil:
		return nil, registry.ErrNotFound
	}
	return nil, failed
}

// Push implements artifacts. Nothing is written to a mirror.
func (m mirrored) Push(context.Context, registry.Blob, []registry.Blob, string) error {
	return errors.New("a mirror is only read from: name its own address to push to it")
}

// Referrers implements store. A mirror that has the package may lack some of its signatures, so that all places are asked. It is an error
// if no place answers.
func (m mirrored) Referrers(ctx context.Context, subject ocispec.Descriptor,
	keep func(ocispec.Descriptor) bool) (found []ocispec.Descriptor, cut bool, err error) {
	answered := false
	for i, at := range m {
		more, cutThere, failed := readShare(ctx, len(m)-i, func(ctx context.Context) ([]ocispec.Descriptor, bool, error) {
			return at.Referrers(ctx, subject, keep)
		})
		answered = answered || failed == nil
		for _, d := range more {
			if !slices.ContainsFunc(found, func(known ocispec.Descriptor) bool { return known.Digest == d.Digest }) {
				found = append(found, d)
			}
		}
		cut, err = cut || cutThere, errors.Join(err, failed)
	}
	if answered && ctx.Err() == nil {
		err = nil
	}
	return found, cut, err
}

// readShare reads within a share of the time that is left, so that a place that does not answer leaves time for the others.
func readShare(ctx context.Context, places int,
	read func(context.Context) ([]ocispec.Descriptor, bool, error)) ([]ocispec.Descriptor, bool, error) {
	if end, limited := ctx.Deadline(); limited {
		bounded, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(places))
		defer cancel()
		ctx = bounded
	}
	return read(ctx)
}
