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
		{"a file that is named must be there", reference, Options{ConfigFile: filepath.Join(folder, "none")}, "no such file"},
		{"no JSON", reference, Options{ConfigFile: file("a", "{")}, "is no configuration of docker"},
		{"a folder", reference, Options{ConfigFile: folder}, "must be a regular file"},
		{"a large file", reference, Options{ConfigFile: file("b", strings.Repeat(" ", maxConfig+1))}, "must be a regular file of at most"},
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

// TestHelpers checks S15: the file goes before a program, a program is bounded, and what a program prints is in no message.
func TestHelpers(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, script := range map[string]string{
		"good":  "echo '{\"Username\":\"helped\",\"Secret\":\"x\"}'",
		"token": "echo '{\"Username\":\"<token>\",\"Secret\":\"refresh\"}'",
		"none":  "echo 'credentials not found in native keychain'; exit 1",
		"fails": "echo topsecret; exit 1",
		"text":  "echo topsecret",
		"large": "head -c 100000 /dev/zero",
	} {
		if err := os.WriteFile(filepath.Join(folder, "docker-credential-"+name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ reason, config, user, refresh, want string }{
		{"a program", `{"credHelpers":{"r.example.org":"good"}}`, "helped", "", ""},
		{"that of all hosts", `{"credsStore":"good"}`, "helped", "", ""},
		{"that of the host goes first", `{"credsStore":"fails","credHelpers":{"r.example.org":"good"}}`, "helped", "", ""},
		{"that of another host", `{"credHelpers":{"other.example.org":"fails"}}`, "", "", ""},
		{"a path for another host", `{"credHelpers":{"other.example.org":"../x","r.example.org":"good"}}`, "helped", "", ""},
		{"a name with a dot as the store, and a helper for the host", `{"credsStore":"a.exe","credHelpers":{"r.example.org":"good"}}`, "helped", "", ""},
		{"a path for another host, and the file", `{"auths":{"r.example.org":{"auth":"YTpi"}},"credHelpers":{"other.example.org":"../x"}}`, "a", "", ""},
		{"a helper by its path (S15)", `{"credHelpers":{"r.example.org":"../../tmp/x"}}`, "", "", `the credential helper "../../tmp/x" must consist of`},
		{"a store by its path (S15)", `{"credsStore":"a b"}`, "", "", `the credential helper "a b" must consist of`},
		{"the file goes first", `{"auths":{"r.example.org":{"auth":"YTpi"}},"credHelpers":{"r.example.org":"fails"},"credsStore":"fails"}`, "a", "", ""},
		{"an empty entry of the file", `{"auths":{"r.example.org":{}},"credsStore":"good"}`, "helped", "", ""},
		{"an identity token", `{"credsStore":"token"}`, "", "refresh", ""},
		{"a program that knows none", `{"credsStore":"none"}`, "", "", ""},
		{"a program that fails", `{"credsStore":"fails"}`, "", "", "run docker-credential-fails: exit status 1"},
		{"a program that prints no JSON", `{"credsStore":"text"}`, "", "", "run docker-credential-text: it prints no credentials"},
		{"a program that prints too much", `{"credsStore":"large"}`, "", "", "run docker-credential-large"},
		{"a program that is not there", `{"credsStore":"absent"}`, "", "", "docker-credential-absent"},
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(tc.config), 0o600); err != nil {
			t.Fatal(err)
		}
		find, err := findCredentials(Options{ConfigFile: file}, "r.example.org")
		if err != nil {
			t.Fatal(err)
		}
		got, err := find(t.Context(), "r.example.org")
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "topsecret")) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if got.Username != tc.user || got.RefreshToken != tc.refresh {
			t.Errorf("%s: %q and %q", tc.reason, got.Username, got.RefreshToken)
		}
	}
	given, err := findCredentials(Options{Username: "me", Password: "x", ConfigFile: "none"}, "r.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := given(t.Context(), "r.example.org"); got.Username != "me" {
		t.Errorf("credentials of repo add are not taken first: %q", got.Username)
	}
	if got, _ := given(t.Context(), "other.example.org"); got.Username != "" {
		t.Errorf("another host gets %q", got.Username)
	}
}
