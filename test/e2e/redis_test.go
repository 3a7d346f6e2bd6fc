package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// redis is an Instance of the package, with a client that writes to it through its Service.
type redis struct {
	database
	// digest is that of the keys that were written first.
	digest string
	// flags are those of an installation on the node of the suite.
	flags []string
}

// redisClient is the client. Each of its writes sets a key by a connection of its own.
var redisClient = clientPod("redis:7.0.15-1", `[[ $(timeout 5 redis-cli -h db set "ack:$writer:$number" "$number") == OK ]]`, `
        - {name: REDISCLI_AUTH, valueFrom: {secretKeyRef: {name: db-auth, key: password}}}`)

// ask runs a command as the client.
func (r *redis) ask(args ...string) string {
	GinkgoHelper()
	return strings.TrimSpace(kubectl(append([]string{"exec", "client", "-n", r.ns, "--", "redis-cli", "-e", "-h", "db", "--raw"}, args...)...))
}

// leader returns the number of the member that most Sentinels name.
func (r *redis) leader() string {
	return strings.TrimSpace(try("kubectl", "exec", "db-0", "-n", r.ns, "-c", "redis", "--", "bash", "-c", ". /server/lib.sh; leader"))
}

// content is the digest of the keys that were written first.
func (r *redis) content() string {
	GinkgoHelper()
	return r.ask("eval", `local t = {} for i = 1, 10000 do t[i] = redis.call("get", "data:" .. i) or "" end return redis.sha1hex(table.concat(t, ","))`, "0")
}

// holds checks that the keys are as they were, that all members but one follow the leader, and that one can write.
func (r *redis) holds(members int) {
	GinkgoHelper()
	Eventually(func() string {
		return strings.TrimSpace(try("kubectl", "exec", "db-0", "-n", r.ns, "-c", "redis", "--", "bash", "-c",
			". /server/lib.sh; lead=$(leader); n=0; for i in 0 1 2 3 4; do if follows $i $lead 2>/dev/null; then n=$((n + 1)); fi; done; echo $n"))
	}).Should(Equal(strconv.Itoa(members-1)), "replicas that follow")
	Eventually(func() string {
		return strings.TrimSpace(try("kubectl", "exec", "client", "-n", r.ns, "--", "redis-cli", "-e", "-h", "db", "set", "written", "1"))
	}).Should(Equal("OK"))
	Expect(r.content()).To(Equal(r.digest))
}

// plan runs a plan while the client writes: no write that was acknowledged is lost.
func (r *redis) plan(what string, members int, run func()) {
	GinkgoHelper()
	r.keeps(what, "the keys; every acknowledged write; "+strconv.Itoa(members-1)+" replicas follow", func() { r.holds(members) }, run)
}

