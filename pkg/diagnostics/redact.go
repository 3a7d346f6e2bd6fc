package diagnostics

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Redacted stands where something was left out.
const Redacted = "REDACTED"

const (
	// shortest is the length in bytes from which on a secret value is looked for in texts: shorter ones are words that
	// stand everywhere.
	shortest = 6
	// longest is the length up to which it is; whole files are not.
	longest = 16 << 10
)

// Redactor takes secrets out of objects and texts: the data of Secrets, values whose name says what they are, and, in any
// text, the values that it has learned, and what looks like a credential. The zero value is ready to use.
type Redactor struct {
	names    map[string]bool
	values   map[string]bool
	replacer *strings.Replacer
}

// Name declares a parameter sensitive, whatever its name looks like.
func (r *Redactor) Name(name string) {
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[name] = true
}

// Hide takes a secret value, to be looked for in all texts from now on: plain, in base64, and as a JSON string. Short ones, and plain
// booleans and numbers, are not looked for. Of a value with several lines, each line that looks like a secret of its own is looked
// for, too: logs show one line at a time.
func (r *Redactor) Hide(value string) {
	if len(value) <= longest && strings.ContainsAny(strings.TrimSpace(value), "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= 2*shortest && !strings.ContainsAny(line, " \t") {
				r.hide(line)
			}
		}
	}
	r.hide(value)
}

// hideDefaults takes the names of the sensitive parameters that an OperatorVersion defines, and their defaults.
func (r *Redactor) hideDefaults(ov *unstructured.Unstructured) {
	definitions, _, _ := unstructured.NestedSlice(ov.Object, "spec", "parameters")
	for _, item := range definitions {
		d, _ := item.(map[string]any)
		name, _ := d["name"].(string)
		if d["sensitive"] == true {
			r.Name(name)
		}
		if value, ok := d["default"].(string); ok && r.Sensitive(name) {
			r.Hide(value)
		}
	}
}

// hideNamedParameters takes the values of the parameters that are sensitive by their name.
func (r *Redactor) hideNamedParameters(parameters map[string]string) {
	for name, value := range parameters {
		if r.Sensitive(name) {
			r.Hide(value)
		}
	}
}

// hideSecret takes the values of a Secret.
func (r *Redactor) hideSecret(secret *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for _, value := range data {
		if text, err := base64.StdEncoding.DecodeString(value); err == nil {
			r.Hide(string(text))
		}
	}
}

func (r *Redactor) hide(value string) {
	whole := value
	value = strings.TrimSpace(value)
	_, number := strconv.ParseFloat(value, 64)
	if len(value) < shortest || len(value) > longest || !utf8.ValidString(value) || number == nil && len(value) < 2*shortest {
		return
	}
	if r.values == nil {
		r.values = map[string]bool{}
	}
	r.values[value] = true
	if quoted, err := json.Marshal(value); err == nil {
		inner := string(quoted[1 : len(quoted)-1])
		r.values[inner] = true
		r.values[unescapeHTML.Replace(inner)] = true
	}
	for _, text := range []string{value, whole} { // a line break at the end changes the base64
		r.values[base64.StdEncoding.EncodeToString([]byte(text))] = true
	}
	r.replacer = nil
}

