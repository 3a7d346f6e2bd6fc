package preview

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/test/env"
)

var digestOfTarball = regexp.MustCompile(`sha256: \S+`)

// version is the next version of a package, as mutations change it.
type version struct {
	files    files
	operator operators.OperatorFile
	params   map[string]any
	// values are arguments of the upgrade.
	values []string
	// tarballs are the versions of the application that have a CRD tarball.
	tarballs []string
	r        *rand.Rand
}

// mutation changes a version as its author may do, correctly or not, and reports whether it has found something to change.
type mutation func(v *version) bool

const (
	newConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  n: m\n"
	newJob       = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: '{{ .Name }}-new-job'\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n" +
		"      containers:\n        - name: job\n          image: job:2\n"
	newClaimTemplate = "{metadata: {name: more}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	unservedKind     = "apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: odd}\n"
	brokenTemplate   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ fail \"no\" }}'}\n"
)

// mutations are those of all packages, by name.
var mutations = map[string]mutation{
	"image":            edit(`(?m)^(\s*(?:- )?image: ).*$`, "${1}example.com/mutated:2"),
	"image of a job":   edit(`(?m)^(\s*(?:- )?)(?:image: .*|\{\{- include "\w+\.image" .*\}\})$`, "${1}image: example.com/mutated:3", "kind: Job"),
	"replicas":         edit(`(?m)^(\s*replicas: ).*$`, "${1}3"),
	"no replicas":      edit(`(?m)^(\s*replicas: ).*$`, "${1}0"),
	"quantity":         edit(`(?m)^(\s*cpu: ).*$`, "${1}20m"),
	"memory":           edit(`(?m)^(\s*memory: ).*$`, "${1}96Mi"),
	"storage":          edit(`(?m)^(\s*storage: ).*$`, "${1}7Gi"),
	"bad quantity":     edit(`(?m)^(\s*(?:cpu|memory|storage): ).*$`, "${1}banana"),
	"bad number":       edit(`(?m)^(\s*replicas: ).*$`, "${1}many"),
	"value":            edit(`(?m)^(data:\n  [\w.]+: )[^|\n]+$`, "${1}two"),
	"line of a file":   edit(`(: \|[+-]?\n)( +)`, "$1$2# mutated\n$2"),
	"key":              edit(`(?m)^(data|stringData):\n  [\w.]+:`, "$1:\n  mutated:"),
	"new key":          edit(`(?m)^(data|stringData):$`, "$1:\n  mutated: 'yes'"),
	"rename":           edit(`(?m)^(  name: [^'"\n]*)$`, "${1}-renamed"),
	"selector":         edit(`(?m)^( *)matchLabels:$`, "${1}matchLabels:\n$1  more: x"),
	"of a service":     edit(`(?m)^  selector:$`, "  selector:\n    more: x", "kind: Service"),
	"claim template":   edit(`(?m)^(  serviceName: .*)$`, "$1\n  volumeClaimTemplates: ["+newClaimTemplate+"]", "kind: StatefulSet"),
	"2 claim template": edit(`(?m)^  volumeClaimTemplates:\n( *)- `, "  volumeClaimTemplates:\n$1- "+newClaimTemplate+"\n$1- "),
	"port":             edit(`(?m)^(\s*(?:- )?(?:port|targetPort|containerPort): )\w+$`, "${1}7070"),
	"bad port":         edit(`(?m)^(\s*(?:- )?(?:port|containerPort): )\w+$`, "${1}99999"),
	"label":            edit(`(?m)^  labels:$`, "  labels:\n    mutated: 'yes'"),
	"label of pods":    edit(`(?m)^      labels:$`, "      labels:\n        mutated: 'yes'"),
	"annotation":       edit(`(?m)^metadata:$`, "metadata:\n  annotations: {mutated: 'yes'}"),
	"keep":             edit(`(?m)^metadata:$`, "metadata:\n  annotations: {kudo.dev/keep: 'true'}"),
	"wrong type":       edit(`(?m)^metadata:$`, "metadata:\n  finalizers: 7"),
	"unknown field":    edit(`(?m)^spec:$`, "spec:\n  nonsense: true"),
	"immutable":        edit(`(?m)^data:$`, "immutable: true\ndata:", "kind: ConfigMap"),
	"no mount":         edit(`(?s)\n      volumes:.*?(\n---|$)`, "\n$1"),
	"strategy":         edit(`(?m)^(spec:\n  replicas: .*)$`, "$1\n  strategy: {type: Recreate}", "kind: Deployment"),
	"shorter text":     edit(`maxLength: \d+`, "maxLength: 3", "kind: CustomResourceDefinition"),
	"longer text":      edit(`maxLength: \d+`, "maxLength: 900", "kind: CustomResourceDefinition"),
	"another type":     edit(`type: string`, "type: integer", "kind: CustomResourceDefinition"),
	"new column":       edit(`(?m)^( +)schema:$`, "${1}additionalPrinterColumns: [{name: Age, type: date, jsonPath: .metadata.creationTimestamp}]\n${1}schema:", "kind: CustomResourceDefinition"),
	"rules":            edit(`verbs: \[get, list, watch\]`, "verbs: [get, list]"),
	"new object":       add(fmt.Sprintf(newConfigMap, "'{{ .Name }}-new'")),
	"new secret":       add("apiVersion: v1\nkind: Secret\nmetadata:\n  name: '{{ .Name }}-new'\nstringData:\n  n: m\n"),
	"foreign object":   add(fmt.Sprintf(newConfigMap, "foreign")),
	"new job":          add(newJob),
	"unserved kind":    add(unservedKind),
	"broken template":  add(brokenTemplate),
	"share updates":    shareUpdates,
	"drop document":    dropDocument,
	"drop template":    dropTemplate,
	"drop task":        dropTask,
	"drop step":        dropStep,
	"drop phase":       dropPhase,
	"rename step":      renameStep,
	"new step":         newStep,
	"failing step":     failingStep,
	"other order":      reverseSteps,
	"side by side":     runParallel,
	"delete first":     deleteFirst,
	"new plan":         newPlan,
	"drop plan":        dropPlan,
	"default":          changeDefault,
	"given value":      giveValue,
	"new parameter":    newParameter,
	"other tarball":    changeTarball,
}

