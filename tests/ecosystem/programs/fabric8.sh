# program: fabric8 kubernetes-client 7.4.0 (Java)
# maven: io.fabric8:kubernetes-client:7.4.0 org.slf4j:slf4j-simple:2.0.17
java "$HERE/clients/Fabric8.java"
