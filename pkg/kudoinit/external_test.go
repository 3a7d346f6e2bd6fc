package kudoinit

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestKubeconfigOf: programs that are started work on the cluster that the flags name, as the user that they name.
func TestKubeconfigOf(t *testing.T) {
	config := &rest.Config{
		Host: "https://staging.example.com:6443", Username: "anna", Password: "secret",
		Impersonate:     rest.ImpersonationConfig{UserName: "limited", Groups: []string{"readers"}, Extra: map[string][]string{"a": {"b"}}},
		TLSClientConfig: rest.TLSClientConfig{ServerName: "kubernetes", CAData: []byte("ca")},
		Proxy:           httpProxy("http://proxy.example.com:3128"),
	}
	text, err := KubeconfigOf(config, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("http://proxy.example.com:3128", text.Clusters["kudo"].ProxyURL); diff != "" {
		t.Error(diff)
	}
	loader := clientcmd.NewDefaultClientConfig(*text, nil)
	got, err := loader.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Proxy, got.Proxy = nil, nil
	if diff := cmp.Diff(config.String(), got.String()); diff != "" {
		t.Errorf("another cluster or user: %s", diff)
	}
	if got.Password != config.Password {
		t.Error("another password")
	}
	if namespace, _, err := loader.Namespace(); namespace != "team-a" || err != nil {
		t.Errorf("namespace %q, %v", namespace, err)
	}
}

func httpProxy(text string) func(*http.Request) (*url.URL, error) {
	return func(*http.Request) (*url.URL, error) { return url.Parse(text) }
}
