package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// volumeClass is a class whose volumes have a size, and can grow.
type volumeClass struct{ name string }

// newVolumeClass makes a class, which goes with the spec.
func newVolumeClass(name string) volumeClass {
	GinkgoHelper()
	apply("default", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: `+name+`}
provisioner: kubernetes.io/no-provisioner
allowVolumeExpansion: true
`)
	DeferCleanup(func() { kubectl("delete", "persistentvolumes,storageclasses", "-l", "class="+name, "--wait=false") })
	kubectl("label", "storageclass", name, "class="+name)
	return volumeClass{name}
}

// volume makes a volume of so many MiB. It is a file system in memory, which the node alone mounts.
func (c volumeClass) volume(size int) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	onNode("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "tmpfs", folder)
	apply("default", fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]s, labels: {class: %[1]s}, annotations: {folder: %[3]s}}
spec:
  capacity: {storage: %[4]dMi}
  accessModes: [ReadWriteOnce]
  storageClassName: %[1]s
  local: {path: %[3]s}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}]}}
`, c.name, filepath.Base(folder), folder, size))
}

// grow grows the volume of a claim to what the claim requests, as the driver of a class does.
func (c volumeClass) grow(ns, claim string, size int) {
	GinkgoHelper()
	wanted := strconv.Itoa(size) + "Mi"
	Eventually(func() string {
		return try("kubectl", "get", "pvc", claim, "-n", ns, "-o", "jsonpath={.spec.resources.requests.storage}")
	}).Should(Equal(wanted))
	name := kubectl("get", "pvc", claim, "-n", ns, "-o", "jsonpath={.spec.volumeName}")
	folder := kubectl("get", "pv", name, "-o", "jsonpath={.metadata.annotations.folder}")
	onNode("mount", "-o", fmt.Sprintf("remount,size=%dm", size), folder)
	capacity := `{"capacity":{"storage":"` + wanted + `"}}`
	kubectl("patch", "pv", name, "--type=merge", "-p", `{"spec":`+capacity+`}`)
	kubectl("patch", "pvc", claim, "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":`+capacity+`}`)
}

// onNode runs a command among the mounts of the node.
func onNode(command ...string) {
	GinkgoHelper()
	args := append([]string{"-m", "-t", strconv.Itoa(processOf("containerd\x00", state))}, command...)
	out, err := startWith(nil, "", "/usr/bin/nsenter", args...)
	Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(command, " "), out)
}

var _ = Describe("Package postgres on full volumes", Label("catalog", "postgres"), func() {
	if !wholeCatalog {
		return
	}
	It("G4, K12, K27: undoes an upgrade, and goes on when the volumes have grown", func() {
		ns := namespace()
		class := newVolumeClass(ns)
		class.volume(400)
		class.volume(200)
		p := installPostgres(ns, 1, []string{"-p", "PASSWORD=s'ecret", "-p", "BACKUP_KEY=battery-staple", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "REPLICAS=1",
			"-p", "STORAGE_CLASS=" + class.name, "-p", "STORAGE_SIZE=400Mi", "-p", "BACKUP_SIZE=200Mi"})
		full := func(pod string, folder string) {
			out := try("kubectl", "exec", pod, "-n", ns, "--", "bash", "-c", "head -c 1G /dev/zero >"+folder+"/filler")
			Expect(out).To(ContainSubstring("No space left on device"))
		}

		By("the repository is full: the upgrade cannot make its backup, and is undone when the repository has grown")
		version := func() string {
			return kubectl("get", "instance", "db", "-n", ns, "-o", "jsonpath={.spec.operatorVersion.name}")
		}
		former := version()
		full("deployment/db-repository", "/repository")
		out, err := start("kubectl", "kudo", "upgrade", nextVersion("postgres"), "--instance", "db", "-n", ns, "--wait")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("No space left on device"))
		p.holds(1)
		p.update("BACKUP_SIZE=400Mi")()
		class.grow(ns, "db-repository", 400)
		Eventually(p.lastRun).WithArguments("grow").Should(HaveSuffix(" COMPLETE"))
		// A rollback would set BACKUP_SIZE back, too, and no volume shrinks.
		Expect(version()).NotTo(Equal(former))
		kubectl("kudo", "upgrade", p.folder(), "--instance", "db", "-n", ns, "--allow-downgrade", "--wait")
		Expect(version()).To(Equal(former))
		p.holds(1)

		By("the volume of the server is full: it takes no writes, and the volume grows")
		full("db-0", "/data")
		Eventually(func() string {
			return try("kubectl", "exec", "client", "-n", ns, "--", "psql", "-qAtc", "CREATE TABLE more AS SELECT generate_series(1, 1000000)")
		}).
			Should(ContainSubstring("No space left on device"))
		p.update("STORAGE_SIZE=800Mi")()
		class.grow(ns, "data-db-0", 800)
		Eventually(p.lastRun).WithArguments("grow").Should(HaveSuffix(" COMPLETE"))
		p.holds(1)
	})
})

var _ = Describe("A package whose volumes grow", Label("catalog"), func() {
	if !wholeCatalog {
		return
	}
	for _, tc := range []struct {
		pack    string
		members int
		install func(flags ...string) *database
	}{
		{"postgres", 3, func(flags ...string) *database { return &newPostgres(flags...).database }},
		{"mariadb", 1, func(flags ...string) *database { return &newMariadb(flags...).database }},
		{"redis", 3, func(flags ...string) *database { return &newRedis(flags...).database }},
		{"etcd", 3, func(flags ...string) *database { return &newEtcd(flags...).database }},
		{"rabbitmq", 3, func(flags ...string) *database { return &newRabbitmq(flags...).database }},
	} {
		It("G4, K12: "+tc.pack+" keeps every acknowledged write", Label(tc.pack), func() {
			class := newVolumeClass("grow-" + tc.pack)
			for range tc.members + 1 { // postgres has one for its backups
				class.volume(1024)
			}
			d := tc.install("-p", "STORAGE_CLASS="+class.name)
			d.plan("`grow`", tc.members, func() {
				d.update("STORAGE_SIZE=1536Mi")()
				for n := range tc.members {
					class.grow(d.ns, "data-db-"+strconv.Itoa(n), 1536)
				}
				Eventually(d.lastRun).WithArguments("grow").Should(HaveSuffix(" COMPLETE"))
			})
			d.compareReadme()
		})
	}
})
