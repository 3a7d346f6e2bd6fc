// Package lifecycle holds packages and states that suites share which follow a package through its life: what they install, and what is
// there in the end.
package lifecycle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// Templates of Application.
const (
	configYAML = `apiVersion: v1
kind: Secret
metadata:
  name: {{ .Name }}-secret
stringData:
  key: {{ .Params.VALUE | quote }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Name }}
`
	ServerYAML = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}
spec:
  replicas: 1
  selector: {matchLabels: {app: {{ .Name }}}}
  template:
    metadata: {labels: {app: {{ .Name }}}}
    spec:
      containers:
      - name: server
        image: nginx
        env: [{name: VALUE, value: {{ .Params.VALUE | quote }}}]
`
	JobYAML = `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Name }}-{{ .PlanName }}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: job
        image: busybox
        command: [sh, -c, "true"]
`
	ExtraYAML = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}-extra
data: {key: {{ .Params.VALUE | quote }}}
`
)

// Application is a package with all task kinds; its plans are deploy, update and upgrade.
func Application(ns, name string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	all := []gen.VersionMod{
		gen.Param("VALUE", "a", ""), gen.Param("EXTRA", "true", ""),
		gen.Template("config.yaml", configYAML), gen.Template("server.yaml", ServerYAML), gen.Template("job.yaml", JobYAML), gen.Template("extra.yaml", ExtraYAML),
		gen.ConfigMaps("one", 3), gen.Apply("config", "config.yaml"), gen.Apply("server", "server.yaml"), gen.Apply("job", "job.yaml"),
		gen.Task("clean", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"job.yaml"}}),
		gen.Task("extra", v1beta1.ToggleTask, v1beta1.TaskSpec{Resources: []string{"extra.yaml"}, Parameter: "EXTRA"}),
		gen.Serial("deploy", "one", "config", "server", "job", "clean", "extra"),
		gen.Serial("update", "one", "config", "server", "extra"),
	}
	ov := gen.Version(ns, name, append(all, mods...)...)
	ov.Spec.Operator.Name = "app"
	return ov
}

// Second is the next version of a package: one ConfigMap has another content, and two are not part of it any more.
func Second(ns string) *v1beta1.OperatorVersion {
	ov := Application(ns, "app-2", gen.ConfigMaps("two", 2), gen.Serial("upgrade", "two", "config", "server", "extra"),
		gen.Serial("deploy", "two", "config", "server", "extra"), gen.Serial("update", "two", "config", "server", "extra"))
	ov.Spec.Version = "0.2.0"
	return ov
}

// Cleaning is a package whose cleanup plan writes and deletes.
func Cleaning(ns string) *v1beta1.OperatorVersion {
	return Application(ns, "app", gen.ConfigMaps("bye", 1),
		gen.Task("leave", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"one-0.yaml", "extra.yaml"}}),
		gen.Serial("cleanup", "bye", "job", "clean", "leave"))
}

// FleetNamespace is the namespace that Fleet makes.
func FleetNamespace(ns string) string { return ns + "w" }

// Fleet is a package whose install plan makes a definition, a ClusterRole, and a server in a namespace of its own.
func Fleet(ns, name string) *v1beta1.OperatorVersion {
	word := FleetNamespace(ns)
	return gen.Version(ns, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1),
		gen.Template("crd.yaml", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.`+word+`.example.com}
spec:
  group: `+word+`.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships, singular: ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`),
		gen.Template("role.yaml", `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+word+`}
rules: [{apiGroups: [`+word+`.example.com], resources: [ships], verbs: [get]}]
`),
		gen.Template("server.yaml", `apiVersion: v1
kind: Namespace
metadata: {name: `+word+`}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: harbor, namespace: `+word+`}
data: {key: value}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: harbor, namespace: `+word+`}
spec:
  replicas: 1
  selector: {matchLabels: {app: harbor}}
  template:
    metadata: {labels: {app: harbor}}
    spec: {containers: [{name: server, image: nginx}]}
`),
		gen.Apply("base", "crd.yaml", "role.yaml"), gen.Apply("server", "server.yaml"),
		gen.Serial("install", "base", "server"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))
}

func harborGroup(ns string) string { return ns + "t.example.com" }

// definitionYAML is a definition of a kind with a size, by kind, in lower case, and group.
const definitionYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[1]s, plural: %[1]ss, singular: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// ServeTarballs serves a tarball of two definitions to each testbed, at /<namespace>/crds.tgz, and takes its time in the
// middle: there is a download for a fault to hit.
func ServeTarballs() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := harborTarball(path.Base(path.Dir(r.URL.Path)))
		half := len(body) / 2
		_, _ = w.Write(body[:half])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(50 * time.Millisecond):
			_, _ = w.Write(body[half:])
		}
	}))
}

// harborTarball is the tarball of a testbed.
func harborTarball(ns string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	files := tar.NewWriter(z)
	for _, kind := range []string{"boat", "raft"} {
		text := fmt.Sprintf(definitionYAML, kind, harborGroup(ns))
		_ = files.WriteHeader(&tar.Header{Name: kind + ".yaml", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		_, _ = files.Write([]byte(text))
	}
	_ = files.Close()
	_ = z.Close()
	return out.Bytes()
}

// Harbored is a package with a CRD tarball of the server at a URL, whose plan makes a custom resource of one of its two kinds.
func Harbored(ns, url string) *v1beta1.OperatorVersion {
	boat := "apiVersion: " + harborGroup(ns) + "/v1\nkind: boat\nmetadata: {name: {{ .Name }}}\nspec: {size: 1}\n"
	return gen.Version(ns, "app", gen.Param("VALUE", "a", ""), gen.Template("boat.yaml", boat), gen.ConfigMaps("cm", 1),
		gen.Apply("boat", "boat.yaml"), gen.Serial("deploy", "boat", "cm"), func(ov *v1beta1.OperatorVersion) {
			ov.Spec.CRDTarball = &v1beta1.CRDTarball{
				CRDDownloadPolicy: v1beta1.DownloadIfNotPresent, // the definitions of an earlier version have no default
				HTTPSource:        &v1beta1.HTTPSource{URL: url + "/" + ns + "/crds.tgz", SHA256: fmt.Sprintf("%x", sha256.Sum256(harborTarball(ns)))},
			}
		})
}

// Raft is a custom resource of a user, of a kind that a tarball brought.
func Raft(ns string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(7)}}}
	obj.SetAPIVersion(harborGroup(ns) + "/v1")
	obj.SetKind("raft")
	obj.SetNamespace(ns)
	obj.SetName("theirs")
	return obj
}

// First is the version of Application that Second follows.
func First(ns string) *v1beta1.OperatorVersion { return Application(ns, "app") }

// Child is what other packages depend on.
func Child(ns string) *v1beta1.OperatorVersion {
	ov := gen.Version(ns, "child-1.0.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ov.Spec.Operator.Name, ov.Spec.Version = "child", "1.0.0"
	return ov
}

// Parent is a package that depends on another.
func Parent(ns string) *v1beta1.OperatorVersion {
	return gen.Version(ns, "parent", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1),
		gen.Task("child", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "child", OperatorVersion: "1.0.0", InstanceName: "kid"}),
		gen.Serial("deploy", "child", "cm"))
}
