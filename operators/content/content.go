// Package content is what a signature of a package vouches for: the canonical text of an OperatorVersion, and its digest.
package content

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// versionKind is the kind that a text names, whatever TypeMeta an object that was read has.
const versionKind = "OperatorVersion"

// maxInteger is the largest integer that RFC 8785, which reads numbers as float64, writes exactly.
const maxInteger = 1 << 53

// Digest returns the content digest of an OperatorVersion, sha256:<hex>. It is the same for the object that a package is converted to,
// and for what an API server makes of that object. Namespace, metadata, status, install parameters and provenance change nothing.
func Digest(version *v1beta1.OperatorVersion) (string, error) {
	text, err := Text(version)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Same reports whether two OperatorVersions have the same content, wherever they come from.
func Same(a, b *v1beta1.OperatorVersion) (bool, error) {
	one, err := Digest(a)
	if err != nil {
		return false, err
	}
	other, err := Digest(b)
	return one == other, err
}

// Text returns the canonical text (RFC 8785) of an OperatorVersion: of apiVersion, kind, name, and all of spec that a run reads.
func Text(version *v1beta1.OperatorVersion) ([]byte, error) {
	spec := version.Spec.DeepCopy()
	spec.InstallParameters, spec.Provenance = nil, nil
	spec.Operator = corev1.ObjectReference{Name: spec.Operator.Name}
	if tarball := spec.CRDTarball; tarball != nil && tarball.CRDDownloadPolicy == "" {
		tarball.CRDDownloadPolicy = v1beta1.DownloadIfNotPresent // the default of the API server
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encode OperatorVersion %s: %w", version.Name, err)
	}
	value := map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "kind": versionKind, "name": version.Name, "spec": fields}
	if err := check(value, ""); err != nil {
		return nil, fmt.Errorf("encode OperatorVersion %s: %w", version.Name, err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode OperatorVersion %s: %w", version.Name, err)
	}
	return jsoncanonicalizer.Transform(encoded)
}

// check refuses values that hold a scalar or a key whose canonical text is also that of others: JSON writes all bytes that are not UTF-8
// as one character, and rounds numbers that float64 does not hold exactly.
func check(value any, path string) error {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			at := path + "." + key
			if !utf8.ValidString(key) {
				return fmt.Errorf("%s has the key %q, which is not UTF-8: rename it", path, key)
			}
			if err := check(item, at); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := check(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	default:
		return checkScalar(v, path)
	}
	return nil
}

// checkScalar is check for a value that is neither a map nor a list.
func checkScalar(value any, path string) error {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("%s is not UTF-8: convert the file to UTF-8", path[1:])
		}
	case int64:
		if v > maxInteger || v < -maxInteger {
			return fmt.Errorf("%s is %d, which is no integer of at most 53 bits: make it smaller", path[1:], v)
		}
	case bool, nil:
	default:
		return fmt.Errorf("%s is of type %T, which has no canonical text", path[1:], value)
	}
	return nil
}
