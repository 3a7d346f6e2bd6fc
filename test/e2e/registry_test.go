package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/bcrypt"
)

// registryConfig is that of Debian's registry, with TLS and a password.
const registryConfig = `version: 0.1
storage: {filesystem: {rootdirectory: /tmp/registry}}
http: {addr: ":8443", tls: {certificate: /tls/tls.crt, key: /tls/tls.key}}
auth: {htpasswd: {realm: kudo, path: /files/htpasswd}}
`

var _ = It("Packages are pushed to, signed in and installed from a registry of Debian with TLS and a password", Label("registry", "S8", "S9", "S13", "S15"), func() {
	ns, folder := namespace(), GinkgoT().TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte("s3cret"), bcrypt.MinCost)
	Expect(err).NotTo(HaveOccurred())
	certificate := serve(ns, "registry", "registry:2.8", "[serve, /files/config.yml]", map[string][]byte{
		"config.yml": []byte(registryConfig), "htpasswd": append([]byte("ann:"), hash...)})
	host := forward(ns, "pod/registry", "8443")
	write := func(name string, data []byte) string {
		file := filepath.Join(folder, name)
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
		return file
	}
	login := func(password string) string {
		text, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("ann:" + password))}}})
		Expect(err).NotTo(HaveOccurred())
		return write(password+".json", text)
	}
	flags := []string{"--registry-ca", write("ca.pem", certificate), "--registry-config", login("s3cret")}
	kudo := func(args ...string) string {
		GinkgoHelper()
		return kubectl(append(append([]string{"kudo"}, args...), flags...)...)
	}
	key := filepath.Join(folder, "release.pem")
	_, err = startWith(os.Environ(), folder, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
	Expect(err).NotTo(HaveOccurred())
	_, err = startWith(os.Environ(), folder, "openssl", "pkey", "-in", key, "-pubout", "-out", key+".pub")
	Expect(err).NotTo(HaveOccurred())

	hello := filepath.Join(root, "operators", "catalog", "hello", "operator")
	pushed := strings.TrimSpace(kudo("package", "push", hello, "oci://"+host+"/kudo"))
	Expect(pushed).To(MatchRegexp(`^oci://` + host + `/kudo/hello:1\.27\.4_1\.0\.0@sha256:[0-9a-f]{64}$`))
	Expect(kudo("package", "sign", pushed, "--key", key)).To(ContainSubstring("signed by key"))
	Expect(kudo("package", "verify", "oci://"+host+"/kudo/hello:1.27.4_1.0.0", "--key", key+".pub")).To(ContainSubstring("is signed by key"))
	Expect(kudo("package", "copy", pushed, "layout:"+folder+"/carried")).To(HaveSuffix(pushed[strings.Index(pushed, "@"):] + "\n"))

	refused, err := start("kubectl", "kudo", "package", "pull", pushed, "-d", folder, flags[0], flags[1], "--registry-config", login("wrong"))
	Expect(err).To(HaveOccurred())
	Expect(refused).To(ContainSubstring("401"))

	kudo("install", "oci://"+host+"/kudo/hello", "--operator-version", "^1.0", "--instance", "web", "-n", ns, "--create-service-account", "-y", "--wait")
	Expect(kubectl("kudo", "package", "verify", "hello-1.27.4-1.0.0", "--in-cluster", "-n", ns, "--key", key+".pub")).To(ContainSubstring("is signed by key"))
	Expect(kubectl("get", "--raw", "/api/v1/namespaces/"+ns+"/services/web:http/proxy/")).To(ContainSubstring("<h1>"))
})

// forward forwards a free port of this machine to one of a pod until the spec ends, and returns localhost with the port.
func forward(ns, pod, port string) string {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(root, "bin", "kubectl"), "port-forward", "-n", ns, pod, ":"+port)
	cmd.Env, cmd.Stderr = append(os.Environ(), "KUBECONFIG="+kubeconfig), GinkgoWriter
	line := startServer(cmd, cmd.StdoutPipe)
	found := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(line)
	Expect(found).NotTo(BeNil(), line)
	return "localhost:" + found[1]
}
