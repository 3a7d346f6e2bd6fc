package karmada

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// refused are the functions that Karmada's machines have not, though kudo's may.
var refused = []string{
	"string.rep", "string.gsub", "string.dump", ":rep", ":gsub", "load", "loadstring", "loadfile", "dofile", "module", "getmetatable",
	"setmetatable", "rawget", "rawset", "rawequal", "getfenv", "setfenv", "newproxy", "collectgarbage",
}

// emptyForNil are the operations whose function must return a table for Karmada, where kudo takes nil for an empty one.
var emptyForNil = []explore.Operation{explore.Status, explore.Dependencies}

// convertScript returns a script of an operation as Karmada's interpreters run it: the chunk defines the operation's function, and
// returns a table where kudo takes nil. The warnings name what Karmada's machines do otherwise. The script must be one that lua.Compile
// accepts.
func convertScript(operation explore.Operation, source string) (script string, warnings []string, err error) {
	entry, err := lua.EntryOf(operation)
	if err != nil {
		return "", nil, err
	}
	facts, err := sandbox.Inspect(source, entry)
	if err != nil {
		return "", nil, err
	}
	for _, use := range facts.Uses {
		if slices.Contains(refused, use.Name) {
			warnings = append(warnings, fmt.Sprintf("line %d: Karmada has no %s", use.Line, strings.TrimPrefix(use.Name, ":")))
		}
	}
	if facts.Local {
		warnings = append(warnings, fmt.Sprintf("%s is local: Karmada calls a global function", entry.Name))
	}
	for _, name := range facts.Globals {
		warnings = append(warnings, fmt.Sprintf("%s is a global: another script may find its value, as scripts share machines there", name))
	}
	script = strings.TrimRight(source, "\n") + "\n"
	if facts.Body {
		script = functionOf(entry, script)
	}
	if slices.Contains(emptyForNil, operation) {
		script += fmt.Sprintf("\nlocal interpret = %[1]s\nfunction %[1]s(%[2]s)\n  local result = interpret(%[2]s)\n  if result == nil then\n"+
			"    result = {}\n  end\n  return result\nend\n", entry.Name, strings.Join(entry.Parameters, ", "))
	}
	return script, warnings, nil
}

// functionOf returns the function of an entry with the given body.
func functionOf(entry sandbox.Entry, body string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "function %s(%s)\n", entry.Name, strings.Join(entry.Parameters, ", "))
	for _, alias := range slices.Sorted(maps.Keys(entry.Aliases)) {
		fmt.Fprintf(&out, "  local %s = %s\n", alias, entry.Aliases[alias])
	}
	return out.String() + body + "end\n"
}
