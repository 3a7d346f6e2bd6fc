package operators

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// PodSuffix ends the name of the pod of a Pipe task.
const PodSuffix = "pipepod"

var unnamable = regexp.MustCompile(`[^a-z0-9]`)

// ArtifactName returns the name of the object that a file of a Pipe task becomes.
func ArtifactName(instance, plan, phase, step, task string, pipe v1beta1.PipeSpec) string {
	if pipe.NameSuffix != "" {
		return instance + "-" + pipe.NameSuffix
	}
	return PipeName(instance, plan, phase, step, task, pipe.Key)
}

// PipeName is the name of what a Pipe task makes: its pod, with PodSuffix, or an artifact, with its key. It is KUDO's.
func PipeName(instance, plan, phase, step, task, suffix string) string {
	parts := []string{instance, plan, phase, step, task, suffix}
	for i, part := range parts {
		parts[i] = unnamable.ReplaceAllString(strings.ToLower(part), "")
	}
	return strings.Join(parts, ".")
}

// Pipes maps the keys of all Pipe tasks that plans use to the names of their artifacts. Where several plans have a key,
// the plan that runs comes first, then deploy, then the others by name. Two pipes of one plan with one key are an error.
func Pipes(spec *v1beta1.OperatorVersionSpec, instance, running string) (map[string]string, error) {
	tasks := map[string]v1beta1.Task{}
	for _, t := range spec.Tasks {
		if t.Kind == v1beta1.PipeTask {
			tasks[t.Name] = t
		}
	}
	out := map[string]string{}
	if len(tasks) == 0 {
		return out, nil
	}
	for _, name := range preferred(spec.Plans, running) {
		artifacts, err := nameArtifacts(name, findPipes(spec.Plans[name], instance, name, tasks))
		if err != nil {
			return nil, err
		}
		for key, artifact := range artifacts {
			if _, taken := out[key]; !taken {
				out[key] = artifact
			}
		}
	}
	return out, nil
}

// placedPipe is a pipe of a task at one place of a plan, and the name of the artifact that it makes there.
type placedPipe struct {
	v1beta1.PipeSpec
	artifact string
}

// findPipes returns the pipes of a plan in the order in which the plan names their tasks.
func findPipes(plan v1beta1.Plan, instance, name string, tasks map[string]v1beta1.Task) (pipes []placedPipe) {
	for _, phase := range plan.Phases {
		for _, step := range phase.Steps {
			for _, used := range step.Tasks {
				for _, pipe := range tasks[used].Spec.Pipe {
					pipes = append(pipes, placedPipe{pipe, ArtifactName(instance, name, phase.Name, step.Name, used, pipe)})
				}
			}
		}
	}
	return pipes
}

// nameArtifacts returns the name of the artifact of each pipe of a plan, by the key of the pipe. It refuses two pipes with the
// same key or artifact.
func nameArtifacts(plan string, pipes []placedPipe) (map[string]string, error) {
	artifacts, keys := map[string]string{}, map[string]string{} // keys are those of artifacts
	for _, pipe := range pipes {
		if _, double := artifacts[pipe.Key]; double {
			return nil, fmt.Errorf("plan %s makes pipe %q twice: give each pipe of a plan a key of its own", plan, pipe.Key)
		}
		if other, same := keys[pipe.artifact]; same {
			remedy := "give them keys that differ in letters or digits"
			if pipe.NameSuffix != "" {
				remedy = "give each a nameSuffix of its own"
			}
			return nil, fmt.Errorf("plan %s makes %s of pipe %q and of pipe %q: %s", plan, pipe.artifact, min(other, pipe.Key),
				max(other, pipe.Key), remedy)
		}
		artifacts[pipe.Key], keys[pipe.artifact] = pipe.artifact, pipe.Key
	}
	return artifacts, nil
}

func preferred(all map[string]v1beta1.Plan, running string) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	rank := func(name string) int {
		switch name {
		case running:
			return 0
		case v1beta1.DeployPlan:
			return 1
		}
		return 2
	}
	sort.Slice(names, func(i, j int) bool {
		if a, b := rank(names[i]), rank(names[j]); a != b {
			return a < b
		}
		return names[i] < names[j]
	})
	return names
}
