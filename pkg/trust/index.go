package trust

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	in_toto "github.com/in-toto/attestation/go/v1"
)

// IndexPredicateType says that a statement is a signature of the index of a repository.
const IndexPredicateType = "https://kudo.dev/signature/index/v1"

// subjectIndex is the name of the only subject of such a statement.
const subjectIndex = "index.yaml"

// maxSequence is the largest sequence that a number in JSON has exactly.
const maxSequence = 1 << 53

// Index is what a signature of the index of a repository vouches for.
type Index struct {
	// Digest of the file, sha256:<hex>.
	Digest string
	// Sequence grows from one index to the next, so that an older one is not taken for the newest. It is at least 1.
	Sequence int64
	// Expires is when the signature ends, in whole seconds.
	Expires time.Time
}

// indexPredicate is the predicate of an index.
type indexPredicate struct {
	Sequence int64  `json:"sequence"`
	Expires  string `json:"expires"`
}

// SignIndex returns a bundle that vouches for an index. The signature is verified before it is returned, since a program may have made it.
func SignIndex(ctx context.Context, i Index, by *Signer) ([]byte, error) {
	payload, err := json.Marshal(statement{Type: statementType, PredicateType: IndexPredicateType,
		Subject:   []subject{newSubject(subjectIndex, i.Digest)},
		Predicate: indexPredicate{i.Sequence, i.Expires.UTC().Format(time.RFC3339)}})
	if err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	return signPayload(ctx, payload, payloadType, by, func(bundle []byte) error {
		_, err := VerifyIndex(bundle, i.Digest, by.Public, time.Time{})
		return err
	})
}

// VerifyIndex returns what a bundle says of the index of a digest, if a key has signed it and it has not expired at a time; else the error
// is a *RefusedError. An index with a lower sequence than one that was seen before is for the caller to refuse.
func VerifyIndex(data []byte, digest string, key *PublicKey, now time.Time) (Index, error) {
	said, err := verifyBundle(data, "the index of a repository", Authority{Name: "the repository", Key: key})
	if err != nil {
		return Index{}, err
	}
	if err := checkType(said.Statement, IndexPredicateType, "the index of a repository"); err != nil {
		return Index{}, err
	}
	out, err := readIndexPredicate(said.Statement)
	if err != nil {
		return Index{}, err
	}
	subjects := said.GetSubject()
	if len(subjects) != 1 || subjects[0].GetName() != subjectIndex {
		return Index{}, refuse(WrongType, "the signature must name %s alone", subjectIndex)
	}
	if out.Digest, err = subjectDigest(subjects[0]); err != nil {
		return Index{}, err
	}
	if out.Digest != digest {
		return Index{}, refuse(ContentDiffers, "the index is %s, and its signature is for %s: it was changed after it was signed", digest,
			out.Digest)
	}
	if !now.Before(out.Expires) {
		return Index{}, refuse(Expired, "the signature of the index ended on %s: whoever keeps the repository signs it again by kubectl kudo "+
			"repo index", out.Expires.Format(time.DateOnly))
	}
	return out, nil
}

// SequenceOf returns the sequence that a bundle says of an index, of whatever key; 0 if it says none.
func SequenceOf(data []byte) int64 {
	parsed, err := parse(data, checkKeyMaterial)
	if err != nil {
		return 0
	}
	said, err := statementOf(parsed)
	if err != nil {
		return 0
	}
	out, err := readIndexPredicate(said)
	if err != nil {
		return 0
	}
	return out.Sequence
}

// readIndexPredicate reads the predicate of an index.
func readIndexPredicate(said *in_toto.Statement) (Index, error) {
	fields := said.GetPredicate().GetFields()
	sequence := fields["sequence"].GetNumberValue()
	expires, err := time.Parse(time.RFC3339, fields["expires"].GetStringValue())
	if err != nil || len(fields) != 2 || sequence < 1 || sequence > maxSequence || sequence != math.Trunc(sequence) {
		return Index{}, refuse(WrongType, "the signature must say a sequence and an end of the index, and no more: use a newer version of kudo "+
			"if it was made by one")
	}
	return Index{Sequence: int64(sequence), Expires: expires.UTC()}, nil
}
