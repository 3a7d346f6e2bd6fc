package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// neighbor is one of several Instances of a package.
type neighbor struct{ pack, ns, name string }

// noteScripts maps each package to a script that runs in a server: it stores the name in $0, and prints all names that were stored, one a line.
var noteScripts = map[string]string{
	"etcd":    `. /scripts/lib.sh; at 0 put "notes/$RANDOM$RANDOM" "$0" >/dev/null; at 0 get --prefix notes/ --print-value-only`,
	"mariadb": `mariadb --defaults-file=/config/server.cnf app -BNe "CREATE TABLE IF NOT EXISTS notes (name text); INSERT INTO notes VALUES ('$0'); SELECT name FROM notes"`,
	"postgres": `psql -U postgres -qAtc "SET client_min_messages = warning; CREATE TABLE IF NOT EXISTS notes (name text)" -c "INSERT INTO notes VALUES ('$0')" ` +
		`-c "SELECT name FROM notes"`,
	"rabbitmq": `. /scripts/lib.sh
		api() { curl -fsS --cacert "$SERVER_CA" -u "admin:s'ecret" "https://$(host 0):15671/api/$1" -H content-type:application/json -d "$2" "${@:3}"; }
		api queues/%2F/notes '{"durable": true}' -X PUT
		api exchanges/%2F/amq.default/publish "{\"properties\": {\"delivery_mode\": 2}, \"routing_key\": \"notes\", \"payload\": \"$0\", \"payload_encoding\": \"string\"}" >/dev/null
		api queues/%2F/notes/get '{"count": 9, "ackmode": "ack_requeue_true", "encoding": "auto"}' | jq -r '.[].payload'`,
	"redis": `. /server/lib.sh; redis 0 rpush notes "$0" >/dev/null; redis 0 lrange notes 0 -1`,
}

// note writes the name of the Instance into its server, and checks that the server has that name as often as times says, and no other name.
func (n neighbor) note(times int) {
	name := n.ns + "/" + n.name
	noted := try("kubectl", "exec", n.name+"-0", "-n", n.ns, "-c", n.pack, "--", "bash", "-euc", noteScripts[n.pack], name)
	Expect(strings.Fields(noted)).To(Equal(slices.Repeat([]string{name}, times)))
}

// uninstall deletes the Instance, and returns the names of what stays, and the command that deletes it, as they are printed.
func (n neighbor) uninstall() (stays []string, remedy string) {
	out := try("kubectl", "kudo", "uninstall", n.name, "-n", n.ns, "--wait")
	for _, match := range regexp.MustCompile(`(?m)^\S+ (\S+) stays`).FindAllStringSubmatch(out, -1) {
		stays = append(stays, match[1])
	}
	_, remedy, _ = strings.Cut(out, "delete what is not needed any more: ")
	slices.Sort(stays)
	return slices.Compact(stays), strings.TrimSpace(remedy)
}

// kinds are those of the objects that packages make in a namespace.
const kinds = "instances,pods,services,secrets,configmaps,persistentvolumeclaims,statefulsets,deployments,jobs,networkpolicies," +
	"poddisruptionbudgets,serviceaccounts,roles,rolebindings,controllerrevisions"

