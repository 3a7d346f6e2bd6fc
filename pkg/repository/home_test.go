package repository

import "testing"

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
