package local

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/test/env"
)

// Another user of the machine can connect to every port, and read what file modes let that user read.
var _ = Describe("Other users of the machine", Ordered, func() {
	var l *instance
	BeforeAll(func() {
		l = newInstance(GinkgoTB(), GinkgoTB().TempDir(), "users")
		l.run("up")
	})

	It("get no answer from a port", func() { checkPorts(GinkgoTB(), l) })
	It("get no address from other machines", func() { checkLoopback(GinkgoTB(), l.pids()) })
	It("can read no file with a key", func() { checkModes(GinkgoTB(), filepath.Join(l.state, l.name)) })
})

// checkPorts checks that each port wants a certificate of its own.
func checkPorts(t testing.TB, l *instance) {
	t.Helper()
	ports := l.ports()
	pki := filepath.Join(l.state, l.name, "pki")
	admin := must(tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key")))(t)
	stranger := &tls.Config{InsecureSkipVerify: true}
	clusterUser := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{admin}}

	tests := []struct {
		reason, url string
		config      *tls.Config
	}{
		{"the keys of etcd need a certificate", "https://etcd/version", stranger},
		{"a certificate of the cluster is none of etcd's", "https://etcd/version", clusterUser},
		{"etcd's health needs one, too", "https://etcd/health", stranger},
		{"etcd does not speak plain text", "http://etcd/version", stranger},
		{"nor to peers", "http://etcd-peer/raft", stranger},
		{"peers need a certificate", "https://etcd-peer/members", stranger},
		{"a certificate of the cluster is no peer's", "https://etcd-peer/members", clusterUser},
		{"the API server answers to who is known", "https://kube-apiserver/api/v1/namespaces", stranger},
		{"the controller manager shows its metrics to who may", "https://kube-controller-manager/metrics", stranger},
		{"the scheduler, too", "https://kube-scheduler/metrics", stranger},
		{"kwok shows no profiles", "http://kwok/debug/pprof/heap", stranger},
		{"the logs of pods are for the API server", "https://pod-logs/containerLogs/default/pod/container", stranger},
		{"a certificate of the cluster does not open them", "https://pod-logs/containerLogs/default/pod/container", clusterUser},
		{"kwok has no logs by itself", "http://kwok/containerLogs/default/pod/container", stranger},
		{"kwok has no exec", "http://kwok/exec/default/pod/container", stranger},
	}
	for _, tc := range tests {
		scheme, rest, _ := strings.Cut(tc.url, "://")
		use, path, _ := strings.Cut(rest, "/")
		if ports[use] == 0 {
			t.Fatalf("%s has no port: %v", use, ports)
		}
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: tc.config, DisableKeepAlives: true}}
		answer, err := client.Get(fmt.Sprintf("%s://127.0.0.1:%d/%s", scheme, ports[use], path))
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		answer.Body.Close()
		if answer.StatusCode < 300 {
			t.Errorf("%s: %s answers %s: %s", tc.reason, tc.url, answer.Status, body)
		}
	}
	if _, found := ports["etcd-metrics"]; found {
		t.Error("etcd has a port for metrics in plain text")
	}
}

// checkLoopback checks that no process of the instance listens on an address that other machines reach.
func checkLoopback(t testing.TB, pids map[string]int) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	listeners := map[string]string{} // address by inode of the socket
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(data), "\n") {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				listeners[f[9]] = f[1]
			}
		}
	}
	for name, pid := range pids {
		found := 0
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		for _, f := range files {
			target, _ := os.Readlink(f)
			inode := strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")
			if address, ok := listeners[inode]; ok {
				found++
				if !strings.HasPrefix(address, "0100007F:") { // 127.0.0.1, in the byte order of the machine
					t.Errorf("%s listens on %s, which is not 127.0.0.1", name, address)
				}
			}
		}
		if found == 0 {
			t.Errorf("found no listener of %s: the test is blind", name)
		}
	}
}

// checkModes checks that other users can read neither the folder nor, by its own mode, any file with a credential.
func checkModes(t testing.TB, dir string) {
	secrets := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		secret := strings.HasSuffix(path, ".key") || strings.Contains(path, "kubeconfig")
		if entry.IsDir() {
			secret = path == dir || entry.Name() == "etcd" || entry.Name() == "pki"
		}
		if secret {
			secrets++
		}
		if secret && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || secrets < 8 {
		t.Errorf("looked at %d files: %v", secrets, err)
	}
}

var _ = It("comes up with the data of a version whose etcd spoke plain text, and took certificates of the cluster", func() {
	t := GinkgoTB()
	l := newInstance(t, t.TempDir(), "plain")
	l.run("up", "--profile", "api")
	l.run("down")
	dir, ports := filepath.Join(l.state, l.name), l.ports()
	for _, folder := range []string{"etcd", "pki/etcd", "pki/pod-logs"} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writePlain(t, dir, ports, "/registry/namespaces/kept", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kept","uid":"7a7a0e6e-52b5-4d3a-9d3c-0a4f8ac2f1aa"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`)

	l.run("up")
	if _, err := l.client().CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("the data of before is lost: %v", err)
	}
	makeNamespace(t, l.client(), "new")
	checkModes(t, dir)
	l.run("down")
	l.run("up")
	for _, name := range []string{"kept", "new"} {
		if _, err := l.client().CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("lost after another start: %v", err)
		}
	}
})

// writePlain runs etcd as earlier versions did, without TLS at all, and writes one key.
func writePlain(t testing.TB, dir string, ports map[string]int, key, value string) {
	t.Helper()
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports["etcd"]), fmt.Sprintf("http://127.0.0.1:%d", ports["etcd-peer"])
	name := filepath.Base(dir)
	cmd := exec.Command(program(), "component", "etcd", "--name="+name, "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster="+name+"="+peer, "--log-level=warn")
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // its code says that it was interrupted
	}()
	encode := base64.StdEncoding.EncodeToString
	put := fmt.Sprintf(`{"key":%q,"value":%q}`, encode([]byte(key)), encode([]byte(value)))
	env.Eventually(t, "a key that is written", func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, client+"/v3/kv/put", strings.NewReader(put))
		if err != nil {
			return err.Error()
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return answer.Status
		}
		return ""
	})
}
