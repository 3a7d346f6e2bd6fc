package ui

import (
	"maps"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
)

// parameterRow is a line of the list of parameters.
type parameterRow struct {
	Name, Value, From, Description string
	Hidden                         bool
}

// parameterList is the data of the parameters. They are all hidden while something is Unknown.
type parameterList struct {
	Rows    []parameterRow
	Unknown string
}

// parametersOf returns the parameters of an Instance with their values, the sensitive ones masked.
func parametersOf(sub subject) []parameterRow {
	if sub.Instance == nil {
		return nil
	}
	rows := map[string]parameterRow{}
	if sub.Version != nil {
		for _, def := range sub.Version.Spec.Parameters {
			row := parameterRow{Name: def.Name, Description: def.Description, From: "not set"}
			if def.Default != nil {
				row.Value, row.From, row.Hidden = *def.Default, "default", isHidden(def.Name, sub.Version, sub.sensitive)
			}
			rows[def.Name] = row
		}
	}
	for _, from := range sub.Instance.Spec.ParametersFrom {
		for name := range from.Keys {
			row := rows[name]
			row.Name, row.Value, row.Hidden, row.From = name, "", from.Kind == "Secret", from.Kind+" "+from.Name
			rows[name] = row
		}
	}
	for name, row := range rows {
		row.From += unlessGiven(sub.Instance.Spec.ParametersFrom)
		rows[name] = row
	}
	for name, value := range sub.Instance.Spec.Parameters {
		row := rows[name]
		row.Name, row.Value, row.From, row.Hidden = name, value, "Instance", isHidden(name, sub.Version, sub.sensitive)
		rows[name] = row
	}
	var out []parameterRow
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		if row.Hidden {
			row.Value = params.Masked
		}
		row.Value, row.Description = sub.show(row.Value), long(row.Description)
		out = append(out, row)
	}
	return out
}

// unlessGiven names the sources that may give any parameter a value: which ones is known to their readers only.
func unlessGiven(sources []v1beta1.ParametersSource) string {
	out := ""
	for _, from := range sources {
		if len(from.Keys) == 0 {
			out += ", unless " + from.Kind + " " + from.Name + " gives it"
		}
	}
	return out
}

// definedParameters returns the parameters of an OperatorVersion with their defaults, the sensitive ones masked.
func definedParameters(ov *v1beta1.OperatorVersion) (out []parameterRow) {
	for _, def := range ov.Spec.Parameters {
		row := parameterRow{Name: def.Name, Description: long(def.Description), From: "no default", Hidden: def.Sensitive}
		if def.Default != nil {
			row.From, row.Value = "default", long(*def.Default)
			if def.Sensitive {
				row.Value = params.Masked
			}
		}
		out = append(out, row)
	}
	return out
}
