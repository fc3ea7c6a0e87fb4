# program: kubernetes-fluent-client 3.11.6
# npm: kubernetes-fluent-client@3.11.6
cat > "$NODE_PATH/../fluent.mjs" <<'JS'
import { K8s, kind } from "kubernetes-fluent-client";
await K8s(kind.ConfigMap).Apply({ metadata: { name: "fluent", namespace: "default" }, data: { a: "1" } });
const found = await K8s(kind.ConfigMap).InNamespace("default").Get("fluent");
if (found.data.a !== "1") throw new Error("unexpected data");
await K8s(kind.ConfigMap).InNamespace("default").Delete("fluent");
JS
node "$NODE_PATH/../fluent.mjs"
