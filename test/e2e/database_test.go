package e2e

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// wholeCatalog reports whether all that the packages of the catalog do is tried, as by make catalog-e2e, or a short form.
var wholeCatalog = os.Getenv("KUDO_CATALOG") == "all"

// database is Instance db of a package that keeps data, with a client: pod client, whose four processes write numbers, each in a connection of its
// own, while file /tmp/on exists. They note in /tmp/acks-N what was acknowledged, and in /tmp/idle-N that they do not write.
type database struct {
	// pack is the name of the package, whose Instance is in namespace ns.
	pack, ns string
	// flags are those of an installation on the node of the suite.
	flags []string
	// client is the manifest of the client.
	client string
	// empty removes what the client has written, and stored returns it, each write as WRITER:NUMBER.
	empty  func()
	stored func() []string
	// digest is that of what was written first.
	digest string
	// holds checks that what was written first is as it was, that so many members have it, and that one can write.
	holds func(members int)
	// data is the word of the table for what was written first, and count its words for the number of members. count is nil for a package with one
	// member.
	data  string
	count func(members int) string
	// findLeader returns the name of the pod that takes writes. While there is none, the result is no name of a pod.
	findLeader func() string
	// losesWithLeader is set if the members do not wait for one another, so that a leader that dies takes some acknowledged writes with it.
	losesWithLeader bool
	// addYounger writes what is younger than the backups, and hasYounger reports whether it is there.
	addYounger func()
	hasYounger func() bool
	// restoresInPlace is set if a restore does not stop the members and rename the former data.
	restoresInPlace bool
	// rows are those of the table of what was tried.
	rows []string
}

// write is a transaction that a client was told to be committed.
type write struct {
	writer, number string
	at             time.Time
}

