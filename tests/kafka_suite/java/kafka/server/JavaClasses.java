package kafka.server;

import org.apache.kafka.metadata.authorizer.StandardAuthorizer;

import java.util.Map;
import java.util.Properties;

/**
 * Takes the Java classes of Kafka's tests out of the properties of a controller that is no Java.
 */
final class JavaClasses {
    private static final String AUTHORIZER = "authorizer.class.name";
    private static final String BUILDER = "principal.builder.class";
    private static final String BUILDER_FUNCTION = "quorate.principal.builder";
    private static final String TOPIC_POLICY = "create.topic.policy.class.name";
    private static final String TOPIC_POLICY_FUNCTION = "quorate.create.topic.policy";
    private static final Map<String, String> FUNCTIONS = Map.of(
        "kafka.api.AbstractAuthorizerIntegrationTest$PrincipalBuilder", "kafka_suite.principals:broker",
        "org.apache.kafka.clients.security.GroupAuthorizerIntegrationTest$GroupPrincipalBuilder",
            "kafka_suite.principals:group_of_brokers",
        "kafka.api.SslAdminIntegrationTest$TestPrincipalBuilder", "kafka_suite.principals:by_certificate",
        "org.apache.kafka.clients.CreateTopicsRequestWithPolicyTest$Policy",
            "kafka_suite.policies:five_partitions_or_two_replicas");
    /** It allows everything to all but the principal "Unauthorized", which only clients of brokers have. */
    private static final String ALL_BUT_ONE = "kafka.server.AlterCredentialsTest$TestStandardAuthorizer";

    private JavaClasses() { }

    static void replace(Properties properties) throws ClassNotFoundException {
        replace(properties, BUILDER, BUILDER_FUNCTION);
        replace(properties, TOPIC_POLICY, TOPIC_POLICY_FUNCTION);
        properties.remove(BUILDER);  // most tests use theirs at brokers only
        String authorizer = properties.getProperty(AUTHORIZER, "");
        if (authorizer.equals(ALL_BUT_ONE))
            properties.setProperty("super.users", "User:ANONYMOUS");
        if (!authorizer.isEmpty() && StandardAuthorizer.class.isAssignableFrom(Class.forName(authorizer)))
            properties.setProperty(AUTHORIZER, StandardAuthorizer.class.getName());
    }

    private static void replace(Properties properties, String key, String functionKey) {
        String function = FUNCTIONS.get(properties.getProperty(key, ""));
        if (function != null) {
            properties.remove(key);
            properties.setProperty(functionKey, function);
        }
    }
}
