# program: kubeclient 4.9.3 (Ruby, Debian)
# commands: ruby
ruby "$HERE/clients/kubeclient.rb"
