package envtest

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func ptr(number int32) *int32 { return &number }

func anything[T any](T) bool { return true }

func hasContent(content string) func(*corev1.ConfigMap) bool {
	return func(found *corev1.ConfigMap) bool { return found.Data["index.html"] == content }
}

func hasReplicas(replicas int32) func(*appsv1.Deployment) bool {
	return func(found *appsv1.Deployment) bool { return *found.Spec.Replicas == replicas }
}

func check(s *stage, holds bool) {
	s.Helper()
	if !holds {
		s.Fatal("does not hold")
	}
}

// Creation

func TestContentIsInAConfigMap(t *testing.T) {
	s := newStage(t)
	s.published()
	check(s, hasContent("hello")(get(s, &corev1.ConfigMap{})))
}

func TestADeploymentIsCreated(t *testing.T) {
	s := newStage(t)
	s.published()
	check(s, get(s, &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image == "nginx")
}

func TestOneReplicaIsTheDefault(t *testing.T) {
	s := newStage(t)
	s.published()
	check(s, hasReplicas(1)(get(s, &appsv1.Deployment{})))
}

func TestReplicasAreThoseOfTheWebsite(t *testing.T) {
	s := newStage(t)
	s.create(s.site(WebsiteSpec{Replicas: ptr(3)}))
	eventually(s, &appsv1.Deployment{}, hasReplicas(3))
}

func TestNoReplicasArePossible(t *testing.T) {
	s := newStage(t)
	s.create(s.site(WebsiteSpec{Replicas: ptr(0)}))
	eventually(s, &appsv1.Deployment{}, hasReplicas(0))
}

func TestTheDeploymentHasTheLabel(t *testing.T) {
	s := newStage(t)
	s.published()
	check(s, get(s, &appsv1.Deployment{}).Labels["website"] == "blog")
}

func TestTheConfigMapIsOwned(t *testing.T) {
	s := newStage(t)
	site := s.published()
	check(s, metav1.IsControlledBy(get(s, &corev1.ConfigMap{}), site))
}

func TestTheDeploymentIsOwned(t *testing.T) {
	s := newStage(t)
	site := s.published()
	check(s, metav1.IsControlledBy(get(s, &appsv1.Deployment{}), site))
}

func TestAnExistingWebsiteIsPublished(t *testing.T) { // with one manager for all tests, this is the same as any other
	s := newStage(t)
	s.create(s.site(WebsiteSpec{}))
	eventually(s, &appsv1.Deployment{}, anything)
}

func TestWebsitesAreIndependent(t *testing.T) {
	s := newStage(t)
	s.published()
	s.create(&Website{ObjectMeta: s.meta("shop"), Spec: WebsiteSpec{Host: "example.org", Content: "buy"}})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		found := &corev1.ConfigMap{}
		err := direct.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "shop"}, found)
		if err == nil && hasContent("buy")(found) {
			break
		}
		check(s, time.Now().Before(end))
	}
	check(s, hasContent("hello")(get(s, &corev1.ConfigMap{})))
}

func TestWebsitesOfOtherNamespacesArePublished(t *testing.T) {
	newStage(t).published()
	other := newStage(t)
	other.create(other.site(WebsiteSpec{}))
	eventually(other, &corev1.ConfigMap{}, anything)
}

// Changes

func TestChangedContentIsPublished(t *testing.T) {
	s := newStage(t)
	s.published()
	s.patchSite(`{"spec": {"content": "new"}}`)
	eventually(s, &corev1.ConfigMap{}, hasContent("new"))
}

func TestAWebsiteIsScaled(t *testing.T) {
	s := newStage(t)
	s.published()
	s.patchSite(`{"spec": {"replicas": 5}}`)
	eventually(s, &appsv1.Deployment{}, hasReplicas(5))
}

func TestAChangedHostIsInTheStatus(t *testing.T) {
	s := newStage(t)
	s.published()
	s.patchSite(`{"spec": {"host": "other.org"}}`)
	eventually(s, &Website{}, func(w *Website) bool { return w.Status.URL == "https://other.org" })
}

func TestADeletedConfigMapIsCreatedAgain(t *testing.T) {
	s := newStage(t)
	s.published()
	old := get(s, &corev1.ConfigMap{})
	must(direct.Delete(context.Background(), old))
	eventually(s, &corev1.ConfigMap{}, func(found *corev1.ConfigMap) bool { return found.UID != old.UID })
}

func TestADeletedDeploymentIsCreatedAgain(t *testing.T) {
	s := newStage(t)
	s.published()
	old := get(s, &appsv1.Deployment{})
	must(direct.Delete(context.Background(), old))
	eventually(s, &appsv1.Deployment{}, func(found *appsv1.Deployment) bool { return found.UID != old.UID })
}

