# program: @kubernetes/client-node 1.4.0
# npm: @kubernetes/client-node@1.4.0
cp "$HERE/clients/client.mjs" "$NODE_PATH/../ostinato.mjs"
node "$NODE_PATH/../ostinato.mjs"