// clientPod returns the manifest of a client, as the Pod Security level restricted demands it. write is a command of the shell that writes $number of
// $writer and succeeds if that was acknowledged; env are the variables that the commands of the client need, in YAML.
func clientPod(image, write, env string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: client
      image: localhost/catalog/` + image + `
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      command: [/bin/bash, -c]
      args:
        - |
          for writer in 1 2 3 4; do
            (
              number=0
              while :; do
                if [[ ! -e /tmp/on ]]; then touch /tmp/idle-$writer; sleep 0.1; continue; fi
                number=$((number + 1))
                if ` + write + ` 2>/dev/null; then
                  echo "$writer $number $EPOCHREALTIME" >>/tmp/acks-$writer
                fi
              done
            ) &
          done
          wait
      env:` + env + `
      volumeMounts: [{name: ca, mountPath: /ca}]
  volumes: [{name: ca, configMap: {name: db-ca, optional: true}}]
`
}

// connect makes the client anew, so that it has the password of today.
func (d *database) connect() {
	GinkgoHelper()
	kubectl("delete", "pod", "client", "-n", d.ns, "--ignore-not-found")
	apply(d.ns, d.client)
	kubectl("wait", "--for=condition=Ready", "pod/client", "-n", d.ns, "--timeout=60s")
}

// exec runs a script in the client.
func (d *database) exec(script string) string {
	GinkgoHelper()
	return kubectl("exec", "client", "-n", d.ns, "--", "bash", "-euc", script)
}

// during has the client write while something is done, until it is acknowledged writes again, and returns the writes that were acknowledged and are
// lost, and the longest time between two that were acknowledged.
func (d *database) during(do func()) (lost []write, gap time.Duration) {
	GinkgoHelper()
	d.startWriting()
	do()
	acknowledged := d.stopWriting()
	for n := range acknowledged[1:] {
		gap = max(gap, acknowledged[n+1].at.Sub(acknowledged[n].at))
	}
	return d.lost(acknowledged), gap
}

// plan runs a plan, or causes a fault, while the client writes: no write that was acknowledged is lost, and what was written first is as it was.
func (d *database) plan(what string, members int, run func()) {
	GinkgoHelper()
	lost, gap := d.during(run)
	Expect(lost).To(BeEmpty(), "acknowledged writes that are lost: %s", what)
	d.holds(members)
	d.row(what, d.compared(members, "every acknowledged write"))
	GinkgoWriter.Printf("%s: no write was acknowledged for %s\n", what, gap.Round(time.Millisecond))
}

// startWriting has the client write.
func (d *database) startWriting() {
	GinkgoHelper()
	d.empty()
	d.exec("rm -f /tmp/acks-* /tmp/idle-*; touch /tmp/on")
	Eventually(d.acknowledged).ShouldNot(BeEmpty())
}

// awaitWrite waits until the client is acknowledged another write.
func (d *database) awaitWrite() {
	GinkgoHelper()
	begun := time.Now()
	Eventually(func() bool {
		return slices.ContainsFunc(d.acknowledged(), func(w write) bool { return w.at.After(begun) })
	}).Should(BeTrue(), "writes are acknowledged again")
}

// stopWriting waits until the client is acknowledged another write, has it write no more, and returns all writes that were acknowledged.
func (d *database) stopWriting() []write {
	GinkgoHelper()
	d.awaitWrite()
	d.exec("rm /tmp/on; until [[ $(ls /tmp/idle-* 2>/dev/null | wc -l) == 4 ]]; do sleep 0.1; done")
	return d.acknowledged()
}

// lost returns those of the writes that the database has not. None may be there twice.
func (d *database) lost(acknowledged []write) (lost []write) {
	GinkgoHelper()
	stored := map[string]int{}
	for _, line := range d.stored() {
		stored[line]++
	}
	for number, times := range stored {
		Expect(times).To(Equal(1), "write %s is there twice", number)
	}
	return slices.DeleteFunc(acknowledged, func(w write) bool { return stored[w.writer+":"+w.number] > 0 })
}

// acknowledged returns what the client was told to be committed, in the order of time.
func (d *database) acknowledged() (out []write) {
	for _, line := range strings.Split(try("kubectl", "exec", "client", "-n", d.ns, "--", "bash", "-c", "cat /tmp/acks-* 2>/dev/null; true"), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 {
			if seconds, err := strconv.ParseFloat(fields[2], 64); err == nil {
				out = append(out, write{fields[0], fields[1], time.UnixMicro(int64(seconds * 1e6))})
			}
		}
	}
	slices.SortFunc(out, func(a, b write) int { return a.at.Compare(b.at) })
	return out
}

// row notes what was tried.
func (d *database) row(what, compared string) {
	d.rows = append(d.rows, "| "+what+" | "+compared+" |")
	GinkgoWriter.Printf("| %s | %s |\n", what, compared)
}

// compared returns the second column of a row of the table: what holds compares, and what others name.
func (d *database) compared(members int, others ...string) string {
	parts := append([]string{d.data}, others...)
	if d.count != nil {
		parts = append(parts, d.count(members))
	}
	return strings.Join(parts, "; ")
}

// change sets parameters, and waits for the plan that this starts.
func (d *database) change(parameters ...string) {
	GinkgoHelper()
	args := []string{"kudo", "update", "--instance", "db", "-n", d.ns, "--wait"}
	for _, parameter := range parameters {
		args = append(args, "-p", parameter)
	}
	kubectl(args...)
}

// trigger runs a plan, and waits for it.
func (d *database) trigger(plan string) {
	GinkgoHelper()
	kubectl("kudo", "plan", "trigger", "--name", plan, "--instance", "db", "-n", d.ns, "--wait")
}

// install installs the Instance, and connects the client.
func (d *database) install() {
	GinkgoHelper()
	install(d.ns, "db", d.folder(), d.flags...)
	d.connect()
}

// folder is that of the package.
func (d *database) folder() string { return filepath.Join(catalog, d.pack, "operator") }

// pods identifies the processes of the servers.
func (d *database) pods() string {
	GinkgoHelper()
	return kubectl("get", "pods", "-n", d.ns, "-l", "app.kubernetes.io/component=server", "-o",
		"jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{end}")
}

// refuse triggers a plan, which fails with a text and replaces no pod.
func (d *database) refuse(plan, text string) {
	GinkgoHelper()
	before := d.pods()
	out, err := start("kubectl", "kudo", "plan", "trigger", "--name", plan, "--instance", "db", "-n", d.ns, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring(text))
	Expect(d.pods()).To(Equal(before))
}

// restore calls damage, which deletes data, and restores the backup named good. Then it undoes the restore, and damaged checks that the data
// are as damage left them, also after plans that were canceled and repeated. Before, a restore of a backup that does not exist fails and changes nothing.
func (d *database) restore(members int, damage, damaged func()) {
	GinkgoHelper()
	damage()
	d.addYounger()
	d.change("RESTORE_NAME=missing")
	d.refuse("restore", "there is no backup named missing: good are there. Nothing was changed")
	Expect(d.hasYounger()).To(BeTrue())
	damaged()
	d.row("`restore` of a backup that does not exist", "it fails; the pods are the same")
	d.change("RESTORE_NAME=good")
	if !d.restoresInPlace {
		d.repeat("restore")
		Expect(d.hasYounger()).To(BeFalse(), "what is younger than the backup")
		d.holds(members)
		d.repeat("restore-undo")
		Expect(d.hasYounger()).To(BeTrue())
		damaged()
		d.row("`restore` and `restore-undo`, each canceled after its swap, and repeated", "what was there before the first attempt")
	}
	d.trigger("restore")
	Expect(d.hasYounger()).To(BeFalse(), "what is younger than the backup")
	d.holds(members)
	d.row("`restore` of a backup by its name, after a loss", d.compared(members, "nothing younger"))
	if !wholeCatalog {
		return
	}
	d.trigger("restore-undo")
	Expect(d.hasYounger()).To(BeTrue())
	damaged()
	d.row("`restore-undo`", "what was there before the restore")
	d.trigger("restore")
	d.holds(members)
	d.trigger("restore-done")
	d.holds(members)
	d.row("`restore-done`", d.compared(members))
}

// repeat begins a plan that swaps data, cancels it when it has swapped them, and runs it again.
func (d *database) repeat(plan string) {
	GinkgoHelper()
	before := d.lastRun(plan)
	d.begin(plan)()
	Eventually(d.lastRun).WithArguments(plan).ShouldNot(Equal(before))
	Eventually(func() string {
		return try("kubectl", "get", "instance", "db", "-n", d.ns, "-o", "jsonpath={.status.planStatus."+plan+".phases[?(@.name=='swap')].status}")
	}).WithTimeout(10*time.Minute).Should(Equal("COMPLETE"), "the data are swapped")
	kubectl("kudo", "plan", "cancel", "--instance", "db", "-n", d.ns)
	Eventually(d.lastRun).WithArguments(plan).Should(HaveSuffix(" FATAL_ERROR"))
	kubectl("kudo", "plan", "retry", "--instance", "db", "-n", d.ns, "--wait")
}

// changePassword sets a new password and then the former one. After each change, the client uses the password of the Secret.
func (d *database) changePassword(members int) {
	GinkgoHelper()
	for _, password := range []string{`n'ew "1\ x`, "s'ecret"} {
		d.change("PASSWORD=" + password)
		d.connect()
		d.holds(members)
	}
	d.row("`password`", d.compared(members, "by the new one"))
}

