package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// neighbor is one of several Instances of package postgres.
type neighbor struct{ ns, name string }

// sql runs statements as the superuser in its only member, and returns what is printed, with the error if there is one.
func (n neighbor) sql(statements string) string {
	return strings.TrimSpace(try("kubectl", "exec", n.name+"-0", "-n", n.ns, "-c", "postgres", "--", "psql", "-U", "postgres", "-qAtc", statements))
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

var _ = Describe("Ten Instances of package postgres side by side", Label("catalog", "postgres"), func() {
	if !wholeCatalog {
		return
	}
	It("K28: leave what is to be kept when they go, and the others alone", func() {
		var neighbors []neighbor
		for range 3 {
			ns := namespace()
			for n := range 4 {
				neighbors = append(neighbors, neighbor{ns, fmt.Sprintf("db%d", n)})
			}
		}
		neighbors = neighbors[:10]
		flags := append(slices.Clone(postgresFlags), "-p", "REPLICAS=1", "-p", "CPU=20m", "-p", "MEMORY=256Mi")
		all(neighbors, func(n neighbor) { install(n.ns, n.name, filepath.Join(catalog, "postgres", "operator"), flags...) })
		write := func(n neighbor, times int) {
			Expect(n.sql("SET client_min_messages = warning; CREATE TABLE IF NOT EXISTS mine (name text); INSERT INTO mine VALUES ('" + n.ns + "/" + n.name + "')")).To(BeEmpty())
			Expect(n.sql("SELECT count(*), min(name), max(name) FROM mine")).To(Equal(fmt.Sprintf("%d|%[2]s/%[3]s|%[2]s/%[3]s", times, n.ns, n.name)))
		}
		all(neighbors, func(n neighbor) { write(n, 1) })

		remedies := sync.Map{}
		uninstall := func(n neighbor) {
			stays, remedy := n.uninstall()
			Expect(stays).NotTo(BeEmpty(), "what stays of %v is printed", n)
			Eventually(n.objects).Should(Equal(stays), "what stays of %v", n)
			remedies.Store(n, remedy)
		}
		gone, others := neighbors[:5], neighbors[5:]
		all(gone, uninstall)
		all(others, func(n neighbor) { write(n, 2) })
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
	})
})
