package sandbox

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// exporter makes JSON values of Lua values. Results share nothing with arguments.
//
//	table                                   JSON value
//	not looked into                         what it came from
//	keys 1..n only                          list
//	text keys only                          map; null entries of its origin that were not set stay
//	empty, from JSON                        what it was: {} or []
//	empty, made by the script               what the examples have in this place, or nothing
type exporter struct {
	m    *machine
	size int
	path []string
	// examples are looked at for what an empty table is.
	examples []any
}

var errNothing = errors.New("nothing")

// out converts a result.
func (x *exporter) out(value glua.LValue) (any, error) {
	converted, err := x.value(value, nil)
	if errors.Is(err, errNothing) {
		return map[string]any{}, nil
	}
	return converted, err
}

func (x *exporter) fail(format string, args ...any) error {
	where := "the result"
	if len(x.path) > 0 {
		where += "'s field " + strings.Join(x.path, ".")
	}
	return fmt.Errorf("%s %s", where, fmt.Sprintf(format, args...))
}

// count adds to the size of the output.
func (x *exporter) count(bytes int) error {
	x.size += bytes
	if x.size > x.m.meter.limits.Output {
		return &LimitError{"output", fmt.Sprintf("%d bytes", x.m.meter.limits.Output)}
	}
	return nil
}

// value converts; was is what the place held before, nil if that is not known.
func (x *exporter) value(value glua.LValue, was any) (any, error) {
	switch v := value.(type) {
	case *glua.LNilType:
		return nil, nil
	case glua.LBool:
		if old, ok := was.(bool); ok && old == bool(v) {
			return was, x.count(5)
		}
		return bool(v), x.count(5)
	case glua.LString:
		if old, ok := was.(string); ok && old == string(v) {
			return was, x.count(len(v) + 3)
		}
		return string(v), x.count(len(v) + 3)
	case glua.LNumber:
		return x.number(v, was)
	case *glua.LTable:
		return x.table(v)
	case *glua.LUserData:
		if whole, ok := asWide(v); ok {
			return whole, x.count(20)
		}
	}
	return nil, x.fail("is a %s, which JSON has not", value.Type())
}

func (x *exporter) number(n glua.LNumber, was any) (any, error) {
	switch old := was.(type) {
	case int64:
		if glua.LNumber(old) == n && !x.m.bridge.ambiguousFloats[float64(n)] {
			return was, x.count(8)
		}
	case float64:
		if glua.LNumber(old) == n {
			return was, x.count(8)
		}
	}
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return nil, x.fail("is %v, which JSON has not", float64(n))
	}
	return x.m.bridge.number(n), x.count(8)
}

func (x *exporter) table(t *glua.LTable) (any, error) {
	if len(x.path) > x.m.meter.limits.Depth {
		return nil, &LimitError{"depth", strconv.Itoa(x.m.meter.limits.Depth)}
	}
	if library, frozen := x.m.proxiedLibraries[t]; frozen || library != nil {
		return nil, x.fail("is a library")
	}
	from, known := x.m.bridge.tables[t]
	if known && !from.filled {
		return x.copy(from.value, len(x.path))
	}
	if err := x.count(2); err != nil {
		return nil, err
	}
	key, _ := t.Next(glua.LNil)
	switch {
	case key == glua.LNil:
		return x.empty(from.value)
	case key.Type() == glua.LTNumber:
		old, _ := from.value.([]any)
		return x.list(t, old)
	}
	old, _ := from.value.(map[string]any)
	return x.fields(t, old)
}

// copy copies what no script has looked into.
func (x *exporter) copy(value any, depth int) (any, error) {
	if depth > 2*x.m.meter.limits.Depth {
		return nil, &LimitError{"depth", strconv.Itoa(x.m.meter.limits.Depth)}
	}
	var err error
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return nil, nil
		}
		made := make(map[string]any, len(v))
		for key, child := range v {
			if err = x.count(len(key) + 4); err != nil {
				return nil, err
			}
			if made[key], err = x.copy(child, depth+1); err != nil {
				return nil, err
			}
		}
		return made, nil
	case []any:
		if v == nil {
			return nil, nil
		}
		made := make([]any, len(v))
		for i, child := range v {
			if made[i], err = x.copy(child, depth+1); err != nil {
				return nil, err
			}
		}
		return made, x.count(2 + len(v))
	case string:
		return value, x.count(len(v) + 3)
	}
	return value, x.count(8)
}

func (x *exporter) fields(t *glua.LTable, was map[string]any) (any, error) {
	made := make(map[string]any, len(was))
	for key, value := t.Next(glua.LNil); key != glua.LNil; key, value = t.Next(key) {
		name, ok := key.(glua.LString)
		switch {
		case !ok && key.Type() == glua.LTNumber:
			return nil, x.fail("has keys of several types: %s and %s", "string", key.Type())
		case !ok:
			return nil, x.fail("has a key that is a %s: want texts only, or the places of a list", key.Type())
		}
		if err := x.count(len(name) + 4); err != nil {
			return nil, err
		}
		x.path = append(x.path, string(name))
		child, err := x.value(value, was[string(name)])
		x.path = x.path[:len(x.path)-1]
		if errors.Is(err, errNothing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		made[string(name)] = child
	}
	for key, value := range was {
		if value == nil && t.RawGetString(key) == glua.LNil {
			made[key] = nil
		}
	}
	return made, nil
}

func (x *exporter) list(t *glua.LTable, was []any) (any, error) {
	n := t.Len()
	for key, _ := t.Next(glua.LNil); key != glua.LNil; key, _ = t.Next(key) {
		if at, ok := key.(glua.LNumber); !ok || at < 1 || float64(at) != math.Trunc(float64(at)) || int(at) > n {
			return nil, x.fail("has keys of a list and others, such as %s", x.m.bridge.plain(key))
		}
	}
	made := make([]any, 0, max(n, len(was)))
	for i := 1; i <= n; i++ {
		value := t.RawGetInt(i)
		var old any
		if i <= len(was) {
			old = was[i-1]
		}
		if value == glua.LNil && (i > len(was) || old != nil) {
			return nil, x.fail("is a list without an entry %d: use table.remove", i)
		}
		x.path = append(x.path, "[*]")
		child, err := x.value(value, old)
		x.path = x.path[:len(x.path)-1]
		if errors.Is(err, errNothing) {
			child, err = map[string]any{}, nil
		}
		if err != nil {
			return nil, err
		}
		made = append(made, child)
	}
	// Nulls at the end have no entries in a table.
	for i := n; i < len(was) && was[i] == nil; i++ {
		made = append(made, nil)
	}
	return made, nil
}

// empty is what an empty table stands for.
func (x *exporter) empty(was any) (any, error) {
	switch v := was.(type) {
	case map[string]any:
		made := map[string]any{}
		for key, value := range v {
			if value == nil {
				made[key] = nil
			}
		}
		return made, nil
	case []any:
		made := []any{}
		for _, value := range v {
			if value != nil {
				return []any{}, nil
			}
			made = append(made, nil)
		}
		return made, nil
	}
	for _, example := range x.examples {
		switch at(example, x.path).(type) {
		case map[string]any:
			return map[string]any{}, nil
		case []any:
			return []any{}, nil
		}
	}
	return nil, errNothing
}

// at is the first value that an example has in a place.
func at(value any, path []string) any {
	if len(path) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		return at(v[path[0]], path[1:])
	case []any:
		if path[0] != "[*]" {
			return nil
		}
		for _, entry := range v {
			if found := at(entry, path[1:]); found != nil {
				return found
			}
		}
	}
	return nil
}
