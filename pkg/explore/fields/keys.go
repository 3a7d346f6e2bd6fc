package fields

import (
	"fmt"
	"strings"
)

// mapKeys are the keys of lists by the name of their field, as the Kubernetes API declares them (x-kubernetes-list-map-keys).
// Where a name has several meanings, the first whose keys all entries have, without repeating, counts.
//
// Source: https://github.com/kubernetes/kubernetes/blob/master/api/openapi-spec/swagger.json
var mapKeys = map[string][][]string{
	"ports":                     {{"containerPort", "protocol"}, {"port", "protocol"}, {"port"}, {"name"}},
	"volumeMounts":              {{"mountPath"}},
	"volumeDevices":             {{"devicePath"}},
	"conditions":                {{"type"}},
	"ownerReferences":           {{"uid"}},
	"hostAliases":               {{"ip"}},
	"podIPs":                    {{"ip"}},
	"hostIPs":                   {{"ip"}},
	"topologySpreadConstraints": {{"topologyKey", "whenUnsatisfiable"}},
}

// defaults are the values of key fields that may be left out.
var defaults = map[string]string{"protocol": "TCP"}

// keysOf returns the keys by which the entries of two lists pair: those that the API declares, else a unique name;
// nil if there are none.
func keysOf(name string, lists ...[]any) []string {
	for _, keys := range append(append([][]string{}, mapKeys[name]...), []string{"name"}) {
		fit := true
		for _, list := range lists {
			fit = fit && unique(list, keys)
		}
		if fit {
			return keys
		}
	}
	return nil
}

func unique(list []any, keys []string) bool {
	seen := map[string]bool{}
	for _, entry := range list {
		id := identify(entry, keys)
		if id == "" || seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// identify joins the values of an entry's keys; "" if one is missing or no scalar.
func identify(entry any, keys []string) string {
	fields, ok := entry.(map[string]any)
	if !ok {
		return ""
	}
	var id strings.Builder
	for _, key := range keys {
		value, there := fields[key]
		if fallback, may := defaults[key]; !there && may {
			value = fallback
		}
		switch value.(type) {
		case string, int64, float64, bool:
			fmt.Fprintf(&id, "%T:%q,", value, fmt.Sprint(value))
		default:
			return ""
		}
	}
	return id.String()
}
