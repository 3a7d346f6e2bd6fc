package helmrelease

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Events of Helm at which hooks run.
const (
	preInstall  = "pre-install"
	postInstall = "post-install"
	preUpgrade  = "pre-upgrade"
	postUpgrade = "post-upgrade"
	preDelete   = "pre-delete"
)

// Policies by which Helm deletes hooks.
const (
	beforeCreation = "before-hook-creation"
	succeeded      = "hook-succeeded"
	failed         = "hook-failed"
)

// atInstallation are the lines around the template of a hook that plan deploy runs: nothing is rendered where it is not to run.
const (
	beginHook = "{{ if or (ne .PlanName \"deploy\") (eq .Params." + installHooks + " \"true\") }}\n"
	endHook   = "{{ end }}\n"
)

// hook is a hook of the release that is part of the package.
type hook struct {
	Hook
	// task applies the objects of the hook, and task with deletion deletes them.
	task      string
	templates []string
}

const deletion = "-delete"

func (h Hook) at(point string) bool { return slices.Contains(h.Events, point) }

func (h Hook) follows(policy string) bool { return slices.Contains(h.DeletePolicies, policy) }

// addHooks adds the hooks that plans can run. Helm orders hooks by weight, then by name.
func (c *converter) addHooks() error {
	all := slices.Clone(c.release.Hooks)
	slices.SortStableFunc(all, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), strings.Compare(a.Name, b.Name))
	})
	for i, h := range all {
		var known, unknown []string
		for _, event := range h.Events {
			if slices.Contains([]string{preInstall, postInstall, preUpgrade, postUpgrade, preDelete}, event) {
				known = append(known, event)
			} else {
				unknown = append(unknown, plain(event))
			}
		}
		if len(unknown) > 0 {
			c.notef("hook %s does not run at %s: no plan runs then", plain(h.Name), strings.Join(unknown, ", "))
		}
		if h.Events = known; len(known) == 0 {
			continue
		}
		if err := c.addHook(h, fmt.Sprintf("hook-%d", i+1)); err != nil {
			return err
		}
	}
	return nil
}

// addHook adds a hook, if its objects are namespaced and no Secrets.
func (c *converter) addHook(h Hook, task string) error {
	objs, err := c.budget.parseObjects("hook "+plain(h.Name), h.Manifest)
	if err != nil {
		return err
	}
	out := hook{Hook: h, task: task}
	for _, obj := range objs {
		if reason, err := c.refuseHook(obj); err != nil {
			return err
		} else if reason != "" {
			c.notef("hook %s is no part of the package: %s", describe(obj), reason)
			continue
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", "namespace")
		before, after := "", ""
		if h.at(preInstall) || h.at(postInstall) {
			before, after = beginHook, endHook
		}
		file, err := c.addTemplate(obj, before, after)
		if err != nil {
			return err
		}
		out.templates = append(out.templates, file)
	}
	if len(out.templates) == 0 {
		return nil
	}
	if h.follows(failed) {
		c.notef("hook %s stays if it fails, so that it can be looked at: the policy hook-failed is not kept", plain(h.Name))
	}
	c.hooks = append(c.hooks, out)
	return nil
}

// refuseHook returns the reason why an object of a hook is no part of the package, or "".
func (c *converter) refuseHook(obj *unstructured.Unstructured) (string, error) {
	if isSecret(obj) {
		return "a package holds no values of Secrets", nil
	}
	namespaced, err := c.scope(obj.GroupVersionKind())
	switch {
	case err != nil:
		return "", fmt.Errorf("find out whether hook %s has a namespace: %w", describe(obj), err)
	case !namespaced:
		return "it is cluster-scoped", nil
	case obj.GetNamespace() != "" && obj.GetNamespace() != c.release.Namespace:
		return "it lives in another namespace", nil
	}
	return "", nil
}

// applied and deleted return tasks.
func applied(name string, templates []string) map[string]any {
	return map[string]any{"name": name, "kind": v1beta1.ApplyTask, "spec": map[string]any{"resources": texts(templates)}}
}

func deleted(name string, templates []string) map[string]any {
	return map[string]any{"name": name, "kind": v1beta1.DeleteTask, "spec": map[string]any{"resources": texts(templates)}}
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

// tasks are the tasks of the package.
func (c *converter) tasks() []any {
	var out []any
	for _, of := range []struct {
		name      string
		templates []string
	}{{"definitions", c.definitions}, {"shared", c.installed}, {"objects", c.deployed}} {
		if len(of.templates) > 0 {
			out = append(out, applied(of.name, of.templates))
		}
	}
	for _, h := range c.hooks {
		out = append(out, applied(h.task, h.templates))
		if h.clears() || h.follows(succeeded) {
			out = append(out, deleted(h.task+deletion, h.templates))
		}
	}
	return out
}

// clears reports whether what an earlier run of a hook has left is deleted before: Helm does so unless another policy is given.
func (h Hook) clears() bool { return len(h.DeletePolicies) == 0 || h.follows(beforeCreation) }

// plans are the plans of the package.
func (c *converter) plans() map[string]any {
	out := map[string]any{v1beta1.DeployPlan: c.plan(preInstall, postInstall)}
	has := func(events ...string) bool {
		return slices.ContainsFunc(c.hooks, func(h hook) bool { return slices.ContainsFunc(events, h.at) })
	}
	if has(preInstall, postInstall, preUpgrade, postUpgrade) {
		out[v1beta1.UpdatePlan] = c.plan(preUpgrade, postUpgrade) // an upgrade runs it, too
	}
	if has(preDelete) {
		out[v1beta1.CleanupPlan] = planOf(c.phase(preDelete))
	}
	var steps []any
	if len(c.definitions) > 0 {
		steps = append(steps, step("definitions"))
	}
	if len(c.installed) > 0 {
		steps = append(steps, step("shared"))
	}
	if len(steps) > 0 {
		out[installPlan] = planOf(phase(installPlan, steps))
	}
	return out
}

// plan returns the plan that applies the objects between the hooks of two events.
func (c *converter) plan(before, after string) map[string]any {
	var phases []any
	if p := c.phase(before); p != nil {
		phases = append(phases, p)
	}
	if len(c.deployed) > 0 {
		phases = append(phases, phase("objects", []any{step("objects")}))
	}
	if p := c.phase(after); p != nil {
		phases = append(phases, p)
	}
	return planOf(phases...)
}

// phase returns the phase of a point in the life of a release, with a step for each hook, or nil if it has none.
func (c *converter) phase(point string) any {
	var steps []any
	for _, h := range c.hooks {
		if !h.at(point) {
			continue
		}
		if h.clears() {
			steps = append(steps, namedStep(h.task+"-before", h.task+deletion))
		}
		steps = append(steps, step(h.task))
		if h.follows(succeeded) {
			steps = append(steps, namedStep(h.task+"-after", h.task+deletion))
		}
	}
	if steps == nil {
		return nil
	}
	return phase(point, steps)
}

func planOf(phases ...any) map[string]any {
	return map[string]any{"strategy": string(v1beta1.Serial), "phases": append([]any{}, phases...)}
}

func phase(name string, steps []any) map[string]any {
	return map[string]any{"name": name, "strategy": string(v1beta1.Serial), "steps": steps}
}

func step(task string) any { return namedStep(task, task) }

func namedStep(name, task string) any {
	return map[string]any{"name": name, "tasks": []any{task}}
}
