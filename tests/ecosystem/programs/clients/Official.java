// The official Java client: objects and their version.
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.Config;

public class Official {
  public static void main(String[] arguments) throws Exception {
    ApiClient client = Config.fromConfig(System.getenv("KUBECONFIG"));
    CoreV1Api core = new CoreV1Api(client);
    V1ConfigMap wanted = new V1ConfigMap().metadata(new V1ObjectMeta().name("settings")).putDataItem("a", "1");
    core.createNamespacedConfigMap("default", wanted).execute();
    V1ConfigMap found = core.readNamespacedConfigMap("settings", "default").execute();
    core.replaceNamespacedConfigMap("settings", "default", found.putDataItem("a", "2")).execute();
    if (!"2".equals(core.readNamespacedConfigMap("settings", "default").execute().getData().get("a"))) {
      throw new IllegalStateException("not replaced");
    }
    core.deleteNamespacedConfigMap("settings", "default").execute();
  }
}