// newRedis installs the shared store and the package with three members, and writes 10,000 keys.
func newRedis() *redis {
	GinkgoHelper()
	r := &redis{database: database{ns: namespace(), client: redisClient}}
	kubectl("label", "namespace", r.ns, "pod-security.kubernetes.io/enforce=restricted")
	r.empty = func() {
		r.ask("eval", `local c = "0" repeat local r = redis.call("scan", c, "match", "ack:*", "count", 1000) c = r[1]
			for _, k in ipairs(r[2]) do redis.call("unlink", k) end until c == "0" return 1`, "0")
	}
	r.stored = func() (out []string) {
		seen := map[string]bool{} // a scan may return a key twice
		for _, key := range strings.Fields(r.ask("--scan", "--pattern", "ack:*")) {
			if number := strings.TrimPrefix(key, "ack:"); !seen[number] {
				seen[number] = true
				out = append(out, number)
			}
		}
		return out
	}
	r.flags = append(useStore(r.ns, "redis", r.ns), "-p", "PASSWORD=s'ecret", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi")
	install(r.ns, "db", filepath.Join(catalog, "redis", "operator"), r.flags...)
	r.connect()
	r.ask("eval", `for i = 1, 10000 do redis.call("set", "data:" .. i, redis.sha1hex(i)) end return 1`, "0")
	r.digest = r.content()
	r.holds(3)
	r.row("`deploy`, three members", "the keys; 2 replicas follow")
	return r
}

// restore restores a backup by its name, and takes the restore back.
func (r *redis) restore() {
	GinkgoHelper()
	pods := func() string {
		return kubectl("get", "pods", "-n", r.ns, "-l", "app.kubernetes.io/component=server", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	r.ask("set", "younger", "1")
	before := pods()
	r.change("RESTORE_NAME=missing")
	out, err := start("kubectl", "kudo", "plan", "trigger", "--name", "restore", "--instance", "db", "-n", r.ns, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("there is no backup named missing: good are there. Nothing was changed"))
	Expect(pods()).To(Equal(before))
	r.row("`restore` of a backup that does not exist", "it fails; the pods are the same; the keys")
	r.change("RESTORE_NAME=good")
	r.trigger("restore")
	r.holds(3)
	Expect(r.ask("exists", "younger")).To(Equal("0"))
	r.row("`restore` of a backup by its name", "no younger key; the keys; 2 replicas follow")
	if wholeCatalog {
		r.trigger("restore-undo")
		r.holds(3)
		Expect(r.ask("exists", "younger")).To(Equal("1"))
		r.row("`restore-undo`", "the younger key; the keys; 2 replicas follow")
		r.trigger("restore-done")
		r.trigger("expire")
	}
}

// upgrade upgrades the package; one whose image does not exist is rolled back.
func (r *redis) upgrade() {
	GinkgoHelper()
	next := nextVersion("redis")
	r.plan("`upgrade` to an image that does not exist, and `rollback`", 3, func() {
		kubectl("kudo", "upgrade", next, "--instance", "db", "-n", r.ns, "-p", "IMAGE_TAG=missing")
		Eventually(func() string { return try("kubectl", "get", "pods", "-n", r.ns) }).Should(MatchRegexp("ErrImagePull|ImagePullBackOff"))
		kubectl("kudo", "rollback", "--instance", "db", "-n", r.ns, "--wait")
	})
	r.plan("`upgrade`", 3, func() { kubectl("kudo", "upgrade", next, "--instance", "db", "-n", r.ns, "--wait") })
}

// keep removes the Instance, and makes it anew.
func (r *redis) keep() {
	GinkgoHelper()
	out := kubectl("kudo", "uninstall", "--instance", "db", "-n", r.ns, "--wait")
	for _, name := range []string{"data-db-0", "data-db-1", "data-db-2", "db-auth", "db-passwords", "db-backup"} {
		Expect(out).To(MatchRegexp(`(?m)` + name + " stays"))
	}
	install(r.ns, "db", filepath.Join(catalog, "redis", "operator"), r.flags...)
	r.holds(3)
	r.row("uninstall, and `deploy` of the same name", "what stays is printed; the keys; 2 replicas follow")
}

var _ = Describe("Package redis", Label("catalog", "redis"), func() {
	if !wholeCatalog {
		return
	}
	It("K24, K28, K29: keeps every acknowledged write through its plans", func() {
		r := newRedis()
		former := r.leader()
		lost, gap := r.during(func() {
			kubectl("delete", "pod", "db-"+former, "-n", r.ns, "--force", "--grace-period=0")
			Eventually(r.leader).Should(And(MatchRegexp("^[0-2]$"), Not(Equal(former))))
		})
		// Replication is asynchronous: what is lost is measured, and not bounded by a promise.
		GinkgoWriter.Printf("failover: %d acknowledged writes are lost; none was acknowledged for %s\n", len(lost), gap.Round(time.Millisecond))
		r.holds(3)
		r.row("the leader's pod is deleted by force", "the keys; 2 replicas follow; lost writes are measured")
		r.plan("`switchover`", 3, func() { r.trigger("switchover") })
		r.plan("`backup`", 3, func() { r.change("BACKUP_NAME=good") })
		if wholeCatalog {
			r.plan("`configure`", 3, func() { r.change("SETTINGS={maxmemory: 200mb, save: '900 1'}") })
			for _, replicas := range []int{1, 3, 5, 3} {
				r.plan("`scale` to "+strconv.Itoa(replicas), replicas, func() {
					kubectl("kudo", "update", "--instance", "db", "-n", r.ns, "-p", "REPLICAS="+strconv.Itoa(replicas), "--create-service-account", "-y", "--wait")
				})
			}
			r.change(`PASSWORD=n'ew "1\`)
			r.connect()
			r.holds(3)
			r.row("`password`", "the keys, by the new one; 2 replicas follow")
			r.change("PASSWORD=s'ecret")
			r.connect()
		}
		r.restore()
		if wholeCatalog {
			r.upgrade()
			r.keep()
		}
		r.compareReadme("redis")
	})
})
