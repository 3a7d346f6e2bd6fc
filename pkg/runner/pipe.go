package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// Executor runs a command in a container, with the rights of a user. Fatal errors are *podexec.CommandError and
// *podexec.TooLargeError.
type Executor interface {
	Output(ctx context.Context, user string, in podexec.Container, command []string, limit int) ([]byte, error)
}

const (
	// readerContainer is the container that keeps a pipe pod alive until its files have been read.
	readerContainer = "waiter"
	// maxPipe is the size of a piped file, in bytes: it becomes a Secret or a ConfigMap, which hold 1 MiB.
	maxPipe = 1 << 20
	// pipePodAnnotation marks the pods of Pipe tasks, as in KUDO.
	pipePodAnnotation = "kudo.dev/pipepod"
	// managerPath is where the image of the manager holds its program, which waits and reads in the pods of Pipe tasks.
	managerPath = "/manager"
)

// Commands of the manager's program in the pods of Pipe tasks.
const (
	// PipeCommand comes before each of the others.
	PipeCommand = "pipe"
	// PipeWait does nothing until the program is stopped.
	PipeWait = "wait"
	// PipeRead prints the file that follows.
	PipeRead = "read"
)

var pipeFileName = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// pipeRun is the work of a Pipe task: a pod that makes files, and the artifacts that the files become.
type pipeRun struct {
	pod       *unstructured.Unstructured
	pipes     []v1beta1.PipeSpec
	names     []string
	variables render.Variables
	// once is set if the artifacts are made only while none of them exists.
	once bool
}

// preparePipe renders the pod of a Pipe task, and adds what keeps it alive until its files have been read. A task whose files are made
// needs neither the pod nor an image.
func (r *Runner) preparePipe(ctx context.Context, run *Run, w *PreparedTask, t task.Pipe, v render.Variables) *PreparedTask {
	w.piping = &pipeRun{pod: &unstructured.Unstructured{}, pipes: t.Pipes, variables: v, once: t.Once}
	for _, pipe := range t.Pipes {
		w.piping.names = append(w.piping.names, operators.ArtifactName(v.Name, v.PlanName, v.PhaseName, v.StepName, w.Name, pipe))
	}
	w.piping.pod.SetAPIVersion("v1")
	w.piping.pod.SetKind("Pod")
	w.piping.pod.SetName(operators.PipeName(v.Name, v.PlanName, v.PhaseName, v.StepName, w.Name, operators.PodSuffix))
	if problems := validation.IsDNS1123Subdomain(w.piping.pod.GetName()); len(problems) > 0 {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: the pod's name %s, made of instance, plan, phase, step and task, is invalid: %s",
			w.Name, w.piping.pod.GetName(), problems[0]))
	}
	if t.Once {
		if made, err := r.findMade(ctx, w); err != nil {
			return w.failed(err)
		} else if made {
			return r.prepareMade(ctx, w)
		}
	}
	if r.pipeRefusal != nil {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: %s", w.Name, r.pipeRefusal))
	}
	if err := r.renderPipe(run, w, t, v); err != nil {
		return w.failed(err)
	}
	w.templates = []string{t.Pod}
	if piped, err := w.isPiped(ctx, r.mirror); err != nil {
		return w.failed(err)
	} else if piped {
		return w.decide(plans.Done, "")
	}
	return r.prepareObjects(ctx, w, []*unstructured.Unstructured{w.piping.pod}, v)
}

// renderPipe renders the pod of a Pipe task, checks it, and completes it.
func (r *Runner) renderPipe(run *Run, w *PreparedTask, t task.Pipe, v render.Variables) error {
	result, err := run.Version.Templates.Objects(t.Pod, v, run.options(render.WithoutNames())...)
	if err != nil {
		return err
	}
	if len(result.Objects) != 1 || result.Objects[0].GetKind() != "Pod" {
		return &apply.FatalError{Err: fmt.Errorf("task %q: template %s must hold one Pod, and nothing else", w.Name, t.Pod)}
	}
	pod := result.Objects[0]
	mount, err := pipeMount(pod)
	if err == nil {
		err = pipeFiles(t.Pipes, mount)
	}
	if err != nil {
		return &apply.FatalError{Err: fmt.Errorf("task %q: template %s: %w", w.Name, t.Pod, err)}
	}
	pod.SetName(w.piping.pod.GetName())
	annotations := pod.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[pipePodAnnotation], annotations[v1beta1.PlanUIDAnnotation] = "true", string(run.UID)
	pod.SetAnnotations(annotations)
	addWaiter(pod, mount, r.pipeImage)
	if _, set, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", "terminationGracePeriodSeconds"); !set {
		_ = unstructured.SetNestedField(pod.Object, int64(0), "spec", "terminationGracePeriodSeconds")
	}
	w.piping.pod = pod
	return nil
}

