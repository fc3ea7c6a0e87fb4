// Renders template expressions with Helm's engine, each as a chart of its own.
//
// Standard input: {"values": {...}, "files": {name: text}, "expressions": [text]}.
// Standard output: a JSON object a line: {"out": text} or {"error": text}. With the argument "versions": the default API versions.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

type input struct {
	Values      string            `json:"values"`
	Files       map[string]string `json:"files"`
	Partials    string            `json:"partials"`
	Expressions []string          `json:"expressions"`
}

type output struct {
	Out   *string `json:"out,omitempty"`
	Error string  `json:"error,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "versions" {
		json.NewEncoder(os.Stdout).Encode(chartutil.DefaultVersionSet)
		return
	}
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for _, expression := range in.Expressions {
		encoder.Encode(render(in, expression))
	}
}

func render(in input, expression string) (result output) {
	defer func() {
		if r := recover(); r != nil {
			result = output{Error: fmt.Sprintf("panic: %v", r)}
		}
	}()
	values := map[string]interface{}{}
	if err := yaml.Unmarshal([]byte(in.Values), &values); err != nil {
		panic(err)
	}
	c := &chart.Chart{
		Metadata: &chart.Metadata{Name: "c", Version: "1.2.3", AppVersion: "4.5", APIVersion: "v2", Description: "d"},
		Templates: []*chart.File{
			{Name: "templates/_p.tpl", Data: []byte(in.Partials)},
			{Name: "templates/t", Data: []byte(expression)},
		},
		Values: values,
	}
	names := []string{}
	for name := range in.Files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		c.Files = append(c.Files, &chart.File{Name: name, Data: []byte(in.Files[name])})
	}
	options := chartutil.ReleaseOptions{Name: "r", Namespace: "ns", Revision: 1, IsInstall: true}
	top, err := chartutil.ToRenderValues(c, nil, options, nil)
	if err != nil {
		return output{Error: err.Error()}
	}
	rendered, err := engine.Render(c, top)
	if err != nil {
		return output{Error: err.Error()}
	}
	text := rendered["c/templates/t"]
	return output{Out: &text}
}
