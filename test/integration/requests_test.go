package integration

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
)

var _ = It("The command line asks the API server for nothing that it can do without; discovery aside", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	dir := write(t, map[string]string{
		"operator.yaml": operatorYAML, "params.yaml": "parameters:\n- name: NAME\n  default: a\n",
		"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\ndata:\n  name: {{ .Params.NAME }}\n",
	})
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		want   []string
	}{
		{"each object is created once; that no Instance has the name is seen before anything is left behind, and the wait begins with the answer",
			[]string{"install", dir, "--instance", "i", "--wait"}, 0,
			[]string{"GET instances/i", "GET configmaps/kudo-config", "GET serviceaccounts/kudo", "POST operators", "POST operatorversions", "POST instances", "WATCH instances i"}},
		{"nothing is created for a name that is taken",
			[]string{"install", dir, "--instance", "i", "--wait"}, 1,
			[]string{"GET instances/i"}},
		{"the version is looked at if it is there, since it may have other content",
			[]string{"install", dir, "--instance", "j"}, 0,
			[]string{"GET instances/j", "GET configmaps/kudo-config", "GET serviceaccounts/kudo", "POST operators", "POST operatorversions", "GET operatorversions/wrong-0.1.0", "POST instances"}},
		{"the version says which values are right",
			[]string{"update", "--instance", "i", "-p", "NAME=other", "--wait"}, 0,
			[]string{"GET instances/i", "GET operatorversions/wrong-0.1.0", "PATCH instances/i", "WATCH instances i"}},
		{"and which plans there are",
			[]string{"plan", "trigger", "--instance", "i", "--name", "deploy", "--wait"}, 0,
			[]string{"GET instances/i", "GET operatorversions/wrong-0.1.0", "PATCH instances/i", "WATCH instances i"}},
		{"what has settled need not be watched",
			[]string{"plan", "wait", "--instance", "i"}, 0,
			[]string{"GET instances/i"}},
	} {
		out := kudo(t, tc.code, append(tc.args, "-n", ns, "-v", "6")...)
		if diff := cmp.Diff(tc.want, requests(out)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s\n%s", strings.Join(tc.args, " "), tc.reason, diff, out)
		}
	}
})

var response = regexp.MustCompile(`"Response" verb="(\w+)" url="([^"]+)"`)

// requests reads those that concern a namespace from the log of a command.
func requests(log string) []string {
	var out []string
	for _, found := range response.FindAllStringSubmatch(log, -1) {
		at, err := url.Parse(found[2])
		if err != nil {
			continue
		}
		_, inside, _ := strings.Cut(at.Path, "/namespaces/")
		_, resource, within := strings.Cut(inside, "/")
		switch {
		case !within:
		case at.Query().Get("watch") == "true":
			out = append(out, "WATCH "+resource+" "+strings.TrimPrefix(at.Query().Get("fieldSelector"), "metadata.name="))
		default:
			out = append(out, found[1]+" "+resource)
		}
	}
	return out
}
