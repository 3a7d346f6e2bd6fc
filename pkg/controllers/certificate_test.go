package controllers

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"kudo.dev/kudo/test/apitest"
)

// certificate is a Secret with the files.
func certificate(files map[string]string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	for name, content := range files {
		s.Data[name] = []byte(content)
	}
	return s
}

// filesOf returns the content of the files in a folder.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = string(content)
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("the mode of %s is %o: only the manager reads its key", entry.Name(), mode)
		}
	}
	return out
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestCertFilesWrite checks which files a Secret becomes, and when the webhooks may be served.
func TestCertFilesWrite(t *testing.T) {
	complete := map[string]string{"ca.crt": "ca", "tls.key": "key", "tls.crt": "crt"}
	for _, tc := range []struct {
		reason  string
		secrets []map[string]string
		want    map[string]string
		ready   bool
	}{
		{"the certificate is complete", []map[string]string{complete}, complete, true},
		{"the certificate is renewed", []map[string]string{complete, {"ca.crt": "ca", "tls.key": "key 2", "tls.crt": "crt 2"}},
			map[string]string{"ca.crt": "ca", "tls.key": "key 2", "tls.crt": "crt 2"}, true},
		{"a public authority has no ca.crt", []map[string]string{{"tls.key": "key", "tls.crt": "crt"}}, map[string]string{"tls.key": "key", "tls.crt": "crt"}, true},
		{"the Secret is empty, as init creates it", []map[string]string{{}}, map[string]string{}, false},
		{"an empty certificate is none", []map[string]string{{"ca.crt": "", "tls.key": "", "tls.crt": ""}}, map[string]string{}, false},
		{"the certificate is not there yet", []map[string]string{{"tls.key": "key"}}, map[string]string{"tls.key": "key"}, false},
		{"the key is not there yet: a server with the certificate alone does not start", []map[string]string{{"tls.crt": "crt"}}, map[string]string{"tls.crt": "crt"}, false},
		{"the key follows the certificate", []map[string]string{{"tls.crt": "crt"}, complete}, complete, true},
		{"what the Secret loses stays in use", []map[string]string{complete, {}}, complete, true},
		{"other keys of the Secret are not written, also hostile ones", []map[string]string{{"../escape": "x", "ca.key": "secret", "tls.key": "key"}},
			map[string]string{"tls.key": "key"}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			written := make(chan struct{})
			c := &certFiles{dir: filepath.Join(t.TempDir(), "new", "certs"), written: written}
			for _, files := range tc.secrets {
				if err := c.write(certificate(files)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, filesOf(t, c.dir)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if isClosed(written) != tc.ready {
				t.Errorf("ready %t, want %t", isClosed(written), tc.ready)
			}
			if entries, _ := os.ReadDir(filepath.Dir(c.dir)); len(entries) != 1 {
				t.Errorf("files outside of the folder: %v", entries)
			}
		})
	}
}

// TestCertFilesWriteFails checks that the webhooks are not served while a file is missing, and that the next Secret repairs it.
func TestCertFilesWriteFails(t *testing.T) {
	complete := certificate(map[string]string{"ca.crt": "ca", "tls.key": "key", "tls.crt": "crt"})
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
		written := make(chan struct{})
		c := &certFiles{dir: t.TempDir(), written: written}
		obstacle := filepath.Join(c.dir, name, "file") // a folder that is not empty cannot be replaced by a file
		if err := os.MkdirAll(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.write(complete); err == nil || isClosed(written) {
			t.Errorf("%s cannot be written: error %v, ready %t", name, err, isClosed(written))
		}
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := c.write(complete); err != nil || !isClosed(written) {
			t.Errorf("%s can be written again: error %v, ready %t", name, err, isClosed(written))
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&certFiles{dir: filepath.Join(file, "certs")}).write(complete); err == nil {
		t.Error("a folder that cannot be made is no error")
	}
}

// TestCertFilesStart checks that each change of the Secret is written until the manager stops, and that an error stops nothing.
func TestCertFilesStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informers := &informertest.FakeInformers{Scheme: scheme.Scheme}
		informer, err := informers.FakeInformerFor(t.Context(), &corev1.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		written := make(chan struct{})
		c := &certFiles{cache: informers, dir: filepath.Join(t.TempDir(), "certs"), written: written}
		ctx, stop := context.WithCancel(t.Context())
		var result error
		ended := make(chan struct{})
		go func() {
			result = c.Start(ctx)
			close(ended)
		}()
		synctest.Wait()
		informer.Add(certificate(map[string]string{"tls.key": "key"}))
		if isClosed(written) {
			t.Error("ready without a certificate")
		}
		first, second := certificate(map[string]string{"tls.key": "key", "tls.crt": "crt"}), certificate(map[string]string{"tls.key": "key 2", "tls.crt": "crt 2"})
		informer.Update(first, first)
		informer.Update(first, second)
		informer.Delete(second)
		if got := slices.Sorted(maps.Values(filesOf(t, c.dir))); !isClosed(written) || !slices.Equal(got, []string{"crt 2", "key 2"}) {
			t.Errorf("ready %t, files %v: want those of the last Secret", isClosed(written), got)
		}
		synctest.Wait()
		if isClosed(ended) {
			t.Fatalf("ended before the manager: %v", result)
		}
		stop()
		if <-ended; result != nil {
			t.Errorf("the end of the manager is an error: %v", result)
		}
	})
}

// TestCertFilesOnAllReplicas checks that webhooks and their certificate need no leader: each replica serves them.
func TestCertFilesOnAllReplicas(t *testing.T) {
	if (&certFiles{}).NeedLeaderElection() || (allReplicas{}).NeedLeaderElection() {
		t.Error("only the leader would serve webhooks")
	}
}

// TestCertificateName checks that the certificate of the webhooks is for the host by which the API server reaches them.
func TestCertificateName(t *testing.T) {
	const service = "kudo-controller-manager-service.kudo-system.svc"
	for _, tc := range []struct{ reason, url, want string }{
		{"a Service", "", service},
		{"a manager outside of the cluster", "https://kudo-hub.example.org:9443/validate", "kudo-hub.example.org"},
		{"a manager on this machine", "https://localhost:9443/validate", service},
		{"an address, for which there is no name", "https://10.0.0.1:9443/validate", service},
		{"no URL", "https://a b", service},
	} {
		hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: instanceValidation},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a"}}}
		if tc.url != "" {
			hooks.Webhooks[0].ClientConfig.URL = &tc.url
		}
		if got, err := certificateName(t.Context(), apitest.Start(t, hooks).Client(), service); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}
	if got, err := certificateName(t.Context(), apitest.Start(t).Client(), service); err != nil || got != service {
		t.Errorf("without webhooks: %q, %v", got, err)
	}
}
