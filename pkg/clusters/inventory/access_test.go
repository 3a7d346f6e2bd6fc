package inventory

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

const server = "https://m1.example:6443"

// newPair makes a certificate and its key.
func newPair(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// profileOf reads a ClusterProfile whose status is YAML.
func profileOf(t testing.TB, status string) *ClusterProfile {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(status), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetGroupVersionKind(ProfileKind)
	obj.SetNamespace("fleet")
	obj.SetName("m1")
	out, err := ParseProfile(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// offers is the status of a profile that offers the built-in provider, with more fields of its cluster.
func offers(more ...string) string {
	out := "status: {accessProviders: [{name: kudo-secret, cluster: {server: '" + server + "'"
	for _, field := range more {
		out += ", " + field
	}
	return out + ", extensions: [{name: client.authentication.k8s.io/exec, extension: {secretName: m1}}]}}]}"
}

// of returns a reader of Secrets that has one.
func of(data map[string]string) secretData {
	return func(_ context.Context, name string) (map[string][]byte, error) {
		if name != "m1" {
			return nil, errors.New("there is no Secret " + name)
		}
		out := map[string][]byte{}
		for key, value := range data {
			out[key] = []byte(value)
		}
		return out, nil
	}
}

// kubeconfig writes a kubeconfig with further fields of its cluster and its user.
func kubeconfig(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: m, user: u}}]\nclusters: [{name: m, cluster: {" +
		cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n"
}

// TestKubeconfigRefused checks that whatever would run a program, read a file, act as another user, trust any server, or lead to another
// server is refused by name (C49).
func TestKubeconfigRefused(t *testing.T) {
	const at, token = "server: '" + server + "'", "token: abc"
	for name, c := range map[string]struct{ file, want string }{
		"exec":          {kubeconfig(at, "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}"), "users[0].user.exec: runs a program"},
		"auth-provider": {kubeconfig(at, "auth-provider: {name: gcp}"), "users[0].user.auth-provider: "},
		"tokenFile":     {kubeconfig(at, "tokenFile: /etc/passwd"), "users[0].user.tokenFile: is a file"},
		"certificate":   {kubeconfig(at, "client-certificate: /a, client-key: /b"), "users[0].user.client-certificate: is a file"},
		"key":           {kubeconfig(at, "client-key: /b"), "users[0].user.client-key: is a file"},
		"as":            {kubeconfig(at, token+", as: admin"), "users[0].user.as: acts as another user"},
		"as-uid":        {kubeconfig(at, token+", as-uid: '1'"), "users[0].user.as-uid: "},
		"as-groups":     {kubeconfig(at, token+", as-groups: ['system:masters']"), "users[0].user.as-groups: "},
		"extra":         {kubeconfig(at, token+", as-user-extra: {a: [b]}"), "users[0].user.as-user-extra: "},
		"username":      {kubeconfig(at, "username: a, password: b"), "users[0].user.username: "},
		"password":      {kubeconfig(at, token+", password: b"), "users[0].user.password: "},
		"insecure":      {kubeconfig(at+", insecure-skip-tls-verify: true", token), "clusters[0].cluster.insecure-skip-tls-verify: would let anyone answer"},
		"authority":     {kubeconfig(at+", certificate-authority: /ca", token), "clusters[0].cluster.certificate-authority: is a file"},
		"authority PEM": {kubeconfig(at+", certificate-authority-data: YWJj", token), "clusters[0].cluster.certificate-authority-data: holds no certificate"},
		"http":          {kubeconfig("server: 'http://m1.example:6443'", token), "clusters[0].cluster.server: is plain http"},
		"no server":     {kubeconfig("tls-server-name: a", token), "clusters[0].cluster.server: is missing"},
		"other server":  {kubeconfig("server: 'https://evil.example:6443'", token), `clusters[0].cluster.server: is "https://evil.example:6443", and the ClusterProfile has "` + server},
		"other name":    {kubeconfig(at+", tls-server-name: evil", token), "clusters[0].cluster.tls-server-name: is not that of the ClusterProfile"},
		"other proxy":   {kubeconfig(at+", proxy-url: 'http://evil'", token), "clusters[0].cluster.proxy-url: is not that of the ClusterProfile"},
		"nothing":       {kubeconfig(at, ""), "users[0].user: has no credentials"},
		"bad token":     {kubeconfig(at, `token: "a\nb"`), "users[0].user.token: is no token"},
		"bad pair":      {kubeconfig(at, "client-certificate-data: YWJj, client-key-data: YWJj"), "users[0].user.client-certificate-data: does not go with"},
		"context":       {strings.Replace(kubeconfig(at, token), "current-context: c", "current-context: d", 1), `current-context: "d" is no context`},
		"dangling":      {strings.Replace(kubeconfig(at, token), "user: u", "user: v", 1), "contexts[0].context: names a cluster or a user that is not there"},
		"unknown field": {kubeconfig(at, token+", impersonate: x"), "kubeconfig: cannot be read: unknown field"},
		"no YAML":       {"\t{", "kubeconfig: cannot be read: "},
		"too long":      {strings.Repeat("#", maxKubeconfig+1), "kubeconfig: has 262145 bytes"},
		"beside":        {kubeconfig(at, token) + "---\n", ""},
		"unused":        {strings.Replace(kubeconfig(at, token), "users: [", "users: [{name: w, user: {exec: {command: sh}}}, ", 1), "users[0].user.exec: runs a program"},
	} {
		t.Run(name, func(t *testing.T) {
			a := access{namespace: "kudo-system", secret: of(map[string]string{"kubeconfig": c.file})}
			config, err := a.configOf(t.Context(), profileOf(t, offers()))
			if c.want == "" {
				if err != nil || config.BearerToken != "abc" {
					t.Fatalf("%v, %v", config, err)
				}
				return
			}
			refused := &AccessError{}
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want %q", err, c.want)
			}
			if refused.Object != "Secret kudo-system/m1" || refused.Remedy == "" || strings.Contains(err.Error(), "abc") {
				t.Errorf("the error %q lacks the object or the remedy, or has a credential", err)
			}
		})
	}
}

// TestProfileRefused checks what of a profile is refused by name (C48, C49).
func TestProfileRefused(t *testing.T) {
	for name, c := range map[string]struct{ status, want string }{
		"none":        {"status: {}", "status.accessProviders: offers no provider that this manager has: offer kudo-secret, or name"},
		"other":       {"status: {accessProviders: [{name: google, cluster: {server: 'https://a'}}]}", "status.accessProviders: offers no provider"},
		"insecure":    {offers("insecure-skip-tls-verify: true"), "status.accessProviders[0].cluster.insecure-skip-tls-verify: would let anyone answer"},
		"file":        {offers("certificate-authority: /etc/ca"), "status.accessProviders[0].cluster.certificate-authority: is a file"},
		"authority":   {offers("certificate-authority-data: YWJj"), "status.accessProviders[0].cluster.certificate-authority-data: holds no certificate"},
		"http":        {strings.Replace(offers(), "https:", "http:", 1), "status.accessProviders[0].cluster.server: is plain http"},
		"path":        {strings.Replace(offers(), server, "/etc/a", 1), "status.accessProviders[0].cluster.server: is no https URL with a host"},
		"user":        {strings.Replace(offers(), "https://", "https://a:b@", 1), "status.accessProviders[0].cluster.server: has more than a host"},
		"proxy":       {offers("proxy-url: 'file:///a'"), "status.accessProviders[0].cluster.proxy-url: is no address of a proxy"},
		"extension":   {strings.Replace(offers(), "client.authentication.k8s.io/exec", "other", 1), "extensions[client.authentication.k8s.io/exec]: is missing"},
		"more":        {strings.Replace(offers(), "secretName: m1", "secretName: m1, namespace: kube-system", 1), "is no object with secretName alone"},
		"no name":     {strings.Replace(offers(), "secretName: m1", "secretName: ''", 1), "secretName: is missing"},
		"deprecated":  {strings.Replace(offers("insecure-skip-tls-verify: true"), "accessProviders", "credentialProviders", 1), "status.credentialProviders[0].cluster.insecure"},
		"no Secret":   {strings.Replace(offers(), "secretName: m1", "secretName: m2", 1), "read Secret kudo-system/m2: there is no Secret m2"},
		"wrong token": {offers(), "Secret kudo-system/m1: token: is no token"},
	} {
		t.Run(name, func(t *testing.T) {
			a := access{namespace: "kudo-system", secret: of(map[string]string{"token": "a b", "server": server})}
			_, err := a.configOf(t.Context(), profileOf(t, c.status))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// TestSecretOfOneServer checks that a profile cannot have the token of another cluster sent to a server of its own (C49).
func TestSecretOfOneServer(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string]string
		want string
	}{
		"right":        {map[string]string{"token": "abc\n", "server": server + "/\n"}, ""},
		"other server": {map[string]string{"token": "abc", "server": "https://m2.example"}, `server: is "https://m2.example", and the ClusterProfile has`},
		"no server":    {map[string]string{"token": "abc"}, "server: is missing: it says which server may get the token: set it to " + server},
		"neither":      {map[string]string{"password": "abc"}, "data: has neither token nor kubeconfig"},
		"both":         {map[string]string{"token": "abc", "kubeconfig": "{}"}, "token: is there beside kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			a := access{namespace: "kudo-system", secret: of(c.data)}
			config, err := a.configOf(t.Context(), profileOf(t, offers()))
			switch {
			case c.want == "" && (err != nil || config.BearerToken != "abc"):
				t.Errorf("%v, %v", config, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// TestKubeconfigTaken checks what is taken of a profile and of a kubeconfig, and nothing else is (C49).
func TestKubeconfigTaken(t *testing.T) {
	certificate, key := newPair(t)
	ca, _ := newPair(t)
	own, _ := newPair(t)
	encode := base64.StdEncoding.EncodeToString
	file := kubeconfig("server: '"+server+"', certificate-authority-data: "+encode(own),
		"client-certificate-data: "+encode(certificate)+", client-key-data: "+encode(key))
	a := access{namespace: "kudo-system", secret: of(map[string]string{"kubeconfig": file})}
	profile := profileOf(t, offers("tls-server-name: inner", "proxy-url: 'http://proxy.example:3128'", "disable-compression: true",
		"certificate-authority-data: "+encode(ca)))
	config, err := a.configOf(t.Context(), profile)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := config.Proxy(&http.Request{})
	if err != nil || proxy.String() != "http://proxy.example:3128" {
		t.Errorf("the proxy is %v, %v", proxy, err)
	}
	config.Proxy = nil
	want := &rest.Config{Host: server, DisableCompression: true,
		TLSClientConfig: rest.TLSClientConfig{ServerName: "inner", CAData: own, CertData: certificate, KeyData: key}}
	if config.String() != want.String() || !cmp.Equal(config.TLSClientConfig, want.TLSClientConfig) {
		t.Errorf("the way is %v, want %v", config, want)
	}
}

const providersFile = `{"providers": [
  {"name": "second", "execConfig": {"command": "/bin/second", "apiVersion": "client.authentication.k8s.io/v1", "args": ["-a"], "env": [{"name": "A", "value": "b"}]}},
  {"name": "first", "execConfig": {"command": "first", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"},
   "profileSourcedCLIArgsPolicy": "Ignore", "profileSourcedEnvVarsPolicy": "Ignore"}]}`

// TestProviderChosen checks that the first provider of the file that a profile offers is taken, that the profile's extension reaches the
// program, and that nothing else of the profile does (C48).
func TestProviderChosen(t *testing.T) {
	providers, err := ParseProviders([]byte(providersFile))
	if err != nil {
		t.Fatal(err)
	}
	profile := profileOf(t, `
status:
  accessProviders:
  - {name: kudo-secret, cluster: {server: "https://a"}}
  - {name: first, cluster: {server: "https://a"}}
  - name: second
    cluster:
      server: `+server+`
      extensions:
      - {name: client.authentication.k8s.io/exec, extension: {clusterName: m1}}
      - {name: clusterprofiles.multicluster.x-k8s.io/exec/additional-args, extension: ["--evil"]}
      - {name: clusterprofiles.multicluster.x-k8s.io/exec/additional-envs, extension: {LD_PRELOAD: evil}}
  credentialProviders:
  - {name: second, cluster: {server: "https://deprecated"}}
`)
	a := access{providers: providers, namespace: "kudo-system", secret: of(nil)}
	for range 2 { // a config must not change what the next one is made of
		config, err := a.configOf(t.Context(), profile)
		if err != nil {
			t.Fatal(err)
		}
		want := &clientcmdapi.ExecConfig{
			Command: "/bin/second", APIVersion: "client.authentication.k8s.io/v1", Args: []string{"-a"}, Env: []clientcmdapi.ExecEnvVar{{Name: "A", Value: "b"}},
			ProvideClusterInfo: true, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, StdinUnavailable: true,
			Config: &runtime.Unknown{Raw: []byte(`{"clusterName":"m1"}`), ContentType: runtime.ContentTypeJSON},
		}
		if config.Host != server || !cmp.Equal(config.ExecProvider, want) {
			t.Errorf("%s: %s", config.Host, cmp.Diff(want, config.ExecProvider))
		}
		config.ExecProvider.Config = nil
	}
}

// TestProvidersRefused checks that the file of providers is read strictly (C48).
func TestProvidersRefused(t *testing.T) {
	exec := `"execConfig": {"command": "a", "apiVersion": "client.authentication.k8s.io/v1"}`
	for file, want := range map[string]string{
		`{"providers": [{"name": "a", "profileSourcedCLIArgsPolicy": "Append", ` + exec + `}]}`:            `providers[0].profileSourcedCLIArgsPolicy is "Append"`,
		`{"providers": [{"name": "a", "profileSourcedEnvVarsPolicy": "Replace", ` + exec + `}]}`:           `providers[0].profileSourcedEnvVarsPolicy is "Replace"`,
		`{"providers": [{"name": "a", "profileSourcedEnvVarsPolicy": "AppendIfNotExists", ` + exec + `}]}`: `AppendIfNotExists`,
		`{"providers": [{` + exec + `}]}`:                                                                 "providers[0].name is missing",
		`{"providers": [{"name": "kudo-secret", ` + exec + `}]}`:                                          "providers[0].name: kudo-secret is built in",
		`{"providers": [{"name": "a", ` + exec + `}, {"name": "a", ` + exec + `}]}`:                       "providers[1].name: a is there twice",
		`{"providers": [{"name": "a"}]}`:                                                                  "providers[0].execConfig is missing",
		`{"providers": [{"name": "a", "execConfig": {"apiVersion": "client.authentication.k8s.io/v1"}}]}`: "providers[0].execConfig.command is missing",
		`{"providers": [{"name": "a", "execConfig": {"command": "a"}}]}`:                                  `providers[0].execConfig.apiVersion is ""`,
		`{"providers": [{"name": "a", "execConfig": {"command": "a", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Always"}}]}`: `interactiveMode is "Always"`,
		`{"providers": [{"name": "a", "execConfig": {"command": "a", "apiVersion": "client.authentication.k8s.io/v1", "env": [{"name": "A=B"}]}}]}`:    "env[0] is no variable",
		`{"provider": []}`:                   "unknown field",
		`{"providers": [], "providers": []}`: "duplicate field",
		`{"providers": []} {}`:               "invalid character",
		`{"providers": ` + strings.Repeat(" ", maxProviderFile) + `[]}`: "bytes are more than",
		``: "unexpected end",
	} {
		if _, err := ParseProviders([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: the error is %v, want %q", file, err, want)
		}
	}
}

// FuzzKubeconfig checks that no kubeconfig of a Secret leads to another server, runs a program, reads a file or acts as another user.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig("server: '"+server+"'", "token: abc")))
	f.Add([]byte(kubeconfig("server: '"+server+"', insecure-skip-tls-verify: true", "exec: {command: sh}")))
	f.Add([]byte(kubeconfig("server: '"+server+"', certificate-authority: /a", "tokenFile: /b, as: c, as-groups: [d]")))
	f.Add([]byte(`{"clusters":[{"cluster":{"server":"https://m1.example:6443"}}],"users":[{"user":{"token":"a"}}],"contexts":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := access{namespace: "ns", secret: of(map[string]string{"kubeconfig": string(data)})}
		config, err := a.configOf(t.Context(), profileOf(t, offers()))
		check(t, config, err)
	})
}

// FuzzProfile checks the same of profiles.
func FuzzProfile(f *testing.F) {
	for _, status := range []string{offers(), offers("insecure-skip-tls-verify: true"), offers("proxy-url: 'http://a'"),
		"status: {accessProviders: [{name: first, cluster: {server: 'https://a', certificate-authority: /a}}]}"} {
		text, err := yaml.YAMLToJSON([]byte(status))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	providers, err := ParseProviders([]byte(providersFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		obj := &unstructured.Unstructured{}
		if json.Unmarshal(data, &obj.Object) != nil || obj.Object == nil {
			return
		}
		profile, err := ParseProfile(obj)
		if err != nil {
			return
		}
		a := access{providers: providers, namespace: "ns", secret: of(map[string]string{"token": "abc", "server": server})}
		config, err := a.configOf(t.Context(), profile)
		if err == nil && config.BearerToken != "" && strings.TrimSuffix(config.Host, "/") != server {
			t.Fatalf("the token goes to %s", config.Host)
		}
		check(t, config, err)
	})
}

// check checks that a way to a cluster has nothing that is refused.
func check(t *testing.T, config *rest.Config, err error) {
	t.Helper()
	if err != nil {
		if !strings.Contains(err.Error(), "ClusterProfile") && !strings.Contains(err.Error(), "Secret ns/m1") {
			t.Fatalf("the error %q names no object", err)
		}
		return
	}
	if config.AuthProvider != nil || config.BearerTokenFile != "" || config.Username != "" || config.CAFile != "" || config.CertFile != "" ||
		config.KeyFile != "" || config.Insecure || config.Impersonate.UserName != "" || len(config.Impersonate.Groups) > 0 {
		t.Fatalf("the way has what is refused: %v", config)
	}
	if !strings.HasPrefix(strings.ToLower(config.Host), "https://") {
		t.Fatalf("the way leads to %q", config.Host)
	}
	if e := config.ExecProvider; e != nil && (e.Command != "first" && e.Command != "/bin/second" || len(e.Args) > 1) {
		t.Fatalf("the program is %v", e)
	}
}
