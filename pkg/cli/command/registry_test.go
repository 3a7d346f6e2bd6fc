package command

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSourceDate checks the values of SOURCE_DATE_EPOCH.
func TestSourceDate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, epoch string
		want          time.Time
		wrong         bool
	}{
		"None":     {"without the variable there is no time", "", time.Time{}, false},
		"Seconds":  {"seconds since 1970", "86400", time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC), false},
		"Negative": {"an index is not older than 1970", "-1", time.Time{}, true},
		"Text":     {"a date is not a number", "today", time.Time{}, true},
	} {
		got, err := SourceDate(tc.epoch)
		if !got.Equal(tc.want) || (err != nil) != tc.wrong {
			t.Errorf("%s: %s: %v, %v", name, tc.reason, got, err)
		}
	}
}

// TestRegistryFlags checks which flags go together, and that a file of certificates is read before a registry is asked.
func TestRegistryFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	none := filepath.Join(t.TempDir(), "text.pem")
	if err := errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(none, []byte("certificate"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		flags  RegistryFlags
		want   string
	}{
		{"none", RegistryFlags{}, ""},
		{"certificates", RegistryFlags{caFile: file, configFile: "config.json", tokenHosts: []string{"auth.example.org"}}, ""},
		{"without TLS there are no certificates", RegistryFlags{caFile: file, plainHTTP: true}, "--registry-ca cannot be used with --plain-http"},
		{"without TLS there are no credentials", RegistryFlags{configFile: file, plainHTTP: true}, "--registry-config cannot be used with --plain-http"},
		{"no file", RegistryFlags{caFile: file + ".none"}, "--registry-ca: "},
		{"no certificate", RegistryFlags{caFile: none}, "--registry-ca: read " + none + ": it holds no certificate in PEM"},
	} {
		o, err := tc.flags.Options()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if err == nil && (o.PlainHTTP != tc.flags.plainHTTP || o.ConfigFile != tc.flags.configFile || o.Roots != nil != (tc.flags.caFile != "")) {
			t.Errorf("%s: %+v", tc.reason, o)
		}
	}
}
