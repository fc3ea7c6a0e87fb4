package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type GadgetSpec struct {
	Text string `json:"text,omitempty"`
}

type GadgetStatus struct {
	ConfigMap          string `json:"configMap,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec,omitempty"`
	Status GadgetStatus `json:"status,omitempty"`
}

type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Gadget `json:"items"`
}

func (in *Gadget) DeepCopyObject() runtime.Object {
	out := *in // spec and status hold nothing that is shared
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (in *GadgetList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Gadget, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Gadget)
	}
	return &out
}

func addGadgets(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: "bench.example.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(scheme, version)
}
