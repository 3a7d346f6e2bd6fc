package yamldoc

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kudo.dev/kudo/pkg/text"

	"go.yaml.in/yaml/v3"
)

// plain reports whether a scalar is written without quotes and without a tag, so that its text decides its type.
func plain(n *yaml.Node) bool {
	const written = yaml.TaggedStyle | yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Style&written == 0
}

func isNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	value, err := scalar(n)
	return err == nil && value == nil
}

// scalar gives the value of a scalar by the rules of YAML 1.1: nil, bool, int64, float64 or string. An integer
// beyond int64 is a json.Number with its decimal digits.
func scalar(n *yaml.Node) (any, error) {
	if plain(n) {
		return resolve(n.Value), nil
	}
	if n.Style&yaml.TaggedStyle == 0 {
		return n.Value, nil
	}
	value := resolve(n.Value)
	switch n.ShortTag() {
	case "!!null":
		if value == nil {
			return nil, nil
		}
	case "!!bool":
		if b, ok := value.(bool); ok {
			return b, nil
		}
	case "!!int":
		switch v := value.(type) {
		case int64, json.Number:
			return v, nil
		}
	case "!!float":
		switch v := value.(type) {
		case float64:
			return v, nil
		case int64:
			return float64(v), nil
		}
	case "!!binary":
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return nil, errorAt(n.Line, "!!binary value is not base64: %v", err)
		}
		return string(decoded), nil
	default:
		return n.Value, nil
	}
	return nil, errorAt(n.Line, "%s is no value of type %s", text.Quote(n.Value, 64), n.ShortTag())
}

// booleans of YAML 1.1, which go-yaml v2 (and so Kubernetes) reads.
var booleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "true": true, "True": true, "TRUE": true,
	"on": true, "On": true, "ON": true, "n": false, "N": false, "no": false, "No": false, "NO": false,
	"false": false, "False": false, "FALSE": false, "off": false, "Off": false, "OFF": false,
}

var integer = regexp.MustCompile(`^[-+]?[1-9][0-9]*$`)

var floatStyle = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolve gives the value of a plain scalar. The order of the attempts is that of go-yaml v2.
func resolve(text string) any {
	if text == "" {
		return nil
	}
	switch c := text[0]; {
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0:
		if b, ok := booleans[text]; ok {
			return b
		}
		if text == "~" || text == "null" || text == "Null" || text == "NULL" {
			return nil
		}
	case c == '.':
		switch text {
		case ".nan", ".NaN", ".NAN":
			return math.NaN()
		case ".inf", ".Inf", ".INF":
			return math.Inf(1)
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	case c == '+' || c == '-' || (c >= '0' && c <= '9'):
		return number(text)
	}
	return text
}

// number reads a plain scalar that begins with a digit or a sign.
func number(text string) any {
	switch text {
	case "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	if isDate(text) {
		return text
	}
	digits := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return i
	}
	if i, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return json.Number(strconv.FormatUint(i, 10))
	}
	// Here go-yaml makes a float of an integer.
	if integer.MatchString(digits) {
		return json.Number(strings.TrimPrefix(digits, "+"))
	}
	if floatStyle.MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	// What go-yaml takes besides, like 0b+1.
	for prefix, sign := range map[string]string{"0b": "", "-0b": "-"} {
		if rest, ok := strings.CutPrefix(digits, prefix); ok {
			if i, err := strconv.ParseInt(sign+rest, 2, 64); err == nil {
				return i
			}
		}
	}
	return text
}

var dateFormats = []string{"2006-1-2T15:4:5.999999999Z07:00", "2006-1-2t15:4:5.999999999Z07:00", "2006-1-2 15:4:5.999999999", "2006-1-2"}

// isDate reports whether a text is a YAML timestamp; these are text in Kubernetes, underscores or not.
func isDate(text string) bool {
	if len(text) < 8 || text[4] != '-' {
		return false
	}
	for _, format := range dateFormats {
		if _, err := time.Parse(format, text); err == nil {
			return true
		}
	}
	return false
}
