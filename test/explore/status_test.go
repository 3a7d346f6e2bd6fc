package explore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

// shown says why the status of an Instance does not show what is wanted of each Ledger.
func shown(i *v1beta1.Instance, count int, want func(v1beta1.ResourceStatus) bool) string {
	now := env.Read(GinkgoTB(), suite, &v1beta1.Instance{}, i.Namespace, i.Name)
	size, ledgers := 0, 0
	for _, r := range now.Status.Resources {
		if r.Kind != "Ledger" {
			continue
		}
		ledgers++
		if !want(r) {
			return fmt.Sprintf("%s: %+v", r.Name, r)
		}
		paths, err := json.Marshal(r.Omitted)
		env.Must(GinkgoTB(), err)
		if size += len(paths); r.Status != nil {
			size += len(r.Status.Raw)
		}
	}
	if ledgers != count || size > 64<<10 {
		return fmt.Sprintf("%d objects, %d bytes", ledgers, size)
	}
	return ""
}

var _ = It("An Instance shows the essence of statuses that are too large, what it omits, and what is not known", Label("C65", "reflected-status"), func() {
	t := GinkgoTB()
	define(t, kind("Ledger", "ledgers"))
	configure(t, config("ledgers", group, "Ledger", "healthLua: return true\nstatusLua: return observedObj.status"))
	change := func(script string) {
		merge(t, configOf(t, "ledgers"), `{"spec":{"explorations":[{"apiVersion":"`+group+`","kind":"Ledger","healthLua":"return true","statusLua":"`+script+`"}]}}`, false)
	}

	const count = 90
	var ledgers []string
	for n := range count {
		ledgers = append(ledgers, fmt.Sprintf("apiVersion: explore.example.com/v1\nkind: Ledger\nmetadata: {name: ledger-%02d}\nspec: {}\n", n))
	}
	ns := suite.NewNamespace(t)
	i := install(t, operator(ns, [][2]string{{"ledgers", strings.Join(ledgers, "---\n")}}), nil)
	complete(t, i, 1)

	first := func(r v1beta1.ResourceStatus) bool { return r.Name == "ledger-00" }
	is := func(r v1beta1.ResourceStatus, want string, omitted ...string) bool {
		return r.Status != nil && equalJSON(string(r.Status.Raw), want) && slices.Equal(r.Omitted, omitted)
	}
	const essence = `{"phase":"Open","conditions":[{"type":"Ready","status":"True","reason":"Filled"}]}`
	entries := strings.Repeat(`"entry",`, 1000) + `"entry"`
	merge(t, live(t, group, "Ledger", ns, "ledger-00"), `{"status":{"phase":"Open","entries":[`+entries+`],"conditions":[`+
		`{"type":"Ready","status":"True","reason":"Filled","message":"`+strings.Repeat("m", 1000)+`"}]}}`, true)
	env.Eventually(t, "the scalars and conditions of a large status", func() string {
		return shown(i, count, func(r v1beta1.ResourceStatus) bool {
			return !first(r) || is(r, essence, "status.conditions[].message", "status.entries")
		})
	})

	large := `{"pages":["` + strings.Repeat("p", 950) + `"],"phase":"Open"}` // within the limit of an object
	for n := range count {
		merge(t, live(t, group, "Ledger", ns, fmt.Sprintf("ledger-%02d", n)), `{"status":`+large+`}`, true)
	}
	limited := func(r v1beta1.ResourceStatus) bool {
		return !r.StatusUnknown && (first(r) || is(r, `{"phase":"Open"}`, "status.pages"))
	}
	env.Eventually(t, "the scalars of many objects", func() string { return shown(i, count, limited) })

	change("return error('the ink is dry')")
	env.Eventually(t, "that the statuses are not known, beside the last ones", func() string {
		return shown(i, count, func(r v1beta1.ResourceStatus) bool {
			return r.StatusUnknown && (first(r) || is(r, `{"phase":"Open"}`, "status.pages"))
		})
	})
	change("return nil")
	env.Eventually(t, "that there is none", func() string {
		return shown(i, count, func(r v1beta1.ResourceStatus) bool { return !r.StatusUnknown && r.Status == nil && r.Omitted == nil })
	})
})
