# program: fabric8 kubernetes-client 6.13.5 (Java)
# maven: io.fabric8:kubernetes-client:6.13.5 org.bouncycastle:bcpkix-jdk18on:1.78.1 org.slf4j:slf4j-simple:2.0.17
java "$HERE/clients/Fabric8.java"
