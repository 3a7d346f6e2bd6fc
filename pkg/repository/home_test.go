package repository

import (
	"strings"
	"testing"
	"time"
)

// TestValidate: what would not be safe is refused before it is kept.
func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		reason string
		r      Repository
		ok     bool
	}{
		{"https", Repository{Name: "a", URL: "https://h/x", Token: "t"}, true},
		{"a folder", Repository{Name: "a", URL: "file:///x"}, true},
		{"plain http without credentials", Repository{Name: "a", URL: "http://h/x"}, true},
		{"credentials over plain http", Repository{Name: "a", URL: "http://h/x", Token: "t"}, false},
		{"credentials in the URL", Repository{Name: "a", URL: "https://u:p@h/x"}, false},
		{"a path as name", Repository{Name: "../a", URL: "https://h/x"}, false},
		{"a path as URL", Repository{Name: "a", URL: "/x"}, false},
		{"another scheme", Repository{Name: "a", URL: "ftp://h/x"}, false},
		{"a user without password", Repository{Name: "a", URL: "https://h/x", Username: "u"}, false},
		{"two kinds", Repository{Name: "a", URL: "https://h/x", Username: "u", Password: "p", Token: "t"}, false},
		{"a query", Repository{Name: "a", URL: "https://h/x?y"}, false},
	} {
		if err := tc.r.Validate(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// The file of repositories may have been edited by hand: its credentials do not go over the network in clear either.
func TestCredentialsInClear(t *testing.T) {
	for _, tc := range []struct {
		reason string
		r      Repository
		ok     bool
	}{
		{"a token over plain http", Repository{Name: "a", URL: "http://h/x", Token: "t"}, false},
		{"a password over plain http", Repository{Name: "a", URL: "http://h/x", Username: "u", Password: "p"}, false},
		{"this machine", Repository{Name: "a", URL: "http://127.0.0.1:8080/x", Token: "t"}, true},
		{"https", Repository{Name: "a", URL: "https://h/x", Token: "t"}, true},
		{"nothing to read", Repository{Name: "a", URL: "http://h/x"}, true},
	} {
		_, err := NewClient(tc.r, time.Second)
		if (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "repository a: credentials would be readable on their way") {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// TestRemoveUnnamed checks that a removal without a name does not advise to choose a repository, if none is in use either.
func TestRemoveUnnamed(t *testing.T) {
	list := &Repositories{Version: IndexVersion}
	if err := list.Remove(""); err == nil || err.Error() != "a repository is named by its name, which cannot be empty" {
		t.Errorf("%v", err)
	}
}
