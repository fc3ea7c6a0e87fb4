// fabric8: an informer, server-side apply, an edit, a Pod until it is ready.
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

public class Fabric8 {
  public static void main(String[] arguments) throws Exception {
    Config config = Config.autoConfigure(null);
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      CountDownLatch seen = new CountDownLatch(1);
      var settings = client.configMaps().inNamespace("default").withName("settings");
      try (var informer = settings.inform(new ResourceEventHandler<ConfigMap>() {
        public void onAdd(ConfigMap found) { seen.countDown(); }
        public void onUpdate(ConfigMap old, ConfigMap found) {}
        public void onDelete(ConfigMap last, boolean unknown) {}
      })) {
        ConfigMap wanted = new ConfigMapBuilder().withNewMetadata().withName("settings").withNamespace("default")
            .endMetadata().addToData("a", "1").build();
        client.resource(wanted).serverSideApply();
        if (!seen.await(30, TimeUnit.SECONDS)) throw new IllegalStateException("no event");
        settings.edit(found -> { found.getData().put("b", "2"); return found; });
        if (!"2".equals(settings.get().getData().get("b"))) throw new IllegalStateException("not edited");
        client.resource(wanted).delete();
      }
      Pod pod = new PodBuilder().withNewMetadata().withName("one").withNamespace("default").endMetadata()
          .withNewSpec().addNewContainer().withName("web").withImage("nginx").endContainer().endSpec().build();
      client.resource(pod).create();
      client.pods().inNamespace("default").withName("one").waitUntilReady(60, TimeUnit.SECONDS);
      client.resource(pod).withGracePeriod(0).delete();
    }
  }
}
