package diagnostics

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCredentials has texts of logs and manifests that hold a credential, and texts that look like one.
func TestCredentials(t *testing.T) {
	const long = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	const end = "-----END RSA PRIVATE KEY-----"
	for name, tc := range map[string]struct{ reason, in, want string }{
		"Environment": {"variables in capitals", "DB_PASSWORD=abc", "DB_PASSWORD=REDACTED"},
		"Plural":      {"a plural", "tokens: abc", "tokens: REDACTED"},
		"Spaces":      {"spaces around the sign", "secret  =  abc", "secret  =  REDACTED"},
		"KeyForms": {
			"names of keys",
			"api_key=a api-key=b apikey=c access-key: d private_key: e",
			"api_key=REDACTED api-key=REDACTED apikey=REDACTED access-key: REDACTED private_key: REDACTED",
		},
		"PlainKey": {"a key alone is none", "key=abc", "key=abc"},
		"List":     {"what follows stays", "password=abc,mode=fast;x=1&y=2", "password=REDACTED,mode=fast;x=1&y=2"},
		"Block":    {"a block of YAML begins", "password: |\n  next", "password: |\n  next"},
		"Variable": {"a variable", "password=$PASSWORD token=${TOKEN}", "password=$PASSWORD token=${TOKEN}"},
		"Null": {
			"values that say nothing",
			"token: null\nsecret: ''\npassword: ~\npassword: NONE",
			"token: null\nsecret: ''\npassword: ~\npassword: NONE",
		},
		"FlagSign":    {"a flag with its sign", "--token=abc -n x", "--token=REDACTED -n x"},
		"FlagNext":    {"a flag whose value is another flag", "--password --verbose", "--password --verbose"},
		"FlagShort":   {"a flag of one dash", "-adminToken abc", "-adminToken REDACTED"},
		"Basic":       {"a header with a name and a password", "authorization: basic dXNlcjpwYXNz", "authorization: basic REDACTED"},
		"ShortBearer": {"a word behind bearer", "the bearer is here", "the bearer is here"},
		"URLs":        {"several URLs", "a://u:p@h b://u:q@h/x?y", "a://REDACTED@h b://REDACTED@h/x?y"},
		"UserOnly":    {"a URL with a name only", "https://me@host/x", "https://me@host/x"},
		"Time":        {"a URL with a port", "https://host:8080/a@b", "https://host:8080/a@b"},
		"WebToken":    {"a web token", "got eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl, thanks", "got REDACTED, thanks"},
		"HalfToken":   {"half of one", "eyJhbGciOiJI", "eyJhbGciOiJI"},
		"TwoKeys": {
			"two keys with text between",
			"-----BEGIN PRIVATE KEY-----\nA\n-----END PRIVATE KEY-----\nok\n-----BEGIN EC PRIVATE KEY-----\nB\n-----END EC PRIVATE KEY-----",
			"REDACTED\nok\nREDACTED",
		},
		"Certificate": {
			"a certificate is public",
			"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----",
			"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----",
		},
		"EndOfKey": {"the end of a key whose beginning was cut off", long + "\n" + long + "\nAAA=\n" + end + "\nok", "REDACTED\nok"},
		"EndStamped": {
			"with the times of a log",
			"9:00 ready\n9:01 " + long + "\n9:01 AAA=\n9:01 " + end + "\n9:02 ok",
			"9:00 ready\nREDACTED\n9:02 ok",
		},
		"EndReturns": {"with returns", long + "\r\nAA\r\n" + end + "\r\nok", "REDACTED\r\nok"},
		"EndNamed":   {"a message that names the end, with the line in front of it", "one\ntwo\nno " + end + " found", "one\nREDACTED found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Redactor{}
			got := r.Text(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if again := r.Text(got); again != got {
				t.Errorf("%s: the second time %q becomes %q", tc.reason, got, again)
			}
		})
	}
}

// TestLearn has values that are looked for in texts, and those that are not.
func TestLearn(t *testing.T) {
	for name, tc := range map[string]struct{ reason, value, in, want string }{
		"Six":     {"six bytes", "abcdef", "<abcdef>", "<REDACTED>"},
		"Five":    {"five are a word", "abcde", "<abcde>", "<abcde>"},
		"Trimmed": {"space around it does not count", " abcdef\n", "<abcdef>", "<REDACTED>"},
		"Numbers": {"a number of eleven digits stands elsewhere, too", "12345678901", "<12345678901>", "<12345678901>"},
		"Digits":  {"one of twelve does not", "123456789012", "<123456789012>", "<REDACTED>"},
		"Floats":  {"so it is with any form of a number", "1.2e+5", "<1.2e+5>", "<1.2e+5>"},
		"Largest": {"16 KiB", strings.Repeat("ab", 8<<10), "<" + strings.Repeat("ab", 8<<10) + ">", "<REDACTED>"},
		"Larger": {
			"more is a file",
			strings.Repeat("ab", 8<<10) + "c",
			"<" + strings.Repeat("ab", 8<<10) + "c>",
			"<" + strings.Repeat("ab", 8<<10) + "c>",
		},
		"Bytes":  {"bytes that are no text", "abcdef\xff", "<abcdef\xff>", "<abcdef\xff>"},
		"Base64": {"its base64, in a line", "abcdef", base64.StdEncoding.EncodeToString([]byte("abcdef")) + ";", "REDACTED;"},
		"Base64Line": {
			"the base64 of a value with a line break, as a Secret has it",
			"abcdefg\n", base64.StdEncoding.EncodeToString([]byte("abcdefg\n")) + ";" + base64.StdEncoding.EncodeToString([]byte("abcdefg")), "REDACTED;REDACTED",
		},
		"Adjacent":  {"twice in a row", "abcdef", "abcdefabcdef", "REDACTEDREDACTED"},
		"Case":      {"case counts", "abcdef", "ABCDEF", "ABCDEF"},
		"Metachars": {"characters of patterns mean nothing", "a.*(b)[", "a.*(b)[ axx(b)[", "REDACTED axx(b)["},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Redactor{}
			r.Hide(tc.value)
			if got := r.Text(tc.in); got != tc.want {
				t.Errorf("%s: %.100q, want %.100q", tc.reason, got, tc.want)
			}
		})
	}
	r := &Redactor{}
	r.Hide("password-1")
	if got := r.Text("x password-12 y"); got != "x REDACTED2 y" {
		t.Errorf("before the longer value: %q", got)
	}
	r.Hide("password-12")
	if got := r.Text("x password-12 y password-1 z"); got != "x REDACTED y REDACTED z" {
		t.Errorf("of two values, one of which begins with the other: %q", got)
	}
}

