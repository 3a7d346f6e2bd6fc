package instances

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/gen"
)

const present = "{clusters: [{name: m1, weight: 3}, {name: m2, parameters: {REGION: eu-2}}], divide: REPLICAS, waves: {groups: [[m1], [m2]], soak: 5m0s}}"

// TestPlacementFlags checks what the flags make of a placement, and what they refuse: each refusal names the flag and the remedy.
func TestPlacementFlags(t *testing.T) {
	for _, tc := range []struct {
		line, before, want string // want is the placement, or what the error has
		fails              bool
	}{
		{"", "", "null", false},
		{"", present, present, false},
		{"--clusters m1,m2 --weights m1=2 --divide REPLICAS --set-on m2:REGION=eu-2 --wave m1 --wave m2 --soak 5m --max-failures 1 --on-delete orphan", "",
			"{clusters: [{name: m1, weight: 2}, {name: m2, parameters: {REGION: eu-2}}], divide: REPLICAS, onDelete: Orphan, waves: {groups: [[m1], [m2]], maxFailures: 1, soak: 5m0s}}", false},
		{"--clusters m1,m3", present, "{clusters: [{name: m1, weight: 3}, {name: m3}], divide: REPLICAS, waves: {groups: [[m1]], soak: 5m0s}}", false},
		{"--set-on m2:REGION- --set-on m1:URL=http://a:b=c", present,
			"{clusters: [{name: m1, weight: 3, parameters: {URL: 'http://a:b=c'}}, {name: m2}], divide: REPLICAS, waves: {groups: [[m1], [m2]], soak: 5m0s}}", false},
		{"--wave= --soak 0 --divide= --on-delete Delete", present,
			"{clusters: [{name: m1, weight: 3}, {name: m2, parameters: {REGION: eu-2}}], onDelete: Delete, waves: {soak: 0s}}", false},
		{"--clusters a --wave=", "", "{clusters: [{name: a}]}", false},
		{"--decision prod --divide REPLICAS --wave m1", "", "{decision: {name: prod}, divide: REPLICAS, waves: {groups: [[m1]]}}", false},
		{"--decision prod", present, "{decision: {name: prod}, divide: REPLICAS, waves: {groups: [[m1], [m2]], soak: 5m0s}}", false},
		{"--decision test", "{decision: {name: prod}}", "{decision: {name: test}}", false},
		{"--clusters m1", "{decision: {name: prod}}", "{clusters: [{name: m1}]}", false},
		{"--clusters m1 --decision prod", "", "--clusters cannot be used with --decision, which names the clusters: use one of the two", true},
		{"--decision=", "", "--decision is empty: name a decision, or the clusters with --clusters", true},
		{"--decision prod --weights m1=2", present, `--weights is for clusters of --clusters, and the decision "prod" names those of this Instance`, true},
		{"--set-on m1:REGION=x", "{decision: {name: prod}}", "--set-on is for clusters of --clusters", true},
		{"--wave m1 --wave m1", "{decision: {name: prod}}", `--wave: cluster "m1" is in two waves`, true},
		{"--weights m1=2", "", "--weights requires --clusters or --decision: name the clusters", true},
		{"--clusters=", "", "--clusters names none", true},
		{"--clusters m1,,m2", "", "--clusters has an empty name", true},
		{"--clusters m1,m1", "", `--clusters names "m1" twice: name each cluster once`, true},
		{"--clusters m1 --weights m2=2", "", `--weights: the Instance is not placed on cluster "m2": correct the name, or add it to --clusters, which has m1`, true},
		{"--clusters m1 --weights m1=0", "", `--weights "m1=0": write CLUSTER=N, with N from 1 to 1000`, true},
		{"--clusters m1 --weights m1=1001", "", "from 1 to 1000", true},
		{"--clusters m1 --weights m1", "", "write CLUSTER=N", true},
		{"--set-on m3:REGION=x", present, `--set-on: the Instance is not placed on cluster "m3"`, true},
		{"--set-on REGION=x", present, "write CLUSTER:NAME=VALUE", true},
		{"--set-on m1:REGION", present, "write CLUSTER:NAME=VALUE", true},
		{"--set-on m1:=x", present, "write CLUSTER:NAME=VALUE", true},
		{"--wave m3", present, `--wave: the Instance is not placed on cluster "m3"`, true},
		{"--wave m1 --wave m2,m1", present, `--wave: cluster "m1" is in two waves`, true},
		{"--max-failures -1", present, "--max-failures -1: must be 0 to 100", true},
		{"--on-delete keep", present, `--on-delete "keep": use delete or orphan`, true},
	} {
		var p placementFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		p.add(flags)
		if err := flags.Parse(strings.Fields(tc.line)); err != nil {
			t.Fatal(err)
		}
		var before, want *v1beta1.Placement
		if err := yaml.UnmarshalStrict([]byte(tc.before), &before); err != nil {
			t.Fatal(err)
		}
		kept := before.DeepCopy()
		got, err := p.apply(before)
		if tc.fails {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", tc.line, err, tc.want)
			}
			continue
		}
		if errYAML := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil || errYAML != nil {
			t.Errorf("%s: %v %v", tc.line, err, errYAML)
			continue
		}
		if asYAML(t, got) != asYAML(t, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.line, asYAML(t, got), asYAML(t, want))
		}
		if diff := cmp.Diff(kept, before); diff != "" {
			t.Errorf("%s changes what it reads: %s", tc.line, diff)
		}
	}
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// scalable is web with a parameter that can be divided.
func scalable() *v1beta1.OperatorVersion {
	version := web("1.0.0")
	gen.Param("REPLICAS", "1", "")(version)
	return version
}

