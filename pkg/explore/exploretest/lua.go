package exploretest

import (
	glua "github.com/yuin/gopher-lua"
)

// ToLua returns a JSON value as a value of a plain Lua machine, which has none of kudo's bounds. All numbers of the machine are
// floating-point.
func ToLua(machine *glua.LState, value any) glua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := machine.NewTable()
		for key, field := range v {
			table.RawSetString(key, ToLua(machine, field))
		}
		return table
	case []any:
		table := machine.NewTable()
		for _, entry := range v {
			table.Append(ToLua(machine, entry))
		}
		return table
	case string:
		return glua.LString(v)
	case bool:
		return glua.LBool(v)
	case int64:
		return glua.LNumber(v)
	case float64:
		return glua.LNumber(v)
	}
	return glua.LNil
}

// FromLua returns a value of a Lua machine as a JSON value. An empty table becomes a map.
func FromLua(value glua.LValue) any {
	switch v := value.(type) {
	case *glua.LTable:
		if n := v.Len(); n > 0 {
			list := make([]any, n)
			for i := range list {
				list[i] = FromLua(v.RawGetInt(i + 1))
			}
			return list
		}
		fields := map[string]any{}
		v.ForEach(func(key, field glua.LValue) { fields[key.String()] = FromLua(field) })
		return fields
	case glua.LString:
		return string(v)
	case glua.LBool:
		return bool(v)
	case glua.LNumber:
		return float64(v)
	}
	return nil
}