// upgrade upgrades the package. In the whole form, it first starts an upgrade whose image does not exist, and rolls that back.
func (d *database) upgrade(members int) {
	GinkgoHelper()
	next := nextVersion(d.pack)
	if wholeCatalog {
		d.plan("`upgrade` to an image that does not exist, and `rollback`", members, func() {
			kubectl("kudo", "upgrade", next, "--instance", "db", "-n", d.ns, "-p", "IMAGE_TAG=missing")
			Eventually(func() string { return try("kubectl", "get", "pods", "-n", d.ns) }).Should(MatchRegexp("ErrImagePull|ImagePullBackOff"))
			kubectl("kudo", "rollback", "--instance", "db", "-n", d.ns, "--wait")
		})
	}
	d.plan("`upgrade`", members, func() { kubectl("kudo", "upgrade", next, "--instance", "db", "-n", d.ns, "--wait") })
}

// keep uninstalls the Instance, checks that the output names the claims and the given objects as kept, and installs the Instance again.
func (d *database) keep(members int, names ...string) {
	GinkgoHelper()
	out := kubectl("kudo", "uninstall", "--instance", "db", "-n", d.ns, "--wait")
	for n := range members {
		names = append(names, "data-db-"+strconv.Itoa(n))
	}
	for _, name := range names {
		Expect(out).To(MatchRegexp(`(?m)` + name + " stays"))
	}
	d.install()
	d.holds(members)
	d.row("uninstall, and `deploy` of the same name", d.compared(members, "what stays is printed"))
}

