import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.TreeSet;
import java.util.Set;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** For each type of resource, and each name of Kafka's configs and of standard input: is its value hidden? */
public class HiddenConfigs {
    public static void main(String[] arguments) throws Exception {
        Set<String> names = new TreeSet<>();
        new BufferedReader(new InputStreamReader(System.in)).lines().forEach(names::add);
        names.addAll(KafkaConfig.configDef().names());
        names.addAll(DynamicConfig.Broker.names());
        names.addAll(LogConfig.configDefCopy().names());
        names.addAll(GroupConfig.CONFIG_DEF.names());
        for (ConfigResource.Type type : ConfigResource.Type.values()) {
            for (String name : names) {
                boolean shown = KafkaConfig.loggableValue(type, name, "value").equals("value");
                System.out.println(type.id() + " " + name + " " + (shown ? "shown" : "hidden"));
            }
        }
    }
}
