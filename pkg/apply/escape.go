package apply

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// EscapeApplyBodies has clients of the config send server-side applies in which characters are escaped that JSON may have as they
// are, and YAML may not: the API server reads the body of an apply as YAML (https://yaml.org/spec/1.2.2/#51-character-set).
func EscapeApplyBodies(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &escaping{next} })
}

type escaping struct{ next http.RoundTripper }

// WrappedRoundTripper returns what sends the requests, so that its idle connections can be closed.
func (e *escaping) WrappedRoundTripper() http.RoundTripper { return e.next }

// RoundTrip implements http.RoundTripper.
func (e *escaping) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Method != http.MethodPatch || !strings.HasPrefix(r.Header.Get("Content-Type"), string(types.ApplyYAMLPatchType)) {
		return e.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	body = escaped(body)
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return e.next.RoundTrip(r)
}

// escaped writes such characters of a JSON document as \u and four digits. They can stand in strings only.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, unprintable) {
		return text
	}
	const digits = "0123456789abcdef"
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if unprintable(r) {
			out = append(out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
		} else {
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}

// unprintable reports whether a character must be escaped in YAML, while JSON holds it as it is: a control character (YAML
// reads the line break U+0085 as a space), a line separator, or a code point that is no character.
func unprintable(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfffe || r == 0xffff
}
