package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("Templates that would keep a worker of the manager busy for hours end their plan, with the bound in the status", Serial, Label("render-work", "slow"), func() {
	t := GinkgoTB()
	const half = `{{ $a := repeat 1000000 "aB" }}{{ range until 50 }}{{ $x := lower $a }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
`
	const endless = `{{ $a := repeat 1000000 "aB" }}{{ range until 100000 }}{{ $x := lower $a }}{{ end }}`
	for name, tc := range map[string]struct {
		reason, template string
		tasks            int
		want             string
	}{
		"one":  {"one template", endless, 1, "it takes too much work: its loops and functions go through more than 256 MiB"},
		"many": {"many that are allowed each", half, 40, "take too much work: their loops and functions go through more than 2048 MiB"},
	} {
		ns := cluster.NewNamespace(t)
		options := []gen.VersionMod{gen.Template("a.yaml", tc.template)}
		var names []string
		for i := range tc.tasks {
			names = append(names, fmt.Sprintf("t%d", i))
			options = append(options, gen.Apply(names[i], "a.yaml"))
		}
		options = append(options, gen.Serial("deploy", names...))
		ov := gen.Version(ns, "heavy", options...)
		env.Must(t, cluster.Create(t.Context(), ov))
		env.Must(t, cluster.Create(t.Context(), gen.Instance(name, ov, nil)))
		failed := await(t, ns, name, env.PlanEnded("deploy", 1))
		status(t, failed, "deploy", v1beta1.FatalError, tc.want)
	}
})
