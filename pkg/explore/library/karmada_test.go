package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	glua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apijson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/karmada"
	"kudo.dev/kudo/pkg/explore/pods"
)

// interpreter answers by customizations, in one machine with the libraries that Karmada's machines have: numbers are floating-point, and all
// scripts share the globals.
type interpreter struct {
	machine *glua.LState
	scripts map[subject]string
}

// functions are those that Karmada calls.
var functions = map[explore.Operation]string{
	explore.Retaining: "Retain", explore.Healthy: "InterpretHealth", explore.Dependencies: "GetDependencies", explore.Replica: "GetReplicas",
	explore.Components: "GetComponents", explore.ReplicaRevising: "ReviseReplica", explore.Status: "ReflectStatus",
	explore.StatusAggregating: "AggregateStatus",
}

// newInterpreter makes an interpreter with what some rules become for Karmada. The test fails if something of them has no counterpart there.
func newInterpreter(t testing.TB, configs []v1alpha1.Config) *interpreter {
	t.Helper()
	i := &interpreter{machine: glua.NewState(glua.Options{SkipOpenLibs: true}), scripts: map[subject]string{}}
	t.Cleanup(i.machine.Close)
	for name, open := range map[string]glua.LGFunction{
		glua.LoadLibName: glua.OpenPackage, glua.BaseLibName: glua.OpenBase, glua.TabLibName: glua.OpenTable, glua.StringLibName: glua.OpenString,
		glua.MathLibName: glua.OpenMath,
	} {
		i.machine.Push(i.machine.NewFunction(open))
		i.machine.Push(glua.LString(name))
		i.machine.Call(1, 0)
	}
	for _, name := range []string{"load", "loadstring", "loadfile", "dofile", "module", "getmetatable", "setmetatable", "rawget", "rawset", "rawequal", "getfenv",
		"setfenv", "newproxy", "collectgarbage"} {
		i.machine.SetGlobal(name, glua.LNil)
	}
	library := i.machine.GetGlobal("string").(*glua.LTable)
	for _, name := range []string{"rep", "gsub", "dump"} {
		library.RawSetString(name, glua.LNil)
	}
	i.machine.PreloadModule("kube", func(l *glua.LState) int {
		l.Push(l.SetFuncs(l.NewTable(), kubeFunctions))
		return 1
	})
	customizations, warnings, err := karmada.FromConfigs(configs, nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v: %s", err, strings.Join(warnings, "\n"))
	}
	for _, customization := range customizations {
		i.add(t, customization)
	}
	return i
}

// add registers the scripts of a customization. The test fails if the interpreter has a script for the same kind and operation.
func (i *interpreter) add(t testing.TB, customization map[string]any) {
	t.Helper()
	spec := customization["spec"].(map[string]any)
	target := spec["target"].(map[string]any)
	for key, rule := range spec["customizations"].(map[string]any) {
		operation, _ := karmada.OperationOf(key)
		at := subject{schema.FromAPIVersionAndKind(target["apiVersion"].(string), target["kind"].(string)), operation}
		if i.scripts[at] != "" {
			t.Errorf("there are two customizations of %v", at)
		}
		i.scripts[at] = rule.(map[string]any)["luaScript"].(string)
	}
}

func (i *interpreter) Layer() explore.Layer { return explore.Library }

func (i *interpreter) Explore(_ context.Context, r explore.Request) (answer explore.Answer, known bool, err error) {
	script, known := i.scripts[subject{r.Object.GroupVersionKind(), r.Operation}]
	if !known {
		return explore.Answer{}, false, nil
	}
	results, err := i.call(script, r)
	if err != nil {
		return explore.Answer{}, false, err
	}
	switch r.Operation {
	case explore.Healthy:
		healthy, isBool := results[0].(glua.LBool)
		if !isBool {
			return answer, false, fmt.Errorf("a %s is no boolean", results[0].Type())
		}
		answer.Healthy = bool(healthy)
	case explore.Replica:
		answer.Replicas = int32(results[0].(glua.LNumber))
		if results[1] != glua.LNil {
			err = convert(exploretest.FromLua(results[1]), &answer.Requirements)
		}
	case explore.Dependencies:
		err = convert(listOf(results[0]), &answer.Dependencies)
	case explore.Components:
		err = convert(listOf(results[0]), &answer.Components)
	case explore.Status:
		if results[0] == glua.LNil {
			return answer, false, errors.New("nil is no status")
		}
		err = convert(exploretest.FromLua(results[0]), &answer.Status)
	default:
		answer.Object = &unstructured.Unstructured{}
		err = convert(exploretest.FromLua(results[0]), &answer.Object.Object)
	}
	return answer, true, err
}

