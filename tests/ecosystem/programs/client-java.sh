# program: kubernetes-client/java 24.0.0
# maven: io.kubernetes:client-java:24.0.0 org.slf4j:slf4j-simple:2.0.17
java "$HERE/clients/Official.java"
