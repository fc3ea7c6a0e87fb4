// Command clients uses an API server as Go programs do: typed and dynamic clients, in JSON and in protobuf. Each
// creates, lists, watches, patches and deletes; the first thing that is not as it should be ends the program.
//
//	clients KUBECONFIG NAMESPACE
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var ctx, cancel = context.WithTimeout(context.Background(), 60*time.Second)

func main() {
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must("read the kubeconfig", err)
	config.QPS = -1
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		one := rest.CopyConfig(config)
		one.ContentType = contentType
		if contentType != "application/json" {
			one.AcceptContentTypes = contentType + ",application/json"
		}
		typed(one, os.Args[2])
		fmt.Println("typed", contentType, "ok")
	}
	dynamically(config, os.Args[2])
	fmt.Println("dynamic ok")
	informer(config, os.Args[2])
	fmt.Println("informer ok")
}

func typed(config *rest.Config, namespace string) {
	client := kubernetes.NewForConfigOrDie(config)
	maps := client.CoreV1().ConfigMaps(namespace)
	listed, err := maps.List(ctx, metav1.ListOptions{})
	must("list", err)
	watching, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: listed.ResourceVersion})
	must("watch", err)
	defer watching.Stop()
	created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	must("create", err)
	expect("uid", created.UID != "")
	created.Data["k"] = "2"
	updated, err := maps.Update(ctx, created, metav1.UpdateOptions{})
	must("update", err)
	created.ResourceVersion = listed.ResourceVersion
	_, err = maps.Update(ctx, created, metav1.UpdateOptions{})
	expect("conflict", errors.IsConflict(err))
	patched, err := maps.Patch(ctx, "typed", types.StrategicMergePatchType, []byte(`{"data":{"k":"3"}}`), metav1.PatchOptions{})
	must("patch", err)
	expect("patched", patched.Data["k"] == "3" && patched.ResourceVersion != updated.ResourceVersion)
	must("delete", maps.Delete(ctx, "typed", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(created.UID))}))
	_, err = maps.Get(ctx, "typed", metav1.GetOptions{})
	expect("gone", errors.IsNotFound(err))
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
		event := next(watching)
		expect(string(kind), event.Type == kind)
		expect("a ConfigMap", event.Object.(*corev1.ConfigMap).Name == "typed")
	}
	workload(client, namespace)
}

func workload(client kubernetes.Interface, namespace string) {
	replicas := int32(2)
	labels := map[string]string{"app": "web"}
	deployments := client.AppsV1().Deployments(namespace)
	created, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	must("create a Deployment", err)
	expect("defaults", created.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyAlways)
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	must("get the scale", err)
	expect("replicas", scale.Spec.Replicas == 2)
	created.Status.Replicas = 1
	status, err := deployments.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	must("update the status", err)
	expect("status", status.Status.Replicas == 1)
	policy := metav1.DeletePropagationBackground
	must("delete it", deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &policy}))
}

func dynamically(config *rest.Config, namespace string) {
	client := dynamic.NewForConfigOrDie(config)
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	watching, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=dynamic"})
	must("watch", err)
	defer watching.Stop()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dynamic"}, "data": map[string]any{"k": "1"},
	}}
	applied, err := maps.Apply(ctx, "dynamic", object, metav1.ApplyOptions{FieldManager: "go", Force: true})
	must("apply", err)
	expect("managed", len(applied.GetManagedFields()) == 1)
	patch, _ := json.Marshal([]map[string]any{{"op": "replace", "path": "/data/k", "value": "2"}})
	_, err = maps.Patch(ctx, "dynamic", types.JSONPatchType, patch, metav1.PatchOptions{})
	must("patch", err)
	listed, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=dynamic"})
	must("list", err)
	expect("listed", len(listed.Items) == 1)
	must("delete", maps.Delete(ctx, "dynamic", metav1.DeleteOptions{}))
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		expect(string(kind), next(watching).Type == kind)
	}
}

// informer runs the machinery that every Go controller stands on: a streaming list, then a watch.
func informer(config *rest.Config, namespace string) {
	client := kubernetes.NewForConfigOrDie(config)
	maps := client.CoreV1().ConfigMaps(namespace)
	for i := 0; i < 3; i++ {
		name := fmt.Sprintf("informed-%d", i)
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must("create", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	shared := factory.Core().V1().ConfigMaps().Informer()
	deleted := make(chan string, 10)
	_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		deleted <- object.(*corev1.ConfigMap).Name
	}})
	must("add a handler", err)
	factory.Start(ctx.Done())
	expect("synced", cache.WaitForCacheSync(ctx.Done(), shared.HasSynced))
	expect("all there", len(shared.GetStore().ListKeys()) >= 3)
	must("delete the collection", maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for i := 0; i < 3; i++ {
		select {
		case <-deleted:
		case <-ctx.Done():
			expect("a delete", false)
		}
	}
}

func next(watching watch.Interface) watch.Event {
	select {
	case event := <-watching.ResultChan():
		return event
	case <-ctx.Done():
		expect("an event", false)
	}
	panic("unreachable")
}

func must(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func expect(what string, holds bool) {
	if !holds {
		fmt.Fprintf(os.Stderr, "not as expected: %s\n", what)
		os.Exit(1)
	}
}
