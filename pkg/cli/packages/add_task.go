package packages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/edit"
	"kudo.dev/kudo/pkg/cli/command"
)

// taskKinds are the kinds of tasks, and the flags that go with each.
func taskKinds() map[string][]string {
	return map[string][]string{
		v1beta1.ApplyTask:        {"resource"},
		v1beta1.DeleteTask:       {"resource"},
		v1beta1.ToggleTask:       {"resource", "parameter"},
		v1beta1.PipeTask:         {"pod", "pipe"},
		v1beta1.KudoOperatorTask: {"operator", "app-version", "operator-version", "instance-name", "parameter-file"},
		v1beta1.DummyTask:        {"done", "want-err", "fatal"},
	}
}

func kindNames() []string {
	return []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask, v1beta1.PipeTask, v1beta1.KudoOperatorTask, v1beta1.DummyTask}
}

type addTaskOptions struct {
	task  edit.Task
	pipes []string
	done  bool
}

func newAddTask(o *addOptions) *cobra.Command {
	p := &addTaskOptions{}
	cmd := &cobra.Command{
		Use: "task [NAME]", Short: "Add a task", Args: maxArgs(1, "the name of the task"),
		Long: `Add a task of any kind. Templates that it names must be there.

  kubectl kudo package add task server --kind Apply --resource server.yaml --resource service.yaml
  kubectl kudo package add task ingress --kind Toggle --resource ingress.yaml --parameter INGRESS
  kubectl kudo package add task keys --kind Pipe --pod keys.yaml --pipe key=keys,kind=Secret,file=/tmp/key.pem
  kubectl kudo package add task queue --kind KudoOperator --operator zookeeper --operator-version 0.3.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for kind, flags := range taskKinds() {
				for _, flag := range flags {
					if cmd.Flags().Changed(flag) && p.task.Kind != "" && !slices.Contains(taskKinds()[p.task.Kind], flag) {
						return command.UsageError("--%s requires a task of kind %s, and the kind is %s", flag, kind, p.task.Kind)
					}
				}
			}
			return o.addTask(p, args)
		},
	}
	f, spec := cmd.Flags(), &p.task.Spec
	f.StringVar(&p.task.Kind, "kind", "", strings.Join(kindNames(), ", "))
	f.StringSliceVar(&spec.Resources, "resource", nil, "template of Apply, Delete and Toggle; may be repeated")
	f.StringVar(&spec.Parameter, "parameter", "", "parameter that decides what Toggle does")
	f.StringVar(&spec.Pod, "pod", "", "template of the pod of Pipe")
	f.StringArrayVar(&p.pipes, "pipe", nil, "what Pipe makes, as key=KEY,kind=Secret|ConfigMap,file=PATH or envFile=PATH, and "+
		"nameSuffix=SUFFIX for objects named INSTANCE-SUFFIX; may be repeated")
	f.BoolVar(&spec.Once, "once", false, "Pipe makes its objects only if none of them exists, and keeps them on uninstall")
	f.StringVar(&spec.Package, "operator", "", "package that KudoOperator installs: a name in a repository, a path, or a URL")
	f.StringVar(&spec.AppVersion, "app-version", "", "its appVersion, or a range")
	f.StringVar(&spec.OperatorVersion, "operator-version", "", "its operatorVersion, or a range")
	f.StringVar(&spec.InstanceName, "instance-name", "", "name of its Instance")
	f.StringVar(&spec.ParameterFile, "parameter-file", "", "template of its parameters")
	f.BoolVar(&p.done, "done", true, "whether Dummy is done at once")
	f.BoolVar(&spec.WantErr, "want-err", false, "Dummy fails")
	f.BoolVar(&spec.Fatal, "fatal", false, "the error of Dummy is fatal: it is not retried")
	return cmd
}

func (o *addOptions) addTask(p *addTaskOptions, args []string) error {
	ask, err := o.openPrompter(args, "the task")
	if err != nil {
		return err
	}
	dir, pkg, err := o.open()
	if err != nil {
		return err
	}
	task := &p.task
	task.Name = strings.Join(args, "")
	if ask != nil {
		if err := p.ask(ask); err != nil {
			return err
		}
	}
	if task.Name == "" || taskKinds()[task.Kind] == nil {
		return command.UsageError("a task needs a name, and a --kind that is one of %s", strings.Join(kindNames(), ", "))
	}
	for _, text := range p.pipes {
		pipe, err := parsePipe(text)
		if err != nil {
			return err
		}
		task.Spec.Pipe = append(task.Spec.Pipe, pipe)
	}
	if task.Kind == v1beta1.DummyTask {
		task.Spec.Done = &p.done
	}
	for _, other := range pkg.Operator.Tasks {
		if other.Name == task.Name {
			return fmt.Errorf("the package has a task %q already", task.Name)
		}
	}
	return insertEntry(o.env, dir, pkg, operators.OperatorFileName, "task "+task.Name, edit.Entry{List: "tasks", Value: *task})
}

// parsePipe reads key=KEY,kind=KIND,file=PATH.
func parsePipe(text string) (edit.Pipe, error) {
	pipe := edit.Pipe{}
	for _, field := range command.SplitList(text) {
		name, value, _ := strings.Cut(field, "=")
		into := map[string]*string{"key": &pipe.Key, "kind": &pipe.Kind, "file": &pipe.File, "envFile": &pipe.EnvFile,
			"nameSuffix": &pipe.NameSuffix}[name]
		if into == nil || value == "" {
			return pipe, command.UsageError("--pipe %q: must be key=KEY,kind=Secret|ConfigMap,file=PATH or envFile=PATH, and optionally "+
				"nameSuffix=SUFFIX", text)
		}
		*into = value
	}
	return pipe, nil
}

// ask asks for what the kind of task needs.
func (p *addTaskOptions) ask(a *command.Prompter) error {
	spec := &p.task.Spec
	if err := inOrder([]func() error{
		func() error { return a.RequiredText(&p.task.Name, "Name") },
		func() error { return a.Choose(&p.task.Kind, "Kind", kindNames()) },
	}); err != nil {
		return err
	}
	resources := func() error { return a.List(&spec.Resources, "Templates") }
	switch p.task.Kind {
	case v1beta1.ApplyTask, v1beta1.DeleteTask:
		return resources()
	case v1beta1.ToggleTask:
		return inOrder([]func() error{resources, func() error { return a.RequiredText(&spec.Parameter, "Parameter that decides") }})
	case v1beta1.PipeTask:
		return p.askPipe(a)
	case v1beta1.KudoOperatorTask:
		return inOrder([]func() error{
			func() error {
				return a.RequiredText(&spec.Package, "Package: a name in a repository, a path, or a URL")
			},
			func() error { return a.Text(&spec.AppVersion, "Its appVersion (empty for any)") },
			func() error { return a.Text(&spec.OperatorVersion, "Its operatorVersion (empty for any)") },
			func() error { return a.Text(&spec.InstanceName, "Name of its Instance (empty for the usual one)") },
			func() error { return a.Text(&spec.ParameterFile, "Template of its parameters (empty for none)") },
		})
	}
	return a.Confirm(&p.done, "Is it done at once?")
}

func (p *addTaskOptions) askPipe(a *command.Prompter) error {
	if err := a.RequiredText(&p.task.Spec.Pod, "Template of the pod"); err != nil {
		return err
	}
	for more := true; more; {
		pipe := edit.Pipe{Kind: "Secret"}
		err := inOrder([]func() error{
			func() error { return a.RequiredText(&pipe.File, "File in the pod") },
			func() error { return a.Choose(&pipe.Kind, "What it becomes", []string{"Secret", "ConfigMap"}) },
			func() error { return a.RequiredText(&pipe.Key, "Key by which templates know it") },
			func() error { more = false; return a.Confirm(&more, "Another file?") },
		})
		if err != nil {
			return err
		}
		p.task.Spec.Pipe = append(p.task.Spec.Pipe, pipe)
	}
	return nil
}
