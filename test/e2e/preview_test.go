package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/pkg/preview"
)

var _ = It("The pods that a preview says are replaced are those that are replaced", Label("preview", "P9"), func() {
	ns := namespace()
	install(ns, "i", filepath.Join("testdata", "restarts"))
	// pods returns the containers of a workload that run, and not those of pods that end.
	pods := func(workload string) []string {
		GinkgoHelper()
		return strings.Fields(kubectl("get", "pods", "-n", ns, "-l", "app="+workload, "-o",
			`jsonpath={range .items[?(@.status.containerStatuses[0].state.running)]}{.metadata.uid}/{.status.containerStatuses[0].containerID}{"\n"}{end}`))
	}
	for _, tc := range []struct {
		parameter string
		// replaced is how many pods of a workload are replaced, and count how many there are then.
		replaced, count map[string]int
	}{
		{"NOTE=b", map[string]int{}, map[string]int{"i-web": 2, "i-store": 1}},
		{"PAGE=b", map[string]int{"i-web": 2}, map[string]int{"i-web": 2, "i-store": 1}},
		{"REPLICAS=3", map[string]int{}, map[string]int{"i-web": 3, "i-store": 1}},
		{"SIZE=b", map[string]int{"i-store": 1}, map[string]int{"i-web": 3, "i-store": 1}},
	} {
		By(tc.parameter)
		text, p := kubectl("kudo", "update", "i", "-n", ns, "-p", tc.parameter, "--dry-run", "-o", "json"), &preview.Preview{}
		Expect(json.Unmarshal([]byte(text), p)).To(Succeed(), text)
		said := map[string]int{}
		for _, object := range p.Objects {
			if object.Restart != nil {
				said[object.Name] = int(object.Restart.Pods)
			}
		}
		Expect(said).To(Equal(tc.replaced), text)
		before := map[string][]string{"i-web": pods("i-web"), "i-store": pods("i-store")}
		kubectl("kudo", "update", "i", "-n", ns, "-p", tc.parameter, "--wait")
		for workload, earlier := range before {
			Eventually(func() []string { return pods(workload) }, "60s", "1s").Should(HaveLen(tc.count[workload]), workload)
			if tc.replaced[workload] > 0 {
				Expect(pods(workload)).NotTo(ContainElement(BeElementOf(earlier)), workload)
			} else {
				Expect(pods(workload)).To(ContainElements(earlier), workload)
			}
		}
	}
})
