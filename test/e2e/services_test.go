package e2e

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/cmd/explore-sample/sample"
	"kudo.dev/kudo/test/gen"
)

// tlsServer is a pod with a certificate, behind a Service of its name.
const tlsServer = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: server
    image: %[2]s
    args: %[3]s
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
    volumeMounts: [{name: tls, mountPath: /tls}, {name: files, mountPath: /files}]
  volumes:
  - {name: tls, secret: {secretName: %[1]s}}
  - {name: files, configMap: {name: %[1]s}}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 443, targetPort: 8443}]}
`

// serve starts a server, and returns the certificate that clients have to trust.
func serve(ns, name, image, args string, files map[string][]byte) []byte {
	GinkgoHelper()
	certificate, bundle, err := sample.SelfSigned([]string{name + "." + ns + ".svc", "localhost"}, time.Now())
	Expect(err).NotTo(HaveOccurred())
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	folder := GinkgoT().TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(folder, name)
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
		return file
	}
	kubectl("create", "secret", "tls", name, "-n", ns, "--cert", write("tls.crt", bundle), "--key", write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	command := []string{"create", "configmap", name, "-n", ns}
	for file, data := range files {
		command = append(command, "--from-file="+write(file, data))
	}
	kubectl(command...)
	apply(ns, fmt.Sprintf(tlsServer, name, image, args))
	kubectl("wait", "--for=condition=Ready", "pod/"+name, "-n", ns, "--timeout", limit.String())
	return bundle
}

// fileServer serves /files by HTTPS.
const fileServer = `import functools, http.server, ssl
server = http.server.HTTPServer(("", 8443), functools.partial(http.server.SimpleHTTPRequestHandler, directory="/files"))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
`

// crd is a CustomResourceDefinition of a group.
const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobs.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Job, listKind: JobList, plural: jobs, singular: job}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// versionWithCRDs is an OperatorVersion whose CRDs come from a server, and an Instance of it.
const versionWithCRDs = `apiVersion: kudo.dev/v1beta1
kind: Operator
metadata: {name: jobs}
---
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: %[1]s}
spec:
  operator: {name: jobs, kind: Operator}
  version: 0.1.0
  crdTarball:
    crdDownloadPolicy: Always
    httpSource: {url: "https://%[2]s/%[1]s.tgz"%[3]s}
  plans:
    deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: main, tasks: [main]}]}]}
  tasks: [{name: main, kind: Apply, spec: {resources: [main.yaml]}}]
  templates: {main.yaml: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\n"}
---
apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: %[1]s}
spec: {operatorVersion: {name: %[1]s}}
`

var _ = Describe("What the manager asks in the cluster", func() {
	It("fetches CRD tarballs by HTTPS, with a caBundle or the authorities of the system", Serial, Label("https-tarballs"), func() {
		ns := namespace()
		one, two := "one."+ns+".example.org", "two."+ns+".example.org"
		bundle := serve(ns, "files", "python:3.13", "[/files/serve.py]", map[string][]byte{"serve.py": []byte(fileServer), "one.tgz": gen.Tarball(fmt.Sprintf(crd, one)), "two.tgz": gen.Tarball(fmt.Sprintf(crd, two))})
		host := "files." + ns + ".svc"
		message := func(name string) func() string {
			return func() string {
				return try("kubectl", "get", "instance", name, "-n", ns, "-o", "jsonpath={.status.aggregatedStatus} {.status.conditions}")
			}
		}
		DeferCleanup(func() {
			kubectl("delete", "instances", "--all", "-n", ns)
			kubectl("kudo", "init", "--upgrade", "--wait", "--crd-allowed-hosts=", "--kudo-image", managerImage)
		})
		account(ns)

		By("refusing an address of the cluster that no administrator has named")
		apply(ns, fmt.Sprintf(versionWithCRDs, "one", host, ""))
		Eventually(message("one")).Should(ContainSubstring(host), "the refusal names the address")
		Expect(message("one")()).To(ContainSubstring("is refused"))
		Expect(message("one")()).To(ContainSubstring("crd-allowed-hosts"))
		kubectl("kudo", "init", "--upgrade", "--crd-allowed-hosts", host, "--kudo-image", managerImage)
		Eventually(message("one")).Should(ContainSubstring("unknown authority"), "without a caBundle")

		By("trusting the caBundle")
		apply(ns, fmt.Sprintf(versionWithCRDs, "one", host, ", caBundle: "+base64.StdEncoding.EncodeToString(bundle)))
		Eventually(message("one")).Should(ContainSubstring("COMPLETE"), "with a caBundle")
		kubectl("get", "crd", "jobs."+one)

		By("trusting the authorities of the system")
		kubectl("create", "configmap", "authority", "-n", "kudo-system", "--from-literal=ca.crt="+string(bundle))
		DeferCleanup(func() {
			kubectl("rollout", "undo", "deployment/kudo-controller-manager", "-n", "kudo-system")
			kubectl("rollout", "status", "deployment/kudo-controller-manager", "-n", "kudo-system", "--timeout", limit.String())
			kubectl("delete", "configmap", "authority", "-n", "kudo-system")
		})
		kubectl("patch", "deployment", "kudo-controller-manager", "-n", "kudo-system", "--type=json", "-p", `[
			{"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "authority", "configMap": {"name": "authority"}}},
			{"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts/-", "value": {"name": "authority", "mountPath": "/etc/ssl/certs/authority.crt", "subPath": "ca.crt"}}]`)
		kubectl("rollout", "status", "deployment/kudo-controller-manager", "-n", "kudo-system", "--timeout", limit.String())
		apply(ns, fmt.Sprintf(versionWithCRDs, "two", host, ""))
		Eventually(message("two")).Should(ContainSubstring("COMPLETE"), "with the authorities of the system")
		kubectl("get", "crd", "jobs."+two)
	})

	It("asks an explore webhook behind a Service", Label("explore-webhook"), func() {
		ns := namespace()
		bundle := serve(ns, "explore", "example.org/kudo/explore-sample:dev", `["--listen=:8443", "--certificate=/tls/tls.crt", "--key=/tls/tls.key"]`, nil)
		kubectl("apply", "-f", filepath.Join(root, "cmd", "explore-sample", "sample", "crds.yaml"))
		kubectl("wait", "--for=condition=Established", "crd/foos.foo.example.com", "--timeout", limit.String())
		config := sample.Webhooks("", bundle)
		config.Name = ns
		for n := range config.Webhooks {
			hook := &config.Webhooks[n]
			hook.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "explore", Path: hook.ClientConfig.URL, Port: ptr.To[int32](443)}
			hook.ClientConfig.URL = nil
		}
		text, err := yaml.Marshal(config)
		Expect(err).NotTo(HaveOccurred())
		apply(ns, string(text))
		DeferCleanup(func() { kubectl("delete", "resourceexploringwebhookconfiguration", ns) })

		folder := filepath.Join(root, "test", "e2e", "testdata", "foo")
		_, err = start("kubectl", "kudo", "install", folder, "--instance", "f", "-n", ns, "--create-service-account", "-y")
		Expect(err).NotTo(HaveOccurred())
		status := func() string { return try("kubectl", "kudo", "plan", "status", "--instance", "f", "-n", ns) }
		Eventually(status).Should(ContainSubstring("its controller has not seen the last change yet"), "the webhook's words")
		kubectl("patch", "foo", "f", "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Ready","observedGeneration":9}}`)
		kubectl("kudo", "plan", "wait", "--instance", "f", "-n", ns)
	})
})

// account lets plans in a namespace write ConfigMaps.
func account(ns string) {
	GinkgoHelper()
	kubectl("create", "serviceaccount", "kudo", "-n", ns)
	kubectl("create", "role", "kudo", "-n", ns, "--verb=get,list,watch,create,patch,delete", "--resource=configmaps")
	kubectl("create", "rolebinding", "kudo", "-n", ns, "--role=kudo", "--serviceaccount="+ns+":kudo")
	kubectl("create", "rolebinding", "kudo-run-as", "-n", ns, "--clusterrole=kudo-run-as", "--serviceaccount=kudo-system:kudo-manager")
}