// pipeMount checks the pod of a Pipe task, and returns the mount of the volume that holds its files.
func pipeMount(pod *unstructured.Unstructured) (map[string]any, error) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	inits, _, _ := unstructured.NestedSlice(pod.Object, "spec", "initContainers")
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	policy, _, _ := unstructured.NestedString(pod.Object, "spec", "restartPolicy")
	switch {
	case len(containers) != 0:
		return nil, errors.New("spec.containers must be empty: the files are made by the initContainer")
	case len(inits) != 1:
		return nil, fmt.Errorf("spec.initContainers must hold one container, and holds %d", len(inits))
	case policy != "" && policy != "OnFailure":
		return nil, fmt.Errorf("spec.restartPolicy is %s: leave it out, or set OnFailure", policy)
	}
	shared := ""
	for _, volume := range volumes {
		v, _ := volume.(map[string]any)
		if _, isEmptyDir := v["emptyDir"]; isEmptyDir {
			if shared != "" {
				return nil, errors.New("spec.volumes must hold one emptyDir, and holds several")
			}
			shared, _ = v["name"].(string)
		}
	}
	if shared == "" {
		return nil, errors.New("spec.volumes must hold an emptyDir for the files")
	}
	init, _ := inits[0].(map[string]any)
	mounts, _ := init["volumeMounts"].([]any)
	for _, mount := range mounts {
		if m, _ := mount.(map[string]any); m["name"] == shared {
			return m, nil
		}
	}
	return nil, fmt.Errorf("spec.initContainers[0].volumeMounts must mount volume %s", shared)
}

// pipeFiles checks that the files lie in the mounted volume.
func pipeFiles(pipes []v1beta1.PipeSpec, mount map[string]any) error {
	root, _ := mount["mountPath"].(string)
	for i, pipe := range pipes {
		file := pipe.File + pipe.EnvFile
		switch {
		case !strings.HasPrefix(path.Clean(file), strings.TrimSuffix(path.Clean(root), "/")+"/"):
			return fmt.Errorf("pipe[%d]: file %s is not below the volume's mountPath %s", i, file, root)
		case !pipeFileName.MatchString(path.Base(file)):
			return fmt.Errorf("pipe[%d]: file name %s must be of letters, digits, dot, dash and underscore", i, path.Base(file))
		}
	}
	return nil
}

// addWaiter adds the container that the files are read from. It asks for nothing that restricted pod security denies,
// and runs as the user whom the files belong to.
func addWaiter(pod *unstructured.Unstructured, mount map[string]any, image string) {
	inits, _, _ := unstructured.NestedSlice(pod.Object, "spec", "initContainers")
	security := map[string]any{}
	if init, ok := inits[0].(map[string]any); ok {
		if given, ok := init["securityContext"].(map[string]any); ok {
			security = given
		}
	}
	security["allowPrivilegeEscalation"] = false
	security["capabilities"] = map[string]any{"drop": []any{"ALL"}}
	security["seccompProfile"] = map[string]any{"type": "RuntimeDefault"}
	delete(security, "privileged")
	if !saysUser(security) && !saysUser(podSecurity(pod)) {
		security["runAsUser"] = int64(0) // that of most images, and of the files that they make
	}
	container := map[string]any{
		"name": readerContainer, "image": image, "imagePullPolicy": "IfNotPresent",
		"command":      []any{managerPath, PipeCommand, PipeWait},
		"volumeMounts": []any{mount}, "securityContext": security,
	}
	_ = unstructured.SetNestedSlice(pod.Object, []any{container}, "spec", "containers")
}

func podSecurity(pod *unstructured.Unstructured) map[string]any {
	security, _, _ := unstructured.NestedMap(pod.Object, "spec", "securityContext")
	return security
}

// saysUser reports whether a security context sets the user.
func saysUser(security map[string]any) bool {
	return security["runAsUser"] != nil || security["runAsNonRoot"] == true
}

// hasWaiter reports whether a pod has the container that this manager adds: another one, of a manager before, may lack what
// reads the files.
func hasWaiter(live, pod *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(waiterOf(live), waiterOf(pod))
}

func waiterOf(pod *unstructured.Unstructured) []any {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, container := range containers {
		if c, _ := container.(map[string]any); c["name"] == readerContainer {
			return []any{c["image"], c["command"]}
		}
	}
	return nil
}

