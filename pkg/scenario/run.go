package scenario

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/shlex"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Runner runs cases on a cluster.
type Runner struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
	// Kubeconfig and Path are the environment of commands.
	Kubeconfig, Path string
	// Timeout for what must hold after a step.
	Timeout time.Duration
	// Log is told what happens.
	Log func(format string, args ...any)
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Run runs a case in a namespace of its own, which is deleted afterwards.
func (r *Runner) Run(ctx context.Context, c *Case) error {
	name, err := r.makeNamespace(ctx)
	if err != nil {
		return err
	}
	defer r.dropNamespace(context.WithoutCancel(ctx), name)
	for i := range c.Steps {
		step := &c.Steps[i]
		r.Log("step %02d-%s", step.Index, step.Name)
		if err := r.step(ctx, c, step, name); err != nil {
			return fmt.Errorf("step %02d-%s: %w", step.Index, step.Name, err)
		}
	}
	return nil
}

func (r *Runner) makeNamespace(ctx context.Context) (string, error) {
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	obj.SetName("kudo-test-" + hex.EncodeToString(random))
	_, err := r.Client.Resource(namespaces).Create(ctx, obj, metav1.CreateOptions{})
	return obj.GetName(), err
}

// dropNamespace deletes a case's namespace, and waits until it is gone.
func (r *Runner) dropNamespace(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	events, err := r.Client.Resource(namespaces).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return
	}
	defer events.Stop()
	if err := r.Client.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return
	}
	for e := range events.ResultChan() {
		if e.Type == "DELETED" {
			return
		}
	}
	r.Log("namespace %s does not go", name)
}

func (r *Runner) step(ctx context.Context, c *Case, step *Step, namespace string) error {
	timeout := r.Timeout
	if step.Timeout != 0 {
		timeout = step.Timeout
	}
	view, err := r.observe(ctx, step, namespace)
	if err != nil {
		return err
	}
	defer view.stop()
	for _, target := range step.Deletes {
		if err := r.delete(ctx, target, namespace); err != nil {
			return err
		}
	}
	for _, command := range step.Commands {
		if err := r.command(ctx, c, command, namespace); err != nil {
			return err
		}
	}
	for _, obj := range step.Applies {
		if err := r.apply(ctx, obj, namespace); err != nil {
			return err
		}
	}
	return view.await(ctx, timeout)
}

// command runs a command in the case's folder.
func (r *Runner) command(ctx context.Context, c *Case, command Command, namespace string) error {
	if command.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, command.Timeout)
		defer cancel()
	}
	args, err := arguments(command, namespace)
	if err != nil {
		return err
	}
	r.Log("$ %s", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "NAMESPACE="+namespace, "KUBECONFIG="+r.Kubeconfig, "PATH="+r.Path)
	if cmd.Path, err = r.lookPath(args[0]); err != nil {
		return err
	}
	cmd.Err = nil
	output, err := cmd.CombinedOutput()
	if len(output) > 0 {
		r.Log("%s", indent(string(output)))
	}
	if err != nil && !command.IgnoreFailure {
		return fmt.Errorf("command %q: %w\n%s", strings.Join(args, " "), err, indent(string(output)))
	}
	return nil
}

// lookPath finds a program in the commands' PATH.
func (r *Runner) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range strings.Split(r.Path, ":") {
		if path, err := exec.LookPath(dir + "/" + name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in PATH", name)
}

func arguments(command Command, namespace string) ([]string, error) {
	if command.Script != "" {
		return []string{"sh", "-c", command.Script}, nil
	}
	args, err := shlex.Split(os.Expand(command.Command, func(name string) string {
		if name == "NAMESPACE" {
			return namespace
		}
		return os.Getenv(name)
	}))
	if err != nil || len(args) == 0 {
		return nil, fmt.Errorf("command %q cannot be split into words: %w", command.Command, err)
	}
	if command.Namespaced {
		args = append(args, "--namespace", namespace)
	}
	return args, nil
}

// resource returns the client of an object's kind, in the case's namespace if the object names none.
func (r *Runner) resource(obj *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return r.Client.Resource(mapping.Resource), nil
	}
	if obj.GetNamespace() != "" {
		namespace = obj.GetNamespace()
	}
	return r.Client.Resource(mapping.Resource).Namespace(namespace), nil
}

// apply sends an object that exists as a JSON merge patch, and creates it otherwise.
func (r *Runner) apply(ctx context.Context, obj *unstructured.Unstructured, namespace string) error {
	resource, err := r.resource(obj, namespace)
	if err != nil {
		return err
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = resource.Create(ctx, obj.DeepCopy(), metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	if r.Log != nil {
		r.Log("applied %s %s", obj.GetKind(), obj.GetName())
	}
	return nil
}

func (r *Runner) delete(ctx context.Context, obj *unstructured.Unstructured, namespace string) error {
	resource, err := r.resource(obj, namespace)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = resource.Delete(ctx, obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Create applies the objects of a file; those that name no namespace go to the one that is given.
func (r *Runner) Create(ctx context.Context, file, namespace string) error {
	objs, err := Documents(file)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if err := r.apply(ctx, obj, namespace); err != nil {
			return err
		}
	}
	return nil
}