// objects lists what is in its namespace and has the name of the Instance, or one that begins with it.
func (n neighbor) objects() (out []string) {
	for _, name := range strings.Fields(try("kubectl", "get", kinds, "-n", n.ns, "-o", "jsonpath={.items[*].metadata.name}")) {
		if name == n.name || strings.HasPrefix(name, n.name+"-") || strings.HasPrefix(name, "data-"+n.name+"-") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// all does something with each of them at the same time.
func all(neighbors []neighbor, do func(n neighbor)) {
	var group sync.WaitGroup
	for _, n := range neighbors {
		group.Go(func() {
			defer GinkgoRecover()
			do(n)
		})
	}
	group.Wait()
}

// sideBySide makes ten Instances of a package in three namespaces, and deletes five of them, and then the others.
func sideBySide(pack string) {
	GinkgoHelper()
	var neighbors []neighbor
	// Ten at a time take longer than the command waits by default.
	flags, small := map[string][]string{}, append(slices.Clone(smallFlags), "--wait-time", "15m")
	if pack != "mariadb" {
		small = append(small, "-p", "REPLICAS=1")
	}
	if pack == "rabbitmq" {
		small = append(small, "-p", "MEMORY=512Mi") // its tools run Erlang, too
	}
	for range 3 {
		ns := namespace()
		if pack != "postgres" {
			flags[ns] = useStore(ns, pack, ns)
		}
		for n := range 4 {
			neighbors = append(neighbors, neighbor{pack, ns, fmt.Sprintf("db%d", n)})
		}
	}
	neighbors = neighbors[:10]
	all(neighbors, func(n neighbor) {
		install(n.ns, n.name, filepath.Join(catalog, pack, "operator"), slices.Concat(small, flags[n.ns])...)
	})
	all(neighbors, func(n neighbor) { n.note(1) })

	remedies := sync.Map{}
	uninstall := func(n neighbor) {
		stays, remedy := n.uninstall()
		Expect(stays).NotTo(BeEmpty(), "what stays of %v is printed", n)
		Eventually(n.objects).Should(Equal(stays), "what stays of %v", n)
		remedies.Store(n, remedy)
	}
	gone, others := neighbors[:5], neighbors[5:]
	all(gone, uninstall)
	all(others, func(n neighbor) { n.note(2) })
	all(others, uninstall)
	for _, n := range neighbors {
		remedy, _ := remedies.Load(n)
		kubectl(strings.Fields(strings.TrimPrefix(remedy.(string), "kubectl "))...)
		Eventually(n.objects).Should(BeEmpty(), "what is left of %v", n)
	}
	for _, ns := range []string{neighbors[0].ns, neighbors[4].ns, neighbors[8].ns} {
		for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
			Eventually(func() string { return try("kubectl", "get", kind, "-o", "yaml") }).ShouldNot(ContainSubstring(ns), "%s of namespace %s", kind, ns)
		}
	}
}

// smallFlags install an Instance that requests little CPU and memory, so that the node can run ten such Instances.
var smallFlags = []string{"-p", "PASSWORD=s'ecret", "-p", "BACKUP_KEY=battery-staple", "-p", "IMAGE_REGISTRY=localhost/catalog",
	"-p", "STORAGE_SIZE=1Gi", "-p", "CPU=20m", "-p", "MEMORY=256Mi"}

var _ = Describe("Ten Instances of a package side by side", Label("catalog"), func() {
	if !wholeCatalog {
		return
	}
	for _, pack := range slices.Sorted(maps.Keys(noteScripts)) {
		It("K28: leave what is to be kept when they go, and the others alone: "+pack, Label(pack), func() { sideBySide(pack) })
	}
})

var _ = Describe("A package that restores the backup of another Instance", Label("catalog"), func() {
	if !wholeCatalog {
		return
	}
	restoreFrom := func(d *database, compared string, refill func()) {
		GinkgoHelper()
		d.change("BACKUP_NAME=good")
		from := d.ns
		d.ns += "-a"
		makeNamespace(d.ns)
		DeferCleanup(uninstallVersions, d.ns)
		d.flags = slices.Concat(d.flags, storeFlags)
		d.install()
		d.change("RESTORE_NAME=good", "RESTORE_FROM="+from+".db")
		d.trigger("restore")
		refill()
		d.holds(3)
		d.row("`restore` of another Instance's backup", compared)
		d.compareReadme()
	}
	nothing := func() {}
	It("K21: redis", Label("redis"), func() {
		r := newRedis()
		restoreFrom(&r.database, r.compared(3), nothing)
	})
	It("K21: etcd", Label("etcd"), func() {
		e := newEtcd()
		restoreFrom(&e.database, e.compared(3), nothing)
	})
	It("K21: rabbitmq", Label("rabbitmq"), func() {
		r := newRabbitmq()
		restoreFrom(&r.database, "the definitions; 3 run", func() { r.exec(`python3 -c "$CLIENT" fill data`) })
	})
})