// compareReadme reports the table of what was tried, and checks that the README of the package has its rows.
func (d *database) compareReadme() {
	GinkgoHelper()
	AddReportEntry("What was tried with data", strings.Join(d.rows, "\n"))
	readme, err := os.ReadFile(filepath.Join(catalog, d.pack, "README.md"))
	Expect(err).NotTo(HaveOccurred())
	for _, row := range d.rows {
		Expect(string(readme)).To(ContainSubstring(row), "the README of the package lacks a row of the table")
	}
}

// storeFlags set the parameters of the install plan that makes the backup store. All OperatorVersions must set the same values, since they share the
// store.
var storeFlags = []string{"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog", "--install-parameter", "STORE_SIZE=1Gi"}

// useStore installs the backup store by the install plan of a package, and gives it a user. It returns the flags by which an Instance uses it. The
// OperatorVersions of the namespace go with the spec.
func useStore(ns, name, user string) []string {
	GinkgoHelper()
	kubectl(slices.Concat([]string{"kudo", "install", filepath.Join(catalog, name, "operator"), "--skip-instance", "-n", ns, "-y", "--wait"}, storeFlags)...)
	DeferCleanup(uninstallVersions, ns)
	store := func(container string, command ...string) string {
		return kubectl(append([]string{"exec", "deployment/backup-store", "-n", "backup-store", "-c", container, "--"}, command...)...)
	}
	made := false
	for container, secret := range map[string]string{"append": "backup-users", "expire": "backup-expire-users"} {
		made = strings.Contains(try("kubectl", "create", "secret", "generic", secret, "-n", "backup-store"), "created") || made
		line := strings.TrimSpace(store(container, "htpasswd", "-nbB", user, "of-"+container))
		kubectl("patch", "secret", secret, "-n", "backup-store", "--type=merge", "-p", `{"stringData":{"`+user+`":"`+line+`"}}`)
	}
	// A pod that starts has a new Secret at once, one that runs some minutes later.
	if made {
		kubectl("delete", "pods", "-n", "backup-store", "--all")
		kubectl("rollout", "status", "deployment/backup-store", "-n", "backup-store", "--timeout=120s")
	}
	for container, port := range map[string]string{"append": "8000", "expire": "8001"} {
		Eventually(func() string {
			return try("kubectl", "exec", "deployment/backup-store", "-n", "backup-store", "-c", container, "--", "grep", "-c", "^"+user+":", "/tmp/htpasswd-"+port)
		}).WithTimeout(2 * limit).Should(Equal("1\n"))
	}
	return []string{"-p", "BACKUP_USER=" + user, "-p", "BACKUP_PASSWORD=of-append", "-p", "EXPIRE_PASSWORD=of-expire", "-p", "BACKUP_KEY=battery-staple",
		"-p", "BACKUP_CA=" + store("append", "cat", "/data/tls/ca.crt")}
}

// uninstallVersions uninstalls all Instances and OperatorVersions of a namespace, with what their install plans have made.
func uninstallVersions(ns string) {
	GinkgoHelper()
	kubectl("delete", "instances", "--all", "-n", ns)
	for _, version := range strings.Fields(kubectl("get", "operatorversions", "-n", ns, "-o", "name")) {
		kubectl("kudo", "uninstall-version", path.Base(version), "-n", ns, "--force", "--wait")
	}
}
