package testsuite

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/test/env"
)

var _ = It("Each field of the format holds, and no namespace is left", Serial, Label("fields"), func() {
	t := GinkgoTB()
	reports := t.TempDir()
	out := kudoTest(t, 0, reports, suite.Kubeconfig, testdata(t, "pass"), "--timeout", "120", "--test-run-labels", "flavor=vanilla", "--report", "xml", "--artifacts-dir", reports)
	contains(t, out, " passed, 0 failed in ", "report written to", "!FAIL")
	text, err := os.ReadFile(filepath.Join(reports, "kudo-test.xml"))
	env.Must(t, err)
	report := struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}{}
	if err := xml.Unmarshal(text, &report); err != nil || report.Failures != 0 || report.Tests < 42 {
		t.Errorf("the report has %+v (%v):\n%s", report, err, text)
	}
	if left := namespaces(t); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
})

var _ = It("A suite that asserts the condition Ready alone holds under kuttl, too, while another client changes objects", Label("fields"), func() {
	t := GinkgoTB()
	env.RequireKuttl(t)
	suite.Kuttl(t, testdata(t, "pass", "instance"))
})

var _ = Describe("A case that fails", Serial, Ordered, ContinueOnFailure, Label("fields"), func() {
	var out string
	var cases []string
	folders, _ := filepath.Glob(filepath.Join("testdata", "fail", "*"))
	for _, folder := range folders {
		cases = append(cases, filepath.Base(folder))
	}

	It("fails the run, with a report, and leaves no namespace", func() {
		t := GinkgoTB()
		reports := t.TempDir()
		out = kudoTest(t, 3, reports, suite.Kubeconfig, testdata(t, "fail"), "--timeout", "8", "--test-run-labels", "flavor=vanilla", "--report", "JSON", "--report-name", "all")
		contains(t, out, fmt.Sprintf("0 passed, %d failed in ", len(cases)), fmt.Sprintf("Error: %d of %d cases failed", len(cases), len(cases)))
		text, err := os.ReadFile(filepath.Join(reports, "all.json"))
		env.Must(t, err)
		report := struct{ Failures int }{}
		if err := json.Unmarshal(text, &report); err != nil || report.Failures != len(cases) {
			t.Errorf("the report has %+v (%v):\n%s", report, err, text)
		}
		if left := namespaces(t); len(left) > 0 {
			t.Errorf("namespaces are left: %v", left)
		}
	})
	for _, name := range cases {
		It("says why: "+name, func() {
			t := GinkgoTB()
			want, err := os.ReadFile(testdata(t, "fail", name, "expect.txt"))
			env.Must(t, err)
			contains(t, linesOf(out, name), strings.Split(strings.TrimSpace(string(want)), "\n")...)
		})
	}
})
