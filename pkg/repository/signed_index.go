package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/trust"
)

// readSignedIndex reads the index of a repository that has a key. It is fetched each time, with its signatures: what is kept of it would
// have to be verified, too.
func (s *Remote) readSignedIndex(ctx context.Context, r Repository, at *url.URL, client *Client) (*Index, error) {
	key, err := r.publicKey()
	if err != nil {
		return nil, err
	}
	text, _, err := client.get(ctx, at, MaxIndex, false, validators{})
	if err != nil {
		return nil, err
	}
	data, err := s.signatureFile(ctx, client, beside(at))
	if isAbsent(err) {
		return nil, fmt.Errorf("the index is not signed, and the repository was added with key %s: whoever keeps it signs the index by kubectl "+
			"kudo repo index --sign-key", key.Hint())
	}
	if err != nil {
		return nil, err
	}
	bundles, err := parseLines(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redactURL(beside(at)), err)
	}
	signed, err := s.verifyIndex(bundles, text, key)
	if err != nil {
		return nil, err
	}
	if err := s.home.noteSequence(ctx, r, signed.Sequence); err != nil {
		return nil, err
	}
	return ParseIndex(text)
}

// verifyIndex returns what the first signature says that a key has made of an index.
func (s *Remote) verifyIndex(bundles [][]byte, text []byte, key *trust.PublicKey) (trust.Index, error) {
	failed := fmt.Errorf("the file of its signatures is empty, and the repository was added with key %s", key.Hint())
	for n, bundle := range bundles {
		signed, err := trust.VerifyIndex(bundle, "sha256:"+digestOf(text), key, s.clock.Now())
		if err == nil {
			return signed, nil
		}
		if n == 0 {
			failed = err
		}
	}
	return trust.Index{}, failed
}

// sequenceFile holds the highest sequence that was seen of the index of a repository, by its name, address and key.
func (h Home) sequenceFile(r Repository) string {
	return filepath.Join(filepath.Dir(h.file()), "sequences", r.Name+"-"+digestOf([]byte(r.URL + "\x00" + r.Key))[:16])
}

// noteSequence keeps the sequence of an index. It is an error if a higher one was seen: the server shows an older index, which lacks the
// newest packages.
func (h Home) noteSequence(ctx context.Context, r Repository, sequence int64) (err error) {
	unlock, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	file := h.sequenceFile(r)
	text, err := readBounded(file, 64)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the highest sequence of the index of repository %s: %w", r.Name, err)
	}
	seen := int64(0)
	if len(text) > 0 {
		if seen, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return fmt.Errorf("%s is damaged: delete it, if you trust the index that the repository has now", file)
		}
	}
	switch {
	case sequence < seen:
		return fmt.Errorf("the index has sequence %d, and %d was seen before: it is an older one, which lacks what was added or removed since. "+
			"If whoever keeps the repository has set it back, delete %s", sequence, seen, file)
	case sequence == seen:
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("repositories: %w", err)
	}
	return atomicfile.Write(file, []byte(strconv.FormatInt(sequence, 10)), 0o600)
}
