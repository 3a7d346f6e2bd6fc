package registry

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// TestNewRepository checks which references and files are refused, before a registry is asked.
func TestNewRepository(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	file := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const reference = "oci://registry.example.org/kudo/manager"
	for _, tc := range []struct {
		reason, reference string
		options           Options
		want              string
	}{
		{"a repository", reference, Options{}, ""},
		{"a tag and a port", "oci://registry.example.org:5000/a:v1", Options{}, ""},
		{"no scheme", "registry.example.org/a", Options{}, "must begin with oci://"},
		{"no repository", "oci://registry.example.org", Options{}, "is no reference such as"},
		{"a user", "oci://a:b@registry.example.org/a", Options{}, "is no reference such as"},
		{"no certificate", reference, Options{CAs: []byte("x")}, "there is no certificate in PEM"},
		{"a file that is named must be there", reference, Options{ConfigFile: filepath.Join(folder, "none")}, "no such file"},
		{"no JSON", reference, Options{ConfigFile: file("a", "{")}, "is no configuration of docker"},
		{"a folder", reference, Options{ConfigFile: folder}, "must be a regular file"},
		{"a large file", reference, Options{ConfigFile: file("b", strings.Repeat(" ", maxConfig+1))}, "must be a regular file of at most"},
		{"a helper by its path (S15)", reference, Options{ConfigFile: file("c", `{"credHelpers":{"registry.example.org":"../../tmp/x"}}`)}, `the credential helper "../../tmp/x" must consist of`},
		{"a store by its path (S15)", reference, Options{ConfigFile: file("d", `{"credsStore":"a b"}`)}, `the credential helper "a b" must consist of`},
	} {
		_, err := NewRepository(tc.reference, tc.options)
		if text := ""; err != nil {
			if text = err.Error(); tc.want == "" || !strings.Contains(text, tc.want) {
				t.Errorf("%s: error %q, want %q", tc.reason, text, tc.want)
			}
		} else if tc.want != "" {
			t.Errorf("%s: no error, want %q", tc.reason, tc.want)
		}
	}
}

// TestCredentials checks S15 and S16: the credentials are those of one host, by name and port, and none without TLS.
func TestCredentials(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	helper := "#!/bin/sh\nread host\necho \"$host\" >>" + filepath.Join(folder, "asked") + "\necho '{\"Username\":\"helped\",\"Secret\":\"x\"}'\n"
	if err := os.WriteFile(filepath.Join(folder, "docker-credential-test"), []byte(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	text := `{"auths":{"registry.example.org":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("a:b")) + `"},
		"https://index.docker.io/v1/":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("hub:c")) + `"}},"credHelpers":{"helped.example.org":"test"}}`
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ reason, reference, asked, want string }{
		{"the registry", "oci://registry.example.org/a", "registry.example.org", "a"},
		{"another port", "oci://registry.example.org:5000/a", "registry.example.org:5000", ""},
		{"another host, whose credentials are in the file", "oci://other.example.org/a", "registry.example.org", ""},
		{"another host, whose credentials a program has", "oci://other.example.org/a", "helped.example.org", ""},
		{"a program", "oci://helped.example.org/a", "helped.example.org", "helped"},
		{"Docker Hub", "oci://docker.io/a/b", "registry-1.docker.io", "hub"},
	} {
		repository, err := NewRepository(tc.reference, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := repository.Client.(*auth.Client).Credential(t.Context(), tc.asked)
		if err != nil || got.Username != tc.want {
			t.Errorf("%s: user %q, want %q (%v)", tc.reason, got.Username, tc.want, err)
		}
	}
	if asked, err := os.ReadFile(filepath.Join(folder, "asked")); err != nil || string(asked) != "helped.example.org\n" {
		t.Errorf("the program was asked for %q (%v)", asked, err)
	}
	plain, err := NewRepository("oci://registry.example.org/a", Options{PlainHTTP: true})
	if err != nil || plain.Client.(*auth.Client).Credential != nil || !plain.PlainHTTP {
		t.Errorf("credentials without TLS (%v)", err)
	}
}
