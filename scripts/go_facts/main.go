// Command go_facts prints what the Go types of Kubernetes say and its schemas do not: how each field is declared, how
// it travels in protobuf, and what an empty object of each kind looks like. scripts/import_kubernetes.py reads it.
//
//	go run . > facts.json
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// field is one field of a struct: its Go type, and whether JSON leaves it out when it is empty or zero.
type field struct {
	Type      string `json:"type"`
	OmitEmpty bool   `json:"omitEmpty"`
	OmitZero  bool   `json:"omitZero"`
}

// message is one field in protobuf: its JSON name, and what becomes of it in JSON when it is empty.
// k: kept, o: left out, p: left out if not sent, n: null if not sent, i and I: its fields stand in its place, x: not in JSON
type message struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
}

type facts struct {
	Fields   map[string]map[string]field   `json:"fields"`   // by OpenAPI model and JSON name
	Messages map[string]map[string]message `json:"messages"` // by protobuf message and field number
	Zeros    map[string]any                `json:"zeros"`    // by group/version/kind, without metadata
	seen     map[reflect.Type]bool
}

// What JSON writes in a form of its own.
var leaves = []string{"Quantity", "IntOrString", "Time", "MicroTime", "RawExtension", "FieldsV1"}

func main() {
	found := facts{map[string]map[string]field{}, map[string]map[string]message{}, map[string]any{}, map[reflect.Type]bool{}}
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		found.walk(t)
		if !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") {
			found.zero(gvk.GroupVersion().String()+"/"+gvk.Kind, reflect.New(t).Interface())
		}
	}
	for _, object := range []any{metav1.Status{}, metav1.PartialObjectMetadataList{}, metav1.TableOptions{}} {
		found.walk(reflect.TypeOf(object))
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func (f *facts) zero(name string, object any) {
	if _, err := meta.Accessor(object); err != nil {
		return
	}
	data, err := json.Marshal(object)
	must(err)
	value := map[string]any{}
	must(json.Unmarshal(data, &value))
	delete(value, "metadata")
	if len(value) > 0 {
		f.Zeros[name] = value
	}
}

func (f *facts) walk(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/") || f.seen[t] {
		return
	}
	f.seen[t] = true
	f.messages(t)
	if model, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok && !isLeaf(t) {
		f.Fields[model.OpenAPIModelName()] = map[string]field{}
		f.fields(t, f.Fields[model.OpenAPIModelName()])
	}
	for i := 0; i < t.NumField(); i++ {
		f.walk(t.Field(i).Type)
	}
}

func isLeaf(t reflect.Type) bool {
	for _, name := range leaves {
		if t.Name() == name {
			return true
		}
	}
	return false
}

// fields collects the fields of a struct under their JSON names, those of embedded structs among them.
func (f *facts) fields(t reflect.Type, into map[string]field) {
	for i := 0; i < t.NumField(); i++ {
		declared := t.Field(i)
		name, options, _ := strings.Cut(declared.Tag.Get("json"), ",")
		if !declared.IsExported() || name == "-" {
			continue
		}
		if name == "" && (declared.Anonymous || strings.Contains(options, "inline")) {
			embedded := declared.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				f.fields(embedded, into)
			}
			continue
		}
		into[name] = field{declared.Type.String(), strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")}
	}
}

func (f *facts) messages(t reflect.Type) {
	name := strings.ReplaceAll(strings.ReplaceAll(t.PkgPath(), "/", "."), "-", "_") + "." + t.Name()
	f.Messages[name] = map[string]message{}
	for i := 0; i < t.NumField(); i++ {
		declared := t.Field(i)
		tag := declared.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			continue
		}
		jsonName, options, _ := strings.Cut(declared.Tag.Get("json"), ",")
		f.Messages[name][strings.Split(tag, ",")[1]] = message{jsonName, mode(declared, jsonName, options)}
	}
}

func mode(declared reflect.StructField, jsonName, options string) string {
	omitZero := strings.Contains(options, "omitzero")
	omit := omitZero || strings.Contains(options, "omitempty")
	pointer := declared.Type.Kind() == reflect.Pointer
	switch {
	case jsonName == "-":
		return "x"
	case jsonName == "" && (declared.Anonymous || strings.Contains(options, "inline")) && pointer:
		return "I"
	case jsonName == "" && (declared.Anonymous || strings.Contains(options, "inline")):
		return "i"
	case pointer && omit:
		return "p"
	case pointer:
		return "n"
	case declared.Type.Kind() == reflect.Struct && !omitZero:
		return "k"
	case omit:
		return "o"
	}
	return "k"
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
