# kubeclient: objects and a watch.
require "kubeclient"

config = Kubeclient::Config.read(ENV["KUBECONFIG"])
context = config.context
client = Kubeclient::Client.new(context.api_endpoint, "v1", ssl_options: context.ssl_options)
client.create_config_map(Kubeclient::Resource.new(metadata: { name: "settings", namespace: "default" }, data: { a: "1" }))
client.patch_config_map("settings", { data: { a: "2" } }, "default")
found = client.get_config_map("settings", "default")
raise "unexpected data" unless found.data.a == "2"
client.watch_config_maps(namespace: "default") do |notice|
  break if notice.object.metadata.name == "settings"
end
client.delete_config_map("settings", "default")