// pipe drives a Pipe task:
//
//	a pod of an earlier run is there         it is deleted, and awaited
//	one with the waiter of another manager   the same
//	the pod is not ready                     waiting
//	it is                                    its files are read, become artifacts, and the pod is deleted: done
func (r *Runner) pipe(ctx context.Context, run *Run, w *PreparedTask) (plans.Outcome, Effects) {
	live, _ := r.mirror.Get(apply.IDOf(w.piping.pod))
	earlier := live != nil && live.GetAnnotations()[v1beta1.PlanUIDAnnotation] != string(run.UID)
	if earlier || live != nil && !hasWaiter(live, w.piping.pod) {
		outcome, effects := r.delete(ctx, w)
		if outcome.State == plans.Done {
			outcome.State, outcome.Message = plans.Transient, "the pod of an earlier run was deleted"
			if !earlier {
				outcome.Message = "the pod was deleted and is created anew, since it uses another image than the --pipe-image of this manager"
			}
		}
		return outcome, effects
	}
	outcome, effects := r.apply(ctx, w)
	if outcome.State != plans.Done {
		return outcome, effects
	}
	artifacts, err := r.artifacts(ctx, run.Account, w.piping)
	for i := 0; err == nil && i < len(artifacts); i++ {
		err = w.keepArtifact(ctx, artifacts[i], w.piping.pipes[i])
	}
	if err == nil {
		err = w.writer.enhance(ctx, w.piping.variables, artifacts)
	}
	if err != nil {
		f := (&PreparedTask{run: w.run, effects: effects}).failed(fmt.Errorf("%s: %w", apply.IDOf(w.piping.pod), err))
		return *f.outcome, f.effects
	}
	outcome, effects = r.apply(ctx, &PreparedTask{run: w.run, writer: w.writer, objects: artifacts, effects: effects})
	if outcome.State == plans.Done {
		for _, removal := range w.writer.remove(ctx, w.objects) {
			if removal.Err != nil {
				f := (&PreparedTask{run: w.run, effects: effects}).failed(removal.Err)
				return *f.outcome, f.effects
			}
		}
		effects.Deleted = append(effects.Deleted, apply.IDOf(w.piping.pod))
	}
	return outcome, effects
}

// readTimeout is how long the files of a pod may take to be read: one that never ends must not hold up others.
const readTimeout = time.Minute

// artifacts reads the files of a ready pod, and makes a Secret or a ConfigMap of each.
func (r *Runner) artifacts(ctx context.Context, as apply.Account, p *pipeRun) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reader := podexec.Container{Namespace: p.pod.GetNamespace(), Pod: p.pod.GetName(), Name: readerContainer}
	for i, pipe := range p.pipes {
		file := pipe.File + pipe.EnvFile
		content, err := r.exec.Output(ctx, as.Username(), reader, []string{managerPath, PipeCommand, PipeRead, file}, maxPipe)
		var failed *podexec.CommandError
		var large *podexec.TooLargeError
		if errors.As(err, &failed) || errors.As(err, &large) {
			return nil, &apply.FatalError{Err: fmt.Errorf("file %s: %w", file, err)}
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("file %s could not be read within %s: check that it is a regular file", file, readTimeout)
		}
		if err != nil {
			return nil, fmt.Errorf("read file %s: %w", file, err)
		}
		data := map[string][]byte{path.Base(file): content}
		if pipe.EnvFile != "" {
			if data, err = environment(content); err != nil {
				return nil, &apply.FatalError{Err: fmt.Errorf("envFile %s: %w", file, err)}
			}
		}
		out = append(out, artifact(pipe, p.names[i], data))
	}
	return out, nil
}

// artifact is the object of a piped file.
func artifact(pipe v1beta1.PipeSpec, name string, data map[string][]byte) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": pipe.Kind}}
	obj.SetName(name)
	encoded, plain := map[string]any{}, map[string]any{}
	for key, value := range data {
		encoded[key], plain[key] = base64.StdEncoding.EncodeToString(value), string(value)
	}
	switch {
	case pipe.Kind == "Secret":
		obj.Object["type"], obj.Object["data"] = "Opaque", encoded
	case pipe.EnvFile != "":
		obj.Object["data"] = plain
	default:
		obj.Object["binaryData"] = encoded
	}
	return obj
}

// environment reads lines of KEY=VALUE. It skips empty lines and comments.
func environment(content []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1) // a line may be all of it
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if problems := validation.IsConfigMapKey(key); !found || len(problems) > 0 {
			return nil, fmt.Errorf("line %d is not KEY=VALUE", n)
		}
		out[key] = []byte(value)
	}
	return out, lines.Err()
}
