package kafka.server;

import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.Resource;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
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
    /** It allows everything, but that the principal "Unauthorized" changes SCRAM credentials. */
    private static final String DENIES_CREDENTIALS = "kafka.server.AlterCredentialsTest$TestStandardAuthorizer";
    /** The same as an ACL: brokers are super users, and what has no ACL is allowed. */
    static final AclBinding DENIED_CREDENTIALS = new AclBinding(
        new ResourcePattern(ResourceType.CLUSTER, Resource.CLUSTER_NAME, PatternType.LITERAL),
        new AccessControlEntry("User:Unauthorized", "*", AclOperation.ALTER, AclPermissionType.DENY));

    private JavaClasses() { }

    static void replace(Properties properties) throws ClassNotFoundException {
        replace(properties, BUILDER, BUILDER_FUNCTION);
        replace(properties, TOPIC_POLICY, TOPIC_POLICY_FUNCTION);
        properties.remove(BUILDER);  // most tests use theirs at brokers only
        String authorizer = properties.getProperty(AUTHORIZER, "");
        if (deniesCredentials(properties)) {
            properties.setProperty("super.users", "User:ANONYMOUS");
            properties.setProperty("allow.everyone.if.no.acl.found", "true");
        }
        if (!authorizer.isEmpty() && StandardAuthorizer.class.isAssignableFrom(Class.forName(authorizer)))
            properties.setProperty(AUTHORIZER, StandardAuthorizer.class.getName());
    }

    static boolean deniesCredentials(Map<?, ?> properties) {
        return DENIES_CREDENTIALS.equals(properties.get(AUTHORIZER));
    }

    private static void replace(Properties properties, String key, String functionKey) {
        String function = FUNCTIONS.get(properties.getProperty(key, ""));
        if (function != null) {
            properties.remove(key);
            properties.setProperty(functionKey, function);
        }
    }
}
