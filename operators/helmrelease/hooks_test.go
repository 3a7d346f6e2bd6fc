package helmrelease

import (
	"fmt"
	"strings"
	"testing"

	"kudo.dev/kudo/operators"
)

// jobHook returns a hook that runs a Job.
func jobHook(name string, weight int, events []string, policies ...string) Hook {
	return Hook{Name: name, Weight: weight, Events: events, DeletePolicies: policies, Manifest: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " +
		name + ", annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: '1', own: x}}\nspec: {template: {spec: {}}}\n"}
}

// planText returns the phases of a plan, with their steps and the tasks of these.
func planText(pkg *operators.Package, plan string) string {
	var out []string
	for _, phase := range pkg.Operator.Plans[plan].Phases {
		var steps []string
		for _, step := range phase.Steps {
			steps = append(steps, strings.Join(step.Tasks, "+"))
		}
		out = append(out, fmt.Sprintf("%s[%s]", phase.Name, strings.Join(steps, " ")))
	}
	return strings.Join(out, " ")
}

// TestHooks is P31: hooks are phases, in the order of their weights, and their policies are kept.
func TestHooks(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"
	for _, tc := range []struct {
		reason                  string
		hooks                   []Hook
		deploy, update, cleanup string
		notes                   []string
	}{
		{"P31: none", nil, "objects[objects]", "", "", nil},
		{"P31: by weight, then by name", []Hook{jobHook("b", 1, []string{preInstall}, succeeded), jobHook("c", -1, []string{preInstall}, succeeded),
			jobHook("a", 1, []string{preInstall}, succeeded)},
			"pre-install[hook-1 hook-1-delete hook-2 hook-2-delete hook-3 hook-3-delete] objects[objects]", "objects[objects]", "", nil},
		{"P31: Helm deletes an earlier one before, unless told otherwise", []Hook{jobHook("a", 0, []string{postInstall, postUpgrade})},
			"objects[objects] post-install[hook-1-delete hook-1]", "objects[objects] post-upgrade[hook-1-delete hook-1]", "", nil},
		{"P31: both policies", []Hook{jobHook("a", 0, []string{preUpgrade}, beforeCreation, succeeded, failed)},
			"objects[objects]", "pre-upgrade[hook-1-delete hook-1 hook-1-delete] objects[objects]", "", []string{"the policy hook-failed is not kept"}},
		{"P31: before the deletion", []Hook{jobHook("a", 0, []string{preDelete}, succeeded)}, "objects[objects]", "",
			"pre-delete[hook-1 hook-1-delete]", nil},
		{"P31: tests and rollbacks are left out", []Hook{jobHook("a", 0, []string{"test"}), jobHook("b", 0, []string{"post-rollback", "post-delete"})},
			"objects[objects]", "", "", []string{"hook a does not run at test", "hook b does not run at post-rollback, post-delete"}},
		{"P31: cluster-scoped, of another namespace, or a Secret", []Hook{
			{Name: "r", Events: []string{preInstall}, Manifest: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}"},
			{Name: "far", Events: []string{preInstall}, Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: other}"},
			{Name: "s", Events: []string{preInstall}, Manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}"}},
			"objects[objects]", "", "", []string{"ClusterRole r is no part of the package: it is cluster-scoped", "ConfigMap far is no part",
				"Secret s is no part of the package"}},
	} {
		converted, pkg := convert(t, testRelease(object, tc.hooks...))
		for plan, want := range map[string]string{"deploy": tc.deploy, "update": tc.update, "cleanup": tc.cleanup} {
			if got := planText(pkg, plan); got != want {
				t.Errorf("%s: plan %s is %s, want %s", tc.reason, plan, got, want)
			}
		}
		notes := strings.Join(converted.Notes, "\n")
		for _, want := range tc.notes {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: the notes lack %q: %s", tc.reason, want, notes)
			}
		}
	}
}

// TestInstallHooks is P31: the hooks of an installation have run for the release, and so run only where they are asked for.
func TestInstallHooks(t *testing.T) {
	_, pkg := convert(t, testRelease("", jobHook("a", 0, []string{preInstall, preUpgrade})))
	for _, tc := range []struct {
		reason, plan string
		given        map[string]string
		want         bool
	}{
		{"P31: at a takeover", "deploy", nil, false},
		{"P31: at an installation", "deploy", map[string]string{installHooks: "true"}, true},
		{"P31: at an upgrade", "update", nil, true},
	} {
		text := rendered(t, pkg, "job-a.yaml", tc.plan, tc.given)
		if got := strings.Contains(text, "kind: Job"); got != tc.want || strings.Contains(text, "helm.sh/hook") {
			t.Errorf("%s: %s", tc.reason, text)
		}
	}
}
