package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// builtins are the functions that text/template has of itself, by name only, for the parser.
var builtins = map[string]any{
	"and": true, "or": true, "not": true, "len": true, "index": true, "slice": true, "call": true,
	"print": true, "printf": true, "println": true, "html": true, "js": true, "urlquery": true,
	"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true,
}

const (
	random      = "its result differs each time, so that objects would change with every run"
	environment = "it reads the environment of the controller"
	clock       = "it reads the clock, so that objects would change with every run"
	files       = "it works on the file paths of the controller"
)

// denied are functions that a template must not use, and why. The first six KUDO did not have either.
var denied = map[string]string{
	"env": environment, "expandenv": environment,
	"base": files, "dir": files, "clean": files, "ext": files, "isAbs": files,
	"osBase": files, "osDir": files, "osClean": files, "osExt": files, "osIsAbs": files,
	"getHostByName": "it asks the network",
	"now":           clock, "ago": clock, "durationRound": clock,
	"randAlphaNum": random, "randAlpha": random, "randAscii": random, "randNumeric": random, "randInt": random,
	"randBytes": random, "shuffle": random, "uuidv4": random,
	"genPrivateKey": random, "genCA": random, "genCAWithKey": random,
	"genSelfSignedCert": random, "genSelfSignedCertWithKey": random, "genSignedCert": random, "genSignedCertWithKey": random,
	"encryptAES": random, "bcrypt": random, "htpasswd": random,
}

// mutating are functions that change a map that they are given.
var mutating = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true,
}

// unguarded are the functions of templates as they are. Those that are denied are not among them.
var unguarded = sync.OnceValue(func() map[string]any {
	funcs := map[string]any{}
	for name, fn := range sprig.TxtFuncMap() {
		if _, ok := denied[name]; !ok {
			funcs[name] = fn
		}
	}
	for _, own := range []template.FuncMap{numbers, bounded, dates, formats, structures, dearFunctions()} {
		maps.Copy(funcs, own)
	}
	return funcs
})

// functions are all functions of templates, for the parser, and for what is not replaced for each rendering: see
// newExecutor. Those that are denied are among them, so that the parser accepts them and the linker can say why not.
var functions = sync.OnceValue(func() template.FuncMap {
	funcs := template.FuncMap{}
	for name, fn := range unguarded() {
		funcs[name] = guard(fn, func(int) {})
	}
	for name := range denied {
		funcs[name] = func(...any) (string, error) { return "", fmt.Errorf("the function %s is denied", name) }
	}
	// Replaced for each rendering, see newExecutor.
	funcs["include"] = func(path, name string, data any) (string, error) {
		return "", fmt.Errorf("include is not available here")
	}
	return funcs
})

// FunctionNames lists the functions that templates may use, sorted.
func FunctionNames() []string {
	names := maps.Clone(builtins)
	for name := range functions() {
		if _, ok := denied[name]; !ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// functionNames is FunctionNames without the names that are only older spellings.
func functionNames() []string {
	return slices.DeleteFunc(FunctionNames(), func(name string) bool { return strings.Contains(name, "_") })
}