func TestSensitiveNames(t *testing.T) {
	r := &Redactor{}
	r.Name("PIN")
	for name, want := range map[string]bool{
		"PIN": true, "pin": false, "ADMIN_PASSWORD": true, "adminPassword": true, "passwordless": true, "TLS_KEY": true, "tlsKeys": true,
		"KEYSPACE": false,
		"monkey":   false, "db-pwd": true, "USER_PASS": true, "bypass": false, "compass": false, "APIKEY": true, "clientSecretName": true,
		"credentials": true,
		"key":         true, "": false, "_": false, "TOKENIZER": true, "Replicas": false, "key2": false,
	} {
		if got := r.Sensitive(name); got != want {
			t.Errorf("Sensitive(%q) is %v", name, got)
		}
	}
	for name, want := range map[string]bool{
		"password": true, "rootPassword": true, "secretName": false, "key": false, "apiKey": true, "encryption-key": true,
		"secretKeyRef": false, "accessKeyID": false,
		"privateKey": true, "publicKey": false, "token": true, "tokenSecretRef": false, "clientSecret": true, "credentials": true,
		"credential": false, "": false,
	} {
		if got := secretField(name); got != want {
			t.Errorf("secretField(%q) is %v", name, got)
		}
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string][]string{
		"adminPassword": {"admin", "password"}, "ADMIN_PASSWORD": {"admin", "password"}, "admin-password.x": {"admin", "password", "x"},
		"": nil, "--": nil,
		"HTTPKey": {"httpkey"}, "v2Key": {"v2", "key"}, "größeÄnd": {"größe", "änd"},
	} {
		if diff := cmp.Diff(want, words(name)); diff != "" {
			t.Errorf("words(%q) (-want +got):\n%s", name, diff)
		}
	}
}

// TestObjects has parts of objects that hold secrets.
func TestObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		obj, want map[string]any
	}{
		"StringData": {
			"a Secret as a template has it",
			map[string]any{"kind": "Secret", "stringData": map[string]any{"a": "b"}, "type": "Opaque"},
			map[string]any{"kind": "Secret", "stringData": map[string]any{"a": Redacted}, "type": "Opaque"},
		},
		"WrongData": {
			"data that is no map",
			map[string]any{"kind": "Secret", "data": "token: abc"},
			map[string]any{"kind": "Secret", "data": "token: REDACTED"},
		},
		"ConfigMap": {
			"a ConfigMap by the names of its keys, and all that is binary",
			map[string]any{"kind": "ConfigMap", "data": map[string]any{"db.password": "a", "mode": "b", "use-token": "false"},
				"binaryData": map[string]any{"x": "eA=="}},
			map[string]any{"kind": "ConfigMap", "data": map[string]any{"db.password": Redacted, "mode": "b", "use-token": "false"},
				"binaryData": map[string]any{"x": Redacted}},
		},
		"Fields": {
			"fields by their name, at any depth",
			map[string]any{"kind": "X", "spec": map[string]any{"list": []any{map[string]any{"rootPassword": "a", "secretName": "b",
				"port": int64(1)}}}},
			map[string]any{"kind": "X", "spec": map[string]any{"list": []any{map[string]any{"rootPassword": Redacted, "secretName": "b",
				"port": int64(1)}}}},
		},
		"Lists": {
			"lists of texts by the name of their field",
			map[string]any{"kind": "X", "args": []any{"--password=abc", "run"}, "token": []any{"abc"}},
			map[string]any{"kind": "X", "args": []any{"--password=REDACTED", "run"}, "token": []any{Redacted}},
		},
		"Parameters": {
			"parameters of an OperatorVersion by their name",
			map[string]any{"kind": "OperatorVersion", "spec": map[string]any{"parameters": []any{map[string]any{"name": "API_TOKEN",
				"default": "a", "description": "the token"}, map[string]any{"name": "SIZE", "default": "1"}}}},
			map[string]any{"kind": "OperatorVersion", "spec": map[string]any{"parameters": []any{map[string]any{"name": "API_TOKEN",
				"default": Redacted, "description": "the token"}, map[string]any{"name": "SIZE", "default": "1"}}}},
		},
		"Immutable": {
			"other maps of parameters",
			map[string]any{"kind": "Instance",
				"status": map[string]any{"baseline": map[string]any{"immutableDefaults": map[string]any{"TLS_KEY": "a", "A": "b"},
					"installParameters": map[string]any{"TLS_KEY": "a"}}}},
			map[string]any{"kind": "Instance",
				"status": map[string]any{"baseline": map[string]any{"immutableDefaults": map[string]any{"TLS_KEY": Redacted, "A": "b"},
					"installParameters": map[string]any{"TLS_KEY": Redacted}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			(&Redactor{}).Object(&unstructured.Unstructured{Object: tc.obj})
			if diff := cmp.Diff(tc.want, tc.obj); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
