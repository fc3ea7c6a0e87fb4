// @kubernetes/client-node: objects, a patch, an informer.
import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const informer = k8s.makeInformer(config, "/api/v1/namespaces/default/configmaps", () =>
  core.listNamespacedConfigMap({ namespace: "default" }));
const seen = new Promise((resolve, reject) => {
  informer.on("add", (found) => found.metadata.name === "settings" && resolve(found));
  informer.on("error", reject);
});
await informer.start();
await core.createNamespacedConfigMap({ namespace: "default", body: { metadata: { name: "settings" }, data: { a: "1" } } });
await seen;
await core.patchNamespacedConfigMap(
  { name: "settings", namespace: "default", body: { data: { a: "2" } } },
  k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch));
const found = await core.readNamespacedConfigMap({ name: "settings", namespace: "default" });
if (found.data.a !== "2") throw new Error(`unexpected data ${JSON.stringify(found.data)}`);
await core.deleteNamespacedConfigMap({ name: "settings", namespace: "default" });
await informer.stop();
process.exit(0);