// TestRemovedByDecision checks C37 and C45: which clusters may lose an Instance by an edit that names a decision, or no longer names one.
func TestRemovedByDecision(t *testing.T) {
	list := &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m2"}, {Name: "m1"}}}
	prod, other := &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: "prod"}}, &v1beta1.Placement{Decision: &v1beta1.DecisionReference{Name: "other"}}
	for _, tc := range []struct {
		reason        string
		before, after *v1beta1.Placement
		want          string
	}{
		{"a decision in place of a list", list, prod, "m1 m2"},
		{"a list in place of a decision", prod, list, "m3"},
		{"another decision", prod, other, "m1 m3"},
		{"the same decision", prod, prod, ""},
	} {
		i := &v1beta1.Instance{Spec: v1beta1.InstanceSpec{Placement: tc.before}}
		i.Status.Decision = &v1beta1.DecisionStatus{Name: "prod", Clusters: []string{"m3", "m1"}}
		if got := strings.Join(removedClusters(i, tc.after), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestInstallOnClusters checks the Instance that is made, and that what the hub would refuse is refused before.
func TestInstallOnClusters(t *testing.T) {
	version := scalable()
	server := onServer(t, version)
	install := func(code int, line string) string {
		out, errs := commandtest.Expect(t, NewInstall, code, "", strings.Fields("install web --in-cluster --instance site "+line)...)
		return out + errs
	}
	for line, want := range map[string]string{
		"--clusters m1,m2 --divide NONE":                           "spec.placement.divide: the OperatorVersion has no parameter NONE",
		"--clusters m1,m2 --divide REPLICAS":                       "the share of m1 of REPLICAS=1 is less than 1: raise its weight or the value",
		"--clusters m1,m2 --divide REPLICAS -p REPLICAS=x":         "must be a whole number",
		"--clusters m1 --set-on m1:NONE=x":                         "the OperatorVersion has no parameter NONE: correct or remove it",
		"--clusters m1,m2 --divide VALUE":                          "must be a whole number",
		"--clusters m1 --divide REPLICAS --set-on m1:REPLICAS=3":   "REPLICAS is divided: remove it here",
		"--clusters m1,m2 --divide REPLICAS --weights m1=1,m2=900": "is less than 1",
	} {
		if out := install(command.ExitError, line); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", line, want, out)
		}
	}
	if out := install(command.ExitUsage, "--clusters m1 --create-service-account"); !strings.Contains(out, "make the account in each cluster") {
		t.Error(out)
	}
	args := "--clusters m1,m2 --weights m1=2 --divide REPLICAS -p REPLICAS=6 --set-on m2:VALUE=c --wave m1 --wave m2"
	out := install(0, args+" --dry-run")
	for _, want := range []string{"no plan runs on the hub: the plans run in the clusters, in 2 waves", "+ cluster m1: wave 1, share 4\n",
		"+ cluster m2: wave 2, share 2, values of its own: VALUE\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	install(0, args)
	got := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	server.Read(got)
	if got.Spec.Placement == nil || got.Spec.Placement.ClusterNames() != "m1, m2" || got.Spec.Placement.Divide != "REPLICAS" {
		t.Errorf("the placement is %+v", got.Spec.Placement)
	}
}

// TestUpdateClusters checks that an Instance is taken from a cluster only after a question, and that a dry run names the cluster.
func TestUpdateClusters(t *testing.T) {
	version := scalable()
	placed, copied := book(version), book(version)
	copied.Name, copied.Annotations = "copied", map[string]string{v1beta1.TemplateAnnotation: "u/1"}
	server := onServer(t, version, placed, copied)
	for _, tc := range []struct {
		line string
		code int
		want string
	}{
		{"update copied --clusters m1", command.ExitError, "is the copy that a hub has placed on this cluster: run the command on the hub"},
		{"update book --weights m3=2", command.ExitUsage, `the Instance is not placed on cluster "m3"`},
		{"update book --clusters m1", command.ExitUsage, "instance lab/book would be removed from m2, which is done only after a question, and stdin is no terminal: add --yes"},
		{"update book --clusters m1 --dry-run", 0, "- cluster m2: the Instance is deleted there, after its cleanup plan"},
		{"update book --clusters m1 --dry-run --fail-on data", command.ExitFailed, "has what --fail-on names: data"},
		{"update book --weights m2=2 --create-service-account -y", command.ExitUsage, "make the account in each cluster"},
		{"update book --weights m2=2", 0, "instance lab/book updated"},
		{"update book --clusters m1 --yes", 0, "instance lab/book updated"},
	} {
		out, errs := commandtest.Expect(t, NewUpdate, tc.code, "", strings.Fields(tc.line)...)
		if !strings.Contains(out+errs, tc.want) {
			t.Errorf("%s: no %q in\n%s%s", tc.line, tc.want, out, errs)
		}
	}
	server.Read(placed)
	if placed.Spec.Placement.ClusterNames() != "m1" {
		t.Errorf("the clusters are %s", placed.Spec.Placement.ClusterNames())
	}
}

// TestUpgradeClusters checks that an upgrade edits the placement with the version.
func TestUpgradeClusters(t *testing.T) {
	version, newer := scalable(), scalable()
	newer.Name, newer.Spec.Version = "web-1.27-1.1.0", "1.1.0"
	placed := book(version)
	server := onServer(t, version, newer, placed)
	args := "upgrade web --in-cluster --operator-version 1.1.0 --instance book --wave m2"
	out, _ := commandtest.Expect(t, NewUpgrade, 0, "", strings.Fields(args+" --dry-run")...)
	if !strings.Contains(out, "~ cluster m2: wave 1, share 2\n") || !strings.Contains(out, "~ cluster m1: wave 2, share 4\n") {
		t.Errorf("the waves are not shown:\n%s", out)
	}
	if _, errs := commandtest.Expect(t, NewUpgrade, command.ExitUsage, "", strings.Fields(args+" --clusters m2")...); !strings.Contains(errs, "removed from m1") {
		t.Error(errs)
	}
	commandtest.Expect(t, NewUpgrade, 0, "", strings.Fields(args)...)
	server.Read(placed)
	if placed.Spec.OperatorVersion.Name != newer.Name || len(placed.Spec.Placement.Waves.Groups) != 1 {
		t.Errorf("spec is %+v", placed.Spec)
	}
}

// TestIncludeVersions checks that clusters get the OperatorVersions of children, once.
func TestIncludeVersions(t *testing.T) {
	child := gen.Version("lab", "child-1")
	child.Spec.Operator.Name = "child"
	p := &v1beta1.Placement{Include: []v1beta1.IncludedObject{{Kind: "Operator", Name: "s"}}}
	includeVersions(p, []*v1beta1.OperatorVersion{child})
	includeVersions(p, []*v1beta1.OperatorVersion{child})
	includeVersions(nil, []*v1beta1.OperatorVersion{child})
	want := []v1beta1.IncludedObject{{Kind: "Operator", Name: "s"}, {Kind: "Operator", Name: "child"}, {Kind: "OperatorVersion", Name: "child-1"}}
	if diff := cmp.Diff(want, p.Include); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
