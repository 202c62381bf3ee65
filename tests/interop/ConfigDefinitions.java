import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Every config that Kafka defines, in Kafka's order: a line of equals signs and the resource, then one
 * line each with name, type, default, what `more` says, visibility, and allowed values.
 */
public class ConfigDefinitions {
    public static void main(String[] none) throws Exception {
        print("TOPIC", LogConfig.configKeys());
        print("CLIENT_METRICS", ClientMetricsConfigs.configDef().configKeys());
        print("GROUP", GroupConfig.CONFIG_DEF.configKeys());
        print("BROKER_QUOTA", QuotaConfig.brokerQuotaConfigs().configKeys());
        print("BROKER", AbstractKafkaConfig.CONFIG_DEF.configKeys());
    }

    static void print(String resource, Map<String, ConfigDef.ConfigKey> keys) throws Exception {
        System.out.println("= " + resource);
        for (ConfigDef.ConfigKey key : keys.values()) {
            System.out.println(String.join(" ",
                key.name, key.type.name(), defaultOf(key), more(resource, key.name),
                key.internalConfig ? "internal" : "public", allowed(key)).strip());
        }
    }

    static String defaultOf(ConfigDef.ConfigKey key) {
        if (!key.hasDefault()) {
            return "required";
        }
        return key.defaultValue == null
            ? "null"
            : '"' + ConfigDef.convertToString(key.defaultValue, key.type) + '"';
    }

    /** Of a broker: how it may change. Of another resource: the broker's configs in its place. */
    static String more(String resource, String name) {
        String found = switch (resource) {
            case "BROKER", "BROKER_QUOTA" ->
                DynamicBrokerConfig.dynamicConfigUpdateModes().getOrDefault(name, "read-only");
            case "GROUP" -> GroupConfig.brokerSynonym(name).orElse("");
            case "TOPIC" -> ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS
                .getOrDefault(name, List.of()).stream()
                .map(synonym -> synonym.name() + unit(synonym)).collect(Collectors.joining(","));
            default -> "";
        };
        return found.isEmpty() ? "-" : found;
    }

    /** What a number is multiplied with. */
    static String unit(ConfigSynonym synonym) {
        String factor = synonym.converter().apply("1");
        return factor.equals("1") ? "" : "*" + factor;
    }

    static String allowed(ConfigDef.ConfigKey key) throws Exception {
        if (key.validator == null) {
            return "";
        }
        if (!(key.validator instanceof ConfigDef.ValidList)) {
            return key.validator.toString();
        }
        Field mayBeEmpty = ConfigDef.ValidList.class.getDeclaredField("isEmptyAllowed");
        mayBeEmpty.setAccessible(true);
        return ((Boolean) mayBeEmpty.get(key.validator) ? "distinct " : "distinct non-empty ") + key.validator;
    }
}