// next makes the next version of a package by the mutations of a seed, and names these.
func (b base) next(t *testing.T, seed int64) (*version, []string) {
	t.Helper()
	h := fnv.New64()
	_, _ = fmt.Fprint(h, b.name, seed)
	r := rand.New(rand.NewSource(int64(h.Sum64())))
	v := b.version(t, r)
	names := slices.Sorted(maps.Keys(mutations))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var made []string
	for wanted := 1 + r.Intn(3); len(names) > 0 && len(made) < wanted; names = names[1:] {
		if mutations[names[0]](v) {
			made = append(made, names[0])
		}
	}
	v.seal(t)
	return v, made
}

func (b base) version(t *testing.T, r *rand.Rand) *version {
	t.Helper()
	v := &version{files: maps.Clone(b.files), operator: b.files.read(t), r: r, tarballs: slices.Sorted(maps.Keys(b.tarballs))}
	env.Must(t, yaml.Unmarshal([]byte(b.files["params.yaml"]), &v.params))
	v.operator.OperatorVersion = "77.0.0"
	return v
}

// seal writes the parsed parts of the version into its files.
func (v *version) seal(t *testing.T) {
	t.Helper()
	for path, value := range map[string]any{"operator.yaml": v.operator, "params.yaml": v.params} {
		text, err := yaml.Marshal(value)
		env.Must(t, err)
		v.files[path] = string(text)
	}
}

// edit replaces one match of a pattern in one of the templates that hold some words.
func edit(pattern, replacement string, words ...string) mutation {
	matches := regexp.MustCompile(pattern)
	return func(v *version) bool {
		type place struct {
			path  string
			match []int
		}
		var places []place
		for _, name := range v.files.templates() {
			text := v.files["templates/"+name]
			if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
				continue
			}
			for _, match := range matches.FindAllStringSubmatchIndex(text, -1) {
				places = append(places, place{"templates/" + name, match})
			}
		}
		if len(places) == 0 {
			return false
		}
		at := places[v.r.Intn(len(places))]
		text := v.files[at.path]
		v.files[at.path] = text[:at.match[0]] + string(matches.ExpandString(nil, replacement, text, at.match)) + text[at.match[1]:]
		return true
	}
}

