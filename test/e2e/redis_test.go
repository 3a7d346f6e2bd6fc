package e2e

import (
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// redis is an Instance of the package, with a client that writes to it through its Service.
type redis struct{ database }

// redisClient is the client. Each of its writes sets a key by a connection of its own.
var redisClient = clientPod("redis:7.0.15-1", `[[ $(timeout 5 redis-cli --tls --cacert /ca/ca.crt -h db set "ack:$writer:$number" "$number") == OK ]]`, `
        - {name: REDISCLI_AUTH, valueFrom: {secretKeyRef: {name: db-auth, key: password}}}`)

// redisCommand is the command of the client by which it asks the leader.
var redisCommand = []string{"redis-cli", "--tls", "--cacert", "/ca/ca.crt", "-e", "-h", "db"}

// ask runs a command as the client, until it is answered: the proxy ends connections when another member leads.
func (r *redis) ask(args ...string) (answer string) {
	GinkgoHelper()
	Eventually(func() (err error) {
		answer, err = start("kubectl", slices.Concat([]string{"exec", "client", "-n", r.ns, "--"}, redisCommand, []string{"--raw"}, args)...)
		return err
	}).Should(Succeed(), "redis answers")
	return strings.TrimSpace(answer)
}

// leader returns the name of the pod that most Sentinels name.
func (r *redis) leader() string {
	return "db-" + strings.TrimSpace(try("kubectl", "exec", "db-0", "-n", r.ns, "-c", "redis", "--", "bash", "-c", ". /server/lib.sh; leader"))
}

// content is the digest of the keys that were written first.
func (r *redis) content() string {
	GinkgoHelper()
	return r.ask("eval", `local t = {} for i = 1, 10000 do t[i] = redis.call("get", "data:" .. i) or "" end return redis.sha1hex(table.concat(t, ","))`, "0")
}

// check checks that the keys are as they were, that all members but one follow the leader, and that one can write.
func (r *redis) check(members int) {
	GinkgoHelper()
	Eventually(func() string {
		return strings.TrimSpace(try("kubectl", "exec", "db-0", "-n", r.ns, "-c", "redis", "--", "bash", "-c",
			". /server/lib.sh; lead=$(leader); n=0; for i in 0 1 2 3 4; do if follows $i $lead 2>/dev/null; then n=$((n + 1)); fi; done; echo $n"))
	}).Should(Equal(strconv.Itoa(members-1)), "replicas that follow")
	Expect(r.ask("set", "written", "1")).To(Equal("OK"))
	Expect(r.content()).To(Equal(r.digest))
}

// newRedis installs the shared store and the package with three members and further flags, and writes 10,000 keys.
func newRedis(flags ...string) *redis {
	GinkgoHelper()
	r := &redis{database{pack: "redis", ns: namespace(), client: redisClient, data: "the keys", losesWithLeader: true}}
	r.count = func(members int) string { return strconv.Itoa(members-1) + " replicas follow" }
	r.holds, r.findLeader = r.check, r.leader
	r.addYounger = func() { r.ask("set", "younger", "1") }
	r.hasYounger = func() bool { return r.ask("exists", "younger") == "1" }
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
	r.flags = slices.Concat(useStore(r.ns, "redis", r.ns), []string{"-p", "PASSWORD=s'ecret", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi"}, flags)
	r.install()
	r.ask("eval", `for i = 1, 10000 do redis.call("set", "data:" .. i, redis.sha1hex(i)) end return 1`, "0")
	r.digest = r.content()
	r.holds(3)
	r.row("`deploy`, three members", r.compared(3))
	return r
}

var _ = Describe("Package redis", Label("catalog", "redis"), func() {
	It("K24, K28, K29: keeps every acknowledged write through its plans", func() {
		r := newRedis()
		r.disturbWriting(leaderDeleted, "backup", 3, r.update("BACKUP_NAME=good"))
		if wholeCatalog {
			r.plan("`switchover`", 3, func() { r.trigger("switchover") })
			r.plan("`configure`", 3, func() { r.change("SETTINGS={maxmemory: 200mb, save: '900 1'}") })
			for _, replicas := range []int{1, 3, 5, 3} {
				r.plan("`scale` to "+strconv.Itoa(replicas), replicas, func() {
					kubectl("kudo", "update", "--instance", "db", "-n", r.ns, "-p", "REPLICAS="+strconv.Itoa(replicas), "--create-service-account", "-y", "--wait")
				})
			}
			r.changePassword(3)
			r.plan("`certificates`", 3, func() { r.trigger("certificates") })
		}
		r.restore(3, func() { r.ask("del", "data:1") }, func() { Expect(r.ask("exists", "data:1")).To(Equal("0")) })
		if wholeCatalog {
			r.trigger("expire")
			r.upgrade(3)
			r.keep(3, "db-auth", "db-passwords", "db-authority", "db-certificate", "db-ca", "db-backup")
			r.failOver(leaderDeleted, 3)
		}
		r.compareReadme()
	})
	if !wholeCatalog {
		return
	}
	for _, durability := range []string{"strict", "local"} {
		It("K29: measures what is lost with DURABILITY "+durability+" when "+leaderDeleted.what, func() {
			newRedis("-p", "DURABILITY="+durability).failOver(leaderDeleted, 3)
		})
	}
})