// unescapeHTML undoes what some encoders of JSON escape besides what they must.
var unescapeHTML = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// prepare builds what the values are looked for with. Longer ones come first, since one may hold another.
func (r *Redactor) prepare() {
	all := make([]string, 0, len(r.values))
	for value := range r.values {
		all = append(all, value)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(all))
	for _, value := range all {
		pairs = append(pairs, value, Redacted)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// secretName is a name that says that its value is secret, up to the value or its quote.
const secretName = `(?i)((?:password|passwd|passphrase|pwd|secret|token|credential|` +
	`api[-_]?key|access[-_]?key|private[-_]?key|secret[-_]?key)s?` +
	`\\?["']?[ \t]*[:=][ \t]*\\?`

// What looks like a credential in any text. A value that is a template or a variable is none.
var (
	assigned  = text.Pattern(secretName + `["']?)([^\s"'\\,;&{}$](?:[^\s"'\\;&{}]*[^\s"'\\,;&{}])?)`)
	quoted    = text.Pattern(secretName + `")([^"\\{}$\n][^"\\\n]*)`)
	single    = text.Pattern(secretName + `')([^'\\{}$\n][^'\\\n]*)`)
	nextEntry = text.Pattern(`,[\w.-]+[:=]`)
	flagged   = text.Pattern(`(?i)(--?[a-z0-9-]*(?:password|passwd|passphrase|token|secret|api-key)[ \t]+)` +
		`([^\s"'\\,;&{}$-][^\s"'\\,;&{}$]*)`)
	bearer    = text.Pattern(`(?i)\b((?:bearer|basic)[ \t]+)([A-Za-z0-9._~+/=-]{8,})`)
	userinfo  = text.Pattern(`(://)([^/\s:@"']+:[^/\s@"']+)@`)
	webToken  = text.Pattern(`()(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)`)
	pemSecret = text.Pattern(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)
	// pemRest is the end of a key whose beginning is not in the text, such as that of a log that was cut.
	pemRest = text.Pattern(`(?:[^\n]*[A-Za-z0-9+/]{40}={0,2}\r?\n)*(?:[^\n]*[A-Za-z0-9+/]={0,2}\r?\n)?` +
		`[^\n]*-----END [A-Z ]*PRIVATE KEY-----`)
)

// Text returns a text without what is secret.
func (r *Redactor) Text(text string) string {
	if r.replacer == nil {
		r.prepare()
	}
	text = r.replacer.Replace(text)
	text = pemSecret().ReplaceAllString(text, Redacted)
	if strings.Contains(text, "PRIVATE KEY-----") {
		text = pemRest().ReplaceAllString(text, Redacted)
	}
	text = userinfo().ReplaceAllString(text, "${1}"+Redacted+"@")
	for _, pattern := range []*regexp.Regexp{bearer(), webToken(), quoted(), single(), assigned(), flagged()} {
		text = redactMatches(pattern, text)
	}
	return text
}

// redactMatches replaces the second group of a pattern. A value without quotes ends where the next entry of a list begins.
func redactMatches(pattern *regexp.Regexp, text string) string {
	return pattern.ReplaceAllStringFunc(text, func(found string) string {
		parts := pattern.FindStringSubmatch(found)
		if len(parts) != 3 {
			return found
		}
		value, rest := parts[2], ""
		if at := nextEntry().FindStringIndex(value); at != nil && pattern == assigned() {
			value, rest = value[:at[0]], redactMatches(pattern, value[at[0]:])
		}
		if nonSecretValues(value) {
			return parts[1] + value + rest
		}
		return parts[1] + Redacted + rest
	})
}

// nonSecretValues values are no secrets, though their name may say so.
func nonSecretValues(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "false", "null", "nil", "none", "~", "redacted", "|", ">", "|-", ">-":
		return true
	}
	return false
}

// Sensitive reports whether the value of a name is to be left out: the name is that of a sensitive parameter, or one of its
// words is password, token, secret, key or the like.
func (r *Redactor) Sensitive(name string) bool {
	if r.names[name] {
		return true
	}
	lower := strings.ToLower(name)
	for _, part := range []string{"password", "passwd", "passphrase", "secret", "token", "credential", "apikey", "privatekey", "accesskey"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	return slices.ContainsFunc(words(name), func(word string) bool {
		return word == "key" || word == "keys" || word == "pwd" || word == "pass"
	})
}

// secretField reports whether a field of an object holds a secret. Only its last word counts: secretName and
// secretKeyRef.key hold names.
func secretField(name string) bool {
	all := words(name)
	if len(all) == 0 {
		return false
	}
	switch last := all[len(all)-1]; last {
	case "password", "passwd", "passphrase", "pwd", "token", "secret", "credentials":
		return true
	case "key":
		return len(all) > 1 && slices.Contains([]string{"api", "access", "private", "secret", "encryption"}, all[len(all)-2])
	}
	return false
}

// words splits a name such as adminPassword, ADMIN_PASSWORD or admin-password, in lower case.
func words(name string) []string {
	var out []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			out = append(out, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	lower := false
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			end()
			lower = false
			continue
		}
		if unicode.IsUpper(c) && lower {
			end()
		}
		lower = unicode.IsLower(c) || unicode.IsDigit(c)
		word.WriteRune(c)
	}
	end()
	return out
}

// copies are annotations that repeat an object, with what is secret in it.
var copies = []string{v1beta1.LastAppliedAnnotation, "kubectl.kubernetes.io/last-applied-configuration"}

// Object changes an object so that nothing secret is left in it, and drops what only fills space.
func (r *Redactor) Object(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	for _, name := range copies {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", name)
	}
	if obj.GetKind() == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			blank(obj.Object[field])
		}
	}
	if obj.GetKind() == "ConfigMap" {
		r.named(obj.Object["data"])
		blank(obj.Object["binaryData"])
	}
	for key, value := range obj.Object {
		if key != "apiVersion" && key != "kind" {
			obj.Object[key] = r.Value(key, value)
		}
	}
}

// blank leaves the names of a map only.
func blank(value any) {
	if m, ok := value.(map[string]any); ok {
		for key := range m {
			m[key] = Redacted
		}
	}
}

// named leaves out the values of a map that are sensitive by their name.
func (r *Redactor) named(value any) {
	if m, ok := value.(map[string]any); ok {
		for key, item := range m {
			if text, ok := item.(string); ok && r.Sensitive(key) && !nonSecretValues(text) {
				m[key] = Redacted
			}
		}
	}
}

// entry leaves out the value and the default of a map that names a variable or a parameter, if they are sensitive by this name.
func (r *Redactor) entry(m map[string]any) {
	name, ok := m["name"].(string)
	if !ok || !r.Sensitive(name) {
		return
	}
	for _, field := range []string{"value", "default"} {
		if text, ok := m[field].(string); ok && !nonSecretValues(text) {
			m[field] = Redacted
		}
	}
}

// Value returns a part of an object, named key, without what is secret. Maps and lists are changed in place.
func (r *Redactor) Value(key string, value any) any {
	switch v := value.(type) {
	case string:
		if secretField(key) && !nonSecretValues(v) {
			return Redacted
		}
		return r.Text(v)
	case []any:
		for n := range v {
			v[n] = r.Value(key, v[n])
		}
		return v
	case map[string]any:
		if key == "parameters" || key == "installParameters" || key == "immutableDefaults" {
			r.named(v)
		}
		r.entry(v)
		for name, item := range v {
			v[name] = r.Value(name, item)
		}
		return v
	}
	return value
}