// add adds a template to a task that applies.
func add(text string) mutation {
	return func(v *version) bool {
		task := v.task(v1beta1.ApplyTask, 1)
		if task == nil {
			return false
		}
		name := fmt.Sprintf("new-%d.yaml", len(v.files))
		v.files["templates/"+name] = text
		task.Spec.Resources = append(task.Spec.Resources, name)
		return true
	}
}

// task picks a task of a kind with a number of templates or more; nil if there is none.
func (v *version) task(kind string, least int) *v1beta1.Task {
	var found []*v1beta1.Task
	for i := range v.operator.Tasks {
		if t := &v.operator.Tasks[i]; t.Kind == kind && len(t.Spec.Resources) >= least {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[v.r.Intn(len(found))]
}

// planNames are those of the plans that an upgrade may run, and of the install plan.
func (v *version) planNames() []string {
	var out []string
	for _, name := range []string{"upgrade", "update", "deploy"} {
		if _, has := v.operator.Plans[name]; has {
			out = append(out, name)
			break
		}
	}
	if v.operator.InstallPlan != "" {
		out = append(out, v.operator.InstallPlan)
	}
	return out
}

// phase picks a phase with a number of steps or more of a plan that runs; nil if there is none.
func (v *version) phase(least int) *v1beta1.Phase {
	var found []*v1beta1.Phase
	for _, name := range v.planNames() {
		for i := range v.operator.Plans[name].Phases {
			if p := &v.operator.Plans[name].Phases[i]; len(p.Steps) >= least {
				found = append(found, p)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[v.r.Intn(len(found))]
}

func shareUpdates(v *version) bool {
	v.operator.InstallPolicy = &v1beta1.InstallPolicy{SharedUpdates: v1beta1.SameOperatorUpdates}
	return v.operator.InstallPlan != ""
}

func dropDocument(v *version) bool {
	var found []string
	for _, name := range v.files.templates() {
		if strings.Contains(v.files["templates/"+name], "\n---\n") {
			found = append(found, "templates/"+name)
		}
	}
	if len(found) == 0 {
		return false
	}
	path := found[v.r.Intn(len(found))]
	documents := strings.Split(v.files[path], "\n---\n")
	i := v.r.Intn(len(documents))
	v.files[path] = strings.Join(slices.Delete(documents, i, i+1), "\n---\n")
	return true
}

func dropTemplate(v *version) bool {
	task := v.task(v1beta1.ApplyTask, 2)
	if task == nil {
		return false
	}
	i := v.r.Intn(len(task.Spec.Resources))
	task.Spec.Resources = slices.Delete(task.Spec.Resources, i, i+1)
	return true
}

func dropTask(v *version) bool {
	phase := v.phase(1)
	if phase == nil {
		return false
	}
	step := &phase.Steps[v.r.Intn(len(phase.Steps))]
	if len(step.Tasks) == 0 {
		return false
	}
	step.Tasks = step.Tasks[1:]
	return true
}

func dropStep(v *version) bool {
	phase := v.phase(2)
	if phase == nil {
		return false
	}
	i := v.r.Intn(len(phase.Steps))
	phase.Steps = slices.Delete(phase.Steps, i, i+1)
	return true
}

func dropPhase(v *version) bool {
	name := v.planNames()[0]
	plan := v.operator.Plans[name]
	if len(plan.Phases) < 2 {
		return false
	}
	i := v.r.Intn(len(plan.Phases))
	plan.Phases = slices.Delete(plan.Phases, i, i+1)
	v.operator.Plans[name] = plan
	return true
}

func renameStep(v *version) bool {
	phase := v.phase(1)
	if phase == nil {
		return false
	}
	phase.Name += "-2"
	phase.Steps[v.r.Intn(len(phase.Steps))].Name = "renamed"
	return true
}

// addStep adds a step with a task of its own to a phase, at its begin or its end.
func (v *version) addStep(task v1beta1.Task, first bool) bool {
	phase := v.phase(1)
	if phase == nil || slices.ContainsFunc(v.operator.Tasks, func(t v1beta1.Task) bool { return t.Name == task.Name }) {
		return false
	}
	v.operator.Tasks = append(v.operator.Tasks, task)
	step := v1beta1.Step{Name: task.Name, Tasks: []string{task.Name}}
	if first {
		phase.Steps = append([]v1beta1.Step{step}, phase.Steps...)
	} else {
		phase.Steps = append(phase.Steps, step)
	}
	return true
}

func newStep(v *version) bool {
	v.files["templates/new-step.yaml"] = fmt.Sprintf(newConfigMap, "'{{ .Name }}-of-a-new-step'")
	spec := v1beta1.TaskSpec{Resources: []string{"new-step.yaml"}}
	return v.addStep(v1beta1.Task{Name: "new-step", Kind: v1beta1.ApplyTask, Spec: spec}, v.r.Intn(2) == 0)
}

func failingStep(v *version) bool {
	spec := v1beta1.TaskSpec{WantErr: true, Fatal: true}
	return v.addStep(v1beta1.Task{Name: "failing", Kind: v1beta1.DummyTask, Spec: spec}, v.r.Intn(2) == 0)
}

// deleteFirst deletes what a task applies before it is applied, so that it is made anew.
func deleteFirst(v *version) bool {
	applies := v.task(v1beta1.ApplyTask, 1)
	if applies == nil {
		return false
	}
	i := v.r.Intn(len(applies.Spec.Resources))
	spec := v1beta1.TaskSpec{Resources: slices.Clone(applies.Spec.Resources[i : i+1])}
	return v.addStep(v1beta1.Task{Name: "delete-first", Kind: v1beta1.DeleteTask, Spec: spec}, true)
}

func reverseSteps(v *version) bool {
	phase := v.phase(2)
	if phase == nil {
		return false
	}
	slices.Reverse(phase.Steps)
	return true
}

func runParallel(v *version) bool {
	phase := v.phase(2)
	if phase == nil {
		return false
	}
	phase.Strategy = v1beta1.Parallel
	return true
}

// newPlan adds a plan for upgrades, whose phases are those of plan deploy, the last first.
func newPlan(v *version) bool {
	if _, has := v.operator.Plans["upgrade"]; has {
		return false
	}
	plan := v.operator.Plans["deploy"]
	plan.Phases = slices.Clone(plan.Phases)
	slices.Reverse(plan.Phases)
	v.operator.Plans["upgrade"] = plan
	return true
}

func dropPlan(v *version) bool {
	name := v.planNames()[0]
	if name == "deploy" {
		return false
	}
	delete(v.operator.Plans, name)
	return true
}

// parameter picks a parameter that has a default; nil if none has.
func (v *version) parameter() map[string]any {
	list, _ := v.params["parameters"].([]any)
	var found []map[string]any
	for _, item := range list {
		if p, _ := item.(map[string]any); p["default"] != nil {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[v.r.Intn(len(found))]
}

// another is a value that a parameter may have beside its default.
func another(value any) any {
	switch value := value.(type) {
	case float64:
		return value + 1
	case bool:
		return !value
	case string:
		switch {
		case regexp.MustCompile(`^\d+(Mi|Gi|m)$`).MatchString(value):
			return "2" + value
		case regexp.MustCompile(`^\d+$`).MatchString(value):
			return value + "1"
		}
		return value + "x"
	}
	return value
}

func changeDefault(v *version) bool {
	p := v.parameter()
	if p == nil {
		return false
	}
	p["default"] = another(p["default"])
	return true
}

func giveValue(v *version) bool {
	p := v.parameter()
	if p == nil {
		return false
	}
	value, err := yaml.Marshal(another(p["default"]))
	v.values = append(v.values, "-p", fmt.Sprintf("%s=%s", p["name"], strings.TrimSpace(string(value))))
	return err == nil
}

func newParameter(v *version) bool {
	list, _ := v.params["parameters"].([]any)
	v.params["parameters"] = append(list, map[string]any{"name": "BRAND_NEW", "default": "1"})
	return edit(`(?m)^metadata:$`, "metadata:\n  annotations: {mutated: '{{ .Params.BRAND_NEW }}'}")(v)
}

func changeTarball(v *version) bool {
	if len(v.tarballs) == 0 {
		return false
	}
	v.operator.AppVersion = v.tarballs[1+v.r.Intn(len(v.tarballs)-1)]
	return true
}