func TestChangesByOthersAreReverted(t *testing.T) {
	s := newStage(t)
	s.published()
	s.patch(&corev1.ConfigMap{ObjectMeta: s.meta("blog")}, `{"data": {"index.html": "defaced"}}`)
	eventually(s, &corev1.ConfigMap{}, hasContent("hello"))
}

func TestReplicasSetByOthersAreReverted(t *testing.T) {
	s := newStage(t)
	s.published()
	s.patch(&appsv1.Deployment{ObjectMeta: s.meta("blog")}, `{"spec": {"replicas": 9}}`)
	eventually(s, &appsv1.Deployment{}, hasReplicas(1))
}

func TestLabelsOfOthersStay(t *testing.T) {
	s := newStage(t)
	s.published()
	s.patch(&corev1.ConfigMap{ObjectMeta: s.meta("blog")}, `{"metadata": {"labels": {"theirs": "yes"}}}`)
	s.patchSite(`{"spec": {"content": "new"}}`)
	check(s, eventually(s, &corev1.ConfigMap{}, hasContent("new")).Labels["theirs"] == "yes")
}

// Pausing

func TestAPausedWebsiteIsNotPublished(t *testing.T) {
	s := newStage(t)
	s.create(s.site(WebsiteSpec{Paused: true}))
	eventually(s, &Website{}, func(w *Website) bool { return len(w.Finalizers) > 0 })
	err := direct.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "blog"}, &corev1.ConfigMap{})
	check(s, apierrors.IsNotFound(err))
}

func TestAWebsiteIsPublishedWhenItIsResumed(t *testing.T) {
	s := newStage(t)
	s.create(s.site(WebsiteSpec{Paused: true}))
	s.patchSite(`{"spec": {"paused": false}}`)
	eventually(s, &corev1.ConfigMap{}, anything)
}

// Status and Events

func TestTheStatusHasTheURL(t *testing.T) {
	s := newStage(t)
	check(s, s.published().Status.URL == "https://example.org")
}

func TestTheStatusHasTheGeneration(t *testing.T) {
	s := newStage(t)
	site := s.published()
	check(s, site.Status.ObservedGeneration == site.Generation)
}

func TestTheStatusFollowsTheDeployment(t *testing.T) {
	s := newStage(t)
	s.published()
	body := `{"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}}`
	patch := client.RawPatch("application/merge-patch+json", []byte(body))
	must(direct.Status().Patch(context.Background(), &appsv1.Deployment{ObjectMeta: s.meta("blog")}, patch))
	eventually(s, &Website{}, func(w *Website) bool { return w.Status.Available == 1 })
}

func (s *stage) event(reason string) eventsv1.Event {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		found := &eventsv1.EventList{}
		must(direct.List(context.Background(), found, client.InNamespace(s.namespace)))
		for _, each := range found.Items {
			if each.Reason == reason {
				return each
			}
		}
	}
	s.Fatal("no event " + reason)
	return eventsv1.Event{}
}

func TestPublishingIsAnEvent(t *testing.T) {
	s := newStage(t)
	s.published()
	check(s, s.event("Published").Note == "1 replicas")
}

func TestAConfigMapOfAnotherOwnerIsNotChanged(t *testing.T) {
	s := newStage(t)
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("blog"), Data: map[string]string{"theirs": "yes"}})
	s.create(s.site(WebsiteSpec{}))
	check(s, s.event("NotOwned").Type == corev1.EventTypeWarning)
	check(s, get(s, &corev1.ConfigMap{}).Data["theirs"] == "yes")
}

// Validation and deletion

func isInvalid(s *stage, spec WebsiteSpec, field string) {
	s.Helper()
	err := direct.Create(context.Background(), s.site(spec))
	check(s, apierrors.IsInvalid(err) && strings.Contains(err.Error(), field))
}

func TestReplicasAreNotNegative(t *testing.T) {
	isInvalid(newStage(t), WebsiteSpec{Replicas: ptr(-1)}, "spec.replicas")
}

func TestReplicasAreLimited(t *testing.T) {
	isInvalid(newStage(t), WebsiteSpec{Replicas: ptr(11)}, "spec.replicas")
}

func TestTheHostIsValidated(t *testing.T) {
	isInvalid(newStage(t), WebsiteSpec{Host: "NOT A HOST"}, "spec.host")
}

func TestADeletedWebsiteIsRemovedFromTheNetwork(t *testing.T) {
	s := newStage(t)
	site := s.published()
	check(s, len(site.Finalizers) == 1 && site.Finalizers[0] == finalizer)
	must(direct.Delete(context.Background(), site))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := direct.Get(context.Background(), client.ObjectKeyFromObject(site), &Website{})
		if apierrors.IsNotFound(err) {
			break
		}
		check(s, time.Now().Before(end))
	}
	check(s, cdn.wasRemoved(s.namespace+"/blog"))
}
