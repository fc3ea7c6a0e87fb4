// Command go_templates executes templates with Go's own text/template and records what they print, or their error.
//
//	python cases.py language | go run . -functions plain > ../../tests/data/gotemplate/language.jsonl
//
// The input has the values that templates are executed with, by name, and the cases. A value is JSON; numbers are
// float64, and {"$int": 1}, {"$int64": 1}, {"$uint8": 1}, {"$bytes": "text"}, {"$strings": ["a"]} have other types.
// The output has the values in its first line, then a case with its result in each. Other files of this package add
// function maps.
package main

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"text/template"
	"unicode/utf8"
)

// functionMaps has the functions that templates get, by the name of the flag.
var functionMaps = map[string]func() template.FuncMap{
	"plain": func() template.FuncMap { return template.FuncMap{} },
}

// input is what is executed: values by name, and cases.
type input struct {
	Data  map[string]any `json:"data"`
	Cases []vector       `json:"cases"`
}

// vector is a case with its result: the text that it prints, in hexadecimal if it is not UTF-8, or its error.
type vector struct {
	Text    string  `json:"t"`
	Data    string  `json:"d,omitempty"` // name of the value; empty: nil
	Missing string  `json:"m,omitempty"` // the option missingkey
	Output  *string `json:"o,omitempty"`
	Hex     *string `json:"x,omitempty"`
	Error   *string `json:"e,omitempty"`
}

// typed replaces objects that name a type by values of that type.
func typed(value any) any {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			value[i] = typed(item)
		}
	case map[string]any:
		for name, item := range value {
			switch name {
			case "$int":
				return int(item.(float64))
			case "$int64":
				return int64(item.(float64))
			case "$uint8":
				return uint8(item.(float64))
			case "$bytes":
				return []byte(item.(string))
			case "$strings":
				texts := []string{}
				for _, text := range item.([]any) {
					texts = append(texts, text.(string))
				}
				return texts
			}
			value[name] = typed(item)
		}
	}
	return value
}

func (v *vector) run(data any, functions template.FuncMap) {
	defer func() {
		if reason := recover(); reason != nil {
			text := fmt.Sprintf("panic: %v", reason)
			v.Error = &text
		}
	}()
	parsed := template.New("t").Funcs(functions)
	if v.Missing != "" {
		parsed.Option("missingkey=" + v.Missing)
	}
	parsed, err := parsed.Parse(v.Text)
	var output strings.Builder
	if err == nil {
		err = parsed.Execute(&output, data)
	}
	text := output.String()
	switch {
	case err != nil:
		message := err.Error()
		v.Error = &message
	case utf8.ValidString(text):
		v.Output = &text
	default:
		bytes := hex.EncodeToString([]byte(text))
		v.Hex = &bytes
	}
}

func main() {
	name := flag.String("functions", "plain", "functions that templates get")
	flag.Parse()
	functions, known := functionMaps[*name]
	if !known {
		log.Fatalf("unknown functions %q", *name)
	}
	var cases input
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		log.Fatal(err)
	}
	raw, _ := json.Marshal(cases.Data)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if err := out.Encode(map[string]any{"data": cases.Data}); err != nil {
		log.Fatal(err)
	}
	for i := range cases.Cases {
		vector := &cases.Cases[i]
		var fresh map[string]any // functions may change maps
		_ = json.Unmarshal(raw, &fresh)
		vector.run(typed(fresh[vector.Data]), functions())
		if err := out.Encode(vector); err != nil {
			log.Fatal(err)
		}
	}
}