// call calls the function of a script for a request.
func (i *interpreter) call(script string, r explore.Request) ([2]glua.LValue, error) {
	l := i.machine
	if err := l.DoString(script); err != nil {
		return [2]glua.LValue{}, err
	}
	arguments := []glua.LValue{exploretest.ToLua(l, r.Object.Object)}
	switch r.Operation {
	case explore.Retaining:
		arguments = append(arguments, exploretest.ToLua(l, r.Observed.Object))
	case explore.ReplicaRevising:
		arguments = append(arguments, glua.LNumber(r.Replicas))
	case explore.StatusAggregating:
		var items any
		if err := convert(r.Items, &items); err != nil {
			return [2]glua.LValue{}, err
		}
		arguments = append(arguments, exploretest.ToLua(l, items))
	}
	if err := l.CallByParam(glua.P{Fn: l.GetGlobal(functions[r.Operation]), NRet: 2, Protect: true}, arguments...); err != nil {
		return [2]glua.LValue{}, err
	}
	results := [2]glua.LValue{l.Get(-2), l.Get(-1)}
	l.Pop(2)
	return results, nil
}

// kubeFunctions are the module kube.
var kubeFunctions = map[string]glua.LGFunction{
	"resourceAdd": func(l *glua.LState) int {
		var sum resource.Quantity
		for n := 1; n <= l.GetTop(); n++ {
			if text, isText := l.Get(n).(glua.LString); isText {
				sum.Add(resource.MustParse(string(text)))
			}
		}
		l.Push(glua.LString(sum.String()))
		return 1
	},
	"getResourceQuantity": func(l *glua.LState) int {
		made := resource.MustParse(l.CheckString(1))
		l.Push(glua.LNumber(made.AsApproximateFloat64()))
		return 1
	},
	"accuratePodRequirements": func(l *glua.LState) int {
		return pushJSON(l, pods.Requirements(&podTemplate(l).Spec))
	},
	"getPodDependencies": func(l *glua.LState) int {
		return pushJSON(l, pods.Dependencies(&podTemplate(l).Spec, l.CheckString(2)))
	},
}

func podTemplate(l *glua.LState) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{}
	if err := convert(exploretest.FromLua(l.CheckTable(1)), template); err != nil {
		l.RaiseError("%v", err)
	}
	return template
}

func pushJSON(l *glua.LState, value any) int {
	var plain any
	if err := convert(value, &plain); err != nil {
		l.RaiseError("%v", err)
	}
	l.Push(exploretest.ToLua(l, plain))
	return 1
}

// convert converts a value by JSON.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return apijson.Unmarshal(text, to)
}

// listOf makes a list of a table; an empty one is an empty list.
func listOf(value glua.LValue) any {
	if list, isList := exploretest.FromLua(value).([]any); isList {
		return list
	}
	return []v1alpha1.DependentObjectReference{}
}

// TestKarmadaAnswers is C21: what the rules become for Karmada gives the answers that the rules give, in all cases. Karmada has neither messages nor
// outcomes of health.
func TestKarmadaAnswers(t *testing.T) {
	configs, err := Configs()
	if err != nil {
		t.Fatal(err)
	}
	i, ran := newInterpreter(t, configs), 0
	for _, folder := range folders(t) {
		ran += i.run(t, folder)
	}
	if ran < 100 {
		t.Errorf("%d cases ran", ran)
	}
}

// run asks the cases of a folder, and returns how many they are.
func (i *interpreter) run(t *testing.T, folder cases.Folder) int {
	t.Helper()
	for n := range folder.Cases {
		c := folder.Cases[n]
		c.Output = maps.Clone(c.Output)
		delete(c.Output, "message")
		delete(c.Output, "outcome")
		if failures, _ := cases.Run(t.Context(), i, &c); len(failures) > 0 {
			t.Errorf("%s: %s (%s): %s", folder.Path, c.Name, c.Request.Operation, strings.Join(failures, "\n  "))
		}
	}
	return len(folder.Cases)
}
