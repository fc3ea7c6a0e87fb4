// Package envtest has the operator of bench/operator_suite and its thirty tests, with controller-runtime's envtest.
package envtest

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "websites.example.dev/cdn"

type WebsiteSpec struct {
	Host     string `json:"host"`
	Content  string `json:"content,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	Paused   bool   `json:"paused,omitempty"`
}

type WebsiteStatus struct {
	URL                string `json:"url,omitempty"`
	Available          int32  `json:"available,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec"`
	Status WebsiteStatus `json:"status,omitempty"`
}

type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}

func (in *Website) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.Replicas != nil {
		replicas := *in.Spec.Replicas
		out.Spec.Replicas = &replicas
	}
	return &out
}

func (in *WebsiteList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Website, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Website)
	}
	return &out
}

func addWebsites(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: "websites.example.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, version)
}

// network is the content delivery network of the tests: it knows which sites were removed.
type network struct {
	mutex   sync.Mutex
	removed map[string]bool
}

func (n *network) remove(key string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.removed[key] = true
}

func (n *network) wasRemoved(key string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.removed[key]
}

type reconciler struct {
	client   client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
	network  *network
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Website{}
	if err := r.client.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(site, finalizer) {
			r.network.remove(request.String())
			return ctrl.Result{}, r.client.Update(ctx, site)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		if err := r.client.Update(ctx, site); err != nil {
			return ctrl.Result{}, err
		}
	}
	if site.Spec.Paused {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.publish(ctx, site)
}

func (r *reconciler) publish(ctx context.Context, site *Website) error {
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, content, func() error {
		if content.UID != "" && !metav1.IsControlledBy(content, site) {
			return fmt.Errorf("ConfigMap %s/%s is not controlled by the website", site.Namespace, site.Name)
		}
		content.Data = map[string]string{"index.html": site.Spec.Content}
		return controllerutil.SetControllerReference(site, content, r.scheme)
	})
	if err != nil {
		r.recorder.Eventf(site, nil, corev1.EventTypeWarning, "NotOwned", "Publish", err.Error())
		return err
	}
	replicas := int32(1)
	if site.Spec.Replicas != nil {
		replicas = *site.Spec.Replicas
	}
	labels := map[string]string{"website": site.Name}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.client, deployment, func() error {
		deployment.Labels = labels
		deployment.Spec.Replicas = &replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
		}
		return controllerutil.SetControllerReference(site, deployment, r.scheme)
	})
	if err != nil {
		return err
	}
	status := WebsiteStatus{
		URL:                "https://" + site.Spec.Host,
		Available:          deployment.Status.AvailableReplicas,
		ObservedGeneration: site.Generation,
	}
	if site.Status != status {
		site.Status = status
		if err := r.client.Status().Update(ctx, site); err != nil {
			return err
		}
	}
	r.recorder.Eventf(site, nil, corev1.EventTypeNormal, "Published", "Publish", "%d replicas", replicas)
	return nil
}
