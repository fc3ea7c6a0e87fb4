// Command go_internal prints how kube-apiserver shows values in its messages: it holds objects in types of its own,
// which mostly have no JSON names, and shows them under the names of their Go fields, in their order.
// scripts/import_kubernetes.py reads it.
//
//	go run . > internal.json
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
)

// shown is one field as messages show it.
type shown struct {
	Name  string `json:"name"`
	Field string `json:"field"` // its name in the published version; ".": its fields stand in its place there
	Omit  bool   `json:"omit"`  // left out when empty
	Zero  string `json:"zero"`  // what stands there if nothing does: JSON, or @MODEL for an empty struct
	Model string `json:"model"` // of the structs in it, if there are any
}

type facts map[string][]shown // by OpenAPI model of the published version

// What JSON writes in a form of its own.
var leaves = map[string]string{
	"Quantity": `"0"`, "IntOrString": "0", "Time": "null", "MicroTime": "null", "RawExtension": "null", "FieldsV1": "null",
	"Unknown": "null",
}

func main() {
	found := facts{}
	known := legacyscheme.Scheme.AllKnownTypes()
	for gvk, t := range known {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		gvk.Version = runtime.APIVersionInternal
		if internal, ok := known[gvk]; ok {
			found.walk(t, internal)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

func model(t reflect.Type) string {
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return ""
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

func (f facts) walk(published, internal reflect.Type) {
	name := model(published)
	if _, seen := f[name]; seen || name == "" || published.Kind() != reflect.Struct || internal.Kind() != reflect.Struct {
		return
	}
	if _, leaf := leaves[published.Name()]; leaf {
		return
	}
	f[name] = nil
	fields := map[string]reflect.StructField{}
	collect(published, fields)
	f[name] = f.fields(internal, fields, "")
}

// collect finds the fields of a published struct by their Go names, those of embedded structs among them.
func collect(t reflect.Type, into map[string]reflect.StructField) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		into[strings.ToLower(field.Name)] = field
		if field.Anonymous && tag == "" && element(field.Type).Kind() == reflect.Struct {
			collect(element(field.Type), into)
		}
	}
}

func (f facts) fields(internal reflect.Type, published map[string]reflect.StructField, under string) []shown {
	var all []shown
	for i := 0; i < internal.NumField(); i++ {
		field := internal.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous && tag == "" && element(field.Type).Kind() == reflect.Struct {
			embedded := element(field.Type)
			if embedded.Name() == "ObjectMeta" {
				meta := map[string]reflect.StructField{}
				collect(embedded, meta)
				all = append(all, f.fields(embedded, meta, "metadata.")...)
			} else {
				all = append(all, f.fields(embedded, published, under)...)
			}
			continue
		}
		one := shown{Name: field.Name, Omit: strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")}
		if tag != "" {
			one.Name = tag
		}
		one.Field = strings.ToLower(field.Name[:1]) + field.Name[1:]
		if same, ok := published[strings.ToLower(field.Name)]; ok {
			one.Field, _, _ = strings.Cut(same.Tag.Get("json"), ",")
			if one.Field == "" {
				one.Field = "."
			}
			from, to := element(same.Type), element(field.Type)
			_, leaf := leaves[from.Name()]
			if !leaf && same.Type.Kind() != reflect.Map && from.Kind() == reflect.Struct && to.Kind() == reflect.Struct {
				one.Model = model(from)
				f.walk(from, to)
			}
		}
		one.Field = under + one.Field
		one.Zero = zero(field.Type, one.Model)
		all = append(all, one)
	}
	return all
}

func zero(t reflect.Type, model string) string {
	if leaf, ok := leaves[t.Name()]; ok {
		return leaf
	}
	switch t.Kind() {
	case reflect.Struct:
		return "@" + model
	case reflect.String:
		return `""`
	case reflect.Bool:
		return "false"
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return "null"
	}
	return "0"
}
