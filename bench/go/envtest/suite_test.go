package envtest

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	direct  client.Client // without a cache
	cdn     = &network{removed: map[string]bool{}}
	numbers atomic.Int32
)

// TestMain starts one environment for all tests, as suites with envtest do; each test has a namespace of its own.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(apiextensionsv1.AddToScheme(scheme))
	addWebsites(scheme)
	environment := &envtest.Environment{Scheme: scheme, CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}}
	config, err := environment.Start()
	must(err)
	defer environment.Stop()
	config.QPS = -1
	direct, err = client.New(config, client.Options{Scheme: scheme})
	must(err)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	must(err)
	must(ctrl.NewControllerManagedBy(manager).For(&Website{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		Complete(&reconciler{manager.GetClient(), scheme, manager.GetEventRecorder("websites"), cdn}))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { must(manager.Start(ctx)) }()
	return m.Run()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	text, flag := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	number := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	host, replicas := text, number
	lowest, highest := 0.0, 10.0
	host.Pattern = "^[a-z.]+$"
	replicas.Minimum, replicas.Maximum = &lowest, &highest
	replicas.Default = &apiextensionsv1.JSON{Raw: []byte("1")}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps, required ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties, Required: required}
	}
	type fields = map[string]apiextensionsv1.JSONSchemaProps
	schema := object(fields{
		"spec":   object(fields{"host": host, "content": text, "replicas": replicas, "paused": flag}, "host"),
		"status": object(fields{"url": text, "available": number, "observedGeneration": number}),
	}, "spec")
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "websites.websites.example.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "websites.example.dev",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "websites", Singular: "website", Kind: "Website", ListKind: "WebsiteList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// stage is a namespace of a test's own.
type stage struct {
	*testing.T
	namespace string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t, fmt.Sprintf("test-%d", numbers.Add(1))}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	return s
}

func (s *stage) create(object client.Object) {
	s.Helper()
	if err := direct.Create(context.Background(), object); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.namespace}
}

func (s *stage) site(spec WebsiteSpec) *Website {
	if spec.Host == "" {
		spec.Host = "example.org"
	}
	return &Website{ObjectMeta: s.meta("blog"), Spec: spec}
}

// published creates a website and waits for its status.
func (s *stage) published() *Website {
	s.Helper()
	s.create(s.site(WebsiteSpec{Content: "hello"}))
	return eventually(s, &Website{}, func(w *Website) bool { return w.Status.URL != "" })
}

func (s *stage) patch(object client.Object, body string) {
	s.Helper()
	if err := direct.Patch(context.Background(), object, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) patchSite(body string) {
	s.Helper()
	s.patch(&Website{ObjectMeta: s.meta("blog")}, body)
}

func get[T client.Object](s *stage, object T) T {
	s.Helper()
	if err := direct.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "blog"}, object); err != nil {
		s.Fatal(err)
	}
	return object
}

// eventually polls every 10 ms, as Gomega does.
func eventually[T client.Object](s *stage, object T, holds func(T) bool) T {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err := direct.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "blog"}, object)
		if err == nil && holds(object) {
			return object
		}
	}
	s.Fatal("not within 30 seconds")
	return object
}
